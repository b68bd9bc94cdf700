"""The PCIe link of a device against what device and slot can do."""

from collections.abc import Iterator

from gpudoctor.model import Device, Finding, Fix, Severity
from gpudoctor.registry import check, reachable, settled


@check(family="device")
def pcie_link_degraded(devices: tuple[Device, ...]) -> Iterator[Finding]:
    """The PCIe link of a device has fewer lanes or a lower generation than device and slot support.

    Why: copies between main memory and the device take longer: half the lanes give half the bandwidth.
    Exception: an idle device lowers the generation of its link on purpose, and some also lower its width ("may be
    reduced when the GPU is not in use"). A lower generation counts only on a busy device. Fewer lanes on an idle device
    are advice only.
    Reference: https://docs.nvidia.com/deploy/nvidia-smi/index.html
    """
    answering = reachable(devices)
    findings = (finding for path, device in answering for finding in _findings(path, device))
    yield from settled(findings, answering, "pcie_width", "pcie_width_max", "pcie_generation", "pcie_generation_max")


def _findings(path: str, device: Device) -> Iterator[Finding]:
    busy = _is_busy(device)
    narrow = _is_below(device.pcie_width, device.pcie_width_max)
    slow = busy and _is_below(device.pcie_generation, device.pcie_generation_max)
    if not narrow and not slow:
        return
    parts = []
    if narrow:
        parts.append(f"{device.pcie_width} of {device.pcie_width_max} lanes")
    if slow:
        parts.append(f"generation {device.pcie_generation} of {device.pcie_generation_max}")
    severity = Severity.WARNING if busy else Severity.INFO
    summary = f"The PCIe link of {device.label} has {' and '.join(parts)}{'' if busy else ' while it is idle'}"
    link = ("pcie_width", "pcie_width_max", "pcie_generation", "pcie_generation_max")
    facts = (f"{path}.{name}" for name in (*link, "performance_state", "utilization_percent"))
    fix = Fix("check-pcie-link-under-load", nvml_index=device.nvml_index)
    yield Finding.of(severity, device.label, summary, facts, fix)


def _is_below(now: int | None, most: int | None) -> bool:
    return now is not None and most is not None and 0 < now < most


def _is_busy(device: Device) -> bool:
    if "gpu_idle" in (device.throttle_reasons or ()):
        return False
    in_high_state = device.performance_state is not None and device.performance_state <= 2
    return in_high_state or bool(device.utilization_percent)
