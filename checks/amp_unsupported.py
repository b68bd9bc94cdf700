"""Devices on which mixed precision brings nothing."""

from collections.abc import Iterator

from gpudoctor.data import Features, features
from gpudoctor.model import ComputeCapability, Device, Finding, Remedy, Severity
from gpudoctor.reasoning.devices import capability, has_tensor_cores, known_facts, label, reachable
from gpudoctor.registry import Skip, check, known

REFERENCE = "https://docs.pytorch.org/docs/stable/amp.html"


@check(family="precision")
def amp_unsupported(devices: tuple[Device, ...]) -> Iterator[Finding]:
    """Mixed precision gains no speed on a device without tensor cores, and PyTorch does not say so.

    Why: autocast has no check of the compute capability. On Pascal 6.1 fp16 arithmetic runs at 1/64 of the fp32 rate,
    and the GTX 16 series reports 7.5 like an RTX 2080 while it has no tensor cores.
    Exception: this is advice only, for fp16 still halves memory; P100 and Jetson TX2 pass, whose fp16 arithmetic
    is fast.
    Reference: https://docs.pytorch.org/docs/stable/amp.html
    """
    findings: dict[tuple[ComputeCapability, str | None], Finding] = {}
    unknown: list[str] = []
    for path, device in reachable(devices):
        number = known(capability(device), f"{path}.compute_capability")
        table = features(number)
        tensor_cores = has_tensor_cores(device, table)
        if table is None or tensor_cores is None:
            unknown.append(f"whether compute capability {number} has tensor cores is not in the tables")
        elif not tensor_cores and not _has_fast_fp16(table):
            findings.setdefault((number, device.name), _finding(path, device, table))
    yield from findings.values()
    if unknown and not findings:
        raise Skip(unknown[0])


def _has_fast_fp16(table: Features) -> bool:
    """Return whether devices of this capability without tensor cores have fast arithmetic in fp16."""
    return table.fp16 == "native" and table.tensor_cores is False


def _finding(path: str, device: Device, table: Features) -> Finding:
    rate = f", fp16 {table.fp16}" if table.fp16 else ""
    return Finding(
        severity=Severity.INFO,
        summary=f"{label(device)} has no tensor cores (compute capability {table.capability}{rate})",
        subject=label(device),
        facts=known_facts(path, device, "name", "compute_capability"),
        remedies=(
            Remedy(
                summary="Compute in fp32 on it; use fp16 only to save memory, and look for NaN in its results",
                reference=REFERENCE,
            ),
        ),
    )
