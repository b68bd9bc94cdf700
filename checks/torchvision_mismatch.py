"""torchvision and torchaudio against the installed PyTorch."""

import re
from collections.abc import Iterator

from gpudoctor.data.torch_wheels import companion_of, releases_of_companion
from gpudoctor.model import CudaVersion, Finding, Fix, PackageVersion, Python, Pytorch, Severity, Symptom, System
from gpudoctor.model.record import record
from gpudoctor.registry import Skip, check, known, skip_unless
from gpudoctor.symptoms import Symptoms, of_kind

COMPANIONS = ("torchvision", "torchaudio")
# torchaudio uses PyTorch's stable ABI from 2.11 on and asks for no version of it.
# Source: metadata of its wheels on PyPI, read 2026-11-21.
FIRST_INDEPENDENT_TORCHAUDIO = (2, 11)


@record
class _Mismatch:
    """A companion that does not belong to this PyTorch. `right`: the version that does, "" if it is unknown."""

    name: str
    fact: str
    version: PackageVersion
    right: str
    severity: Severity = Severity.ERROR


@check(family="torch", explains=("extension-abi-mismatch",))
def torchvision_mismatch(
    pytorch: Pytorch, python: Python = Python(), system: System = System(), symptoms: Symptoms = None
) -> Iterator[Finding]:
    """torchvision or torchaudio was built for a different release or CUDA version than the installed PyTorch.

    Why: the import fails with "operator torchvision::nms does not exist" or "compiled with different CUDA major
    versions". A CPU build of torchvision has no kernels for tensors on the GPU.
    Exception: the metadata of PyPI's wheels does not name their CUDA version, so only their release is compared. Patch
    releases may differ. For torchvision, minor versions of CUDA may differ too.
    Reference: https://github.com/pytorch/vision#installation
    """
    skip_unless(known(pytorch.installed, "torch.installed"), "PyTorch is not installed")
    said = of_kind(symptoms, "torchvision-*")
    try:
        mismatches = _mismatches(python, pytorch, system)
    except Skip:
        if not said:
            raise
        mismatches = ()
    if mismatches:
        yield _finding(mismatches, pytorch)
    elif said:
        yield _reported(said[0], pytorch)


def _mismatches(python: Python, pytorch: Pytorch, system: System) -> tuple[_Mismatch, ...]:
    known(python.packages, "python.packages")
    found = {name: there for name in COMPANIONS if (there := python.package(name)) is not None}
    skip_unless(found, "neither torchvision nor torchaudio is installed")
    version = known(pytorch.version, "torch.version")
    if not _is_release(version):
        raise Skip(f"{version} is not a PyTorch release")
    return tuple(
        mismatch
        for name, (fact, companion) in found.items()
        if (mismatch := _mismatch(name, fact, companion, version, pytorch, system)) is not None
    )


def _finding(mismatches: tuple[_Mismatch, ...], pytorch: Pytorch) -> Finding:
    named = " and ".join(f"{mismatch.name} {mismatch.version}" for mismatch in mismatches)
    verb = "does" if len(mismatches) == 1 else "do"
    right = " and ".join(f"{mismatch.name} {mismatch.right}" for mismatch in mismatches if mismatch.right)
    return Finding.of(
        max(mismatch.severity for mismatch in mismatches),
        named,
        f"{named} {verb} not belong to PyTorch {pytorch.version}"
        + (f", to which {right} belong{'' if ' and ' in right else 's'}" if right else ""),
        (*pytorch.paths("version"), *(mismatch.fact for mismatch in mismatches)),
        Fix("install-companions", versions={mismatch.name: mismatch.right for mismatch in mismatches}),
    )


def _reported(said: Symptom, pytorch: Pytorch) -> Finding:
    names = said.names
    companion = "torchaudio" if "torchaudio" in names.get("companion", "") else "torchvision"
    if "companion_cuda" in names:
        summary = f"{companion} is built with CUDA {names['companion_cuda']}, but PyTorch with {names['torch_cuda']}"
    elif "wanted" in names:
        summary = f"{companion} {names['companion_version']} belongs to torch {names['wanted']}, not {names['version']}"
    else:
        summary = f"{companion} is not built for the installed {pytorch.label}"
    return Finding.error(companion, summary, (said.fact,), Fix("install-torch-with-companion", companion=companion))


def _is_release(version: PackageVersion) -> bool:
    return re.fullmatch(r"\d+(\.\d+)+", version.public) is not None


def _mismatch(
    name: str, fact: str, companion: PackageVersion, version: PackageVersion, pytorch: Pytorch, system: System
) -> _Mismatch | None:
    if not _is_release(companion) or (name == "torchaudio" and companion.release >= FIRST_INDEPENDENT_TORCHAUDIO):
        return None
    expected = companion_of(name, version.public)
    local = _local(name, companion, version, system)
    right = f"{expected}{f'+{pytorch.variant}' if local and pytorch.variant else ''}" if expected else ""
    if expected:
        of_other_release = PackageVersion(expected).minor_release != companion.minor_release
    else:
        releases = releases_of_companion(name, companion)
        of_other_release = bool(releases) and version.minor_release not in releases
    severity = Severity.ERROR if of_other_release else _variant_severity(name, local, pytorch)
    if severity is None:
        return None
    return _Mismatch(name=name, fact=fact, version=companion, right=right, severity=severity)


def _local(name: str, companion: PackageVersion, version: PackageVersion, system: System) -> str:
    """Return the variant in the companion's version, or "default" if PyTorch came from the index whl/cpu and it not.

    The wheels of that index say "+cpu", those of PyPI for Linux on x86_64 say nothing and are built for CUDA:
    pytorch/pytorch#122494.
    """
    linux = (system.os, system.machine) == ("linux", "x86_64")
    if name == "torchvision" and not companion.local and version.local == "cpu" and linux:
        return "default"
    return companion.local


def _variant_severity(name: str, local: str, pytorch: Pytorch) -> Severity | None:
    """Return how much it matters that the companion is a different variant than PyTorch; None for nothing or unknown.

    torchvision compares the CUDA major version on import, torchaudio the whole one, and neither minds a CPU build,
    which lacks the kernels for CUDA: those of torchvision are common, those of torchaudio are few.
    Source: torchvision/extension.py, torchaudio/_extension/utils.py.
    """
    match = re.fullmatch(r"cu(\d{2,3})", local)
    if local == "default":
        return Severity.ERROR
    if local == "cpu" and pytorch.build == "cuda":
        return Severity.ERROR if name == "torchvision" else Severity.WARNING
    if match is None or pytorch.build not in ("cpu", "cuda"):
        return None
    if pytorch.build == "cpu":
        return Severity.ERROR
    cuda = CudaVersion(int(match[1][:-1]), int(match[1][-1]))
    built = pytorch.cuda_version or cuda
    differs = cuda.major != built.major if name == "torchvision" else cuda != built
    return Severity.ERROR if differs else None
