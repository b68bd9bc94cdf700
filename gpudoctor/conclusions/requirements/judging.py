"""Requirements, compared with a snapshot. An unknown fact satisfies no requirement."""

from collections.abc import Callable, Mapping, Sequence

from gpudoctor.conclusions.cupy_status import cupy_installed
from gpudoctor.conclusions.fingerprint import FITS, STALE, fingerprint, fit
from gpudoctor.conclusions.pytorch import merge_torch
from gpudoctor.conclusions.requirements.gpus import PROPERTIES, judge_count, judge_property, least_count, usable_gpus
from gpudoctor.conclusions.requirements.judgement import (
    BAD_PROFILE,
    BROKEN_CUPY,
    BROKEN_TORCH,
    NO_CUPY,
    NO_GPU,
    NO_TORCH,
    NO_TORCH_CUDA,
    SMALL_SHM,
    size_agrees,
    version_agrees,
    why_unknown,
)
from gpudoctor.data.numerics import within
from gpudoctor.model import Cupy, CupyRuntime, Driver, Python, Snapshot, System, Torch, TorchRuntime
from gpudoctor.model.requirement import Judgement, MachineRequirement

_MIB = 2**20


def judge(requirements: Sequence[MachineRequirement], snapshot: Snapshot) -> tuple[Judgement, ...]:
    """Return whether each requirement is met.

    The same GPUs must meet all GPU requirements: as many as `gpu>=N` says, otherwise all of them.
    """
    gpus = usable_gpus(snapshot)
    left, least = gpus, least_count(requirements)
    judgements = []
    for requirement in requirements:
        if requirement.name in PROPERTIES:
            judgement, left = judge_property(requirement, left, least)
        elif requirement.name == "gpu":
            judgement = judge_count(requirement, gpus)
        else:
            judgement = _JUDGES[requirement.name](requirement, snapshot)
        judgements.append(judgement)
    return tuple(judgements)


def _driver(requirement: MachineRequirement, snapshot: Snapshot) -> Judgement:
    driver = snapshot.driver or Driver()
    if driver.installed is False:
        return _lacking(requirement, "no NVIDIA driver is installed", "driver.installed", NO_GPU)
    if driver.version is None:
        return _unknown(requirement, "the driver's version", why_unknown(snapshot, "driver", "nvml"), NO_GPU)
    return _version(requirement, f"the driver is {driver.version}", str(driver.version), "driver.version")


def _cuda(requirement: MachineRequirement, snapshot: Snapshot) -> Judgement:
    driver = snapshot.driver or Driver()
    if driver.cuda_version is not None:
        found = f"the driver supports CUDA {driver.cuda_version}"
        return _version(requirement, found, str(driver.cuda_version), "driver.cuda_version")
    if driver.installed is False:
        return _lacking(requirement, "no NVIDIA driver is installed", "driver.installed", NO_GPU)
    why = why_unknown(snapshot, "driver", "cuda-driver")
    return _unknown(requirement, "the CUDA version that the driver supports", why, NO_GPU)


def _python(requirement: MachineRequirement, snapshot: Snapshot) -> Judgement:
    version = (snapshot.python or Python()).version
    if version is None:
        return _unknown(requirement, "the version of Python", why_unknown(snapshot, "python"))
    return _version(requirement, f"Python is {version}", str(version), "python.version")


def _torch(requirement: MachineRequirement, snapshot: Snapshot) -> Judgement:
    absent = _torch_absent(requirement, snapshot)
    if absent is not None:
        return absent
    pytorch = merge_torch(snapshot.torch or Torch(), snapshot.torch_runtime or TorchRuntime())
    if pytorch.version is None:
        return _unknown(requirement, "the version of PyTorch", why_unknown(snapshot, "torch"), NO_TORCH)
    return _version(requirement, f"PyTorch is {pytorch.version}", str(pytorch.version), pytorch.facts["version"])


def _torch_cuda(requirement: MachineRequirement, snapshot: Snapshot) -> Judgement:
    absent = _torch_absent(requirement, snapshot, NO_GPU)
    if absent is not None:
        return absent
    runtime = snapshot.torch_runtime
    if runtime is None or runtime.available is None:
        why = why_unknown(snapshot, "torch_runtime")
        return _unknown(requirement, "whether PyTorch can use a GPU", why, NO_TORCH_CUDA)
    if not runtime.available or runtime.availability_error:
        said = runtime.availability_error or "torch.cuda.is_available() is False"
        fact = "torch_runtime.availability_error" if runtime.availability_error else "torch_runtime.available"
        return _lacking(requirement, f"PyTorch can use no GPU: {said}", fact, NO_TORCH_CUDA)
    if runtime.precision_results is None and snapshot.contradictions is None:
        return _unknown(requirement, "whether PyTorch computes on the GPU", "no product was tried", NO_TORCH_CUDA)
    if runtime.precision_results is not None and not _computes(runtime):
        found = "PyTorch computed no correct float32 product on a GPU"
        return _lacking(requirement, found, "torch_runtime.precision_results", NO_TORCH_CUDA)
    return Judgement(requirement=requirement, met=True)


def _computes(runtime: TorchRuntime) -> bool:
    """Return whether a float32 product on a GPU is correct, even if a setting forces TF32."""
    results = [result for result in runtime.precision_results or () if result.precision == "fp32"]
    return any(result.device.startswith("cuda") and within(result, "tf32") for result in results)


def _torch_absent(
    requirement: MachineRequirement, snapshot: Snapshot, faults: tuple[str, ...] = ()
) -> Judgement | None:
    """Return why PyTorch is unavailable: it is not installed, or its import fails; None if neither is known."""
    pytorch = merge_torch(snapshot.torch or Torch(), snapshot.torch_runtime or TorchRuntime())
    if pytorch.installed is False:
        return _lacking(requirement, "PyTorch is not installed", pytorch.facts["installed"], (*NO_TORCH, *faults))
    return _import_fails(requirement, "torch_runtime", "PyTorch", snapshot, BROKEN_TORCH)


def _cupy(requirement: MachineRequirement, snapshot: Snapshot) -> Judgement:
    if cupy_installed(snapshot.cupy or Cupy(), snapshot.cupy_runtime or CupyRuntime()) is False:
        fact = "cupy_runtime.import_error" if snapshot.cupy is None else "cupy.distributions"
        return _lacking(requirement, "CuPy is not installed", fact, (*NO_CUPY, *NO_GPU))
    failing = _import_fails(requirement, "cupy_runtime", "CuPy", snapshot, BROKEN_CUPY)
    if failing is not None:
        return failing
    on_disk = (snapshot.cupy or Cupy()).version
    version = on_disk or (snapshot.cupy_runtime or CupyRuntime()).version
    if version is None:
        return _unknown(requirement, "the version of CuPy", why_unknown(snapshot, "cupy"), NO_CUPY)
    fact = "cupy_runtime.version" if on_disk is None else "cupy.version"
    return _version(requirement, f"CuPy is {version}", str(version), fact)


def _import_fails(
    requirement: MachineRequirement, section: str, library: str, snapshot: Snapshot, faults: tuple[str, ...]
) -> Judgement | None:
    """Return how the import fails, crashes or hangs; None if it works or was not tried."""
    runtime: TorchRuntime | CupyRuntime | None = getattr(snapshot, section)
    if runtime is not None and runtime.import_error:
        found = f"importing {library} fails: {runtime.import_error}"
        return _lacking(requirement, found, f"{section}.import_error", faults)
    report = snapshot.report(section)
    if runtime is None and report is not None and report.state in ("failed", "timed-out"):
        return _unknown(requirement, f"whether {library} can be imported", why_unknown(snapshot, section), faults)
    return None


def _shm(requirement: MachineRequirement, snapshot: Snapshot) -> Judgement:
    size = (snapshot.system or System()).shm_total_bytes
    if size is None:
        return _unknown(requirement, "the size of /dev/shm", why_unknown(snapshot, "system"), SMALL_SHM)
    return Judgement(
        requirement=requirement,
        met=size_agrees(requirement, size),
        found=f"the shared memory has {size / _MIB:,.0f} MiB",
        facts=("system.shm_total_bytes",),
        faults=SMALL_SHM,
    )


def _profile(requirement: MachineRequirement, snapshot: Snapshot) -> Judgement:
    profile = snapshot.profile
    if profile is None:
        report = snapshot.report("profile")
        if report is not None and report.state == "absent" and snapshot.contradictions is None:
            return _lacking(requirement, "there is no profile", "", BAD_PROFILE)
        return _unknown(requirement, "the profile", why_unknown(snapshot, "profile"))
    if profile.problem:
        found = f"{profile.path} cannot be used: {profile.problem}"
        return _lacking(requirement, found, "profile.problem", BAD_PROFILE)
    parts = fingerprint(profile, snapshot.devices, snapshot.driver, snapshot.torch, snapshot.cupy)
    answer = fit(parts)
    facts = ("profile.fingerprint", *(fact for part in parts if not part.fits for fact in part.facts))
    differing = [f"{part.name} {part.was} (now {part.now or 'not known'})" for part in parts if not part.fits]
    found = f"{profile.path} was tuned on {', '.join(differing) or 'what it does not say'}"
    met = {FITS: True, STALE: False}.get(answer)
    return Judgement(requirement=requirement, met=met, found=found, facts=facts, faults=BAD_PROFILE)


def _version(requirement: MachineRequirement, found: str, version: str, fact: str) -> Judgement:
    return Judgement(requirement=requirement, met=version_agrees(requirement, version), found=found, facts=(fact,))


def _lacking(requirement: MachineRequirement, found: str, fact: str, faults: tuple[str, ...]) -> Judgement:
    return Judgement(requirement=requirement, met=False, found=found, facts=(fact,) if fact else (), faults=faults)


def _unknown(requirement: MachineRequirement, what: str, why: str, faults: tuple[str, ...] = ()) -> Judgement:

    return Judgement(requirement=requirement, met=None, found=f"{what} is not known: {why}", faults=faults)


_JUDGES: Mapping[str, Callable[[MachineRequirement, Snapshot], Judgement]] = {
    "driver": _driver,
    "cuda": _cuda,
    "python": _python,
    "torch": _torch,
    "torch.cuda": _torch_cuda,
    "cupy": _cupy,
    "shm": _shm,
    "profile": _profile,
}
