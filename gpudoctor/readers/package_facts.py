"""Facts about the Python environment, PyTorch and CuPy from a list of installed packages."""

import re
from collections.abc import Iterable, Sequence

from gpudoctor.data.packages import cuda_major
from gpudoctor.model import Cupy, Package, PackageVersion, Python, Torch
from gpudoctor.parsers.requirements_files import normalise
from gpudoctor.probes.cupy_build import DISTRIBUTIONS as CUPY
from gpudoctor.probes.workers.python_environment import DISTRIBUTIONS
from gpudoctor.readers.facts import Facts

MOST_PACKAGES = 400
VERSION = r"\d[A-Za-z0-9.!_]{0,40}(?:\+[A-Za-z0-9._]{1,60})?"
NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,80}[A-Za-z0-9])?"


def bears_on_gpus(name: str) -> bool:
    """Return whether the probe of the environment keeps this distribution."""
    return normalise(name).startswith(DISTRIBUTIONS)


def package(name: str, version: str, installer: str = "", location: str = "") -> Package:
    """Return the package with its name normalised."""
    return Package(name=normalise(name), version=PackageVersion(version), installer=installer, location=location)


def packages_of(pairs: Iterable[tuple[str, str]]) -> list[Package]:
    """Return the packages that matter for GPUs."""
    return [package(name, version) for name, version in pairs if bears_on_gpus(name)]


def package_facts(found: Sequence[Package], *, whole: Iterable[str] = (), complete: bool = False) -> Facts:
    """Return the sections that installed packages fill; the last of two packages with one name wins.

    whole: all names in a list without gaps. complete: there is such a list.
    """
    packages = tuple({item.name: item for item in found}.values())[:MOST_PACKAGES]
    facts: Facts = {"python": Python(packages=packages)} if packages or complete else {}
    torch = next((item for item in packages if item.name == "torch"), None)
    if torch is not None:
        location = f"{torch.location}/torch" if torch.location.startswith("/") else None
        facts["torch"] = Torch(installed=True, version=torch.version, location=location)
    elif complete and not any(re.fullmatch(r"torch|pytorch.*", normalise(name)) for name in whole):
        facts["torch"] = Torch(installed=False)
    cupy = _cupy(packages, complete)
    return {**facts, "cupy": cupy} if cupy is not None else facts


def _cupy(packages: Sequence[Package], complete: bool) -> Cupy | None:
    """Return the section of CuPy; None if the list does not show whether it is installed."""
    found = tuple(item for item in packages if re.fullmatch(CUPY, item.name))
    numpy = next((item.version for item in packages if item.name == "numpy"), None)
    if not found:
        return Cupy(distributions=(), numpy_version=numpy) if complete else None
    only = found[0] if len(found) == 1 else None
    return Cupy(
        distributions=found,
        version=found[0].version if only or len({item.version for item in found}) == 1 else None,
        platform=_platform(only) if only else None,
        cuda_major=cuda_major(only.name) if only else None,
        numpy_version=numpy,
    )


def _platform(cupy: Package) -> str | None:
    """Return the platform that its name implies; conda's package and a source build are both named "cupy"."""
    if "rocm" in cupy.name or cupy.name == "amd-cupy":
        return "rocm"
    if cupy.name != "cupy":
        return "cuda"
    return "cuda" if cupy.installer == "conda" else None
