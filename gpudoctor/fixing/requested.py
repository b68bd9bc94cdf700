"""`gpudoctor install`: what is named, as the remedies that the checks give for this machine."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from gpudoctor.conclusions import Facts
from gpudoctor.data.packages import FIRST_TORCH_WITH_NUMPY_2, cuda_major
from gpudoctor.data.torch_builds import torch_companions, torch_releases
from gpudoctor.errors import UsageError
from gpudoctor.fixing.actions import is_requirement
from gpudoctor.fixing.plan import Step, step_of
from gpudoctor.fixing.programs import Refused
from gpudoctor.model import Fix, Package, PackageVersion, Python, Remedy, Snapshot
from gpudoctor.remedies.fitting import fitted
from gpudoctor.remedies.fixes import remedies_of
from gpudoctor.remedies.torch_install import COMPANIONS, install_torch

KNOWN = ("torch", *COMPANIONS, "cupy", "cupy-cuda11x", "cupy-cuda12x", "cupy-cuda13x", "numpy")
_OLD_NUMPY = "1.26.4"


def requested_steps(names: Sequence[str], snapshot: Snapshot) -> tuple[Step, ...]:
    """Return the steps that install what is named, each with the reason for its version.

    Raises:
        UsageError: a name or a version is not in gpudoctor's tables.
        Refused: there is no build for this machine, or what is named does not go together.
    """
    wanted = _parsed(names)
    python = snapshot.python or Python()
    facts = Facts(snapshot)
    return tuple(step_of("", remedy, python.executable or "") for remedy in _remedies(wanted, facts, python))


def _parsed(names: Sequence[str]) -> dict[str, Requirement]:
    wanted: dict[str, Requirement] = {}
    for text in names:
        name = canonicalize_name(Requirement(text).name) if is_requirement(text) else ""
        if name not in KNOWN:
            raise UsageError(
                f"{text!r} is not one of {', '.join(KNOWN)}, with a version or without: use pip for others"
            )
        if name in wanted:
            raise UsageError(f"{name} is named twice")
        wanted[name] = Requirement(text)
    if len([name for name in wanted if name.startswith("cupy")]) > 1:
        raise Refused("the CuPy packages install the same files: name one of them, or cupy for the one that fits")
    _refuse_mismatch(wanted)
    return wanted


def _pinned(requirement: Requirement | None) -> str:
    """Return the one version that a requirement allows; "" if it allows several."""
    match = re.fullmatch(r"==\s*([\d.]+)", str(requirement.specifier)) if requirement is not None else None
    return match[1] if match else ""


def _refuse_mismatch(wanted: dict[str, Requirement]) -> None:
    for name in (name for name in wanted if name != "numpy"):
        if str(wanted[name].specifier) and not _pinned(wanted[name]):
            raise UsageError(f"{wanted[name]}: name one version as {name}==VERSION, or none for the one that fits")
    torch = _pinned(wanted.get("torch"))
    versions = [version for release in torch_releases() for version in release.versions]
    if torch and torch not in versions:
        raise UsageError(f"torch {torch} is not in gpudoctor's tables, which have {versions[0]} to {versions[-1]}")
    for name in COMPANIONS:
        version = _pinned(wanted.get(name))
        belongs = getattr(torch_companions(torch), name, None) if torch else None
        if version and belongs and version != belongs:
            raise Refused(f"{name} {version} does not belong to torch {torch}: {name} {belongs} does")
        if version and not torch:
            raise UsageError(f"{name}=={version}: name the torch version that it belongs to, too")


def _remedies(wanted: dict[str, Requirement], facts: Facts, python: Python) -> Iterator[Remedy]:
    installed = {package.name: package for package in python.packages or ()}
    if "numpy" in wanted and not wanted["numpy"].specifier.contains("2.0", prereleases=True):
        installed["numpy"] = Package(name="numpy", version=PackageVersion(_OLD_NUMPY))
    for name in COMPANIONS:
        if name in wanted:
            installed.setdefault(name, Package(name=name, version=PackageVersion("0")))
    chosen = None
    if {"torch", *COMPANIONS} & {*wanted}:
        torch = _torch(wanted, facts, replace(python, packages=tuple(installed.values())))
        yield _possible(torch, facts)
        chosen = re.search(r"\btorch==(?P<release>[\d.]+)(?:\+cu(?P<major>\d\d))?", " ".join(torch.commands))
    cupys = [name for name in wanted if name.startswith("cupy")]
    limited = chosen is not None and PackageVersion(chosen["release"]).release < FIRST_TORCH_WITH_NUMPY_2
    if chosen is not None and limited and (cupys or "numpy" in wanted):
        wanted["numpy"] = _numpy_1(wanted.get("numpy"), chosen["release"])
        installed["numpy"] = Package(name="numpy", version=PackageVersion(_OLD_NUMPY))
    changed = replace(python, packages=tuple(installed.values()))
    for name in cupys:
        yield _possible(_cupy(wanted[name], facts, changed, chosen and chosen["major"]), facts)
    if "numpy" in wanted:
        why = f", because PyTorch {chosen['release']} was built for NumPy 1" if chosen is not None and limited else ""
        summary = f"Install {wanted['numpy']}{why}"
        made = Fix("install-packages", requirements=(str(wanted["numpy"]),), summary=summary)
        yield _possible(remedies_of((made,), facts)[0], facts)


def _numpy_1(wanted: Requirement | None, torch: str) -> Requirement:
    """Return what is wanted of NumPy, below 2. Raises Refused: that is nothing."""
    version = _pinned(wanted)
    if version and PackageVersion(version).release >= (2,):
        raise Refused(f"numpy {version} does not go with torch {torch}, which was built for NumPy 1: name numpy<2")
    return Requirement(f"numpy=={version}" if version else "numpy<2")


def _torch(wanted: dict[str, Requirement], facts: Facts, python: Python) -> Remedy:
    version = _pinned(wanted.get("torch"))
    if facts.get("gpu").name == "":
        remedy = remedies_of((Fix("install-torch-first"),), facts)[0]
        return replace(remedy, commands=tuple(_with_companions(remedy.commands, wanted)))
    release = {"release": PackageVersion(version)} if version else {}
    made: Remedy = (not version and _as_installed(facts, python)) or facts.call(install_torch, python=python, **release)
    chosen = re.search(r"\btorch={2,3}([\d.]+)", " ".join(made.commands))
    if version and chosen and chosen[1] != version:
        raise Refused(f"torch {version} has no build for this machine: {made.summary}")
    return made


def _as_installed(facts: Facts, python: Python) -> Remedy | None:
    """Return how to install what belongs to the installed PyTorch, if its build fits this machine: it stays."""
    torch = facts.get("torch")
    if torch is None or torch.version is None or torch.build != "cuda" or torch.cuda_version is None:
        return None
    made: Remedy = facts.call(install_torch, python=python, cuda=torch.cuda_version)
    same = rf"(?<= torch=={re.escape(torch.version.public)})\+\w+"
    if not any(re.search(same, command) for command in made.commands):
        return None
    listed = next((package.version for package in python.packages or () if package.name == "torch"), torch.version)
    if listed.local:
        return made
    # A wheel from PyPI does not name its build: if the command did, the same version would be installed again.
    return replace(made, commands=tuple(re.sub(same, "", command) for command in made.commands))


def _with_companions(commands: Sequence[str], wanted: dict[str, Requirement]) -> Iterator[str]:
    """Yield the commands that install a build for the CPU, with everything of PyTorch that is named."""
    version = _pinned(wanted.get("torch"))
    belongs = torch_companions(version) if version else None
    pins = {"torch": version, **{name: getattr(belongs, name, None) for name in COMPANIONS}}
    local = "+cpu" if any("/whl/cpu" in command for command in commands) else ""
    named = " ".join(
        f"{name}=={pins[name]}{local}" if pins[name] else name for name in ("torch", *COMPANIONS) if name in wanted
    )
    for command in commands:
        yield re.sub(r"(?<= )torch$", named, command) if " install " in command else command


def _cupy(wanted: Requirement, facts: Facts, python: Python, torch_major: str | None) -> Remedy:
    """Return how to install this CuPy. torch_major: the CUDA major version of the PyTorch that is chosen with it."""
    from gpudoctor.remedies.cupy_install import install_cupy

    if facts.get("gpu").name == "":
        raise Refused("CuPy needs an NVIDIA GPU, and this machine has none: use NumPy instead")
    major, version = cuda_major(canonicalize_name(wanted.name)), _pinned(wanted)
    if major is None and torch_major == "12":
        major = 12
    cupy = facts.get("cupy")
    without_numpy = {"cupy": replace(cupy, numpy_version=None)} if cupy is not None else {}
    release = {"release": PackageVersion(version)} if version else {}
    made: Remedy = facts.call(install_cupy, python=python, cuda_major=major, **without_numpy, **release)
    return made


def _possible(remedy: Remedy, facts: Facts) -> Remedy:
    """Return the remedy as it is printed. Raises Refused: it has no commands, because nothing fits this machine."""
    made: Remedy = facts.call(fitted, remedies=(remedy,))[0]
    if not made.commands:
        raise Refused(made.summary)
    return made
