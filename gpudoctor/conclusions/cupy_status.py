"""CuPy, merged from its files and its import."""

from gpudoctor.data.packages import removed_from_cupy
from gpudoctor.model import Cupy, CupyRuntime, CupyStatus, Package, PackageVersion
from gpudoctor.model.software import lacks_module
from gpudoctor.symptoms import Symptoms, of_kind


def cupy_status(cupy: Cupy, cupy_runtime: CupyRuntime, symptoms: Symptoms) -> CupyStatus:
    """Return the installed CuPy, whether it works, and which part is missing."""
    built = cupy_runtime.build_cuda_version.major if cupy_runtime.build_cuda_version is not None else None
    # Whether a newer version removed the part depends on the version on disk, not on the failed import's.
    part = removed_part(symptoms, cupy.version)
    missing = of_kind(symptoms, "cupy-own-part-missing", "cupy-own-incomplete")
    return CupyStatus(
        installed=cupy_installed(cupy, cupy_runtime),
        absent=lacks_module(cupy_runtime.import_error, "cupy"),
        works=works(cupy_runtime),
        name=_name(cupy),
        version=_version(cupy, cupy_runtime),
        cuda_major=cupy.cuda_major or built,
        cuda_fact="cupy_runtime.build_cuda_version" if cupy.cuda_major is None and built else "cupy.cuda_major",
        removed_part=part,
        incomplete=bool(missing) and not part,
    )


def cupy_installed(cupy: Cupy, cupy_runtime: CupyRuntime) -> bool | None:
    """Return whether CuPy is installed; None if unknown."""
    if cupy.distributions or cupy.version is not None:
        return True
    if cupy_runtime.version is not None or cupy_runtime.import_error is not None:
        return not lacks_module(cupy_runtime.import_error, "cupy")
    return False if cupy.distributions == () else None


def works(cupy_runtime: CupyRuntime) -> bool:
    """Return whether CuPy could be imported, and compiled and ran a kernel."""
    if cupy_runtime.import_error != "":
        return False
    kernels = [call for call in cupy_runtime.calls or () if call.library == "elementwise"]
    return bool(kernels) and not any(call.error for call in kernels)


def removed_part(symptoms: Symptoms, version: PackageVersion | None) -> str:
    """Return the removed part that the first error names; "" if this CuPy still has it."""
    for symptom in of_kind(symptoms, "cupy-own-part-missing")[:1]:
        part = removed_from_cupy(f"{symptom.names['module']}.{symptom.names['attribute']}")
        has_it = part is not None and version is not None and version.release and version.release[0] <= part.last
        return part.name if part is not None and not has_it else ""
    return ""


def _name(cupy: Cupy) -> str:
    """Return the distribution and its version."""
    distributions = cupy.distributions or ()
    fitting = [package for package in distributions if f"cuda{cupy.cuda_major}" in package.name]
    found: list[Package] = fitting if len(distributions) > 1 else list(distributions)
    return f"{found[0].name} {found[0].version}".strip() if found else f"CuPy {cupy.version or ''}".strip()


def _version(cupy: Cupy, runtime: CupyRuntime) -> PackageVersion | None:
    if cupy.version is not None:
        return cupy.version
    return cupy.distributions[0].version if cupy.distributions else runtime.version
