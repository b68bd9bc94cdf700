"""What CuPy said when it was imported and called, read in the same way by several checks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from gpudoctor.conclusions.messages import reported
from gpudoctor.data import RemovedPart, removed_from_cupy
from gpudoctor.model import CudaVersion, Cupy, CupyRuntime, Package, PackageVersion, Symptom
from gpudoctor.remedies.cuda_libraries import cuda_major_of

# Linux, Windows, and cuda-pathfinder, which CuPy 14 asks for libraries.
_NOT_FOUND = (
    r"cannot open shared object file|dll load failed|could not find module|winerror 126|no such file"
    r"|failed to (?:find|load|open)|not found|could not be (?:found|loaded)|dynamiclibnotfounderror|failure finding"
)
# What Windows says of a module of CuPy of which it finds a DLL not; it names no DLL.
DLL = r"DLL load failed(?: while importing \w+)?"
_LIBRARIES = "nvrtc|nvrtc-builtins|cudart|cublas|cufft|curand|cusolver|cusparse|nvJitLink"
# The name of NVRTC up to CUDA 11.1, and of the runtime up to 10.2, tells the minor version: only that one is loaded.
# Source: sonames and names of DLLs in the toolkits of CUDA 8.0 to 13.0.
_EXACT = (
    r"libnvrtc\.so\.(?P<a>[789]|10|11)\.(?P<b>\d)(?<!11\.2)$|libcudart\.so\.(?P<c>[789]|10)\.(?P<d>\d)$"
    r"|nvrtc64_(?P<e>[789]|10|11)(?P<f>[0-9])(?<!112)_0\.dll$|cudart64_(?P<g>[789]|10)(?P<h>\d)\.dll$"
)
# The package is there, and not whole: its folder outlived its removal, or several distributions overwrote each other.
# Source: https://github.com/cupy/cupy/issues/7021, https://github.com/cupy/cupy/issues/3541
_INCOMPLETE = (
    r"module 'cupy[\w.]*' has no attribute '\w+'|No module named 'cupy\.[\w.]+'|cannot import name '?\w+'? from '?cupy"
    r"|type object 'cupy[\w.]+' has no attribute '__reduce_cython__'"
)


def cupy_errors(cupy_runtime: CupyRuntime | None) -> Iterator[tuple[str, str]]:
    """Yield the name and text of every error, the import's first."""
    if cupy_runtime is None:
        return
    for name in ("import_error", "device_error"):
        text = getattr(cupy_runtime, name)
        if text:
            yield f"cupy_runtime.{name}", text
    for number, call in enumerate(cupy_runtime.calls or ()):
        if call.error:
            yield f"cupy_runtime.calls[{number}].error", call.error


def missing_library(cupy_runtime: CupyRuntime | None, names: str) -> tuple[str, str] | None:
    """Return the fact and the file name where an error says that one of the libraries cannot be found.

    names: regular expression of the names between "lib" and ".so": "cublas|cufft".
    """
    file = re.compile(
        rf"\b(lib(?:{names})(?:Lt|Mg|w)?\.so[.\d]*|(?:{names})(?:Lt|w)?64_[\d_]+\.dll"
        rf"|(?:lib)?(?:{names})\b)",
        re.IGNORECASE,
    )
    for fact, text in cupy_errors(cupy_runtime):
        match = file.search(text)
        if match is not None and re.search(_NOT_FOUND, text.lower()):
            return fact, match[1]
    return None


def wanted_library(cupy_runtime: CupyRuntime | None) -> tuple[str, str] | None:
    """Return the fact and the name of the CUDA library that CuPy misses, whichever it is."""
    return missing_library(cupy_runtime, _LIBRARIES)


def exact_cuda(library: str) -> CudaVersion | None:
    """Return the only CUDA version with a library of this name: 11.1 of libnvrtc.so.11.1; None for a whole major."""
    match = re.match(_EXACT, library, re.IGNORECASE)
    if match is None:
        return None
    major, minor = (group for group in match.groups() if group is not None)
    return CudaVersion(int(major), int(minor))


def is_for(library: str, cuda: CudaVersion) -> bool | None:
    """Return whether a toolkit of this version holds the library, None where its name does not tell."""
    exact, major = exact_cuda(library), cuda_major_of(library)
    if exact is not None:
        return exact == cuda
    return None if major is None else major == cuda.major


def named_distribution(symptoms: tuple[Symptom, ...] | None) -> tuple[str, str, int] | None:
    """Return the fact, the name and the CUDA major version of the only CuPy distribution that a report names."""
    named = {message.names["version"].lower(): fact for fact, message in reported(symptoms, "cupy-distribution-named")}
    if len(named) != 1:
        return None
    version, fact = named.popitem()
    # cupy-cuda90 is for 9.0, cupy-cuda115 for 11.5, cupy-cuda12x for the whole major.
    digits = version.removesuffix("x")
    major = int(digits if version.endswith("x") else digits[:-1])
    return fact, f"cupy-cuda{version}", major


def removed_part(error: str, version: PackageVersion | None = None) -> RemovedPart | None:
    """Return the part of CuPy that the error says is not there, where it, or newer ones, have it no longer.

    version: that of CuPy, where it is known.
    """
    match = re.search(r"module '(cupy[\w.]*)' has no attribute '(\w+)'|No module named '(cupy)\.(\w+)'", error)
    if match is None:
        return None
    module, attribute = (group for group in match.groups() if group is not None)
    part = removed_from_cupy(f"{module}.{attribute}")
    there = part is not None and version is not None and version.release and version.release[0] <= part.last
    return None if there else part


def is_incomplete(error: str, version: PackageVersion | None = None) -> bool:
    """Return whether the error shows that the folder of CuPy does not hold all of one version."""
    return re.search(_INCOMPLETE, error) is not None and removed_part(error, version) is None


def with_distributions(cupy: Cupy | None, names: tuple[str, ...]) -> Cupy | None:
    """Return the facts with the distributions that CuPy itself names, where no list of packages is known."""
    if not names or (cupy is not None and cupy.distributions is not None):
        return cupy
    packages = tuple(Package(name=name, version=PackageVersion("")) for name in names)
    return replace(cupy or Cupy(), distributions=packages)


def error_with(cupy_runtime: CupyRuntime | None, pattern: str) -> tuple[str, re.Match[str]] | None:
    """Return the fact of the first error that matches the regular expression, and the match."""
    for fact, text in cupy_errors(cupy_runtime):
        match = re.search(pattern, text, re.IGNORECASE)
        if match is not None:
            return fact, match
    return None


def cupy_works(cupy_runtime: CupyRuntime | None) -> bool:
    """Return whether CuPy was imported and compiled and ran a kernel."""
    if cupy_runtime is None or cupy_runtime.import_error != "":
        return False
    kernels = [call for call in cupy_runtime.calls or () if call.library == "elementwise"]
    return bool(kernels) and not any(call.error for call in kernels)
