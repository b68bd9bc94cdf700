"""The variables that choose which GPUs a program sees."""

import re
from collections.abc import Iterator

from gpudoctor.conclusions.error_codes import INVALID_DEVICE, NO_DEVICE, cuda_error, no_driver_reported
from gpudoctor.conclusions.installed import Machine, whole_torch
from gpudoctor.conclusions.messages import reported
from gpudoctor.model import (
    Device,
    Driver,
    Environment,
    Finding,
    Origin,
    Remedy,
    Severity,
    Symptom,
    System,
    Torch,
    TorchRuntime,
)
from gpudoctor.model.record import record
from gpudoctor.registry import Skip, check, known, skip_unless
from gpudoctor.remedies import set_variable, unset_variable

NVIDIA = "CUDA_VISIBLE_DEVICES"
Symptoms = tuple[Symptom, ...] | None
AMD = ("ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES")


@record
class _Choice:
    """What the variable leaves visible: the entries that count, the one that ends the list, and why it does."""

    visible: tuple[str, ...]
    bad: str = ""
    reason: str = ""
    after: tuple[str, ...] = ()


@check(
    family="cuda",
    explains=("torch-cuda-unavailable", "cupy-unusable", "cuda-init-unknown-error-999", "wrong-python-environment"),
)
def cuda_visible_devices_hides_gpu(
    origin: Origin,
    environment: Environment | None = None,
    devices: tuple[Device, ...] | None = None,
    driver: Driver | None = None,
    torch: Torch | None = None,
    torch_runtime: TorchRuntime | None = None,
    system: System | None = None,
    symptoms: tuple[Symptom, ...] | None = None,
) -> Iterator[Finding]:
    """CUDA_VISIBLE_DEVICES hides every GPU, or names one that is not there.

    Why: CUDA ignores an entry that names no device, and everything after it: with an empty value, -1 or a wrong first
    entry there is no device left, and programs say "no CUDA-capable device is detected". A device that is named twice
    empties the list. For AMD the same holds of ROCR_VISIBLE_DEVICES and HIP_VISIBLE_DEVICES.
    Exception: fewer devices than there are, as with "0" of four, are a choice, and so is a closing -1.
    Reference: https://docs.nvidia.com/cuda/cuda-programming-guide/05-appendices/environment-variables.html
    """
    if environment is None and not symptoms:
        raise Skip("environment is unknown")
    environment = environment or Environment()
    build = whole_torch(torch, torch_runtime).build
    skip_unless(not origin.is_report or build != "cpu", "PyTorch is built without CUDA and looks for no GPU")
    if build == "rocm":
        yield from _amd_findings(environment, system)
        return
    value = environment.get(NVIDIA)
    if value is not None:
        found = tuple(_nvidia_findings(value, devices, driver, torch_runtime, system, symptoms, origin))
        yield from found
        if found:
            return
    wrong = (
        *_wrong_number(value, devices, torch_runtime, system, symptoms),
        *_seen_elsewhere(value, torch_runtime, system, symptoms),
    )
    yield from wrong
    if origin.is_report and value is None and not wrong:
        raise Skip("the report does not show CUDA_VISIBLE_DEVICES")


def _nvidia_findings(
    value: str,
    devices: tuple[Device, ...] | None,
    driver: Driver | None,
    torch_runtime: TorchRuntime | None,
    system: System | None,
    symptoms: Symptoms,
    origin: Origin,
) -> Iterator[Finding]:
    no_device = cuda_error(NO_DEVICE, driver, torch_runtime, symptoms=symptoms)
    silent = torch_runtime is not None and torch_runtime.available is False and not torch_runtime.availability_error
    if origin.is_report and not (no_device or silent) and not _sees_too_few(value, torch_runtime, symptoms):
        # A report may show only some of the devices.
        skip_unless(not _choose(value, None).visible, "nothing in the report fails for want of a device")
    choice = _choose(value, devices)
    if choice.bad == "" and choice.visible:
        # The number of devices is often not in a report. With driver and GPU in order, a device that is not there
        # is what leaves none; the first device is there wherever one is.
        if (
            (no_device or silent)
            and not devices
            and choice.visible[0] != "0"
            and not no_driver_reported(torch_runtime, symptoms)
        ):
            reason = "names no device that CUDA finds"
            yield _all_hidden(NVIDIA, value, _Choice(visible=(), bad=choice.visible[0], reason=reason), None, system)
        return
    if not choice.visible:
        if _sees_devices(driver, torch_runtime):
            return
        unavailable = torch_runtime is not None and torch_runtime.available is False
        differs = bool(reported(symptoms, "torch-differs-by-program"))
        seen_none = bool(no_device) or differs or (unavailable and not no_driver_reported(torch_runtime, symptoms))
        gpu = _hidden_gpu(Machine(system=system, driver=driver, devices=devices), seen_none)
        skip_unless(known(gpu, "devices"), "there is no NVIDIA GPU to hide")
        yield _all_hidden(NVIDIA, value, choice, len(devices) if devices else None, system)
    elif choice.after or choice.reason != "ends the list":
        yield _some_hidden(value, choice, system)


def _sees_too_few(value: str, torch_runtime: TorchRuntime | None, symptoms: Symptoms) -> bool:
    """Return whether PyTorch sees fewer devices than the variable names, or a program asks for one too many."""
    if cuda_error(INVALID_DEVICE, None, torch_runtime, symptoms=symptoms):
        return True
    if torch_runtime is None or torch_runtime.available is None:
        return False
    if torch_runtime.device_count is None:
        return not torch_runtime.available
    return torch_runtime.device_count < len(value.split(","))


def _wrong_number(
    value: str | None,
    devices: tuple[Device, ...] | None,
    torch_runtime: TorchRuntime | None,
    system: System | None,
    symptoms: Symptoms,
) -> Iterator[Finding]:
    """Yield a finding where a program asked for a device whose number is not among the visible ones."""
    said = cuda_error(INVALID_DEVICE, None, torch_runtime, symptoms=symptoms)
    if said is None or any(device.mig_enabled or "MIG" in (device.name or "") for device in devices or ()):
        return  # which number a MIG device has is for mig-misconfigured
    if torch_runtime is not None and torch_runtime.available is False:
        return  # no number would do: CUDA cannot be used at all
    count = len(devices) if devices else None
    shown = f' with {NVIDIA}="{value}"' if value else ""
    there = f"; the machine has {count} GPU{'s' if count > 1 else ''}, 0 to {count - 1}" if count else ""
    yield Finding(
        severity=Severity.ERROR,
        summary=f"A program asks for a CUDA device whose number is not among the visible ones{shown}{there}",
        subject="device number",
        facts=(said, *((f"environment.{NVIDIA}",) if value is not None else ())),
        remedies=(
            Remedy(
                summary=f"Ask only for devices that are visible, from 0 on: cuda:0. {NVIDIA} renumbers them, so that "
                f"with {NVIDIA}=2 the third GPU is cuda:0; start no more processes (--nproc_per_node) than it names",
                commands=(
                    "nvidia-smi -L",
                    f"python -c \"import os, torch; print(os.environ.get('{NVIDIA}'), torch.cuda.device_count())\"",
                ),
                needs=("restart",),
            ),
            unset_variable(system=system, name=NVIDIA, summary=f"Remove {NVIDIA}: programs then see every GPU"),
        ),
    )


def _seen_elsewhere(
    value: str | None, torch_runtime: TorchRuntime | None, system: System | None, symptoms: Symptoms
) -> Iterator[Finding]:
    """Yield a finding where PyTorch names a GPU in one program of a report and finds none in another."""
    none = reported(symptoms, "torch-no-gpus")
    names = torch_runtime.device_names if torch_runtime is not None else None
    if value is not None or not none or not names or torch_runtime is None or torch_runtime.available:
        return
    yield Finding(
        severity=Severity.ERROR,
        summary=f"PyTorch sees {names[0]} in one program and no GPU in another: {NVIDIA} hides it there",
        subject=NVIDIA,
        facts=(none[0][0], "torch_runtime.device_names"),
        remedies=(
            Remedy(
                summary=f"Look in that program, its options (--gpu, --device) and its script for {NVIDIA}, which many "
                "set by os.environ, and let it name a GPU that is there: the first one is 0",
                needs=("restart",),
            ),
            unset_variable(system=system, name=NVIDIA, summary=f"Or remove {NVIDIA}: programs then see every GPU"),
        ),
    )


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


def _hidden_gpu(machine: Machine, seen_none: bool) -> str | None:
    """Return the GPU that is hidden, "" for none, None for unknown.

    seen_none: CUDA found a driver and no device.
    """
    gpu = machine.gpu()
    if gpu is None and seen_none:
        return "a GPU"
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
            unset_variable(
                system=system,
                name=name,
                summary=f"Remove {name}, also where a program, a job or os.environ sets it, unless the GPUs are hidden "
                "on purpose",
            ),
            set_variable(system=system, name=name, value="0", summary="Or name a GPU that is there: they count from 0"),
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
            skip_unless(known(count, "system.amd_gfx_targets"), "there is no AMD GPU to hide")
            reason = f"is beyond the last GPU, {count - 1}" if beyond and count else "ends the list"
            yield _all_hidden(name, value or "", _Choice(visible=(), bad=first, reason=reason), count, system)
            return
