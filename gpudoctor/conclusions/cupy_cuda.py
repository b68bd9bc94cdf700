"""For which CUDA the installed CuPy is, against the toolkits, libraries and packages that are there."""

from __future__ import annotations

from gpudoctor.conclusions.cupy_errors import DLL, error_with, is_for, named_distribution, wanted_library
from gpudoctor.model import CudaVersion, Cupy, CupyRuntime, Package, Python, Symptom, Toolkit, Torch
from gpudoctor.model.record import record


@record
class Mismatch:
    """What CuPy does not fit, as a sentence, and the facts that tell it.

    certain: an error, or all that is there, shows it; else it is what the versions lead one to expect.
    cuda_major: of the CuPy that would fit, where it is not for the driver to decide.
    """

    summary: str
    facts: tuple[str, ...]
    certain: bool = True
    cuda_major: int | None = None


def cupy_name(cupy: Cupy) -> str:
    """Return the distribution and its version, for a sentence."""
    distributions = cupy.distributions or ()
    fitting = [package for package in distributions if f"cuda{cupy.cuda_major}" in package.name]
    found: list[Package] = fitting if len(distributions) > 1 else list(distributions)
    return f"{found[0].name} {found[0].version}".strip() if found else f"CuPy {cupy.version or ''}".strip()


def library_of_another_toolkit(
    cupy: Cupy, cupy_runtime: CupyRuntime | None, toolkit: Toolkit | None
) -> Mismatch | None:
    """Return that the library which CuPy misses is of another CUDA version than the toolkit here."""
    missing = wanted_library(cupy_runtime)
    version = toolkit.nvcc_version if toolkit is not None else None
    if missing is None or version is None or is_for(missing[1], version) is not False:
        return None
    return Mismatch(
        summary=f"{cupy_name(cupy)} needs {missing[1]}, which the CUDA toolkit here, {version}, does not have",
        facts=(missing[0], "toolkit.nvcc_version"),
    )


def named_for_another_toolkit(
    cupy: Cupy, cupy_runtime: CupyRuntime | None, toolkit: Toolkit | None, symptoms: tuple[Symptom, ...] | None
) -> Mismatch | None:
    """Return that a CuPy of which the report tells only the name lacks a DLL, and is for another CUDA major version."""
    named = named_distribution(symptoms)
    version = toolkit.nvcc_version if toolkit is not None else None
    if cupy.cuda_major is not None or named is None or version is None or not error_with(cupy_runtime, DLL):
        return None
    fact, name, major = named
    if version.major == major:
        return None
    return Mismatch(
        summary=f"{name} needs the libraries of CUDA {major}, and the toolkit here is CUDA {version}",
        facts=(fact, "toolkit.nvcc_version"),
    )


def newer_libraries_first(cupy: Cupy, major: int, cupy_runtime: CupyRuntime | None) -> Mismatch | None:
    """Return that CuPy takes the libraries of a CUDA which is newer than itself, and than the driver."""
    runtime = cupy_runtime or CupyRuntime()
    local, offered = runtime.local_cuda_version, runtime.driver_cuda_version
    if local is None or offered is None or not major < local.major > offered.major:
        return None
    return Mismatch(
        summary=f"{cupy_name(cupy)} for CUDA {major} takes the libraries of CUDA {local}, which the driver, for CUDA "
        f"{offered}, does not run",
        facts=("cupy_runtime.local_cuda_version", "cupy_runtime.driver_cuda_version"),
    )


def all_else_of_another_cuda(
    cupy: Cupy, major: int, toolkit: Toolkit | None, python: Python | None, torch: Torch | None
) -> Mismatch | None:
    """Return that nvcc and PyTorch are both of one other CUDA major version, and no wheel is of CuPy's."""
    nvcc = toolkit.nvcc_version if toolkit is not None else None
    built_with = torch.cuda_version if torch is not None else None
    names = {package.name for package in (python.packages if python is not None else None) or ()}
    wheels = {f"nvidia-cuda-nvrtc-cu{major}", "nvidia-cuda-nvrtc", "cuda-nvrtc"} & names
    if nvcc is None or built_with is None or wheels or not nvcc.major == built_with.major != major:
        return None
    return Mismatch(
        summary=f"{cupy_name(cupy)} is for CUDA {major}, nvcc ({nvcc}) and PyTorch ({built_with}) are for CUDA "
        f"{nvcc.major}",
        facts=(_fact(cupy), "toolkit.nvcc_version", "torch.cuda_version"),
        certain=False,
        cuda_major=nvcc.major,
    )


def only_other_toolkits(
    cupy: Cupy, major: int, cupy_runtime: CupyRuntime | None, toolkit: Toolkit | None, python: Python | None
) -> Mismatch | None:
    """Return that every toolkit, or that of nvcc where a library is missing, is of another CUDA major version."""
    others = _other_toolkits(cupy, major, toolkit, python) or _other_nvcc(major, toolkit, cupy_runtime)
    if not others:
        return None
    there = " and ".join(f"CUDA {version} ({path})" for _, path, version in others)
    return Mismatch(
        summary=f"{cupy_name(cupy)} needs the libraries of CUDA {major}, and this machine has {there}",
        facts=(_fact(cupy), *(fact for fact, _, _ in others)),
    )


def _fact(cupy: Cupy) -> str:
    """Return the name of the fact that tells CuPy's CUDA major version."""
    return "cupy.cuda_major" if cupy.cuda_major is not None else "cupy_runtime.build_cuda_version"


def _other_toolkits(
    cupy: Cupy, major: int, toolkit: Toolkit | None, python: Python | None
) -> tuple[tuple[str, str, CudaVersion], ...]:
    """Return the toolkits (fact, path, version) where all are of other majors and CuPy's libraries come from none else.

    Packages for one toolkit only, such as cupy-cuda115, are compared by their major version too.
    """
    if toolkit is None or toolkit.toolkits is None or cupy.nvrtc_files is None or cupy.platform != "cuda":
        return ()
    libraries = (*(toolkit.system_libraries or ()), *(toolkit.library_path_libraries or ()))
    if any(_is_of(file.rpartition("/")[2], major) for file in cupy.nvrtc_files):
        return ()
    if any(_is_of(library.soname, major) for library in libraries if "nvrtc" in library.soname):
        return ()
    packages = (python.packages if python is not None else None) or ()
    if any(package.installer == "conda" and "nvrtc" in package.name for package in packages):
        return ()
    found = tuple(
        (f"toolkit.toolkits[{number}].version", install.path, install.version)
        for number, install in enumerate(toolkit.toolkits)
        if install.version is not None
    )
    if len(found) < len(toolkit.toolkits) or any(version.major == major for _, _, version in found):
        return ()
    return found


def _other_nvcc(
    major: int, toolkit: Toolkit | None, cupy_runtime: CupyRuntime | None
) -> tuple[tuple[str, str, CudaVersion], ...]:
    """Return the toolkit of nvcc where it is of another major version and CuPy finds one of CUDA's libraries not."""
    version = toolkit.nvcc_version if toolkit is not None else None
    missing = wanted_library(cupy_runtime) or error_with(cupy_runtime, DLL)
    if toolkit is None or version is None or version.major == major or missing is None:
        return ()
    return (("toolkit.nvcc_version", toolkit.nvcc_path or "nvcc", version),)


def _is_of(name: str, major: int) -> bool:
    """Return whether the file is of that CUDA major version: libnvrtc.so.12, libnvrtc.so.11.2, nvrtc64_120_0.dll."""
    suffix = f".so.{major}"
    return name.endswith(suffix) or f"{suffix}." in name or f"64_{major}" in name
