"""Devices that the environment variables leave visible, and that programs find."""

import re
from dataclasses import replace

from gpudoctor.model import Device, DeviceChoice, Driver, DriverState, Environment, System, TorchRuntime, VisibleDevices
from gpudoctor.symptoms import Symptoms, of_kind, with_code

NVIDIA = "CUDA_VISIBLE_DEVICES"
AMD = ("ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", NVIDIA)


def visible_devices(
    environment: Environment | None,
    devices: tuple[Device, ...] | None,
    driver: Driver,
    driver_state: DriverState,
    system: System,
    torch_runtime: TorchRuntime,
    symptoms: Symptoms,
) -> VisibleDevices:
    """Return the devices that each variable leaves visible, and whether programs find devices."""
    value = environment.get(NVIDIA) if environment is not None else None
    unavailable = torch_runtime.available is False
    no_device = bool(with_code(symptoms, "cuda-100") or of_kind(symptoms, "ollama-no-gpus"))
    elsewhere = _seen_elsewhere(torch_runtime, symptoms)
    return VisibleDevices(
        known=environment is not None,
        nvidia=None if value is None else replace(choose(value, devices), hides_all=not choose(value, None).visible),
        amd=_hidden_amd(environment or Environment(), system),
        misses=driver_state.not_found is None and (no_device or (unavailable and not torch_runtime.availability_error)),
        finds_none=no_device
        or bool(of_kind(symptoms, "torch-differs-by-program"))
        or (unavailable and driver_state.not_found is None),
        finds_some=bool(driver.cuda_device_count or (torch_runtime.available and torch_runtime.device_count != 0)),
        too_few=bool(with_code(symptoms, "cuda-101")) or (value is not None and _sees_too_few(value, torch_runtime)),
        seen_elsewhere=elsewhere[0],
        seen_elsewhere_facts=elsewhere[1],
    )


def _sees_too_few(value: str, runtime: TorchRuntime) -> bool:
    if runtime.available is None:
        return False
    if runtime.device_count is None:
        return not runtime.available
    return runtime.device_count < len(value.split(","))


def _seen_elsewhere(runtime: TorchRuntime, symptoms: Symptoms) -> tuple[str, tuple[str, ...]]:
    """Return, as a clause, what sees a GPU although PyTorch finds none: another program or the notebook's runtime."""
    none = of_kind(symptoms, "torch-no-gpus")
    if not none or runtime.available:
        return "", ()
    if runtime.device_names:
        return f"PyTorch sees {runtime.device_names[0]} in one program", (none[0].fact, "torch_runtime.device_names")
    for other in of_kind(symptoms, "gpu-used-by-another-program", "torch-differs-by-program"):
        return "Another program sees a GPU", (none[0].fact, other.fact)
    for chosen in of_kind(symptoms, "gpu-runtime-chosen"):
        return "The notebook's runtime has a GPU", (none[0].fact, chosen.fact)
    return "", ()


def choose(value: str, devices: tuple[Device, ...] | None) -> DeviceChoice:
    """Return how CUDA reads the value of CUDA_VISIBLE_DEVICES. devices: the machine's devices, if known.

    Numbers are parsed like strtoul ("1gpu2" is 1), and a repeated entry empties the list.
    Source: torch/cuda/__init__.py, _parse_visible_devices, of PyTorch 2.14.
    """
    entries = [entry.strip() for entry in value.split(",")]
    by_uuid = value.strip().startswith(("GPU-", "MIG-"))
    count = len(devices) if devices else None
    visible: list[str] = []
    for position, entry in enumerate(entries):
        name = entry if by_uuid else _number(entry)
        reason = _why_no_uuid(entry, devices) if by_uuid else _why_no_number(entry, devices)
        if reason:
            return DeviceChoice(
                name=NVIDIA,
                value=value,
                visible=tuple(visible),
                bad=entry or "an empty entry",
                reason=reason,
                after=tuple(entries[position + 1 :]),
                count=count,
            )
        if name in visible:
            reason = "is named twice, which empties the list"
            return DeviceChoice(name=NVIDIA, value=value, bad=entry, reason=reason, count=count)
        visible.append(name)
    return DeviceChoice(name=NVIDIA, value=value, visible=tuple(visible), count=count)


def _number(entry: str) -> str:
    match = re.match(r"[+-]?\d+", entry)
    return str(int(match[0])) if match else ""


def _why_no_number(entry: str, devices: tuple[Device, ...] | None) -> str:
    """Return why the entry names no device, as the end of a sentence; "" if it does or may name one."""
    number = _number(entry)
    if not number or number.startswith("-"):
        return "is a variable of the shell, not a number" if entry.startswith(("$", "%")) else "ends the list"
    partitioned = any(device.mig_enabled or device.mig_uuids for device in devices or ())
    if devices and int(number) >= len(devices) and not partitioned:
        return f"is above the highest GPU number, {len(devices) - 1}"
    return ""


def _why_no_uuid(entry: str, devices: tuple[Device, ...] | None) -> str:
    """Return why the entry names no device; CUDA accepts the first characters of a UUID."""
    if not entry.startswith(("GPU-", "MIG-")):
        return "is not a UUID"
    if not devices:
        return ""
    # Older form of a MIG device: "MIG-GPU-<uuid of the GPU>/<instance>/<instance>".
    if entry.startswith("MIG-") and not entry.startswith("MIG-GPU-"):
        uuids = [uuid for device in devices for uuid in device.mig_uuids or ()]
        complete = all(device.mig_uuids is not None for device in devices)
    else:
        entry = entry.removeprefix("MIG-").partition("/")[0]
        uuids = [device.uuid for device in devices if device.uuid]
        complete = len(uuids) == len(devices)
    known = any(uuid.lower().startswith(entry.lower()) for uuid in uuids)
    return "names no GPU of this machine" if complete and not known else ""


def _hidden_amd(environment: Environment, system: System) -> DeviceChoice | None:
    """Return the first variable that hides every AMD GPU. UUIDs are ignored."""
    count = len(system.amd_gfx_targets) if system.amd_gfx_targets is not None else None
    for name in AMD:
        value = environment.get(name)
        first = value.split(",")[0].strip() if value is not None else "0"
        number = _number(first)
        beyond = bool(count and number and int(number) >= count)
        if not first.startswith("GPU-") and (not number or number.startswith("-") or beyond):
            reason = f"is above the highest GPU number, {count - 1}" if beyond and count else "ends the list"
            return DeviceChoice(name=name, value=value or "", bad=first, reason=reason, count=count)
    return None
