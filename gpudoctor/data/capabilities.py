"""Compute capabilities: what runs on them, what they can do, and how long they are supported."""

import functools
import re
from collections.abc import Iterable, Mapping

from gpudoctor.data.tables import load_table, records
from gpudoctor.model.machine import Device
from gpudoctor.model.record import record
from gpudoctor.model.versions import ComputeCapability, CudaVersion

# Jetson and DRIVE: "binary compatibility between desktop and Tegra is not supported", nor between Tegra parts.
# Source: CUDA C++ Programming Guide, "Binary Compatibility"; 10.1 is the name of 11.0 (Thor) in CUDA 12.8 and 12.9.
TEGRA = frozenset({(3, 2), (5, 3), (6, 2), (7, 2), (8, 7), (10, 1), (11, 0)})
# From CUDA 13.2 on, desktop machine code of major 8 runs on Orin (8.7).
# Source: torch/cuda/__init__.py of torch 2.14.1.
_ORIN_RUNS_DESKTOP_CODE = CudaVersion(13, 2)


# Turing without tensor cores (TU116, TU117): capability 7.5 like the RTX 20 series, without half of what that has.
# Source: https://en.wikipedia.org/wiki/GeForce_16_series; NVIDIA's data sheets of the T series name no tensor cores.
_MINOR_TURING = r"\b(GTX ?16\d\d(?:Ti|S)?|MX[45]50|(Quadro )?T(400|500|550|600|1000|1200|2000))\b"
# Of Fermi and older GPUs. Source: "Unsupported Features", https://docs.nvidia.com/cuda/archive/9.0/cuda-toolkit-release-notes/
LAST_BEFORE_KEPLER = CudaVersion(8, 0)


@record
class Features:
    """What devices of one compute capability do natively.

    Each precision is "native", "emulated" (computed in fp32), "slow" (own arithmetic, far below the fp32 rate),
    "none", or None for not verified. tf32, int8, fp8 and fp4 are input types of the tensor cores.
    last_driver: the last driver branch with support ("R580"), None while it is supported or if it is unknown.
    first_toolkit, last_toolkit: the CUDA toolkits that compile for them, in the same way.
    """

    capability: ComputeCapability
    architecture: str | None
    fp16: str | None
    bf16: str | None
    tf32: str | None
    int8: str | None
    fp8: str | None
    fp4: str | None
    tensor_cores: bool | None
    note: str
    source: str
    last_driver: str | None
    first_toolkit: CudaVersion | None
    last_toolkit: CudaVersion | None


def runs_on(architectures: Iterable[str], capability: ComputeCapability, cuda: CudaVersion | None = None) -> bool:
    """Return whether code built for `architectures` ("sm_80", "compute_90", "sm_90a") runs on a device.

    Machine code runs on the same major with the same or a higher minor, PTX on the same or any newer capability; the
    suffix "a" ties both to exactly one capability, "f" ties PTX to its major.

    cuda: toolkit that the code was built with; from 13.2 on, desktop code runs on Orin too.
    """
    return any(_runs_on(architecture, capability, cuda) for architecture in architectures)


@functools.cache
def _runs_on(architecture: str, device: ComputeCapability, cuda: CudaVersion | None) -> bool:
    match = re.fullmatch(r"(sm|compute)_(\d{1,2})(\d)([af]?)", architecture)
    if match is None:
        return False  # a gfx target of ROCm, or text that is not an architecture
    built = ComputeCapability(int(match[2]), int(match[3]))
    if match[4] == "a":
        return built == device
    if match[1] == "compute":
        return built <= device and (match[4] != "f" or built.major == device.major)
    if built == device:
        return True
    if built.major != device.major or built.minor > device.minor or is_tegra(built):
        return False
    return not is_tegra(device) or (
        device == ComputeCapability(8, 7) and cuda is not None and cuda >= _ORIN_RUNS_DESKTOP_CODE
    )


def is_tegra(capability: ComputeCapability) -> bool:
    """Return whether devices of `capability` are Jetson or DRIVE."""
    return (capability.major, capability.minor) in TEGRA


def is_minor_turing(name: str | None) -> bool:
    """Return whether the device is a TU116 or TU117, Turing without tensor cores: GTX 16 series, T600, ..."""
    return re.search(_MINOR_TURING, name or "") is not None


def features(capability: ComputeCapability) -> Features | None:
    """Return what devices of `capability` do natively; None for one outside the table."""
    return _features().get(capability)


def last_driver_branch(capability: ComputeCapability) -> str | None:
    """Return the last driver branch that supports the device ("R580"); None while it is supported, or unknown."""
    row = features(capability)
    return row.last_driver if row is not None else None


def last_toolkit(capability: ComputeCapability) -> CudaVersion | None:
    """Return the last CUDA toolkit that compiles for the device; None while it is supported, or unknown."""
    if is_before_kepler(capability):
        return LAST_BEFORE_KEPLER
    row = features(capability)
    return row.last_toolkit if row is not None else None


def first_toolkit(capability: ComputeCapability) -> CudaVersion | None:
    """Return the first CUDA toolkit that compiles for the device; None if it is not verified."""
    row = features(capability)
    return row.first_toolkit if row is not None else None


def is_before_kepler(capability: ComputeCapability) -> bool:
    """Return whether the device is Fermi or older, which CUDA 9.0 and newer do not support."""
    return capability < ComputeCapability(3, 0)


def toolkit_span(capability: ComputeCapability) -> str:
    """Return for which toolkits a device is too new or too old, as a part of a sentence; "" if that is unknown."""
    last, first = last_toolkit(capability), first_toolkit(capability)
    if last is not None:
        return f", which needs CUDA {last} or older"
    return f", which needs CUDA {first} or newer" if first is not None else ""


def toolkit_architectures(cuda: CudaVersion) -> tuple[str, ...] | None:
    """Return what NVRTC of the toolkit compiles for: "sm_75", ...; None for a toolkit outside the table."""
    rows = load_table("capabilities")["toolkits"]
    return next((tuple(row["architectures"]) for row in rows if row["cuda"] == str(cuda)), None)


def architectures_of_major(major: int) -> tuple[str, ...]:
    """Return what the toolkits of a CUDA major version compile for together; nothing if the table has none."""
    rows = (row for row in load_table("capabilities")["toolkits"] if CudaVersion.parse(row["cuda"]).major == major)
    found = {name for row in rows for name in row["architectures"]}
    return tuple(sorted(found, key=lambda name: int(re.sub(r"\D", "", name))))


@functools.cache
def _features() -> Mapping[ComputeCapability, Features]:
    return {row.capability: row for row in records(Features, "capabilities", "capabilities")}


def bf16_support(capability: ComputeCapability) -> str | None:
    """Return "native" or "emulated"; None if that is unknown. Every device from 8.0 on has it natively."""
    if capability >= ComputeCapability(8, 0):
        return "native"
    table = features(capability)
    return table.bf16 if table is not None else None


def has_tensor_cores(device: Device, table: Features | None) -> bool | None:
    """Return whether the device has tensor cores; None if that is not known.

    table: what its compute capability has in general.
    """
    if table is None:
        return None
    lacks = table.capability == ComputeCapability(7, 5) and is_minor_turing(device.name)
    return False if lacks and table.tensor_cores else table.tensor_cores
