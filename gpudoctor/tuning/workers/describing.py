"""What a device is, and which precisions it supports itself: for torch, and for the array libraries."""

import os
import platform
import re
import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from gpudoctor.errors import UsageError
from gpudoctor.model.profile import ALLOCATOR_VARIABLES
from gpudoctor.model.tuning import COMPLEX_PRECISIONS, TunedDevice
from gpudoctor.nvml import read_start
from gpudoctor.tuning.workers.devices import Device, host_memory

TF32_FROM = BF16_FROM = (8, 0)
"""Compute capability of the first devices with them (NVIDIA A100 whitepaper)."""

FP16_FROM = (5, 3)
"""Arithmetic in half precision (CUDA C++ Programming Guide, table of throughputs); slow on 6.1, which shows itself."""


def torch_device_names() -> list[str]:
    """Return the devices that torch can use, the one to prefer first: "cuda:0", "cuda:1", "mps", "cpu"."""
    import torch

    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    mps = getattr(torch.backends, "mps", None)
    return [*(f"cuda:{index}" for index in range(count)), *(["mps"] if mps and mps.is_available() else []), "cpu"]


def array_device_names() -> list[str]:
    """Return the devices that CuPy and NumPy can use: no CuPy, or one without a device, leaves the CPU."""
    with suppress(Exception):
        import cupy

        return [*(f"cuda:{index}" for index in range(cupy.cuda.runtime.getDeviceCount())), "cpu"]
    return ["cpu"]


def choose_device(wanted: str, names: list[str]) -> str:
    """Return the device that "auto", "cpu", "cuda", "cuda:1" or "mps" means.

    Raises:
        UsageError: it is not there; the message names those that are.
    """
    if wanted == "auto":
        return names[0]
    chosen = "cuda:0" if wanted == "cuda" else wanted
    if chosen not in names:
        why = "; gpudoctor check shows why" if chosen == "cuda:0" else ""
        raise UsageError(f"--device {wanted}: no such device; this machine has {', '.join(names)}{why}")
    return chosen


def describe_torch(device: Device) -> TunedDevice:
    """Return what torch says about the device. `memory_usable_bytes`: what is free."""
    import torch

    if device.kind == "cuda":
        properties = torch.cuda.get_device_properties(device.name)
        hip = torch.version.hip
        capability = None if hip else (int(properties.major), int(properties.minor))
        supported, refused = cuda_precisions(capability, bf16_native=_bf16_native(torch))
        described = _described(device, str(properties.name), *torch.cuda.mem_get_info(device.name)[::-1])
        described = replace(
            described,
            visible=visible_name(described.index, os.environ, rocm=bool(hip)),
            allocator=next(filter(None, map(os.environ.get, ALLOCATOR_VARIABLES)), ""),
            compute_capability=None if capability is None else "{}.{}".format(*capability),
            cuda_version=None if hip else torch.version.cuda,
        )
    else:
        supported, refused = _by_trying(torch, device.kind)
        total, free = host_memory()
        if device.kind == "mps":
            with suppress(AttributeError):  # recommended_max_memory came with torch 2.4
                total = free = int(torch.mps.recommended_max_memory())
        threads = torch.get_num_threads() if device.kind == "cpu" else None
        described = replace(_described(device, _processor_name(), total, free), threads=threads)
    return replace(described, torch_version=str(torch.__version__), precisions=supported, unsupported=refused)


def visible_name(index: int, environ: Mapping[str, str], *, rocm: bool = False) -> str:
    """Return what the variable that hides devices calls the one of this index; empty if it is not set."""
    names = environ.get("HIP_VISIBLE_DEVICES" if rocm else "CUDA_VISIBLE_DEVICES", "").split(",")
    return names[index].strip() if index < len(names) else ""


def describe_arrays(device: Device) -> TunedDevice:
    """Return what CuPy, or the host, says about the device. `memory_usable_bytes`: what is free."""
    if device.kind != "cuda":
        return replace(_described(device, _processor_name(), *host_memory()), precisions=COMPLEX_PRECISIONS)
    import cupy

    index = int(device.name.partition(":")[2])
    properties = cupy.cuda.runtime.getDeviceProperties(index)
    free, total = cupy.cuda.Device(index).mem_info
    name = properties["name"]
    runtime = int(cupy.cuda.runtime.runtimeGetVersion())
    return replace(
        _described(device, name.decode() if isinstance(name, bytes) else str(name), total, free),
        compute_capability=f"{properties['major']}.{properties['minor']}",
        cuda_version=f"{runtime // 1000}.{runtime % 1000 // 10}",
        precisions=COMPLEX_PRECISIONS,
    )


def _described(device: Device, name: str, total_bytes: int | None, free_bytes: int | None) -> TunedDevice:
    """Return what is known of any device."""
    return TunedDevice(
        kind=device.kind,
        index=int(device.name.partition(":")[2] or 0),
        name=name,
        memory_total_bytes=None if total_bytes is None else int(total_bytes),
        memory_usable_bytes=None if free_bytes is None else int(free_bytes),
        driver_version=device.driver_version(),
        torch_version=_version_of("torch"),
        cupy_version=_version_of("cupy", "cupy-cuda11x", "cupy-cuda12x", "cupy-cuda13x"),
    )


def cuda_precisions(
    capability: tuple[int, int] | None, *, bf16_native: bool | None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the precisions that a device has itself, and the others with the reason.

    capability: None for a device of AMD, which has no TF32 and the other three.
    bf16_native: what torch says, emulation left out; None if it says nothing.
    """
    if capability is None:
        return ("fp32", "bf16", "fp16"), ("tf32: only NVIDIA GPUs have this format",)
    shown = "{}.{}".format(*capability)
    bf16 = capability >= BF16_FROM if bf16_native is None else bf16_native
    refused = {
        "tf32": "" if capability >= TF32_FROM else f"needs compute capability 8.0, this device has {shown}",
        "bf16": "" if bf16 else f"emulated: native from compute capability 8.0, this device has {shown}",
        "fp16": "" if capability >= FP16_FROM else f"needs compute capability 5.3, this device has {shown}",
    }
    supported = ("fp32", *(name for name, reason in refused.items() if not reason))
    return supported, tuple(f"{name}: {reason}" for name, reason in refused.items() if reason)


def _bf16_native(torch: Any) -> bool | None:
    """Return whether bfloat16 is the device's own: is_bf16_supported() says yes for emulation too, on a T4."""
    with suppress(Exception):
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    return None  # older: without the parameter, and not to be trusted


def _by_trying(torch: Any, kind: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the precisions that autocast accepts on a device without a table of its own, and the others."""
    candidates = {"bf16": torch.bfloat16, **({"fp16": torch.float16} if kind == "mps" else {})}
    refused = {name: _why_no_autocast(torch, kind, dtype) for name, dtype in candidates.items()}
    supported = ("fp32", *(name for name, reason in refused.items() if not reason))
    never = {
        "tf32": "only NVIDIA GPUs have this format",
        **({"fp16": "gradient scaling needs a GPU"} if kind == "cpu" else {}),
    }
    return supported, tuple(f"{name}: {reason}" for name, reason in {**never, **refused}.items() if reason)


def _why_no_autocast(torch: Any, kind: str, dtype: Any) -> str:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a type that is refused gives a warning, and float32
            with torch.autocast(kind, dtype=dtype):
                factor = torch.ones(2, 2, device=kind)
                return "" if (factor @ factor).dtype is dtype else "autocast does not support it on this device"
    except Exception as error:
        return f"{type(error).__name__}: {error}".splitlines()[0][:200]


def _version_of(*packages: str) -> str | None:
    """Return the version of the first package that is installed; None if none is."""
    for name in packages:
        with suppress(PackageNotFoundError):
            return version(name)
    return None


def _processor_name() -> str:
    match = re.search(r"^model name\s*: *(.+)", read_start("/proc/cpuinfo"), re.MULTILINE)
    return match[1].strip() if match else platform.processor() or platform.machine()
