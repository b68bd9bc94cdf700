"""Why the clocks of a device are held down now."""

from collections.abc import Iterator, Sequence

from gpudoctor.conclusions.messages import reported
from gpudoctor.model import Device, Finding, Remedy, Severity, Symptom, known_facts
from gpudoctor.registry import Skip, check, reachable, settled

HEAT = ("hw_thermal_slowdown", "sw_thermal_slowdown")
POWER = ("hw_power_brake_slowdown",)
# What people write of it, and what nvidia-smi shows without the rest of its table.
TOLD = (
    "gpu-slowdown-active",
    "gpu-clocks-violation",
    "gpu-throttling-told",
    "gpu-hot-and-slow",
    "gpu-clock-falls",
    "gpu-power-capped-told",
)
# The reasons that DCGM means by its words.
REASONS = {"thermal": HEAT[0], "power": POWER[0]}
# "May be also reported during PState or clock change": not by itself a sign on a device that goes idle.
# Source: DCGM field constants, DCGM_CLOCKS_THROTTLE_REASON_HW_SLOWDOWN.
EITHER = ("hw_slowdown",)
# nvidia-smi gives whole degrees, and the driver regulates to just below the limit.
DEGREES_BELOW = 1
REFERENCE = "https://docs.nvidia.com/deploy/nvml-api/group__nvmlClocksEventReasons.html"


@check(family="device")
def gpu_throttled(
    devices: tuple[Device, ...] | None = None, symptoms: tuple[Symptom, ...] | None = None
) -> Iterator[Finding]:
    """The clocks of a device are held down by heat or by its power supply.

    Why: a hardware slowdown halves the clocks or worse, and every measurement taken meanwhile is of no use. Where the
    reasons are not known, a temperature at the device's limit says the same.
    Exception: a power cap (sw_power_cap) is how a GPU under full load works, an idle device lowers its clocks on
    purpose, and a plain hw_slowdown is reported during clock changes too, so on an idle device it passes.
    Reference: https://docs.nvidia.com/deploy/nvml-api/group__nvmlClocksEventReasons.html
    """
    hot = tuple(_hot(path, device) for path, device in _at_limit(devices or ()))
    yield from hot
    if hot:
        return
    told = reported(symptoms, *TOLD)
    if told and all(device.throttle_reasons is None for device in devices or ()):
        yield _as_told(*told[0])
        return
    if devices is None:
        raise Skip("devices is unknown")
    answering = reachable(devices)
    findings = (finding for path, device in answering for finding in _findings(path, device))
    yield from settled(findings, answering, "throttle_reasons")


def _at_limit(devices: tuple[Device, ...]) -> Iterator[tuple[str, Device]]:
    """Yield the devices, with the path of their facts, whose reasons are not known and whose temperature tells."""
    for number, device in enumerate(devices):
        limit, temperature = _limit(device), device.temperature_celsius
        if limit is None or temperature is None or device.throttle_reasons is not None:
            continue
        if temperature >= limit - DEGREES_BELOW:
            yield f"devices[{number}]", device


def _limit(device: Device) -> int | None:
    """Return the temperature from which on clocks are lowered. Source: nvmlTemperatureThresholds_t of nvml.h."""
    limits = (device.temperature_operating_celsius, device.temperature_slowdown_celsius)
    return min((limit for limit in limits if limit), default=None)


def _hot(path: str, device: Device) -> Finding:
    return Finding(
        severity=Severity.WARNING,
        summary=f"{device.label} is at {device.temperature_celsius} °C, "
        f"and lowers its clocks from {_limit(device)} °C on",
        subject=device.label,
        facts=known_facts(
            path,
            device,
            *("temperature_celsius", "temperature_operating_celsius", "temperature_slowdown_celsius", "clock_sm_mhz"),
        ),
        remedies=(
            _remedy(device, HEAT),
            Remedy(
                summary="Where the limit itself is low for this device, look who sets it: the firmware of a laptop, or "
                "thermald, which changes the limits with the machine's temperature",
                commands=("nvidia-smi -q -d TEMPERATURE", "systemctl status thermald"),
            ),
        ),
    )


def _as_told(fact: str, message: Symptom) -> Finding:
    """Return the finding where the report says so of a device whose reasons it does not show."""
    told = message.names.get("reason", "").lower().replace(" ", "_")
    reason = POWER[0] if message.kind == "gpu-power-capped-told" else REASONS.get(told, told)
    return Finding(
        severity=Severity.WARNING,
        summary=f'The report says "{message.text}", and does not show why the clocks are held down',
        subject="GPU",
        facts=(fact,),
        remedies=(_remedy(None, (reason,)),),
    )


def _findings(path: str, device: Device) -> Iterator[Finding]:
    reasons = device.throttle_reasons or ()
    active = [reason for reason in reasons if reason in (*HEAT, *POWER)]
    if "gpu_idle" not in reasons:
        active += [reason for reason in reasons if reason in EITHER]
    if not active:
        return
    yield Finding(
        severity=Severity.WARNING,
        summary=f"Clocks of {device.label} are held down by {' and '.join(active)}{_state(device)}",
        subject=device.label,
        facts=known_facts(
            path,
            device,
            "throttle_reasons",
            "temperature_celsius",
            "temperature_slowdown_celsius",
            "clock_sm_mhz",
            "clock_sm_max_mhz",
            "power_draw_watts",
        ),
        remedies=(_remedy(device, active),),
    )


def _state(device: Device) -> str:
    state = ""
    if device.temperature_celsius is not None:
        state += f" at {device.temperature_celsius} °C"
    if device.clock_sm_mhz is not None and device.clock_sm_max_mhz is not None:
        state += f", with the SM clock at {device.clock_sm_mhz} of {device.clock_sm_max_mhz} MHz"
    return state


def _remedy(device: Device | None, active: Sequence[str]) -> Remedy:
    heat = (
        "Cool the GPU, whose temperature is at its limit: clean fans and filters, let more air through, do without "
        "neighbours in the next slot"
    )
    power = "Look at the power supply and its cables: it asks the GPU to draw less (on a laptop: the charger)"
    if any(reason in POWER for reason in active):
        summary = power
    elif any(reason in HEAT for reason in active):
        summary = heat
    else:
        summary = f"{heat}; if it is cool: {power[0].lower()}{power[1:]}"
    one = "" if device is None else f"-i {device.nvml_index} "
    command = f"nvidia-smi {one}-q -d PERFORMANCE,TEMPERATURE,POWER,CLOCK"
    return Remedy(summary=summary, commands=(command,), reference=REFERENCE)
