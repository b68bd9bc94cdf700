"""One finding for each requirement that is not met: an error, wherever it stands among the others."""

from dataclasses import replace

import pytest

from gpudoctor.configuration.requirements import parse_requirement
from gpudoctor.engine.checkup import exit_status
from gpudoctor.engine.runner import run_checks
from gpudoctor.model import (
    CheckResult,
    CudaVersion,
    Cupy,
    Device,
    Driver,
    DriverVersion,
    Finding,
    Fix,
    Outcome,
    PackageVersion,
    Python,
    Report,
    Severity,
    Snapshot,
    System,
    Torch,
    TorchRuntime,
)
from gpudoctor.reporters import table
from gpudoctor.reporters.terminal import Screen
from tests.own_checks import own_checks

MIB = 2**20
RTX_4090 = Device(nvml_index=0, name="NVIDIA GeForce RTX 4090", memory_total_bytes=24564 * MIB)
SNAPSHOT = Snapshot(
    system=System(os="linux", shm_total_bytes=64 * MIB),
    driver=Driver(
        installed=True,
        version=DriverVersion.parse("535.54.03"),
        cuda_version=CudaVersion(12, 2),
        cuda_init_code=0,
        cuda_device_count=1,
    ),
    devices=(RTX_4090,),
    python=Python(version=PackageVersion("3.11.7"), platform_tag="linux_x86_64"),
    torch=Torch(installed=True, version=PackageVersion("2.9.0+cpu"), build="cpu"),
    torch_runtime=TorchRuntime(import_error="", available=False),
)


def report(*texts: str, snapshot: Snapshot = SNAPSHOT, severities: dict[str, Severity] | None = None) -> Report:
    requirements = [parse_requirement(text) for text in texts]
    return run_checks(own_checks(), snapshot, None, requirements, severities)


def unmet(*texts: str, snapshot: Snapshot = SNAPSHOT) -> list[Finding]:
    return [
        finding for finding in report(*texts, snapshot=snapshot).findings if finding.check_id == "requirement-unmet"
    ]


def outcome(found: Report) -> Outcome:
    return next(result.outcome for result in found.results if result.check_id == "requirement-unmet")


def test_without_requirements_the_question_does_not_arise() -> None:
    (result,) = [result for result in report().results if result.check_id == "requirement-unmet"]
    assert (result.outcome, result.applicable) == (Outcome.SKIPPED, False)


def test_what_is_met_passes() -> None:
    assert outcome(report("gpu>=1", "vram>=24GiB", "driver>=535", "python>=3.10", "bf16")) is Outcome.PASSED


def test_each_one_that_is_not_is_an_error_with_what_was_found_instead() -> None:
    first, second = unmet("gpu>=2", "gpu>=1", "shm>=1GiB")
    assert (first.severity, first.subject) == (Severity.ERROR, "gpu>=2")
    assert first.summary == "gpu>=2 is required, but 1 GPU can be used"
    assert [(evidence.fact, evidence.value) for evidence in first.evidence] == [("driver.cuda_device_count", 1)]
    assert second.summary == "shm>=1GiB is required, but the shared memory has 64 MiB"


def test_what_is_unknown_is_unmet_and_says_that_it_is_unknown() -> None:
    (finding,) = unmet("cupy>=13")
    assert finding.details == {"requirement": "cupy>=13", "known": False}
    (finding,) = unmet("torch>=2.10")
    assert finding.details == {"requirement": "torch>=2.10", "known": True}


def test_a_machine_of_which_nothing_is_known_meets_nothing() -> None:
    found = report("gpu>=1", snapshot=Snapshot())
    assert (outcome(found), found.verdict) == (Outcome.FOUND, "error")


def test_it_stands_after_its_cause_and_stays_an_error() -> None:
    first, second, *_ = report("torch.cuda").findings
    assert (first.check_id, first.severity) == ("torch-cpu-build", Severity.ERROR)
    assert (second.check_id, second.severity) == ("requirement-unmet", Severity.ERROR)
    assert second.caused_by == "torch-cpu-build"


def test_another_requirement_has_another_cause() -> None:
    (finding,) = unmet("gpu>=2")
    assert finding.caused_by is None


def test_a_lower_severity_of_the_cause_lets_nobody_pass() -> None:
    found = report("torch.cuda", severities={"torch-cpu-build": Severity.INFO})
    assert found.verdict == "error"
    first, second, *_ = found.findings
    assert (first.check_id, first.severity) == ("torch-cpu-build", Severity.INFO)
    assert (second.subject, second.severity) == ("torch.cuda", Severity.ERROR)
    text = table.render(found, screen=Screen(width=200))
    assert "also caused by this: requirement-unmet: torch.cuda is required" in text


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("torch>=2.10", "-m pip install"),
        ("cupy>=13", "-m pip install"),
        ("torch.cuda", "-m pip install"),
        ("profile", "gpudoctor tune"),
    ],
)
def test_what_software_can_fix_has_its_command(text: str, command: str) -> None:
    (finding,) = unmet(text)
    assert any(command in line for remedy in finding.remedies for line in remedy.commands)


def test_another_release_of_torch_is_advised_than_the_one_that_is_too_old() -> None:
    (finding,) = unmet("torch>=2.10")
    assert finding.fixes == (Fix("install-torch", keep_release=False),)
    assert "torch==2.9.0" not in " ".join(finding.remedies[0].commands)


@pytest.mark.parametrize(("text", "words"), [("driver>=550", "to 550 or newer"), ("cuda>=12.4", "for CUDA 12.4")])
def test_a_driver_that_is_too_old_is_updated(text: str, words: str) -> None:
    (finding,) = unmet(text)
    assert words in finding.remedies[0].summary


@pytest.mark.parametrize("text", ["driver>=1", "driver<500", "cuda!=12.2"])
def test_an_odd_version_is_no_crash(text: str) -> None:
    assert outcome(report(text)) in (Outcome.FOUND, Outcome.PASSED)


def test_a_build_with_cuda_is_not_installed_again() -> None:
    cuda = replace(SNAPSHOT, torch=Torch(installed=True, version=PackageVersion("2.9.0"), build="cuda"))
    assert unmet("torch.cuda", snapshot=cuda)[0].fixes == (Fix("meet-requirement", requirement="torch.cuda"),)
    assert unmet("torch.cuda")[0].fixes == (Fix("install-torch"),)


def test_no_command_brings_another_gpu() -> None:
    (remedy,) = unmet("vram>=80GiB")[0].remedies
    assert (remedy.summary, remedy.commands) == (
        "Run on a machine that meets vram>=80GiB, or change the requirement",
        (),
    )


ABSENT = Snapshot(
    system=System(os="linux", kernel="6.8.0", container="", wsl=0, pci_gpus=()),
    driver=Driver(installed=False, module_loaded=False, libcuda_path="", nvml_code=12),
    devices=(),
    python=Python(version=PackageVersion("3.11.7"), executable="/usr/bin/python3"),
    torch=Torch(installed=False),
    cupy=Cupy(distributions=()),
)
EVERY = (
    *("gpu>=1", "vram>=24GiB", "compute_capability>=8.0", "bf16", "fp16", "tf32", "fp8", "driver>=550", "cuda>=12.4"),
    *("python>=99", "torch>=2.4", "torch.cuda", "cupy", "cupy>=13", "shm>=1GiB", "profile"),
)


@pytest.mark.parametrize("text", EVERY)
@pytest.mark.parametrize(
    "snapshot",
    [
        pytest.param(SNAPSHOT, id="CPU build beside a GPU"),
        pytest.param(ABSENT, id="no GPU"),
        pytest.param(Snapshot(), id="nothing known"),
        pytest.param(Snapshot(contradictions=(), symptoms=()), id="an empty report"),
    ],
)
def test_an_unmet_requirement_has_its_root_cause_or_a_fix(text: str, snapshot: Snapshot) -> None:
    found = report(text, snapshot=snapshot)
    for finding in found.findings:
        if finding.check_id == "requirement-unmet":
            cause = next((other for other in found.findings if other.check_id == finding.caused_by), finding)
            assert cause.remedies


@pytest.mark.parametrize("text", ["gpu>=1", "vram>=24GiB", "bf16", "driver>=550", "cuda>=12.4", "torch.cuda", "cupy"])
def test_what_needs_a_gpu_is_explained_by_its_absence(text: str) -> None:
    first, second, *_ = report(text, snapshot=ABSENT).findings
    assert (first.check_id, first.severity) == ("no-nvidia-gpu", Severity.ERROR)
    assert f"{text} is required" in first.summary
    assert (second.check_id, second.caused_by) == ("requirement-unmet", "no-nvidia-gpu")


def test_a_required_package_that_is_missing_is_an_error() -> None:
    first, second, *_ = report("torch>=2.4", snapshot=ABSENT).findings
    assert (first.check_id, first.severity) == ("torch-not-installed", Severity.ERROR)
    assert (second.check_id, second.caused_by) == ("requirement-unmet", "torch-not-installed")


def test_requirements_that_could_not_be_judged_give_no_verdict() -> None:
    results = (
        CheckResult(check_id="driver-missing", outcome=Outcome.PASSED),
        CheckResult(check_id="requirement-unmet", outcome=Outcome.CRASHED, reason="crashed"),
    )
    crashed = Report(version="0.1.0", snapshot=SNAPSHOT, results=results, findings=())
    assert exit_status(crashed, "error") == exit_status(crashed, "never") == 3


@pytest.mark.parametrize("fail_on", ["error", "warning", "never"])
def test_an_unmet_requirement_fails_whatever_fails_otherwise(fail_on: str) -> None:
    assert exit_status(report("gpu>=2"), fail_on) == 1
