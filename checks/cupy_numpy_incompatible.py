"""The installed NumPy against the one that CuPy needs."""

import re
from collections.abc import Iterator
from dataclasses import replace

from gpudoctor.conclusions.cupy_errors import error_with
from gpudoctor.conclusions.installed import Machine, cupy_installed, package
from gpudoctor.conclusions.messages import reported as told
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
    Symptom,
    System,
)
from gpudoctor.registry import check, known, skip_unless
from gpudoctor.remedies import install_packages

# What an import says where compiled code and NumPy do not fit, or a function of NumPy is gone.
MESSAGES = (
    r"numpy\.core\.multiarray failed to import|numpy\.dtype size changed|compiled using NumPy 1\.x"
    r"|module 'numpy[\w.]*' has no attribute '\w+'|cannot import name '\w+' from 'numpy[\w.]*'|No module named 'numpy"
    r"|`np\.\w+` was removed in the NumPy 2"
)

# The last CuPy that used a function which NumPy removed.
# Source: "NumPy 2 support" in the release notes of CuPy 13.3; of NumPy 1.24, in those of CuPy 12.0.
LAST_WITH = {"compat": (13, 2)}
LAST_WITH_OTHERS = (12, 3)
REMOVED_IN_1_24 = ("bool", "int", "float", "object", "complex", "str", "typeDict")

# Syntax that an older Python does not read, and the interpreter of the environment that is advised then.
OLD_PYTHON = "cupy-python-too-old"
NEW_PYTHON = Python(executable=".venv/bin/python", installer="pip")

_NUMBERS = r"[0-9]+(?:\.[0-9]+)*"


@check(family="cupy", explains=("cupy-unusable",))
def cupy_numpy_incompatible(
    cupy: Cupy | None = None,
    cupy_runtime: CupyRuntime | None = None,
    python: Python | None = None,
    system: System | None = None,
    driver: Driver | None = None,
    devices: tuple[Device, ...] | None = None,
    symptoms: tuple[Symptom, ...] | None = None,
) -> Iterator[Finding]:
    """The installed CuPy does not work with the installed NumPy.

    Why: CuPy is compiled against NumPy and uses its functions: versions before 13 fail with NumPy 2, and from 14 on
    CuPy needs NumPy 2. Older versions of CuPy also fail with a Python that is newer than they are.
    Exception: where CuPy is imported all the same, a NumPy outside the declared range is a warning.
    Reference: https://docs.cupy.dev/en/stable/upgrade.html#compatibility-matrix
    """
    machine = Machine(python=python, system=system, driver=driver, devices=devices)
    said_so = _told(cupy, cupy_runtime, symptoms)
    if said_so is not None:
        yield _told_finding(said_so, cupy, cupy_runtime, machine)
        return
    skip_unless(known(cupy_installed(cupy, cupy_runtime), "cupy.distributions"), "CuPy is not installed")
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


def _told(
    cupy: Cupy | None, cupy_runtime: CupyRuntime | None, symptoms: tuple[Symptom, ...] | None
) -> tuple[str, Symptom] | None:
    """Return the message in which CuPy fails because of NumPy or Python.

    Where no file of CuPy stands beside a function that NumPy removed, it counts if this CuPy still used it.
    """
    own = told(symptoms, "cupy-numpy-*", "cupy-python-too-*")
    if own:
        return own[0]
    version = _cupy_version(cupy, cupy_runtime)
    for fact, message in told(symptoms, "numpy-function-removed"):
        name = message.names.get("function") or message.names.get("attribute") or ""
        last = LAST_WITH.get(name, LAST_WITH_OTHERS)
        if version is not None and version.release and version.release[:2] <= last:
            return fact, message
    return None


def _told_finding(
    said: tuple[str, Symptom], cupy: Cupy | None, cupy_runtime: CupyRuntime | None, machine: Machine
) -> Finding:
    fact, message = said
    version = _cupy_version(cupy, cupy_runtime)
    numpy, numpy_fact = _numpy(cupy, machine.python)
    name = f"CuPy {version}" if version else "CuPy"
    module = message.names.get("module")
    if module is not None:
        summary = f"{name} needs the module {module}, which this Python no longer has"
    elif message.kind == OLD_PYTHON:
        summary = f"{name} is written for a newer Python than {message.names['python']}"
    else:
        has = f"NumPy {numpy}" if numpy else "the NumPy here"
        text = message.names.get("error") or message.text
        summary = f"{name} does not work with {has}: {text.partition(': ')[2] if text.startswith('Attr') else text}"
    return Finding(
        severity=Severity.ERROR,
        summary=summary,
        subject=f"numpy {numpy}" if numpy else "numpy",
        facts=(fact, *((numpy_fact,) if numpy is not None else ())),
        remedies=tuple(_told_remedies(message, version, machine, cupy)),
    )


def _told_remedies(
    message: Symptom, version: PackageVersion | None, machine: Machine, cupy: Cupy | None
) -> Iterator[Remedy]:
    upgrade = _upgrade(machine, cupy)
    if "module" in message.names:
        yield upgrade
        return
    if message.kind == OLD_PYTHON:
        yield Remedy(
            summary="Use an environment with a Python that this CuPy supports, and install CuPy there",
            commands=("python3 -m venv .venv", *replace(machine, python=NEW_PYTHON).install_cupy(None).commands),
            reference="https://docs.cupy.dev/en/stable/install.html#requirements",
        )
        return
    limit = "1.24" if message.names.get("attribute") in REMOVED_IN_1_24 else "2"
    older = install_packages(
        python=machine.python,
        requirements=(f"numpy<{limit}",),
        summary=f"Install a NumPy before {limit}, as this CuPy needs it",
        verify="import numpy, cupy; print(numpy.__version__, cupy.__version__)",
    )
    # From 14 on CuPy needs NumPy 2: an older NumPy would not do.
    needs_2 = version is not None and version.release[:1] >= (14,)
    yield from (upgrade,) if needs_2 else (older, upgrade)


def _upgrade(machine: Machine, cupy: Cupy | None) -> Remedy:
    """Return how to install a CuPy for the NumPy and the Python that are here."""
    newer = machine.install_cupy(None if cupy is None else replace(cupy, numpy_version=None))
    return Remedy(
        summary=f"Upgrade CuPy to one that works with NumPy 2 (13.3 or newer): {newer.summary}",
        commands=newer.commands,
        reference=newer.reference,
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
    """Return whether the specifier allows the version; True where one of them cannot be read."""
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
