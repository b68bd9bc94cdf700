"""The variables that choose which GPUs a program sees."""

import re
from collections.abc import Iterator

from gpudoctor.model import (
    Device,
    Driver,
    Environment,
    Finding,
    Severity,
    System,
    Torch,
    TorchRuntime,
)
from gpudoctor.model.record import record
from gpudoctor.reasoning.installed import Machine, whole_torch
from gpudoctor.reasoning.symptoms import NO_DEVICE, cuda_error
from gpudoctor.registry import applies, check, known
from gpudoctor.remedies import set_variable, unset_variable

NVIDIA = "CUDA_VISIBLE_DEVICES"
AMD = ("ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES")


@record
class _Choice:
    """What the variable leaves visible: the entries that count, the one that ends the list, and why it does."""

    visible: tuple[str, ...]
    bad: str = ""
    reason: str = ""
    after: tuple[str, ...] = ()


@check(family="cuda", explains=("torch-cuda-unavailable", "cupy-unusable", "cuda-init-unknown-error-999"))
def cuda_visible_devices_hides_gpu(
    environment: Environment,
    devices: tuple[Device, ...] | None = None,
    driver: Driver | None = None,
    torch: Torch | None = None,
    torch_runtime: TorchRuntime | None = None,
    system: System | None = None,
) -> Iterator[Finding]:
    """CUDA_VISIBLE_DEVICES hides every GPU, or names one that is not there.

    Why: CUDA ignores an entry that names no device, and everything after it: with an empty value, -1 or a wrong first
    entry there is no device left, and programs say "no CUDA-capable device is detected". A device that is named twice
    empties the list. For AMD the same holds of ROCR_VISIBLE_DEVICES and HIP_VISIBLE_DEVICES.
    Exception: fewer devices than there are, as with "0" of four, are a choice, and so is a closing -1.
    Reference: https://docs.nvidia.com/cuda/cuda-programming-guide/05-appendices/environment-variables.html
    """
    if whole_torch(torch, torch_runtime).build == "rocm":
        yield from _amd_findings(environment, system)
        return
    value = environment.get(NVIDIA)
    if value is None:
        return
    choice = _choose(value, devices)
    if choice.bad == "" and choice.visible:
        return
    if not choice.visible:
        if _sees_devices(driver, torch_runtime):
            return
        gpu = _hidden_gpu(Machine(system=system, driver=driver, devices=devices), driver, torch_runtime)
        applies(known(gpu, "devices"), "there is no NVIDIA GPU to hide")
        yield _all_hidden(NVIDIA, value, choice, len(devices) if devices else None, system)
    elif choice.after or choice.reason != "ends the list":
        yield _some_hidden(value, choice, system)


def _choose(value: str, devices: tuple[Device, ...] | None) -> _Choice:
    """Return what CUDA makes of the value.

    Numbers are read as by strtoul ("1gpu2" is 1), and a repeated entry empties the list.
    Source: torch/cuda/__init__.py, _parse_visible_devices, of PyTorch 2.14.
    """
    entries = [entry.strip() for entry in value.split(",")]
    by_uuid = value.strip().startswith(("GPU-", "MIG-"))
    visible: list[str] = []
    for position, entry in enumerate(entries):
        after = tuple(entries[position + 1 :])
        name = entry if by_uuid else _number(entry)
        reason = _why_invalid(name, entry, by_uuid, devices)
        if reason:
            return _Choice(visible=tuple(visible), bad=entry or "an empty entry", reason=reason, after=after)
        if name in visible:
            return _Choice(visible=(), bad=entry, reason="is named twice, which empties the list")
        visible.append(name)
    return _Choice(visible=tuple(visible))


def _number(entry: str) -> str:
    match = re.match(r"[+-]?\d+", entry)
    return str(int(match[0])) if match else ""


def _why_invalid(name: str, entry: str, by_uuid: bool, devices: tuple[Device, ...] | None) -> str:
    """Return why the entry names no device, as the end of a sentence; "" where it does, or may."""
    if by_uuid:
        if not entry.startswith(("GPU-", "MIG-")):
            return "is no UUID"
        return "names no GPU of this machine" if _is_unknown_uuid(entry, devices) else ""
    if not name or name.startswith("-"):
        return "ends the list"
    if devices and int(name) >= len(devices) and not _has_mig(devices):
        return f"is beyond the last GPU, {len(devices) - 1}"
    return ""


def _has_mig(devices: tuple[Device, ...]) -> bool:
    return any(device.mig_enabled or device.mig_uuids for device in devices)


def _is_unknown_uuid(entry: str, devices: tuple[Device, ...] | None) -> bool:
    """Return whether no device has that UUID; a beginning of it is enough for CUDA."""
    if not devices:
        return False
    # The older form of a MIG device is "MIG-GPU-<uuid of the GPU>/<instance>/<instance>".
    if entry.startswith("MIG-") and not entry.startswith("MIG-GPU-"):
        uuids = [uuid for device in devices for uuid in device.mig_uuids or ()]
        complete = all(device.mig_uuids is not None for device in devices)
    else:
        entry = entry.removeprefix("MIG-").partition("/")[0]
        uuids = [device.uuid for device in devices if device.uuid]
        complete = len(uuids) == len(devices)
    return complete and not any(uuid.lower().startswith(entry.lower()) for uuid in uuids)


def _sees_devices(driver: Driver | None, torch_runtime: TorchRuntime | None) -> bool:
    """Return whether CUDA found devices all the same: then the variable is read in another way than here."""
    if driver is not None and driver.cuda_device_count:
        return True
    return torch_runtime is not None and bool(torch_runtime.available and torch_runtime.device_count)


def _hidden_gpu(machine: Machine, driver: Driver | None, torch_runtime: TorchRuntime | None) -> str | None:
    """Return the GPU that is hidden, "" for none, None for unknown."""
    gpu = machine.gpu()
    if gpu is None and cuda_error(NO_DEVICE, driver, torch_runtime):
        return "a GPU"  # CUDA found a driver and no device
    return gpu


def _all_hidden(name: str, value: str, choice: _Choice, count: int | None, system: System | None) -> Finding:
    gpus = "every GPU" if count is None else f"all {count} GPUs" if count > 1 else "the only GPU"
    because = "" if choice.reason in ("", "ends the list") else f": {choice.bad} {choice.reason}"
    return Finding(
        severity=Severity.ERROR,
        summary=f'{name}="{value}" hides {gpus}{because}',
        subject=name,
        facts=(f"environment.{name}",),
        remedies=(
            unset_variable(system=system, name=name, summary=f"Remove {name}, unless the GPUs are hidden on purpose"),
        ),
    )


def _some_hidden(value: str, choice: _Choice, system: System | None) -> Finding:
    hidden = f", and hides {', '.join(choice.after)} after it" if choice.after else ""
    reason = "names no GPU" if choice.reason == "ends the list" else choice.reason
    return Finding(
        severity=Severity.WARNING,
        summary=f'{choice.bad} in {NVIDIA}="{value}" {reason}{hidden}',
        subject=NVIDIA,
        facts=(f"environment.{NVIDIA}",),
        remedies=(
            set_variable(
                system=system,
                name=NVIDIA,
                value=",".join(choice.visible),
                summary="Name only the GPUs that are there",
            ),
            unset_variable(system=system, name=NVIDIA, summary=f"Remove {NVIDIA}: programs then see every GPU"),
        ),
    )


def _amd_findings(environment: Environment, system: System | None) -> Iterator[Finding]:
    """Yield a finding where a variable hides every AMD GPU. UUIDs are passed over."""
    count = None
    if system is not None and system.amd_gfx_targets is not None:
        count = len(system.amd_gfx_targets)
    for name in AMD:
        value = environment.get(name)
        first = value.split(",")[0].strip() if value is not None else "0"
        if first.startswith("GPU-"):
            continue
        number = _number(first)
        beyond = bool(count and number and int(number) >= count)
        if not number or number.startswith("-") or beyond:
            applies(known(count, "system.amd_gfx_targets"), "there is no AMD GPU to hide")
            reason = f"is beyond the last GPU, {count - 1}" if beyond and count else "ends the list"
            yield _all_hidden(name, value or "", _Choice(visible=(), bad=first, reason=reason), count, system)
            return
