"""The installed NumPy and the versions that CuPy needs."""

import re

from gpudoctor.data.packages import cupy_release
from gpudoctor.model import Cupy, CupyNumpy, CupyStatus, PackageVersion, Python, Symptom
from gpudoctor.symptoms import Symptoms, of_kind

# The last CuPy release that used a function which NumPy removed.
# Source: "NumPy 2 support" in the release notes of CuPy 13.3; NumPy 1.24 in those of CuPy 12.0.
LAST_WITH = {"compat": (13, 2)}
LAST_WITH_OTHERS = (12, 3)


def cupy_numpy(cupy: Cupy | None, cupy_status: CupyStatus, python: Python, symptoms: Symptoms) -> CupyNumpy:
    """Return NumPy's version and CuPy's requirement: from its metadata, else from the table of its releases."""
    version, version_fact = _numpy(cupy, python)
    requirement, requirement_fact = _requirement(cupy, cupy_status.version)
    both = version is not None and requirement
    return CupyNumpy(
        version=version,
        version_fact=version_fact,
        requirement=requirement,
        requirement_fact=requirement_fact,
        fits=allows(requirement, version) if both and version is not None else None,
        failure=_failure(cupy_status.version, symptoms),
    )


def _failure(version: PackageVersion | None, symptoms: Symptoms) -> Symptom | None:
    """Return the message in which CuPy fails because of NumPy or Python.

    A function that NumPy removed counts without a CuPy file in the message if this CuPy still used it.
    """
    for symptom in of_kind(symptoms, "cupy-numpy-*", "cupy-python-too-*"):
        return symptom
    for symptom in of_kind(symptoms, "numpy-function-removed"):
        name = symptom.names.get("function") or symptom.names.get("attribute") or ""
        used = version is not None and version.release and version.release[:2] <= LAST_WITH.get(name, LAST_WITH_OTHERS)
        # CuPy's own message is compared with its requirement; PyTorch's says nothing about CuPy.
        if used and "_runtime." not in symptom.fact:
            return symptom
    return None


def _numpy(cupy: Cupy | None, python: Python) -> tuple[PackageVersion | None, str]:
    if cupy is not None and cupy.numpy_version is not None:
        return cupy.numpy_version, "cupy.numpy_version"
    found = python.package("numpy")
    return (found[1], found[0]) if found is not None else (None, "")


def _requirement(cupy: Cupy | None, version: PackageVersion | None) -> tuple[str, str]:
    """Return the NumPy versions that CuPy needs, and the fact that shows it.

    The table's upper end is the newest tested version; only NumPy's next major version is assumed to fail.
    """
    if cupy is not None and cupy.numpy_requirement:
        return cupy.numpy_requirement, "cupy.numpy_requirement"
    release = cupy_release(version.release[0]) if version is not None and version.release else None
    if release is None or cupy is None:
        return "", ""
    low, _, high = release.numpy.partition("-")
    limit = f",<{int(high.partition('.')[0]) + 1}" if high else ""
    return f">={low}{limit}", "cupy.version" if cupy.version is not None else "cupy.distributions"


def allows(requirement: str, version: PackageVersion) -> bool:
    """Return whether the requirement allows the version; True if one of them cannot be parsed."""
    from packaging.version import Version

    try:
        installed = Version(version.public)
        bounds = re.fullmatch(r">=([\d.]+)(?:,<([\d.]+))?", requirement)
        if bounds and not installed.is_prerelease:  # packaging.specifiers takes 10 ms to import
            return Version(bounds[1]) <= installed and (bounds[2] is None or installed < Version(bounds[2]))
        from packaging.specifiers import SpecifierSet

        return SpecifierSet(requirement).contains(installed, prereleases=True)
    except ValueError:
        return True
