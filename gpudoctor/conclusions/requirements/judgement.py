"""The answer to one requirement, which findings explain it, and why a fact is not known."""

from collections.abc import Mapping

from gpudoctor.model import Snapshot
from gpudoctor.model.requirement import OPERATORS, MachineRequirement

# Checks whose findings explain why something is missing.
NO_DRIVER = ("driver-missing", "driver-not-loaded", "libcuda-not-on-linker-path", "wsl-driver-problem")
NO_GPU = (
    *("no-nvidia-gpu", *NO_DRIVER),
    *("cuda-init-unknown-error-999", "cuda-visible-devices-hides-gpu", "mig-misconfigured"),
)
NO_TORCH = ("torch-not-installed",)
BROKEN_TORCH = ("torch-import-failed", "torch-library-missing")
NO_TORCH_CUDA = (
    *BROKEN_TORCH,
    *("torch-cuda-unavailable", "torch-cpu-build", "torch-no-kernel-for-device", "torch-wrong-results"),
    *("rocm-build-on-nvidia", "cuda-build-on-amd", *NO_GPU),
)
NO_CUPY = ("cupy-missing",)
BROKEN_CUPY = ("cupy-unusable",)
SMALL_SHM = ("shm-too-small",)
BAD_PROFILE = ("profile-stale",)
FAULTS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("gpu", "vram", "compute_capability", "bf16", "fp16", "tf32", "fp8", "driver", "cuda"), NO_GPU),
    "torch": (*NO_TORCH, *BROKEN_TORCH),
    "torch.cuda": (*NO_TORCH, *NO_TORCH_CUDA),
    "cupy": (*NO_CUPY, *BROKEN_CUPY, *NO_GPU),
    "shm": SMALL_SHM,
    "profile": BAD_PROFILE,
}
"""Requirement name → ids of the checks that may find why it is not met."""

_IMPORTING = {"torch_runtime": "PyTorch", "cupy_runtime": "CuPy"}


def version_agrees(requirement: MachineRequirement, version: str) -> bool | None:
    """Return whether the version meets the requirement, by PEP 440; None if it is not a version."""
    if not requirement.operator:
        return True
    from packaging.specifiers import Specifier
    from packaging.version import InvalidVersion, Version

    try:
        found = Version(version)
    except InvalidVersion:
        return None
    return Specifier(f"{requirement.operator}{requirement.value}").contains(found, prereleases=True)


def size_agrees(requirement: MachineRequirement, size_bytes: int, tolerance: float = 0.0) -> bool:
    """Return whether the size meets the requirement. Sizes within `tolerance` (a fraction) are equal."""
    wanted = int(requirement.value or 0)
    equal = abs(size_bytes - wanted) <= tolerance * wanted
    return OPERATORS[requirement.operator](wanted if equal else size_bytes, wanted)


def why_unknown(snapshot: Snapshot, section: str, probe: str = "") -> str:
    """Return why the facts of `section` are unknown.

    probe: the probe that reads it, if the section has several.
    """
    reports = [report for report in snapshot.reports if report.section == section]
    report = next((report for report in reports if report.probe == probe), None) or snapshot.report(section)
    if report is None or report.state in ("ok", "absent"):
        return f"{section} does not show it"
    if report.state == "not-run" and snapshot.contradictions is None and section in _IMPORTING:
        return f"{_IMPORTING[section]} was not imported (--fast)"
    detail = report.detail.strip().partition("\n")[0].strip()
    return f"{section}: {report.state}{f' ({detail})' if detail else ''}"
