"""The enforced power limit against the default one."""

from collections.abc import Iterator

from gpudoctor.model import Device, Finding, Fix
from gpudoctor.registry import check, reachable, settled

TOLERANCE_WATTS = 1.0  # NVML rounds milliwatts


@check(family="device")
def power_limit_lowered(devices: tuple[Device, ...]) -> Iterator[Finding]:
    """The power limit of a device is set below its default.

    Why: under full load the device lowers its clocks to stay below the limit.
    Exception: this is advice only, because a lower limit may be intended: the last watts add little speed.
    Reference: https://docs.nvidia.com/deploy/nvidia-smi/index.html
    """
    answering = reachable(devices)
    findings = (finding for path, device in answering for finding in _findings(path, device))
    yield from settled(findings, answering, "power_limit_watts", "power_limit_default_watts")


def _findings(path: str, device: Device) -> Iterator[Finding]:
    limit, default = device.power_limit_watts, device.power_limit_default_watts
    if limit is not None and default is not None and limit < default - TOLERANCE_WATTS:
        summary = f"The power limit of {device.label} is {limit:g} W, but its default is {default:g} W"
        facts = (f"{path}.power_limit_watts", f"{path}.power_limit_default_watts")
        yield Finding.advice(
            device.label, summary, facts, Fix("set-power-limit", nvml_index=device.nvml_index, watts=f"{default:g}")
        )
