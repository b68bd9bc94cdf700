"""The installed NumPy against the one that CuPy needs."""

from collections.abc import Iterator

from gpudoctor.model import CupyNumpy, CupyRuntime, CupyStatus, Finding, Fix, Severity, Symptom
from gpudoctor.registry import check, known, skip_unless
from gpudoctor.symptoms import Symptoms, first, of_kind


@check(family="cupy", explains=("cupy-unusable",))
def cupy_numpy_incompatible(
    cupy_status: CupyStatus, cupy_numpy: CupyNumpy, cupy_runtime: CupyRuntime = CupyRuntime(), symptoms: Symptoms = None
) -> Iterator[Finding]:
    """The installed CuPy does not work with the installed NumPy.

    Why: CuPy is compiled against NumPy and uses its functions: versions before 13.3 fail with NumPy 2, and CuPy 14 or
    newer needs NumPy 2. Older versions of CuPy also fail with newer Python versions.
    Exception: if CuPy can be imported, a NumPy outside the declared range is a warning.
    Reference: https://docs.cupy.dev/en/stable/upgrade.html#compatibility-matrix
    """
    name = f"CuPy {cupy_status.version}" if cupy_status.version else "CuPy"
    if cupy_numpy.failure is not None:
        yield _failed(name, cupy_numpy, cupy_numpy.failure)
        return
    skip_unless(known(cupy_status.installed, "cupy.distributions"), "CuPy is not installed")
    numpy, wanted, outside = cupy_numpy.version, cupy_numpy.requirement, cupy_numpy.fits is False
    said = first(of_kind(symptoms, "cupy-own-numpy"))
    if not outside and said is None:
        known(numpy, "cupy.numpy_version")
        known(wanted or None, "cupy.numpy_requirement")
        return
    imported = cupy_runtime.import_error == ""
    needs = f" needs NumPy {wanted}" if wanted else " does not work with the installed NumPy"
    has = f", and {numpy} is installed" if numpy is not None else ", which is not installed" if wanted else ""
    yield Finding.of(
        Severity.WARNING if imported and said is None else Severity.ERROR,
        f"numpy {numpy}" if numpy else "numpy",
        f"{name}{needs}{has}{f' ({said.text})' if said and not outside else ''}",
        (cupy_numpy.version_fact, cupy_numpy.requirement_fact, said.fact if said else ""),
        Fix("install-numpy-for-cupy", requirement=wanted, installed_fits=not outside),
        Fix("install-cupy"),
    )


def _failed(name: str, cupy_numpy: CupyNumpy, failure: Symptom) -> Finding:
    numpy = cupy_numpy.version
    fixes: tuple[Fix, ...] = (Fix("upgrade-cupy-for-numpy"),)
    if failure.kind == "cupy-python-too-new":
        summary = f"{name} needs the module {failure.names['module']}, which this Python no longer has"
    elif failure.kind == "cupy-python-too-old":
        summary = f"{name} needs a newer Python than {failure.names['python']}"
        fixes = (Fix("install-cupy-in-new-environment"),)
    elif failure.kind == "cupy-numpy-conflict":
        summary = f"No release of NumPy fits all requested packages: {failure.names['error']}"
    else:
        has = f"NumPy {numpy}" if numpy else "the installed NumPy"
        error = (failure.names.get("error") or failure.text).removeprefix("AttributeError: ")
        summary = f"{name} does not work with {has}: {error}"
        fixes = (Fix("numpy-with-removed-name", name=failure.names.get("attribute", "")), *fixes)
    facts = (failure.fact, cupy_numpy.version_fact)
    return Finding.error(f"numpy {numpy}" if numpy else "numpy", summary, facts, *fixes)
