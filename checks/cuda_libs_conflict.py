"""CUDA libraries of several origins."""

import re
from collections.abc import Iterator

from gpudoctor.conclusions.error_codes import (
    COMPAT_NOT_SUPPORTED,
    SYSTEM_DRIVER_MISMATCH,
    cuda_error,
    runtime_texts,
    text_with,
)
from gpudoctor.conclusions.installed import whole_torch
from gpudoctor.conclusions.messages import reported
from gpudoctor.conclusions.missing_libraries import missing_library
from gpudoctor.data.cuda_libraries import cuda_major_of, library_stem, wheel_of
from gpudoctor.model import (
    CupyRuntime,
    Device,
    Driver,
    Environment,
    Finding,
    Package,
    Python,
    Remedy,
    Severity,
    SharedLibrary,
    Symptom,
    System,
    Toolkit,
    Torch,
    TorchRuntime,
)
from gpudoctor.registry import check, known
from gpudoctor.remedies import install_packages, reinstall_torch, unset_variable
from gpudoctor.remedies.cuda_libraries import framework_libraries, install_cuda_library

STUB_LIBRARY = 34  # "CUDA driver is a stub library". Source: cuda.h of CUDA 13.5

FRAMEWORKS = {"tensorflow": "TensorFlow", "jax": "JAX"}

# A symbol of a CUDA library that the loaded file of that name does not have: another version of it was found first.
SYMBOL = (
    r"(?i)undefined symbol:? (__nvJitLink\w*|nvJitLink\w+|nccl\w+|nvrtc\w+"
    r"|cu(?:blas|fft|rand|solver|sparse|pti)\w+)(?:, version (lib\w+\.so[.\d]*))?"
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
    symptoms: tuple[Symptom, ...] | None = None,
) -> Iterator[Finding]:
    """CUDA libraries of another origin are loaded before those that belong to the installed packages.

    Why: LD_LIBRARY_PATH wins over the folders that wheels name. A libnvJitLink or libnccl of an older toolkit lacks
    symbols that PyTorch needs, a libcuda of a toolkit's stubs talks to no GPU, and that of a forward compatibility
    package (cuda-compat) works on data centre GPUs only: errors 34, 803 and 804. A package that was built for another
    CUDA major version than the others asks for libraries that are not there.
    Exception: libraries on LD_LIBRARY_PATH with which everything works are advice; many clusters set it. cuDNN is for
    cudnn-missing-or-mismatch. A library of which a program only warns, and goes on, is a warning.
    Reference: https://docs.nvidia.com/deploy/cuda-compatibility/forward-compatibility.html
    """
    whole = whole_torch(torch, torch_runtime)
    libraries = (toolkit.library_path_libraries if toolkit is not None else None) or ()
    remedies = tuple(_remedies(libraries, environment, whole, python, system))
    symbol = _missing_symbol(torch_runtime, cupy_runtime)
    told = reported(symptoms, "cuda-symbol-*")
    if told:
        yield _told_symbol(told[0], symptoms, libraries, whole, python, system)
        return
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
    missing = missing_library(symptoms, torch_runtime, cupy_runtime)
    if missing is not None:
        yield _missing_finding(missing, whole, python, system)
        return
    if toolkit is None or toolkit.library_path_libraries is None:
        known(torch_runtime or cupy_runtime, "toolkit.library_path_libraries")
    yield from _advice(libraries, python, remedies)


def _told_symbol(
    told: tuple[str, Symptom],
    symptoms: tuple[Symptom, ...] | None,
    libraries: tuple[SharedLibrary, ...],
    whole: Torch,
    python: Python | None,
    system: System | None,
) -> Finding:
    """Return the finding where a message names a symbol that the library loaded does not have."""
    fact, message = told
    name, symbol = message.names.get("library", ""), message.names["symbol"]
    stem = library_stem(name) or library_stem(_stem("lib" + symbol.lstrip("_")) + ".so")
    loaded = next((m for m in reported(symptoms, "cuda-library-loaded") if _stem(m[1].names["library"]) == stem), None)
    path = loaded[1].names["path"] if loaded else ""
    first = next((n for n, library in enumerate(libraries) if _stem(library.soname) == stem), None)
    if not path and first is not None:
        path = libraries[first].path
    origin = f"{path} is loaded, of another version" if path else "another version of it is loaded"
    return Finding(
        severity=Severity.ERROR,
        summary=f"{symbol} is missing in {name or f'lib{stem}' if stem else 'a CUDA library'}: {origin}",
        subject=name or stem or "CUDA libraries",
        facts=(
            fact,
            *((loaded[0],) if loaded else ()),
            *((f"toolkit.library_path_libraries[{first}].path",) if first is not None else ()),
        ),
        remedies=tuple(_symbol_remedies(stem, whole, python, system)),
        details=dict(message.names),
    )


def _symbol_remedies(stem: str | None, whole: Torch, python: Python | None, system: System | None) -> Iterator[Remedy]:
    others = _wheels_of_another_cuda(whole, python)
    if others:
        major = whole.cuda_version.major if whole.cuda_version else None
        yield install_packages(
            python=python,
            requirements=(),
            remove=[package.name for package in others],
            summary=f"Remove the wheels of another CUDA than that of PyTorch ({major}), then reinstall PyTorch",
        )
    yield unset_variable(
        system=system,
        name="LD_LIBRARY_PATH",
        summary="Remove LD_LIBRARY_PATH, where it is set: its folders come before the CUDA libraries of the packages",
    )
    if stem is not None:
        major = whole.cuda_version.major if whole.cuda_version else None
        name = wheel_of(stem, major or 12)
        note = "" if major else " (cu11 in its name for a package built for CUDA 11, and so on)"
        yield install_packages(
            python=python,
            requirements=("--upgrade", name),
            force=True,
            summary=f"If it still fails, install {name} again{note}: an old one of another package may lie over it; "
            "pip check names the version that PyTorch asks for",
            verify="import torch; print(torch.__version__, torch.cuda.is_available())",
        )
    yield reinstall_torch(python=python, system=system, pytorch=whole if whole.installed else None)


def _wheels_of_another_cuda(whole: Torch, python: Python | None) -> list[Package]:
    """Return NVIDIA's wheels for another CUDA major version than PyTorch's."""
    if whole.cuda_version is None:
        return []
    packages = (python.packages if python is not None else None) or ()
    found = [(package, re.fullmatch(r"nvidia-[\w-]+-cu(1\d)", package.name)) for package in packages]
    return [package for package, match in found if match and int(match[1]) != whole.cuda_version.major]


def _missing_finding(
    missing: tuple[str, Symptom], whole: Torch, python: Python | None, system: System | None
) -> Finding:
    fact, message = missing
    if message.library in FRAMEWORKS:
        return _framework_finding(fact, message, python, system)
    name = message.names["library"]
    major = cuda_major_of(name)
    own = whole.cuda_version
    differs = major is not None and own is not None and own.major != major
    of = f" of CUDA {major}" if major else ""
    return Finding(
        severity=Severity.WARNING if "warned" in message.names else Severity.ERROR,
        summary=f"A package asks for {name}{of}, which the loader does not find"
        + (f", and PyTorch brings the libraries of CUDA {own}" if differs else ""),
        subject=name,
        facts=(fact, *(("torch.cuda_version",) if differs else ())),
        remedies=install_cuda_library(name=name, python=python, system=system, pytorch=whole),
        details=dict(message.names),
    )


def _framework_finding(fact: str, message: Symptom, python: Python | None, system: System | None) -> Finding:
    """Return the finding where a framework says which of CUDA's libraries, or that not all of them, can be loaded."""
    name = message.names.get("library", "all the libraries of CUDA")
    return Finding(
        severity=Severity.ERROR,
        summary=f"{FRAMEWORKS[message.library]} cannot load {name} in the version that it was built with",
        subject=name,
        facts=(fact,),
        remedies=tuple(framework_libraries(framework=message.library, python=python, system=system)),
        details=dict(message.names),
    )


def _missing_symbol(
    torch_runtime: TorchRuntime | None, cupy_runtime: CupyRuntime | None
) -> tuple[str, re.Match[str]] | None:
    """Return the fact with an error that names a missing symbol of a CUDA library, and the match."""
    for fact, text in runtime_texts(torch_runtime, cupy_runtime):
        match = re.search(SYMBOL, text)
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
        remedies=(
            *([remedy for remedy in remedies if "LD_LIBRARY_PATH" in remedy.summary] or [_without_folder(code)]),
            *((remove,) if code != STUB_LIBRARY else ()),
        ),
    )


def _without_folder(code: int) -> Remedy:
    """Return how to look for the folder on LD_LIBRARY_PATH that holds that libcuda."""
    folder = "stubs of a toolkit" if code == STUB_LIBRARY else "compat of a toolkit (/usr/local/cuda/compat)"
    return Remedy(
        summary=f"Take the folder {folder} out of LD_LIBRARY_PATH and of /etc/ld.so.conf.d",
        commands=(
            "printenv LD_LIBRARY_PATH; grep -r -E 'stubs|compat' /etc/ld.so.conf.d",
            "unset LD_LIBRARY_PATH",
            "sudo ldconfig",
            "ldconfig -p | grep libcuda.so",
        ),
        needs=("root", "restart"),
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
        yield reinstall_torch(python=python, system=system, pytorch=whole)
