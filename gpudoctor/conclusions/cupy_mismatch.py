"""For which CUDA the installed CuPy is, against the toolkits, libraries and packages that are there."""

import re

from gpudoctor.data.cuda_libraries import cuda_major_of
from gpudoctor.model import (
    CudaVersion,
    Cupy,
    CupyMismatch,
    CupyMismatches,
    CupyRuntime,
    CupyStatus,
    Driver,
    Python,
    Symptom,
    Toolkit,
    Torch,
)
from gpudoctor.symptoms import of_kind

MISSING = ("cupy-own-nvrtc-missing", "cupy-own-library-missing")
# What the table of messages gives if CuPy names no cause.
NO_CAUSE = "ImportError: Failed to import CuPy"
# The name of NVRTC up to CUDA 11.1, and of the runtime up to 10.2, shows the minor version: only that one is loaded.
# Source: sonames and names of DLLs in the toolkits of CUDA 8.0 to 13.0.
_EXACT = (
    r"libnvrtc\.so\.(?P<a>[789]|10|11)\.(?P<b>\d)(?<!11\.2)$|libcudart\.so\.(?P<c>[789]|10)\.(?P<d>\d)$"
    r"|nvrtc64_(?P<e>[789]|10|11)(?P<f>[0-9])(?<!112)_0\.dll$|cudart64_(?P<g>[789]|10)(?P<h>\d)\.dll$"
)


def cupy_mismatch(
    *,
    cupy: Cupy | None,
    cupy_status: CupyStatus,
    cupy_runtime: CupyRuntime | None,
    driver: Driver | None,
    toolkit: Toolkit | None,
    torch: Torch | None,
    python: Python | None,
    symptoms: tuple[Symptom, ...] | None,
) -> CupyMismatches:
    """Return where CuPy and the CUDA that is here differ: as a message shows it, and as versions show it."""
    there, major = cupy or Cupy(), cupy_status.cuda_major
    symbol = _symbol(cupy_status, symptoms)
    if symbol is not None or cupy_status.works or there.platform == "rocm":
        return CupyMismatches(by_message=symbol)
    nvcc, name = toolkit.nvcc_version if toolkit is not None else None, cupy_status.name
    return CupyMismatches(
        by_message=(_driver_said(driver, nvcc, symptoms) if not there.cuda_major else None)
        or _library_of_another_toolkit(name, nvcc, symptoms)
        or (_named_for_another_toolkit(nvcc, symptoms) if not there.cuda_major else None)
        or (_doubted(cupy_runtime, torch, symptoms) if not there.cuda_major else None),
        by_version=None
        if major is None
        else _newer_libraries_first(name, major, cupy_runtime)
        or _only_other_toolkits(cupy_status, there, toolkit, python, symptoms)
        or _all_else_of_another_cuda(cupy_status, nvcc, python, torch),
    )


def _symbol(status: CupyStatus, symptoms: tuple[Symptom, ...] | None) -> CupyMismatch | None:
    """Return that a module of CuPy asks the library that is loaded for what that does not have."""
    for symptom in of_kind(symptoms, "cupy-symbol-missing"):
        name, library = symptom.names["symbol"], symptom.names.get("library", "the library that is loaded")
        of_rocm = any(part in name.lower() for part in ("hip", "roc"))
        platform = "ROCm" if of_rocm else "CUDA"
        return CupyMismatch(
            kind="rocm-symbol" if of_rocm else "symbol",
            summary=f"{status.name} was built for another {platform} version: it finds no {name} in {library}",
            facts=(symptom.fact,),
        )
    return None


def _driver_said(
    driver: Driver | None, nvcc: CudaVersion | None, symptoms: tuple[Symptom, ...] | None
) -> CupyMismatch | None:
    """Return that CuPy says the driver does not fit."""
    offered = driver.cuda_version if driver is not None else None
    supports = f"the driver supports CUDA {offered}" if offered else "the driver is older"
    for symptom in of_kind(symptoms, "cupy-driver-mismatch"):
        return CupyMismatch(
            kind="driver",
            summary=f"CuPy runs on a newer CUDA than the driver does: {supports}",
            facts=(
                symptom.fact,
                *(("driver.cuda_version",) if offered else ()),
                *(("toolkit.nvcc_version",) if nvcc else ()),
            ),
        )
    return None


def _library_of_another_toolkit(
    name: str, nvcc: CudaVersion | None, symptoms: tuple[Symptom, ...] | None
) -> CupyMismatch | None:
    """Return that the library which CuPy misses is of another CUDA version than the toolkit here."""
    for symptom in of_kind(symptoms, *MISSING)[:1]:
        library = symptom.names["library"]
        if nvcc is not None and is_for(library, nvcc) is False:
            return CupyMismatch(
                kind="library",
                summary=f"{name} needs {library}, which the CUDA toolkit here, {nvcc}, does not have",
                facts=(symptom.fact, "toolkit.nvcc_version"),
            )
    return None


def _named_for_another_toolkit(nvcc: CudaVersion | None, symptoms: tuple[Symptom, ...] | None) -> CupyMismatch | None:
    """Return that a CuPy of which a report has only the name lacks a DLL, and is for another CUDA major version."""
    named = named_distribution(symptoms)
    if named is None or nvcc is None or not of_kind(symptoms, "cupy-own-dll-load-failed"):
        return None
    fact, name, major = named
    if nvcc.major == major:
        return None
    return CupyMismatch(
        kind="library",
        summary=f"{name} needs the libraries of CUDA {major}, and the toolkit here is CUDA {nvcc}",
        facts=(fact, "toolkit.nvcc_version"),
    )


def _doubted(
    cupy_runtime: CupyRuntime | None, torch: Torch | None, symptoms: tuple[Symptom, ...] | None
) -> CupyMismatch | None:
    """Return that CuPy cannot be imported and names no cause but that it may be for another CUDA."""
    built = torch.cuda_version if torch is not None else None
    if cupy_runtime is None or cupy_runtime.import_error != NO_CAUSE:
        return None
    for symptom in of_kind(symptoms, "cupy-version-doubted"):
        and_torch = f", and PyTorch in the same environment is built with CUDA {built}" if built else ""
        return CupyMismatch(
            kind="doubted",
            summary=f"CuPy cannot be imported, and asks whether it is for the CUDA that is here{and_torch}",
            facts=(symptom.fact, *(("torch.cuda_version",) if built else ())),
        )
    return None


def _newer_libraries_first(name: str, major: int, cupy_runtime: CupyRuntime | None) -> CupyMismatch | None:
    """Return that CuPy takes the libraries of a CUDA which is newer than itself, and than the driver."""
    runtime = cupy_runtime or CupyRuntime()
    local, offered = runtime.local_cuda_version, runtime.driver_cuda_version
    if local is None or offered is None or not major < local.major > offered.major:
        return None
    return CupyMismatch(
        kind="newer-libraries",
        summary=f"{name} for CUDA {major} takes the libraries of CUDA {local}, which the driver, for CUDA {offered}, "
        "does not run",
        facts=("cupy_runtime.local_cuda_version", "cupy_runtime.driver_cuda_version"),
    )


def _all_else_of_another_cuda(
    status: CupyStatus, nvcc: CudaVersion | None, python: Python | None, torch: Torch | None
) -> CupyMismatch | None:
    """Return that nvcc and PyTorch are both of one other CUDA major version, and no wheel is of CuPy's."""
    major = status.cuda_major
    built_with = torch.cuda_version if torch is not None else None
    wheels = (python or Python()).matching(f"nvidia-cuda-nvrtc-cu{major}", "nvidia-cuda-nvrtc", "cuda-nvrtc")
    if nvcc is None or built_with is None or wheels or not nvcc.major == built_with.major != major:
        return None
    return CupyMismatch(
        kind="all-else",
        summary=f"{status.name} for CUDA {major} is probably the wrong one: nvcc ({nvcc}) and PyTorch ({built_with}) "
        f"are for CUDA {nvcc.major}",
        facts=(status.cuda_fact, "toolkit.nvcc_version", "torch.cuda_version"),
        certain=False,
        cuda_major=nvcc.major,
    )


def _only_other_toolkits(
    status: CupyStatus,
    cupy: Cupy,
    toolkit: Toolkit | None,
    python: Python | None,
    symptoms: tuple[Symptom, ...] | None,
) -> CupyMismatch | None:
    """Return that every toolkit, or that of nvcc if a library is missing, is of another CUDA major version."""
    major = status.cuda_major or 0
    others = _other_toolkits(cupy, major, toolkit, python) or _other_nvcc(major, toolkit, symptoms)
    if not others:
        return None
    there = " and ".join(f"CUDA {version} ({path})" for _, path, version in others)
    return CupyMismatch(
        kind="toolkit",
        summary=f"{status.name} needs the libraries of CUDA {major}, and this machine has {there}",
        facts=(status.cuda_fact, *(fact for fact, _, _ in others)),
    )


def _other_toolkits(
    cupy: Cupy, major: int, toolkit: Toolkit | None, python: Python | None
) -> tuple[tuple[str, str, CudaVersion], ...]:
    """Return the toolkits (fact, path, version) if all are of other majors and CuPy's libraries are nowhere else.

    Packages for one toolkit only, such as cupy-cuda115, are compared by their major version too.
    """
    if toolkit is None or toolkit.toolkits is None or cupy.nvrtc_files is None or cupy.platform != "cuda":
        return ()
    libraries = (*(toolkit.system_libraries or ()), *(toolkit.library_path_libraries or ()))
    sonames = (library.soname for library in libraries if "nvrtc" in library.soname)
    if any(_is_of(name, major) for name in (*(file.rpartition("/")[2] for file in cupy.nvrtc_files), *sonames)):
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
    major: int, toolkit: Toolkit | None, symptoms: tuple[Symptom, ...] | None
) -> tuple[tuple[str, str, CudaVersion], ...]:
    """Return the toolkit of nvcc if it is of another major version and CuPy does not find one of CUDA's libraries."""
    version = toolkit.nvcc_version if toolkit is not None else None
    missing = of_kind(symptoms, *MISSING, "cupy-own-dll-load-failed")
    if toolkit is None or version is None or version.major == major or not missing:
        return ()
    return (("toolkit.nvcc_version", toolkit.nvcc_path or "nvcc", version),)


def exact_cuda(library: str) -> CudaVersion | None:
    """Return the only CUDA version with a library of this name: 11.1 of libnvrtc.so.11.1; None for a whole major."""
    match = re.match(_EXACT, library, re.IGNORECASE)
    if match is None:
        return None
    major, minor = (group for group in match.groups() if group is not None)
    return CudaVersion(int(major), int(minor))


def is_for(library: str, cuda: CudaVersion) -> bool | None:
    """Return whether a toolkit of this version has the library, None if its name does not show it."""
    exact, major = exact_cuda(library), cuda_major_of(library)
    if exact is not None:
        return exact == cuda
    return None if major is None else major == cuda.major


def named_distribution(symptoms: tuple[Symptom, ...] | None) -> tuple[str, str, int] | None:
    """Return the fact, the name and the CUDA major version of the only CuPy distribution that a report names."""
    named = {found.names["version"].lower(): found.fact for found in of_kind(symptoms, "cupy-distribution-named")}
    if len(named) != 1:
        return None
    version, fact = named.popitem()
    # cupy-cuda90 is for 9.0, cupy-cuda115 for 11.5, cupy-cuda12x for the whole major.
    digits = version.removesuffix("x")
    major = int(digits if version.endswith("x") else digits[:-1])
    return fact, f"cupy-cuda{version}", major


def _is_of(name: str, major: int) -> bool:
    """Return whether the file is of that CUDA major version: libnvrtc.so.12, libnvrtc.so.11.2, nvrtc64_120_0.dll."""
    suffix = f".so.{major}"
    return name.endswith(suffix) or f"{suffix}." in name or f"64_{major}" in name
