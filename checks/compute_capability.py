"""What each device can do, by its compute capability."""

from collections.abc import Iterator
from typing import Any

from gpudoctor.data.capabilities import Features, features, has_tensor_cores
from gpudoctor.data.gpu_names import device_capability
from gpudoctor.model import ComputeCapability, Device, Finding, known_facts, ranges
from gpudoctor.registry import check, known, reachable

PRECISIONS = ("fp16", "bf16", "tf32", "int8", "fp8", "fp4")


@check(family="precision")
def compute_capability(devices: tuple[Device, ...]) -> Iterator[Finding]:
    """What the device supports: tensor cores and native precisions.

    Why: it decides which precision to use. PyTorch also runs bf16 on devices without it, but emulated, and fp16 on
    compute capability 6.1 runs at a fraction of the fp32 rate. Neither gives a warning.
    Exception: this is advice only. A device newer than the tables is reported as such, and never as a problem.
    Reference: https://docs.nvidia.com/cuda/cuda-programming-guide/05-appendices/compute-capabilities.html
    """
    groups: dict[tuple[ComputeCapability, str | None], list[tuple[str, Device]]] = {}
    for path, device in reachable(devices):
        number = known(device_capability(device), f"{path}.compute_capability")
        groups.setdefault((number, device.name), []).append((path, device))
    for (number, _), members in groups.items():
        yield _finding(number, members)


def _finding(number: ComputeCapability, members: list[tuple[str, Device]]) -> Finding:
    path, first = members[0]
    subject = first.label
    if len(members) > 1:
        subject = f"GPUs {ranges(device.nvml_index for _, device in members)} ({first.name or number})"
    table = features(number)
    tensor_cores = has_tensor_cores(first, table)
    return Finding.advice(
        subject,
        f"{subject}: compute capability {number}{_abilities(table, tensor_cores)}",
        known_facts(path, first, "name", "compute_capability"),
        details={"devices": [_row(device, number, table, tensor_cores) for _, device in members]},
    )


def _abilities(table: Features | None, tensor_cores: bool | None) -> str:
    if table is None:
        return ", which the tables of this version do not know"
    cores = {True: "tensor cores", False: "no tensor cores", None: "tensor cores unknown"}[tensor_cores]
    parts = [f"{table.architecture or 'unnamed architecture'}, {cores}"]
    for state in ("native", "slow", "emulated", "none"):
        names = [name for name in PRECISIONS if _precision(name, table, tensor_cores) == state]
        if names:
            parts.append(f"{'without' if state == 'none' else state} {' '.join(names)}")
    return f" ({'; '.join(parts)})"


def _precision(name: str, table: Features, tensor_cores: bool | None) -> str | None:
    """Return how a precision runs; int8 means that of tensor cores, so it goes if they are not."""
    value: str | None = getattr(table, name)
    return "none" if name == "int8" and value == "native" and tensor_cores is False else value


def _row(
    device: Device, number: ComputeCapability, table: Features | None, tensor_cores: bool | None
) -> dict[str, Any]:
    row: dict[str, Any] = {"nvml_index": device.nvml_index, "name": device.name, "compute_capability": str(number)}
    if table is not None:
        row |= {"architecture": table.architecture, "tensor_cores": tensor_cores}
        row |= {name: _precision(name, table, tensor_cores) for name in PRECISIONS}
        row |= {"note": table.note, "source": table.source}
    return row
