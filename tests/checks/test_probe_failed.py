from dataclasses import replace

import pytest

from gpudoctor.model import Driver, Outcome, PackageVersion, ProbeReport, Python, Severity
from gpudoctor.testing import run_check

PYTHON = Python(version=PackageVersion("3.12.3"), executable="/opt/my env/bin/python")


def report(probe: str, state: str, detail: str = "", section: str = "torch_runtime") -> ProbeReport:
    return ProbeReport(section=section, state=state, probe=probe, detail=detail)


@pytest.mark.parametrize(
    ("probe", "state", "detail", "severity"),
    [
        ("torch-runtime", "failed", "killed by SIGSEGV\nFatal Python error", Severity.ERROR),
        ("torch-runtime", "timed-out", "no answer in 30 s", Severity.ERROR),
        ("cupy-runtime", "failed", "killed by SIGABRT", Severity.ERROR),
        ("nvml", "timed-out", "no answer in 30 s", Severity.ERROR),
        ("cuda-driver", "failed", "killed by signal 64", Severity.ERROR),
        ("torch-runtime", "failed", "its answer could not be read: KeyError: 'x'", Severity.WARNING),
        ("kernel-log", "timed-out", "no answer in 30 s", Severity.WARNING),
        ("toolkit", "failed", "killed by SIGKILL", Severity.WARNING),
        ("torch-runtime", "not-run", "not asked: --fast", None),
        ("torch-runtime", "absent", "", None),
        ("torch-runtime", "ok", "", None),
    ],
)
def test_severity(probe: str, state: str, detail: str, severity: Severity | None) -> None:
    findings = run_check("probe-failed", reports=(report(probe, state, detail),)).findings
    assert [finding.severity for finding in findings] == ([] if severity is None else [severity])


def test_the_finding_says_which_and_how_and_what_to_run_by_hand() -> None:
    crash = report("torch-runtime", "failed", "killed by SIGSEGV\nCurrent thread 0x1 (most recent call first)")
    (finding,) = run_check("probe-failed", reports=(report("nvml", "ok"), crash), python=PYTHON).findings
    assert finding.summary == "The probe torch-runtime failed: killed by SIGSEGV"
    assert finding.evidence[0].fact == "reports[1].state"
    assert finding.remedies[0].commands == (
        "'/opt/my env/bin/python' -X faulthandler -c \"import torch; print(torch.cuda.is_available())\"",
    )


def test_the_driver_of_windows_has_its_own_library() -> None:
    windows = Python(executable="python", platform_tag="win_amd64")
    crash = report("cuda-driver", "timed-out", "no answer in 30 s", section="driver")
    (finding,) = run_check("probe-failed", reports=(crash,), python=windows).findings
    assert "nvcuda.dll" in finding.remedies[0].commands[0]


def test_one_probe_of_several_sections_is_one_finding() -> None:
    reports = tuple(report("python", "failed", "PermissionError", section=name) for name in ("python", "torch", "cupy"))
    (finding,) = run_check("probe-failed", reports=reports).findings
    assert finding.summary == "The probe python failed: PermissionError"


def test_without_probes_there_is_nothing_to_check() -> None:
    result = run_check("probe-failed", reports=())
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, "no probe was run")


@pytest.mark.parametrize(
    ("driver", "found"),
    [
        pytest.param(Driver(nvml_code=18, nvml_error="Driver/library version mismatch"), 0, id="NVML said why"),
        pytest.param(Driver(nvml_error="NVIDIA-SMI has failed"), 0, id="nvidia-smi said why"),
        pytest.param(Driver(nvml_code=0, nvml_error=""), 1, id="NVML works, its devices do not"),
        pytest.param(None, 1, id="nothing said why"),
    ],
)
def test_an_error_of_nvml_is_for_the_checks_of_the_driver(driver: Driver | None, found: int) -> None:
    reports = (report("nvml", "failed", "NVML: an error", section="devices"),)
    assert len(run_check("probe-failed", reports=reports, driver=driver).findings) == found


@pytest.mark.parametrize(("seconds", "shown"), [(30.0, ["state", "detail", "seconds"]), (0.0, ["state", "detail"])])
def test_how_long_it_took_is_evidence_if_it_was_measured(seconds: float, shown: list[str]) -> None:
    crash = replace(report("nvml", "failed", "killed by SIGSEGV"), seconds=seconds)
    (finding,) = run_check("probe-failed", reports=(crash,)).findings
    assert [item.fact for item in finding.evidence] == [f"reports[0].{name}" for name in shown]
