"""The enforced power limit against the default one."""

from collections.abc import Iterator

from gpudoctor.model import Device, Finding, Remedy, Severity, System
from gpudoctor.registry import check, reachable, settled
from gpudoctor.remedies.commands import with_sudo

TOLERANCE_WATTS = 1.0  # NVML rounds milliwatts


@check(family="device")
def power_limit_lowered(devices: tuple[Device, ...], system: System | None = None) -> Iterator[Finding]:
    """The power limit of a device is set below its default.

    Why: under full load the clocks are lowered until the device stays below the limit.
    Exception: a lower limit may be wanted, for the last watts give little speed: this is advice only.
    Reference: https://docs.nvidia.com/deploy/nvidia-smi/index.html
    """
    answering = reachable(devices)
    findings = (finding for path, device in answering for finding in _findings(path, device, system))
    yield from settled(findings, answering, "power_limit_watts", "power_limit_default_watts")


def _findings(path: str, device: Device, system: System | None) -> Iterator[Finding]:
    limit, default = device.power_limit_watts, device.power_limit_default_watts
    if limit is not None and default is not None and limit < default - TOLERANCE_WATTS:
        yield Finding(
            severity=Severity.INFO,
            summary=f"The power limit of {device.label} is {limit:g} W, its default is {default:g} W",
            subject=device.label,
            facts=(f"{path}.power_limit_watts", f"{path}.power_limit_default_watts"),
            remedies=(_remedy(device, default, system),),
        )


def _remedy(device: Device, default: float, system: System | None) -> Remedy:
    command = f"nvidia-smi -i {device.nvml_index} -pl {default:g}"
    if system is None or system.os != "windows":
        command = with_sudo(command, system)
    verify = f"nvidia-smi -i {device.nvml_index} -q -d POWER"
    return Remedy(
        summary="Set the default limit, unless the lower one is wanted", commands=(command, verify), needs=("root",)
    )
