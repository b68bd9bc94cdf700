"""Why a device lowers its clocks now."""

from collections.abc import Iterator

from gpudoctor.model import Device, Devices, Finding, Fix, known_facts
from gpudoctor.registry import check, known, reachable, settled
from gpudoctor.symptoms import Symptoms
from gpudoctor.symptoms.answers import answers

ALWAYS = ("hw_thermal_slowdown", "sw_thermal_slowdown", "hw_power_brake_slowdown")
# "May be also reported during PState or clock change": not by itself a sign on a device that goes idle.
# Source: DCGM field constants, DCGM_CLOCKS_THROTTLE_REASON_HW_SLOWDOWN.
UNDER_LOAD = ("hw_slowdown",)
DEGREES_BELOW = 1  # nvidia-smi gives whole degrees, and the driver regulates to just below the limit


@check(family="device")
def gpu_throttled(devices: Devices = None, symptoms: Symptoms = None) -> Iterator[Finding]:
    """Heat or the power supply lowers the clocks of a device.

    Why: a hardware slowdown halves the clocks or worse, and makes every measurement useless. If the reasons are
    unknown, a temperature at the device's limit is the evidence.
    Exception: a power cap (sw_power_cap) is normal for a GPU under full load, and an idle device lowers its clocks on
    purpose. A plain hw_slowdown also appears during clock changes, so it passes on an idle device.
    Reference: https://docs.nvidia.com/deploy/nvml-api/group__nvmlClocksEventReasons.html
    """
    listed = [(f"devices[{number}]", device) for number, device in enumerate(devices or ())]
    found = [_hot(path, device) for path, device in listed if _is_at_limit(device)]
    if not found and all(device.throttle_reasons is None for _, device in listed):
        found += answers(symptoms, "gpu-throttled")[:1]
    yield from found
    if not found:
        answering = reachable(known(devices, "devices"))
        findings = (finding for path, device in answering for finding in _held_down(path, device))
        yield from settled(findings, answering, "throttle_reasons")


def _is_at_limit(device: Device) -> bool:
    """Return whether the temperature shows what the reasons, which are unknown, would."""
    limit, temperature = device.temperature_limit_celsius, device.temperature_celsius
    if limit is None or temperature is None or device.throttle_reasons is not None:
        return False
    return temperature >= limit - DEGREES_BELOW


def _hot(path: str, device: Device) -> Finding:
    limit = device.temperature_limit_celsius
    summary = f"{device.label} is at {device.temperature_celsius} °C, and lowers its clocks from {limit} °C on"
    heat = ("temperature_celsius", "temperature_operating_celsius", "temperature_slowdown_celsius", "clock_sm_mhz")
    cool = Fix("cool-or-power-gpu", reasons="thermal", nvml_index=device.nvml_index)
    facts = (f"{path}.{name}" for name in heat)
    return Finding.warning(device.label, summary, facts, cool, Fix("find-who-sets-temperature-limit"))


def _held_down(path: str, device: Device) -> Iterator[Finding]:
    reasons = device.throttle_reasons or ()
    active = [reason for reason in reasons if reason in ALWAYS]
    if "gpu_idle" not in reasons:
        active += [reason for reason in reasons if reason in UNDER_LOAD]
    if not active:
        return
    state = f" at {device.temperature_celsius} °C" if device.temperature_celsius is not None else ""
    if device.clock_sm_mhz is not None and device.clock_sm_max_mhz is not None:
        state += f", with the SM clock at {device.clock_sm_mhz} of {device.clock_sm_max_mhz} MHz"
    summary = f"The clocks of {device.label} are lowered by {' and '.join(active)}{state}"
    heat = ("throttle_reasons", "temperature_celsius", "temperature_slowdown_celsius")
    facts = known_facts(path, device, *heat, "clock_sm_mhz", "clock_sm_max_mhz", "power_draw_watts")
    fix = Fix("cool-or-power-gpu", reasons=" ".join(active), nvml_index=device.nvml_index)
    yield Finding.warning(device.label, summary, facts, fix)
