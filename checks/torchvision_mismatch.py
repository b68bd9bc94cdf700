"""torchvision and torchaudio against the installed PyTorch."""

import re
from collections.abc import Iterator

from gpudoctor.conclusions.installed import Machine, package, torch_fact, whole_torch
from gpudoctor.conclusions.messages import reported
from gpudoctor.data import torch_companions, torch_releases
from gpudoctor.data.torch_builds import INDEX
from gpudoctor.model import (
    CudaVersion,
    Device,
    Driver,
    Finding,
    PackageVersion,
    Python,
    Remedy,
    Severity,
    Symptom,
    System,
    Torch,
    TorchRuntime,
)
from gpudoctor.model.record import record
from gpudoctor.registry import Skip, check, known, skip_unless
from gpudoctor.remedies import install_packages
from gpudoctor.remedies.commands import environment_of

COMPANIONS = ("torchvision", "torchaudio")
# torchaudio uses PyTorch's stable ABI from 2.11 on and asks for no version of it.
# Source: metadata of its wheels on PyPI, read 2026-11-21.
FIRST_INDEPENDENT_TORCHAUDIO = (2, 11)


@record
class _Mismatch:
    """A companion that does not belong to this PyTorch. `right`: the version that does, "" where it is not known."""

    name: str
    fact: str
    version: PackageVersion
    right: str
    severity: Severity = Severity.ERROR


@check(family="torch", explains=("extension-abi-mismatch",))
def torchvision_mismatch(
    python: Python | None = None,
    torch: Torch | None = None,
    torch_runtime: TorchRuntime | None = None,
    system: System | None = None,
    driver: Driver | None = None,
    devices: tuple[Device, ...] | None = None,
    symptoms: tuple[Symptom, ...] | None = None,
) -> Iterator[Finding]:
    """torchvision or torchaudio was built for another release or another CUDA than the installed PyTorch.

    Why: the import ends with "operator torchvision::nms does not exist" or "compiled with different CUDA major
    versions", and a CPU build of torchvision has no kernels for tensors on the GPU.
    Exception: wheels of PyPI do not say in their metadata for which CUDA they are, so only their release is compared.
    Patch releases differ freely, and so do the minor versions of CUDA for torchvision.
    Reference: https://github.com/pytorch/vision#installation
    """
    whole = whole_torch(torch, torch_runtime)
    skip_unless(known(whole.installed, "torch.installed"), "PyTorch is not installed")
    machine = Machine(python=python, system=system, driver=driver, devices=devices)
    said = reported(symptoms, "torchvision-*")
    try:
        mismatches = _mismatches(python, whole, system)
    except Skip:
        if not said:
            raise
        mismatches = ()
    if said and not mismatches:
        yield _reported(said[0], whole, machine)
    if mismatches:
        yield _finding(mismatches, whole, machine, torch_fact("version", torch, torch_runtime))


def _mismatches(python: Python | None, whole: Torch, system: System | None) -> tuple[_Mismatch, ...]:
    """Return the installed companions that do not belong to PyTorch, by their versions."""
    known(python.packages if python is not None else None, "python.packages")
    found = {name: there for name in COMPANIONS if (there := package(python, name)) is not None}
    skip_unless(found, "neither torchvision nor torchaudio is installed")
    version = known(whole.version, "torch.version")
    if not _is_release(version):
        raise Skip(f"{version} is no release of PyTorch")
    return tuple(
        mismatch
        for name, (fact, companion) in found.items()
        if (mismatch := _mismatch(name, fact, companion, version, whole, system)) is not None
    )


def _finding(mismatches: tuple[_Mismatch, ...], whole: Torch, machine: Machine, version_fact: str) -> Finding:
    named = " and ".join(f"{mismatch.name} {mismatch.version}" for mismatch in mismatches)
    verb = "does" if len(mismatches) == 1 else "do"
    right = " and ".join(f"{mismatch.name} {mismatch.right}" for mismatch in mismatches if mismatch.right)
    return Finding(
        severity=max(mismatch.severity for mismatch in mismatches),
        summary=f"{named} {verb} not belong to PyTorch {whole.version}"
        + (f", to which {right} belong{'' if ' and ' in right else 's'}" if right else ""),
        subject=named,
        facts=(version_fact, *(mismatch.fact for mismatch in mismatches)),
        remedies=(_remedy(mismatches, whole, machine),),
    )


def _reported(said: tuple[str, Symptom], whole: Torch, machine: Machine) -> Finding:
    """Return the finding where a program says so, and the versions do not tell."""
    fact, message = said
    names = message.names
    companion = "torchaudio" if "torchaudio" in message.text.lower() else "torchvision"
    if "companion_cuda" in names:
        summary = f"{companion} is built with CUDA {names['companion_cuda']}, and PyTorch with {names['torch_cuda']}"
    elif "wanted" in names:
        summary = f"{companion} {names['companion_version']} belongs to torch {names['wanted']}, not {names['version']}"
    else:
        summary = f"{companion} is not built for the installed PyTorch{f' {whole.version}' if whole.version else ''}"
    return Finding(
        severity=Severity.ERROR,
        summary=summary,
        subject=companion,
        facts=(fact,),
        remedies=(_together(companion, whole, machine),),
    )


def _together(companion: str, whole: Torch, machine: Machine) -> Remedy:
    """Return how to install PyTorch and the companion again, both from one index."""
    variant = _variant(whole)
    companions = torch_companions(whole.version.public) if whole.version is not None else None
    right = getattr(companions, companion, None)
    verify = f"import torch, {companion}; print(torch.__version__, {companion}.__version__)"
    if whole.version is not None and right and variant:
        requirements = [f"torch=={whole.version.public}+{variant}", f"{companion}=={right}+{variant}"]
    else:
        if not variant:
            variant = _usual_variant(machine, whole)
        requirements = ["torch", companion]
    return install_packages(
        python=machine.python,
        requirements=("--index-url", f"{INDEX}/{variant}", *requirements),
        remove=("torch", companion),
        summary=f"Install torch and {companion} again, together and from one index, so that both are of one build",
        verify=verify,
    )


def _usual_variant(machine: Machine, whole: Torch) -> str:
    """Return the variant that fits the machine: the one that its index is named by."""
    commands = " ".join(machine.install_torch(whole).commands)
    match = re.search(rf"{re.escape(INDEX)}/(cu\d+)", commands)
    return match[1] if match else "cpu"


def _is_release(version: PackageVersion) -> bool:
    return re.fullmatch(r"\d+(\.\d+)+", version.public) is not None


def _mismatch(
    name: str, fact: str, companion: PackageVersion, version: PackageVersion, whole: Torch, system: System | None
) -> _Mismatch | None:
    if not _is_release(companion) or (name == "torchaudio" and companion.release >= FIRST_INDEPENDENT_TORCHAUDIO):
        return None
    expected = _expected(name, version)
    variant = _variant(whole) if _local(name, companion, version, system) else ""
    right = f"{expected}{f'+{variant}' if variant else ''}" if expected else ""
    if expected:
        of_other_release = PackageVersion(expected).minor_release != companion.minor_release
    else:
        releases = _releases_for(name, companion)
        of_other_release = bool(releases) and version.minor_release not in releases
    if of_other_release:
        return _Mismatch(name=name, fact=fact, version=companion, right=right)
    severity = _variant_severity(name, _local(name, companion, version, system), whole)
    if severity is None:
        return None
    return _Mismatch(name=name, fact=fact, version=companion, right=right, severity=severity)


def _local(name: str, companion: PackageVersion, version: PackageVersion, system: System | None) -> str:
    """Return the variant in the companion's version, or "default" beside a PyTorch that the index whl/cpu gave.

    The wheels of that index say "+cpu", those of PyPI for Linux on x86_64 say nothing and are built for CUDA:
    pytorch/pytorch#122494.
    """
    linux = system is not None and (system.os, system.machine) == ("linux", "x86_64")
    if name == "torchvision" and not companion.local and version.local == "cpu" and linux:
        return "default"
    return companion.local


def _expected(name: str, version: PackageVersion) -> str | None:
    """Return the version of the companion that belongs to this PyTorch, None where the table does not know it."""
    companions = torch_companions(version.public)
    return getattr(companions, name) if companions is not None else None


def _releases_for(name: str, companion: PackageVersion) -> set[str]:
    """Return the releases of PyTorch that the table gives for the companion's release."""
    return {
        release.release
        for release in torch_releases()
        for version in release.versions
        if (expected := _expected(name, PackageVersion(version))) is not None
        and PackageVersion(expected).minor_release == companion.minor_release
    }


def _variant(whole: Torch) -> str:
    """Return the name of PyTorch's build in local versions: "cu130", "cpu"; "" where it is not known."""
    if whole.build == "cuda":
        return whole.cuda_version.tag if whole.cuda_version else ""
    return "cpu" if whole.build == "cpu" else ""


def _variant_severity(name: str, local: str, whole: Torch) -> Severity | None:
    """Return how much it matters that the companion is another variant than PyTorch; None for nothing or unknown.

    torchvision compares the CUDA major version on import, torchaudio the whole one, and neither minds a CPU build,
    which lacks the kernels for CUDA: those of torchvision are common, those of torchaudio are few.
    Source: torchvision/extension.py, torchaudio/_extension/utils.py.
    """
    match = re.fullmatch(r"cu(\d{2,3})", local)
    if local == "default":
        return Severity.ERROR
    if local == "cpu" and whole.build == "cuda":
        return Severity.ERROR if name == "torchvision" else Severity.WARNING
    if match is None or whole.build not in ("cpu", "cuda"):
        return None
    if whole.build == "cpu":
        return Severity.ERROR
    cuda = CudaVersion(int(match[1][:-1]), int(match[1][-1]))
    if whole.cuda_version is None:
        return None
    differs = cuda.major != whole.cuda_version.major if name == "torchvision" else cuda != whole.cuda_version
    return Severity.ERROR if differs else None


def _remedy(mismatches: tuple[_Mismatch, ...], whole: Torch, machine: Machine) -> Remedy:
    known_versions = all(mismatch.right for mismatch in mismatches)
    variant = _variant(whole)
    names = " and ".join(f"{mismatch.name} {mismatch.right}" for mismatch in mismatches)
    verify = f"import torch, {', '.join(mismatch.name for mismatch in mismatches)}; print(torch.__version__)"
    summary = f"Install {names} for PyTorch {whole.version}"
    environment = environment_of(machine.python, machine.system)
    if known_versions and whole.conda_build and environment.conda_prefix:
        requirements = [f"{mismatch.name}={mismatch.right.partition('+')[0]}" for mismatch in mismatches]
        pinned = f"pytorch={whole.version.public}" if whole.version else "pytorch"
        commands = (environment.conda("install", [pinned, *requirements]), environment.run(verify))
        return Remedy(summary=summary, commands=commands)
    on_mac = machine.system is not None and machine.system.os == "darwin"
    if known_versions and (variant or on_mac):
        local = "" if on_mac else f"+{variant}"
        requirements = [f"{mismatch.name}=={mismatch.right.partition('+')[0]}{local}" for mismatch in mismatches]
        index = [] if on_mac else ["--index-url", f"{INDEX}/{variant}"]
        return install_packages(
            python=machine.python, requirements=(*index, *requirements), summary=summary, verify=verify
        )
    if whole.build == "cpu":
        return Remedy(
            summary=f"Install the torchvision and torchaudio that belong to PyTorch {whole.version}",
            reference="https://pytorch.org/get-started/previous-versions/",
        )
    return machine.install_torch(whole)
