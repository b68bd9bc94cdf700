"""The installed NumPy against the one that CuPy needs."""

import re
from collections.abc import Iterator

from gpudoctor.data import cupy_release
from gpudoctor.model import (
    Cupy,
    CupyRuntime,
    Device,
    Driver,
    Finding,
    PackageVersion,
    Python,
    Remedy,
    Severity,
    System,
)
from gpudoctor.reasoning.cupy_errors import error_with
from gpudoctor.reasoning.installed import Machine, cupy_installed, package
from gpudoctor.registry import applies, check, known
from gpudoctor.remedies import install_packages

# What an import says where compiled code and NumPy do not fit, or a function of NumPy is gone.
MESSAGES = (
    r"numpy\.core\.multiarray failed to import|numpy\.dtype size changed|compiled using NumPy 1\.x"
    r"|module 'numpy[\w.]*' has no attribute '\w+'|cannot import name '\w+' from 'numpy[\w.]*'|No module named 'numpy"
    r"|`np\.\w+` was removed in the NumPy 2"
)


@check(family="cupy", explains=("cupy-unusable",))
def cupy_numpy_incompatible(
    cupy: Cupy | None = None,
    cupy_runtime: CupyRuntime | None = None,
    python: Python | None = None,
    system: System | None = None,
    driver: Driver | None = None,
    devices: tuple[Device, ...] | None = None,
) -> Iterator[Finding]:
    """The installed CuPy does not work with the installed NumPy.

    Why: CuPy is compiled against NumPy and uses its functions: versions before 13 fail with NumPy 2, and from 14 on
    CuPy needs NumPy 2.
    Exception: where CuPy is imported all the same, a NumPy outside the declared range is a warning.
    Reference: https://docs.cupy.dev/en/stable/upgrade.html#compatibility-matrix
    """
    applies(known(cupy_installed(cupy, cupy_runtime), "cupy.distributions"), "CuPy is not installed")
    version = _cupy_version(cupy, cupy_runtime)
    numpy, numpy_fact = _numpy(cupy, python)
    wanted = _requirement(cupy, version)
    reported = error_with(cupy_runtime, MESSAGES)
    outside = numpy is not None and wanted is not None and not _allows(wanted[0], numpy)
    if not outside and reported is None:
        known(numpy, "cupy.numpy_version")
        known(wanted, "cupy.numpy_requirement")
        return
    imported = cupy_runtime is not None and cupy_runtime.import_error == ""
    needs = f" needs NumPy {wanted[0]}" if wanted else " does not work with the NumPy here"
    has = f", and {numpy} is installed" if numpy is not None else ", which is not installed" if wanted else ""
    said = f" ({reported[1][0]})" if reported and not outside else ""
    machine = Machine(python=python, system=system, driver=driver, devices=devices)
    yield Finding(
        severity=Severity.WARNING if imported and reported is None else Severity.ERROR,
        summary=f"CuPy{f' {version}' if version else ''}{needs}{has}{said}",
        subject=f"numpy {numpy}" if numpy else "numpy",
        facts=(
            *((numpy_fact,) if numpy is not None else ()),
            *((wanted[1],) if wanted is not None else ()),
            *((reported[0],) if reported is not None else ()),
        ),
        remedies=tuple(_remedies(wanted[0] if wanted else "", outside, cupy, machine)),
    )


def _cupy_version(cupy: Cupy | None, cupy_runtime: CupyRuntime | None) -> PackageVersion | None:
    if cupy is not None and cupy.version is not None:
        return cupy.version
    if cupy is not None and cupy.distributions:
        return cupy.distributions[0].version
    return cupy_runtime.version if cupy_runtime is not None else None


def _numpy(cupy: Cupy | None, python: Python | None) -> tuple[PackageVersion | None, str]:
    if cupy is not None and cupy.numpy_version is not None:
        return cupy.numpy_version, "cupy.numpy_version"
    found = package(python, "numpy")
    return (found[1], found[0]) if found is not None else (None, "")


def _requirement(cupy: Cupy | None, version: PackageVersion | None) -> tuple[str, str] | None:
    """Return the NumPy versions asked for and where that stands: the metadata, else the table by CuPy's release.

    The table's upper end is what was tested; only NumPy's next major version is taken for one that fails.
    """
    if cupy is not None and cupy.numpy_requirement:
        return cupy.numpy_requirement, "cupy.numpy_requirement"
    release = cupy_release(version.release[0]) if version is not None and version.release else None
    if release is None or cupy is None:
        return None
    low, _, high = release.numpy.partition("-")
    fact = "cupy.version" if cupy.version is not None else "cupy.distributions"
    limit = f",<{int(high.partition('.')[0]) + 1}" if high else ""
    return f">={low}{limit}", fact


def _allows(specifier: str, version: PackageVersion) -> bool:
    from packaging.specifiers import InvalidSpecifier, SpecifierSet
    from packaging.version import InvalidVersion

    try:
        return SpecifierSet(specifier).contains(version.public, prereleases=True)
    except (InvalidSpecifier, InvalidVersion):
        return True


def _remedies(wanted: str, outside: bool, cupy: Cupy | None, machine: Machine) -> Iterator[Remedy]:
    if wanted and re.fullmatch(r"[\d.*,<>=!~ ]+", wanted):
        yield install_packages(
            python=machine.python,
            requirements=(f"numpy{wanted}",),
            force=not outside,
            summary=f"Install the NumPy that this CuPy needs ({wanted})",
            verify="import numpy, cupy; print(numpy.__version__, cupy.__version__)",
        )
    yield machine.install_cupy(cupy)
