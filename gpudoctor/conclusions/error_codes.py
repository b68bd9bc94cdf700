"""Facts that several checks read in the same way: error codes from wherever one was reported, and who asks for CUDA.

A live machine gives numbers (`cuInit`, `nvmlInit`); a pasted report gives the text that a program printed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from gpudoctor.conclusions import consumers, driver_state
from gpudoctor.conclusions.messages import reported
from gpudoctor.model import (
    CudaVersion,
    CupyRuntime,
    DeviceFile,
    Driver,
    PciGpu,
    Symptom,
    System,
    TorchRuntime,
)
from gpudoctor.symptoms import with_code

# Codes of the CUDA driver API, each with the texts by which CUDA, PyTorch and CuPy report it (lower case).
# Source: cuda.h and cudaGetErrorString of CUDA 13.5; c10/cuda/CUDAFunctions.cpp of PyTorch 2.14.
INSUFFICIENT_DRIVER = 35
DEVICE_UNAVAILABLE = 46
NO_DEVICE = 100
INVALID_DEVICE = 101
UNSUPPORTED_PTX = 222
OPERATING_SYSTEM = 304
SYSTEM_NOT_READY = 802
SYSTEM_DRIVER_MISMATCH = 803
COMPAT_NOT_SUPPORTED = 804
MPS_CONNECTION_FAILED = 805
MPS_RPC_FAILURE = 806
MPS_NOT_READY = 807
UNKNOWN_ERROR = 999
_CUDA_TEXTS = {
    INSUFFICIENT_DRIVER: ("driver on your system is too old", "cuda driver version is insufficient"),
    DEVICE_UNAVAILABLE: ("busy or unavailable", "cudaerrordevicesunavailable", "cuda_error_device_unavailable"),
    NO_DEVICE: ("no cuda-capable device is detected", "no cuda gpus are available", "cuda_error_no_device"),
    INVALID_DEVICE: ("invalid device ordinal", "cuda_error_invalid_device"),
    UNSUPPORTED_PTX: ("ptx was compiled with an unsupported toolchain", "cuda_error_unsupported_ptx_version"),
    OPERATING_SYSTEM: ("os call failed", "cuda_error_operating_system"),
    SYSTEM_NOT_READY: ("system not yet initialized", "error 802", "cuda_error_system_not_ready"),
    SYSTEM_DRIVER_MISMATCH: (
        "unsupported display driver / cuda driver combination",
        "error 803",
        "cuda_error_system_driver_mismatch",
    ),
    COMPAT_NOT_SUPPORTED: ("forward compatibility was attempted on non supported hw",),
    MPS_CONNECTION_FAILED: ("mps client failed to connect", "error 805", "cuda_error_mps_connection_failed"),
    MPS_RPC_FAILURE: ("between the mps server and the mps client", "cuda_error_mps_rpc_failure"),
    MPS_NOT_READY: ("mps server is not ready", "cuda_error_mps_server_not_ready"),
    UNKNOWN_ERROR: ("cuda unknown error", "cudaerrorunknown", "cuda_error_unknown", "error 999: unknown error"),
}

# Codes of NVML, each with the texts by which nvidia-smi, NVML and its Python binding report it (lower case).
# Source: nvml.h and pynvml.py of nvidia-ml-py 13.
NVML_NO_PERMISSION = 4
NVML_DRIVER_NOT_LOADED = 9
NVML_LIBRARY_NOT_FOUND = 12
NVML_OPERATING_SYSTEM = 17
NVML_VERSION_MISMATCH = 18
NVML_UNKNOWN = 999
_NVML_TEXTS = {
    NVML_NO_PERMISSION: ("insufficient permissions",),
    NVML_DRIVER_NOT_LOADED: ("driver not loaded", "communicate with the nvidia driver"),
    NVML_LIBRARY_NOT_FOUND: ("nvml shared library not found", "libnvidia-ml.so", "couldn't find libnvidia-ml"),
    NVML_OPERATING_SYSTEM: ("blocked by the operating system",),
    NVML_VERSION_MISMATCH: ("driver/library version mismatch", "nvml/rm version mismatch"),
    NVML_UNKNOWN: ("unknown error",),
}
# The same codes, each with the kinds of messages that report it.
_NVML_KINDS = {
    NVML_NO_PERMISSION: ("nvml-no-permission",),
    NVML_DRIVER_NOT_LOADED: ("nvml-driver-not-loaded",),
    NVML_LIBRARY_NOT_FOUND: ("nvml-library-not-found",),
    NVML_OPERATING_SYSTEM: ("nvml-blocked-by-os",),
    NVML_VERSION_MISMATCH: ("nvml-version-mismatch",),
}
NO_DRIVER_KINDS = ("torch-no-driver", "libcuda-not-found", "cuda-driver-version-zero")
Symptoms = tuple[Symptom, ...] | None


def runtime_texts(
    torch_runtime: TorchRuntime | None = None, cupy_runtime: CupyRuntime | None = None
) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of every error and warning that PyTorch and CuPy gave."""
    if torch_runtime is not None:
        for name in ("import_error", "availability_error", "cudnn_error"):
            yield f"torch_runtime.{name}", getattr(torch_runtime, name) or ""
        for number, text in enumerate(torch_runtime.warnings or ()):
            yield f"torch_runtime.warnings[{number}]", text
        for number, result in enumerate(torch_runtime.precision_results or ()):
            yield f"torch_runtime.precision_results[{number}].error", result.error
    if cupy_runtime is not None:
        for name in ("import_error", "device_error"):
            yield f"cupy_runtime.{name}", getattr(cupy_runtime, name) or ""
        for number, call in enumerate(cupy_runtime.calls or ()):
            yield f"cupy_runtime.calls[{number}].error", call.error
        for number, text in enumerate(cupy_runtime.warnings or ()):
            yield f"cupy_runtime.warnings[{number}]", text


def text_with(
    *phrases: str, torch_runtime: TorchRuntime | None = None, cupy_runtime: CupyRuntime | None = None
) -> tuple[str, str] | None:
    """Return the name and text of the first error of PyTorch or CuPy with one of `phrases` (lower case) in it."""
    for name, text in runtime_texts(torch_runtime, cupy_runtime):
        if any(phrase in text.lower() for phrase in phrases):
            return name, text
    return None


def cuda_error(
    code: int,
    driver: Driver | None,
    torch_runtime: TorchRuntime | None = None,
    cupy_runtime: CupyRuntime | None = None,
    symptoms: Symptoms = None,
) -> str | None:
    """Return the name of the fact that reports the CUDA error `code`, None where none does."""
    if driver is not None:
        if driver.cuda_init_code == code:
            return "driver.cuda_init_code"
        if driver.cuda_init_code is None and _says(driver.cuda_init_error, _CUDA_TEXTS[code]):
            return "driver.cuda_init_error"
    found = text_with(*_CUDA_TEXTS[code], torch_runtime=torch_runtime, cupy_runtime=cupy_runtime)
    if found:
        return found[0]
    return next((symptom.fact for symptom in with_code(symptoms, f"cuda-{code}")), None)


def nvml_error(code: int, driver: Driver | None, symptoms: Symptoms = None) -> str | None:
    """Return the name of the fact that reports the NVML error `code`, None where none does."""
    for fact, _ in reported(symptoms, *_NVML_KINDS.get(code, ())):
        return fact
    if driver is None:
        return None
    if driver.nvml_code is not None:
        return "driver.nvml_code" if driver.nvml_code == code else None
    return "driver.nvml_error" if _says(driver.nvml_error, _NVML_TEXTS[code]) else None


def no_driver_reported(torch_runtime: TorchRuntime | None, symptoms: Symptoms = None) -> str | None:
    """Return the name of the fact in which a library says that it can load no libcuda at all, None where none does.

    PyTorch says so where cudaDriverGetVersion gives 0. Source: c10/cuda/CUDAFunctions.cpp.
    """
    found = text_with("found no nvidia driver", torch_runtime=torch_runtime)
    if found:
        return found[0]
    return next((fact for fact, _ in reported(symptoms, *NO_DRIVER_KINDS)), None)


def too_old_reported(
    torch_runtime: TorchRuntime | None, cupy_runtime: CupyRuntime | None = None, symptoms: Symptoms = None
) -> tuple[str, CudaVersion | None] | None:
    """Return the fact in which a library calls the driver too old, and the driver's CUDA version if it names that.

    FFmpeg names the driver it needs also where it finds no libnvidia-encode: then that is what is wrong.
    """
    found = text_with(*_CUDA_TEXTS[INSUFFICIENT_DRIVER], torch_runtime=torch_runtime, cupy_runtime=cupy_runtime)
    if found is None:
        fact = cuda_error(INSUFFICIENT_DRIVER, None, symptoms=symptoms)
        without_library = reported(symptoms, "container-video-library") and reported(symptoms, "nvenc-driver-too-old")
        return (fact, None) if fact and (not without_library or fact != without_library[0][0]) else None
    number = re.search(r"found version (\d{4,6})", found[1])
    return found[0], CudaVersion.from_number(int(number[1])) if number else None


works = driver_state.driver_works
asks_for_cuda = consumers.asks_for_cuda


def nvidia_gpus(system: System | None) -> tuple[PciGpu, ...] | None:
    """Return the NVIDIA GPUs on the PCI bus, None where the bus is not known."""
    return system.nvidia_gpus if system is not None else None


def gpu_name(gpu: PciGpu) -> str:
    """Return the name of `gpu` for a sentence: its product name, else its PCI id."""
    return gpu.label


def gpu_nodes(driver: Driver | None) -> tuple[DeviceFile, ...] | None:
    """Return the device nodes that CUDA opens, None where they are not known."""
    return driver.gpu_nodes if driver is not None else None


def in_container(system: System | None) -> bool:
    """Return whether this is known to run in a container."""
    return system is not None and bool(system.container)


def in_wsl(system: System | None) -> bool:
    """Return whether this is known to run in WSL."""
    return system is not None and bool(system.wsl)


def _says(text: str | None, phrases: tuple[str, ...]) -> bool:
    lowered = (text or "").lower()
    return any(phrase in lowered for phrase in phrases)
