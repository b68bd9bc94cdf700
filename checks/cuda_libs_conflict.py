"""CUDA libraries of several origins."""

import re
from collections.abc import Iterator

from gpudoctor.model import (
    CupyRuntime,
    Device,
    Driver,
    Environment,
    Finding,
    Python,
    Remedy,
    Severity,
    SharedLibrary,
    System,
    Toolkit,
    Torch,
    TorchRuntime,
)
from gpudoctor.reasoning.installed import whole_torch
from gpudoctor.reasoning.symptoms import SYSTEM_DRIVER_MISMATCH, cuda_error, runtime_texts, text_with
from gpudoctor.registry import check, known
from gpudoctor.remedies import reinstall_torch, unset_variable

STUB_LIBRARY = 34  # "CUDA driver is a stub library". Source: cuda.h of CUDA 13.5
COMPAT_NOT_SUPPORTED = 804  # "forward compatibility was attempted on non supported HW". Source: cuda.h of CUDA 13.5

# A symbol of a CUDA library that the loaded file of that name does not have: another version of it was found first.
SYMBOL = re.compile(
    r"undefined symbol: (__nvJitLink\w*|nvJitLink\w+|nccl\w+|nvrtc\w+"
    r"|cu(?:blas|fft|rand|solver|sparse|pti)\w+)(?:, version (lib\w+\.so[.\d]*))?",
    re.IGNORECASE,
)


@check(
    family="cuda",
    explains=(
        "torch-import-failed",
        "torch-cuda-unavailable",
        "torch-wrong-results",
        "cupy-unusable",
        "driver-library-mismatch",
    ),
)
def cuda_libs_conflict(
    toolkit: Toolkit | None = None,
    driver: Driver | None = None,
    torch: Torch | None = None,
    torch_runtime: TorchRuntime | None = None,
    cupy_runtime: CupyRuntime | None = None,
    python: Python | None = None,
    environment: Environment | None = None,
    devices: tuple[Device, ...] | None = None,
    system: System | None = None,
) -> Iterator[Finding]:
    """CUDA libraries of another origin are loaded before those that belong to the installed packages.

    Why: LD_LIBRARY_PATH wins over the folders that wheels name. A libnvJitLink or libnccl of an older toolkit lacks
    symbols that PyTorch needs, a libcuda of a toolkit's stubs talks to no GPU, and that of a forward compatibility
    package (cuda-compat) works on data centre GPUs only: errors 34, 803 and 804.
    Exception: libraries on LD_LIBRARY_PATH with which everything works are advice; many clusters set it. cuDNN is for
    cudnn-missing-or-mismatch.
    Reference: https://docs.nvidia.com/deploy/cuda-compatibility/forward-compatibility.html
    """
    whole = whole_torch(torch, torch_runtime)
    libraries = (toolkit.library_path_libraries if toolkit is not None else None) or ()
    remedies = tuple(_remedies(libraries, environment, whole, python, system))
    symbol = _missing_symbol(torch_runtime, cupy_runtime)
    if symbol is not None:
        yield _symbol_finding(symbol, libraries, remedies)
        return
    libcuda = _libcuda(libraries, driver)
    error = _libcuda_error(driver, torch_runtime, cupy_runtime, libcuda)
    if error is not None:
        yield _libcuda_finding(error, libcuda, remedies)
        return
    working = _works(torch_runtime, driver)
    if libcuda is not None and not working and (_is_stub(libcuda[1]) or _is_geforce(devices)):
        kind = "the stub of a toolkit" if _is_stub(libcuda[1]) else "a forward compatibility package"
        name = next((device.name for device in devices or () if device.name), "this GPU")
        yield Finding(
            severity=Severity.WARNING,
            summary=f"The loader takes libcuda from {libcuda[1]}, {kind}, which does not work on {name}",
            subject="libcuda.so.1",
            facts=(libcuda[0],),
            remedies=remedies,
        )
        return
    if toolkit is None or toolkit.library_path_libraries is None:
        known(torch_runtime or cupy_runtime, "toolkit.library_path_libraries")
    yield from _advice(libraries, python, remedies)


def _missing_symbol(
    torch_runtime: TorchRuntime | None, cupy_runtime: CupyRuntime | None
) -> tuple[str, re.Match[str]] | None:
    """Return the fact with an error that names a missing symbol of a CUDA library, and the match."""
    for fact, text in runtime_texts(torch_runtime, cupy_runtime):
        match = SYMBOL.search(text)
        if match is not None:
            return fact, match
    return None


def _symbol_finding(
    symbol: tuple[str, re.Match[str]], libraries: tuple[SharedLibrary, ...], remedies: tuple[Remedy, ...]
) -> Finding:
    fact, match = symbol
    stem = _stem(match[2] or f"lib{match[1].lstrip('_')}")
    first = next((n for n, library in enumerate(libraries) if _stem(library.soname) == stem), None)
    origin = f"LD_LIBRARY_PATH leads to {libraries[first].path}" if first is not None else "another version is loaded"
    library = "CuPy" if fact.startswith("cupy") else "PyTorch"
    return Finding(
        severity=Severity.ERROR,
        summary=f"{library} misses {match[1]} in {match[2] or 'a CUDA library'}: {origin}",
        subject=match[2] or "CUDA libraries",
        facts=(fact, *((f"toolkit.library_path_libraries[{first}].path",) if first is not None else ())),
        remedies=remedies,
    )


def _stem(name: str) -> str:
    """Return the library that a soname or a symbol belongs to: "nvjitlink", "nccl", "cusparse"."""
    match = re.match(r"lib(nvjitlink|nccl|nvrtc|cu(?:blas|dnn|fft|rand|solver|sparse|pti|dart))", name.lower())
    return match[1] if match else name.lower()


def _libcuda(libraries: tuple[SharedLibrary, ...], driver: Driver | None) -> tuple[str, str] | None:
    """Return the fact and path of the libcuda that is loaded where it is a stub or of a compatibility package."""
    if driver is not None and driver.libcuda_path is not None:
        named = [("driver.libcuda_path", driver.libcuda_path)]
    else:
        named = [
            (f"toolkit.library_path_libraries[{number}].path", library.path)
            for number, library in enumerate(libraries)
            if library.soname == "libcuda.so.1"
        ]
    return next(((fact, path) for fact, path in named if _is_stub(path) or _is_compat(path)), None)


def _is_stub(path: str) -> bool:
    return "/stubs/" in path


def _is_compat(path: str) -> bool:
    return re.search(r"/compat(-[\d.]+)?/", path) is not None or "cuda-compat" in path


def _is_geforce(devices: tuple[Device, ...] | None) -> bool:
    """Return whether forward compatibility is not supported: it is on data centre GPUs and some NGC-ready RTX cards.

    Source: "Forward Compatibility" in https://docs.nvidia.com/deploy/cuda-compatibility/
    """
    return any("GeForce" in (device.name or "") or "TITAN" in (device.name or "") for device in devices or ())


def _libcuda_error(
    driver: Driver | None,
    torch_runtime: TorchRuntime | None,
    cupy_runtime: CupyRuntime | None,
    libcuda: tuple[str, str] | None,
) -> tuple[str, int] | None:
    """Return the fact and code of the error that a stub or compatibility package causes."""
    if driver is not None and driver.cuda_init_code in (STUB_LIBRARY, COMPAT_NOT_SUPPORTED):
        return "driver.cuda_init_code", driver.cuda_init_code
    for code, phrase in (
        (COMPAT_NOT_SUPPORTED, "forward compatibility was attempted on non supported hw"),
        (STUB_LIBRARY, "cuda driver is a stub library"),
    ):
        found = text_with(phrase, torch_runtime=torch_runtime, cupy_runtime=cupy_runtime)
        if found is not None:
            return found[0], code
        if driver is not None and phrase in (driver.cuda_init_error or "").lower():
            return "driver.cuda_init_error", code
    mismatch = cuda_error(SYSTEM_DRIVER_MISMATCH, driver, torch_runtime, cupy_runtime)
    return (mismatch, SYSTEM_DRIVER_MISMATCH) if mismatch and libcuda is not None else None


def _libcuda_finding(error: tuple[str, int], libcuda: tuple[str, str] | None, remedies: tuple[Remedy, ...]) -> Finding:
    fact, code = error
    meaning = {
        STUB_LIBRARY: "error 34: the libcuda loaded is the stub of a toolkit",
        COMPAT_NOT_SUPPORTED: "error 804: this GPU does not support the forward compatibility package that is loaded",
        SYSTEM_DRIVER_MISMATCH: "error 803: the forward compatibility package loaded does not fit the driver",
    }[code]
    path = f" ({libcuda[1]})" if libcuda is not None else ""
    remove = Remedy(
        summary="Remove the package cuda-compat, or start the container without its libraries, so that the driver's "
        "own libcuda is loaded; a program that needs a newer CUDA needs a newer driver then",
        reference="https://docs.nvidia.com/deploy/cuda-compatibility/forward-compatibility.html",
    )
    return Finding(
        severity=Severity.ERROR,
        summary=f"CUDA cannot be initialised, {meaning}{path}",
        subject="libcuda.so.1",
        facts=(fact, *((libcuda[0],) if libcuda is not None else ())),
        remedies=tuple(remedy for remedy in remedies if "LD_LIBRARY_PATH" in remedy.summary)
        + ((remove,) if code != STUB_LIBRARY else ()),
    )


def _works(torch_runtime: TorchRuntime | None, driver: Driver | None) -> bool:
    if torch_runtime is not None and torch_runtime.available is not None:
        return torch_runtime.available
    return driver is not None and driver.cuda_init_code == 0


def _advice(
    libraries: tuple[SharedLibrary, ...], python: Python | None, remedies: tuple[Remedy, ...]
) -> Iterator[Finding]:
    """Yield advice where LD_LIBRARY_PATH leads to libraries that NVIDIA's wheels bring as well."""
    wheels = {package.name for package in (python.packages if python is not None else None) or ()}
    shadowing = [
        number
        for number, library in enumerate(libraries)
        if any(name.startswith("nvidia-") and _stem(library.soname) in name for name in wheels)
    ]
    if shadowing:
        first = libraries[shadowing[0]]
        more = f" and {len(shadowing) - 1} more" if len(shadowing) > 1 else ""
        yield Finding(
            severity=Severity.INFO,
            summary=f"LD_LIBRARY_PATH leads to {first.path}{more}, which come before the libraries of the wheels",
            subject="LD_LIBRARY_PATH",
            facts=tuple(f"toolkit.library_path_libraries[{number}].path" for number in shadowing[:5]),
            remedies=remedies[:1],
        )


def _remedies(
    libraries: tuple[SharedLibrary, ...],
    environment: Environment | None,
    whole: Torch,
    python: Python | None,
    system: System | None,
) -> Iterator[Remedy]:
    if libraries or (environment is not None and environment.get("LD_LIBRARY_PATH")):
        yield unset_variable(
            system=system,
            name="LD_LIBRARY_PATH",
            summary="Remove LD_LIBRARY_PATH, so that the packages load the libraries that they bring",
        )
    if whole.installed:
        yield reinstall_torch(python=python, system=system, torch=whole)
