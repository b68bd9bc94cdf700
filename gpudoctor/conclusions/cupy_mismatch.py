"""The CUDA version of the installed CuPy, compared with the installed toolkits, libraries and packages."""

import re
from collections.abc import Sequence

from gpudoctor.data.cuda_libraries import cuda_major_of
from gpudoctor.model import Cupy, CupyMismatch, CupyMismatches, CupyRuntime, CupyStatus, Driver, Python, Toolkit, Torch
from gpudoctor.model.versions import CudaVersion
from gpudoctor.symptoms import Symptoms, of_kind

MISSING = ("cupy-own-nvrtc-missing", "cupy-own-library-missing")
# The message tables' value if CuPy names no cause.
NO_CAUSE = "ImportError: Failed to import CuPy"
# File names of NVRTC up to CUDA 11.1 and of the runtime up to 10.2 have the minor version: only that one is loaded.
# Source: sonames and DLL names in the toolkits of CUDA 8.0 to 13.0.
_EXACT = (
    r"libnvrtc\.so\.(?P<a>[789]|10|11)\.(?P<b>\d)(?<!11\.2)$|libcudart\.so\.(?P<c>[789]|10)\.(?P<d>\d)$"
    r"|nvrtc64_(?P<e>[789]|10|11)(?P<f>[0-9])(?<!112)_0\.dll$|cudart64_(?P<g>[789]|10)(?P<h>\d)\.dll$"
)


def cupy_mismatch(
    *,
    cupy: Cupy,
    cupy_status: CupyStatus,
    cupy_runtime: CupyRuntime,
    driver: Driver,
    toolkit: Toolkit,
    torch: Torch,
    python: Python,
    symptoms: Symptoms,
) -> CupyMismatches:
    """Return the mismatches of CuPy and the installed CUDA, from messages and from versions."""
    symbol = _symbol(symptoms)
    if symbol is not None or cupy_status.works or cupy.platform == "rocm":
        return CupyMismatches(by_message=symbol)
    nvcc = toolkit.nvcc_version
    there = (nvcc, "toolkit.nvcc_version") if nvcc is not None else _stated_cuda(symptoms)
    built = torch.cuda_version
    by_message = [_library_of_another_toolkit(*there, symptoms)]
    if not cupy.cuda_major:
        by_message = [_driver_said(driver, nvcc, symptoms), *by_message, _named_for_another_toolkit(nvcc, symptoms)]
        by_message.append(_doubted(cupy_runtime, built, symptoms))
    by_version: list[CupyMismatch | None] = []
    if cupy_status.cuda_major is not None:
        others = _other_toolkits(cupy, cupy_status.cuda_major, toolkit, python)
        others = others or _other_nvcc(cupy_status.cuda_major, toolkit, symptoms)
        wheels = python.matching(f"nvidia-cuda-nvrtc-cu{cupy_status.cuda_major}", "nvidia-cuda-nvrtc", "cuda-nvrtc")
        by_version = [
            _newer_libraries_first(cupy_status.cuda_major, cupy_runtime),
            _only_other_toolkits(cupy_status, others),
            None if wheels else _all_else_of_another_cuda(cupy_status, nvcc, built),
        ]
    return CupyMismatches(
        by_message=next(filter(None, by_message), None), by_version=next(filter(None, by_version), None)
    )


def _symbol(symptoms: Symptoms) -> CupyMismatch | None:
    """Return the mismatch if a CuPy module needs a symbol that the loaded library lacks."""
    for symptom in of_kind(symptoms, "cupy-symbol-missing"):
        name = symptom.names["symbol"]
        of_rocm = any(part in name.lower() for part in ("hip", "roc"))
        names = {"symbol": name, "library": symptom.names.get("library", "the library that is loaded")}
        return CupyMismatch(kind="rocm-symbol" if of_rocm else "symbol", names=names, facts=(symptom.fact,))
    return None


def _driver_said(driver: Driver, nvcc: CudaVersion | None, symptoms: Symptoms) -> CupyMismatch | None:
    """Return the mismatch if CuPy says that the driver does not fit."""
    offered = driver.cuda_version
    for symptom in of_kind(symptoms, "cupy-driver-mismatch"):
        facts = (*(("driver.cuda_version",) if offered else ()), *(("toolkit.nvcc_version",) if nvcc else ()))
        names = {"offered": str(offered)} if offered else {}
        return CupyMismatch(kind="driver", names=names, facts=(symptom.fact, *facts))
    return None


def _stated_cuda(symptoms: Symptoms) -> tuple[CudaVersion | None, str]:
    """Return the CUDA version that a report says is installed if it is not that of the CuPy it names, and the fact."""
    named = named_distribution(symptoms)
    stated = {(s.names["major"], s.names.get("minor", "0")): s.fact for s in of_kind(symptoms, "cupy-toolkit-named")}
    if named is None or len(stated) != 1:
        return None, ""
    (major, minor), fact = stated.popitem()
    return (None, "") if int(major) == named[2] else (CudaVersion(int(major), int(minor)), fact)


def _library_of_another_toolkit(nvcc: CudaVersion | None, fact: str, symptoms: Symptoms) -> CupyMismatch | None:
    """Return the mismatch if the library that CuPy misses belongs to a different CUDA version than the toolkit here."""
    for symptom in of_kind(symptoms, *MISSING)[:1]:
        library = symptom.names["library"]
        if nvcc is not None and is_for(library, nvcc) is False:
            names = {"library": library, "nvcc": str(nvcc)}
            return CupyMismatch(kind="library", names=names, facts=(symptom.fact, fact))
    return None


def _named_for_another_toolkit(nvcc: CudaVersion | None, symptoms: Symptoms) -> CupyMismatch | None:
    """Return the mismatch if a CuPy, known only by its name, lacks a DLL of another CUDA major version."""
    named = named_distribution(symptoms)
    if named is None or nvcc is None or not of_kind(symptoms, "cupy-own-dll-load-failed") or nvcc.major == named[2]:
        return None
    fact, name, major = named
    names = {"named": name, "major": str(major), "nvcc": str(nvcc)}
    return CupyMismatch(kind="named-library", names=names, facts=(fact, "toolkit.nvcc_version"))


def _doubted(runtime: CupyRuntime, built: CudaVersion | None, symptoms: Symptoms) -> CupyMismatch | None:
    """Return the mismatch if the import fails and CuPy's only suspicion is another CUDA version."""
    doubts = of_kind(symptoms, "cupy-version-doubted")
    if runtime.import_error != NO_CAUSE or not doubts:
        return None
    names, facts = ({"torch": str(built)}, ("torch.cuda_version",)) if built else ({}, ())
    return CupyMismatch(kind="doubted", names=names, facts=(doubts[0].fact, *facts))


def _newer_libraries_first(major: int, runtime: CupyRuntime) -> CupyMismatch | None:
    """Return the mismatch if CuPy loads libraries of a CUDA newer than itself and the driver."""
    local, offered = runtime.local_cuda_version, runtime.driver_cuda_version
    if local is None or offered is None or not major < local.major > offered.major:
        return None
    names = {"major": str(major), "local": str(local), "offered": str(offered)}
    facts = ("cupy_runtime.local_cuda_version", "cupy_runtime.driver_cuda_version")
    return CupyMismatch(kind="newer-libraries", names=names, facts=facts)


def _all_else_of_another_cuda(
    status: CupyStatus, nvcc: CudaVersion | None, built: CudaVersion | None
) -> CupyMismatch | None:
    """Return the mismatch if nvcc and PyTorch both have the same other CUDA major version."""
    if nvcc is None or built is None or not nvcc.major == built.major != status.cuda_major:
        return None
    return CupyMismatch(
        kind="all-else",
        names={"major": str(status.cuda_major), "nvcc": str(nvcc), "torch": str(built), "other": str(nvcc.major)},
        facts=(status.cuda_fact, "toolkit.nvcc_version", "torch.cuda_version"),
        certain=False,
        cuda_major=nvcc.major,
    )


def _only_other_toolkits(status: CupyStatus, others: Sequence[tuple[str, str, CudaVersion]]) -> CupyMismatch | None:
    """Return the mismatch if every toolkit, or nvcc's if a library is missing, has another CUDA major version."""
    if not others:
        return None
    there = " and ".join(f"CUDA {version} ({path})" for _, path, version in others)
    facts = (status.cuda_fact, *(fact for fact, _, _ in others))
    return CupyMismatch(kind="toolkit", names={"major": str(status.cuda_major), "toolkits": there}, facts=facts)


def _other_toolkits(
    cupy: Cupy, major: int, toolkit: Toolkit, python: Python
) -> tuple[tuple[str, str, CudaVersion], ...]:
    """Return the toolkits (fact, path, version) if all have other majors and CuPy's libraries are nowhere else.

    Packages for a single toolkit, such as cupy-cuda115, are also compared by major version.
    """
    if toolkit.toolkits is None or cupy.nvrtc_files is None or cupy.platform != "cuda":
        return ()
    libraries = (*(toolkit.system_libraries or ()), *(toolkit.library_path_libraries or ()))
    sonames = (library.soname for library in libraries if "nvrtc" in library.soname)
    if any(_is_of(name, major) for name in (*(file.rpartition("/")[2] for file in cupy.nvrtc_files), *sonames)):
        return ()
    packages = python.packages or ()
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


def _other_nvcc(major: int, toolkit: Toolkit, symptoms: Symptoms) -> tuple[tuple[str, str, CudaVersion], ...]:
    """Return nvcc's toolkit if it has another major version and CuPy does not find a CUDA library."""
    version = toolkit.nvcc_version
    missing = of_kind(symptoms, *MISSING, "cupy-own-dll-load-failed")
    if version is None or version.major == major or not missing:
        return ()
    return (("toolkit.nvcc_version", toolkit.nvcc_path or "nvcc", version),)


def exact_cuda(library: str) -> CudaVersion | None:
    """Return the only CUDA version with this file name: 11.1 for libnvrtc.so.11.1; None for a whole major version."""
    match = re.match(_EXACT, library, re.IGNORECASE)
    if match is None:
        return None
    major, minor = (group for group in match.groups() if group is not None)
    return CudaVersion(int(major), int(minor))


def is_for(library: str, cuda: CudaVersion) -> bool | None:
    """Return whether a toolkit of this version has the library; None if its name does not show it."""
    exact, major = exact_cuda(library), cuda_major_of(library)
    if exact is not None:
        return exact == cuda
    return None if major is None else major == cuda.major


def named_distribution(symptoms: Symptoms) -> tuple[str, str, int] | None:
    """Return the fact, name and CUDA major version of the only CuPy distribution in a report."""
    named = {found.names["version"].lower(): found.fact for found in of_kind(symptoms, "cupy-distribution-named")}
    if len(named) != 1:
        return None
    version, fact = named.popitem()
    # cupy-cuda90 is for 9.0, cupy-cuda115 for 11.5, cupy-cuda12x for all of 12.
    digits = version.removesuffix("x")
    major = int(digits if version.endswith("x") else digits[:-1])
    return fact, f"cupy-cuda{version}", major


def _is_of(name: str, major: int) -> bool:
    """Return whether the file belongs to that CUDA major version: libnvrtc.so.11.2, nvrtc64_120_0.dll."""
    suffix = f".so.{major}"
    return name.endswith(suffix) or f"{suffix}." in name or f"64_{major}" in name
