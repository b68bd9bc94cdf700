"""CUDA libraries: which one a program misses, and which one shadows the one that it needs."""

import re
from collections.abc import Iterator

from gpudoctor.data.cuda_libraries import library_stem
from gpudoctor.model import CudaLibraries, Devices, Driver, Libcuda, MissingSymbol, Pytorch, Symptom
from gpudoctor.model.software import CupyRuntime, Environment, Python, SharedLibrary, Toolkit, TorchRuntime
from gpudoctor.symptoms import Symptoms, of_kind

# TensorFlow's summaries, which count only if nothing else names a library.
SUMMARIES = ("cuda-libraries-not-loaded-by-tensorflow", "cuda-runtime-not-loaded-by-tensorflow")
STUB, COMPAT = "the stub of a toolkit", "a forward compatibility package"


def cuda_libraries(
    *,
    toolkit: Toolkit,
    driver: Driver,
    devices: Devices,
    environment: Environment,
    python: Python,
    pytorch: Pytorch,
    torch_runtime: TorchRuntime | None,
    cupy_runtime: CupyRuntime | None,
    symptoms: Symptoms,
) -> CudaLibraries:
    """Return the problems with CUDA libraries, from program messages and LD_LIBRARY_PATH."""
    on_path = toolkit.library_path_libraries
    libraries = on_path or ()
    cudnn = next((n for n, library in enumerate(libraries) if library.soname.startswith("libcudnn")), None)
    shadowing = tuple(_shadowing(libraries, python))
    works = pytorch.available if pytorch.available is not None else driver.cuda_init_code == 0
    return CudaLibraries(
        known=on_path is not None or torch_runtime is not None or cupy_runtime is not None,
        path_is_set=bool(libraries or environment.get("LD_LIBRARY_PATH")),
        symbol=_missing_symbol(libraries, symptoms),
        missing=_missing(torch_runtime or TorchRuntime(), cupy_runtime or CupyRuntime(), symptoms),
        libcuda=_libcuda(libraries, driver, devices, works),
        shadowing=tuple(libraries[number].path for number in shadowing),
        shadowing_facts=tuple(_fact(number) for number in shadowing),
        other_wheels=tuple(_other_wheels(pytorch, python)),
        cudnn_path=libraries[cudnn].path if cudnn is not None else "",
        cudnn_fact=_fact(cudnn) if cudnn is not None else "",
    )


def _fact(number: int) -> str:
    return f"toolkit.library_path_libraries[{number}].path"


def _missing(torch_runtime: TorchRuntime, cupy_runtime: CupyRuntime, symptoms: Symptoms) -> Symptom | None:
    """Return the message that a CUDA library cannot be opened, unless another check handles it.

    A library that PyTorch, CuPy or bitsandbytes misses is a problem of that package.
    """
    if of_kind(symptoms, "bitsandbytes*", "bnb-*", "guess-cuda-wheel-on-amd"):
        return None
    own = " ".join(text for _, text in (*torch_runtime.texts, *cupy_runtime.texts))
    for symptom in of_kind(symptoms, "@cuda-library-named"):
        if symptom.names["library"] not in own:
            return symptom
    summary = () if of_kind(symptoms, "cudnn-*", "libcuda-*") else of_kind(symptoms, *SUMMARIES)
    return summary[0] if summary else None


def _missing_symbol(libraries: tuple[SharedLibrary, ...], symptoms: Symptoms) -> MissingSymbol | None:
    """Return the function that the loaded library lacks because another version was found first."""
    for symptom in of_kind(symptoms, "cuda-symbol-*"):
        name, function = symptom.names.get("library", ""), symptom.names["symbol"]
        stem = library_stem(name) or library_stem(stem_of(f"lib{function.lstrip('_')}") + ".so") or ""
        loaded = [s for s in of_kind(symptoms, "cuda-library-loaded") if stem_of(s.names["library"]) == stem]
        first = next((n for n, library in enumerate(libraries) if stem_of(library.soname) == stem), None)
        return MissingSymbol(
            symptom=symptom,
            library=name or (f"lib{stem}" if stem else ""),
            stem=stem,
            loaded=loaded[0].names["path"] if loaded else "",
            on_path=libraries[first].path if first is not None else "",
            facts=(symptom.fact, *(each.fact for each in loaded[:1]), *((_fact(first),) if first is not None else ())),
        )
    return None


def stem_of(name: str) -> str:
    """Return the library of a soname or symbol: "nvjitlink", "nccl", "cusparse"."""
    match = re.match(r"lib(nvjitlink|nccl|nvrtc|cu(?:blas|dnn|fft|rand|solver|sparse|pti|dart))", name.lower())
    return match[1] if match else name.lower()


def _libcuda(libraries: tuple[SharedLibrary, ...], driver: Driver, devices: Devices, works: bool) -> Libcuda | None:
    """Return the loaded libcuda if it is a stub or from a compatibility package."""
    if driver.libcuda_path is not None:
        named = [("driver.libcuda_path", driver.libcuda_path)]
    else:
        named = [(_fact(n), each.path) for n, each in enumerate(libraries) if each.soname == "libcuda.so.1"]
    for fact, path in named:
        kind = _kind(path)
        if kind:
            fails = not works and (kind == STUB or _is_geforce(devices))
            name = next((device.name for device in devices or () if device.name), "this GPU")
            return Libcuda(path=path, fact=fact, kind=kind, fails_on=name if fails else "")
    return None


def _kind(path: str) -> str:
    if "/stubs/" in path:
        return STUB
    return COMPAT if re.search(r"/compat(-[\d.]+)?/", path) or "cuda-compat" in path else ""


def _is_geforce(devices: Devices) -> bool:
    """Return whether forward compatibility is unsupported: only data centre GPUs and some NGC-ready RTX cards have it.

    Source: "Forward Compatibility" in https://docs.nvidia.com/deploy/cuda-compatibility/
    """
    return any("GeForce" in (device.name or "") or "TITAN" in (device.name or "") for device in devices or ())


def _shadowing(libraries: tuple[SharedLibrary, ...], python: Python) -> Iterator[int]:
    """Yield the paths of libraries on LD_LIBRARY_PATH that NVIDIA's wheels also contain."""
    wheels = python.matching("nvidia-*")
    for number, library in enumerate(libraries):
        if any(stem_of(library.soname) in package.name for package in wheels):
            yield number


def _other_wheels(pytorch: Pytorch, python: Python) -> Iterator[str]:
    for package in python.matching("nvidia-*"):
        match = re.fullmatch(r"nvidia-[\w-]+-cu(1\d)", package.name)
        if match and pytorch.cuda_version is not None and int(match[1]) != pytorch.cuda_version.major:
            yield package.name
