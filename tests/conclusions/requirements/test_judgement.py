"""The answer to one requirement, what explains it, and why a fact is not known."""

from __future__ import annotations

import pytest

from gpudoctor.conclusions.requirements.judgement import FAULTS, size_agrees, version_agrees, why_unknown
from gpudoctor.model import ProbeReport, Snapshot
from gpudoctor.model.requirement import MachineRequirement

NO_GPU = {
    "no-nvidia-gpu", "driver-missing", "driver-not-loaded", "libcuda-not-on-linker-path", "wsl-driver-problem",
    "cuda-init-unknown-error-999", "cuda-visible-devices-hides-gpu", "mig-misconfigured",
}  # fmt: skip
BROKEN_TORCH = {"torch-not-installed", "torch-import-failed", "torch-library-missing"}
NO_TORCH_CUDA = {
    "torch-cuda-unavailable", "torch-cpu-build", "torch-no-kernel-for-device", "torch-wrong-results",
    "rocm-build-on-nvidia", "cuda-build-on-amd",
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "checks"),
    [
        *((name, NO_GPU) for name in ("gpu", "vram", "compute_capability", "bf16", "fp16", "tf32", "fp8")),
        ("driver", NO_GPU),
        ("cuda", NO_GPU),
        ("torch", BROKEN_TORCH),
        ("torch.cuda", BROKEN_TORCH | NO_TORCH_CUDA | NO_GPU),
        ("cupy", {"cupy-missing", "cupy-unusable"} | NO_GPU),
        ("shm", {"shm-too-small"}),
        ("profile", {"profile-stale"}),
        ("python", set()),
    ],
)
def test_what_may_explain_that_it_is_not_met(name: str, checks: set[str]) -> None:
    assert set(FAULTS.get(name, ())) == checks


@pytest.mark.parametrize(
    ("operator", "value", "version", "agrees"),
    [
        ("", None, "anything", True),
        (">=", "2.9", "2.9.0", True),
        (">=", "2.9", "2.8.9", False),
        (">=", "2.9", "2.10.0a1", True),
        ("==", "2.9.0", "2.9.0+cu130", True),
        (">=", "2.9", "unknown", None),
    ],
)
def test_versions(operator: str, value: str | None, version: str, agrees: bool | None) -> None:
    requirement = MachineRequirement(text="torch", name="torch", operator=operator, value=value)
    assert version_agrees(requirement, version) is agrees


@pytest.mark.parametrize(
    ("operator", "size_bytes", "tolerance", "agrees"),
    [
        (">=", 1000, 0.0, True),
        (">=", 999, 0.0, False),
        (">=", 950, 0.05, True),
        (">=", 949, 0.05, False),
        (">", 1050, 0.05, False),
        (">", 1051, 0.05, True),
        ("==", 1001, 0.0, False),
    ],
)
def test_sizes(operator: str, size_bytes: int, tolerance: float, agrees: bool) -> None:
    requirement = MachineRequirement(text="vram", name="vram", operator=operator, value="1000")
    assert size_agrees(requirement, size_bytes, tolerance) is agrees


TWO_PROBES = (
    ProbeReport(section="driver", state="failed", probe="nvml", detail="NVML hangs\nsecond line"),
    ProbeReport(section="driver", state="timed-out", probe="cuda-driver"),
)


@pytest.mark.parametrize(
    ("reports", "section", "probe", "why"),
    [
        pytest.param((), "driver", "", "driver does not show it", id="nobody looked"),
        pytest.param(TWO_PROBES, "driver", "cuda-driver", "driver: timed-out", id="the probe that would tell it"),
        pytest.param(TWO_PROBES, "driver", "", "driver: failed (NVML hangs)", id="the worst, by its first line"),
        pytest.param(TWO_PROBES, "driver", "other", "driver: failed (NVML hangs)", id="a probe that did not run"),
        pytest.param(TWO_PROBES, "torch", "nvml", "torch does not show it", id="of another section"),
        *(
            pytest.param((ProbeReport(section="torch", state=state),), "torch", "", "torch does not show it", id=state)
            for state in ("ok", "absent")
        ),
        *(
            pytest.param(
                (ProbeReport(section=section, state="not-run"),), section, "", f"{name} was not imported (--fast)"
            )
            for section, name in (("torch_runtime", "PyTorch"), ("cupy_runtime", "CuPy"))
        ),
        pytest.param((ProbeReport(section="torch", state="not-run"),), "torch", "", "torch: not-run", id="no import"),
    ],
)
def test_why_a_fact_is_unknown(reports: tuple[ProbeReport, ...], section: str, probe: str, why: str) -> None:
    assert why_unknown(Snapshot(reports=reports), section, probe) == why


def test_in_a_report_nothing_is_imported() -> None:
    snapshot = Snapshot(reports=(ProbeReport(section="torch_runtime", state="not-run"),), contradictions=())
    assert why_unknown(snapshot, "torch_runtime") == "torch_runtime: not-run"
