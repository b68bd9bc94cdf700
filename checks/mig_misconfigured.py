"""Multi-Instance GPU: instances, and how devices are addressed."""

from collections.abc import Iterator
from dataclasses import replace

from gpudoctor.conclusions.error_codes import INVALID_DEVICE, NO_DEVICE, cuda_error, text_with
from gpudoctor.conclusions.messages import reported as told_messages
from gpudoctor.model import (
    Device,
    Driver,
    Environment,
    Finding,
    Remedy,
    Severity,
    Symptom,
    TorchRuntime,
)
from gpudoctor.registry import Skip, check

GUIDE = "https://docs.nvidia.com/datacenter/tesla/mig-user-guide/"
FIRST_INSTANCE = "export CUDA_VISIBLE_DEVICES=$(nvidia-smi -L | grep -o 'MIG-[0-9a-f-]*' | head -n 1)"
# From R570 on, with CUDA 12, one process may use one instance of each GPU instance; before, one in all.
# Source: "Device Enumeration", https://docs.nvidia.com/datacenter/tesla/mig-user-guide/mig-device-names.html
FIRST_BRANCH_WITH_SEVERAL = 570
# An assertion of PyTorch's allocator, which counted more devices than the process may use.
NOT_THERE = (NO_DEVICE, INVALID_DEVICE)
TOO_MANY_DEVICES = ("device >= 0 && device < num_gpus", "device < num_devices, invalid device")


@check(
    family="multi-gpu",
    explains=("torch-cuda-unavailable", "cupy-unusable", "cuda-visible-devices-hides-gpu"),
)
def mig_misconfigured(
    devices: tuple[Device, ...] | None = None,
    driver: Driver | None = None,
    environment: Environment | None = None,
    torch_runtime: TorchRuntime | None = None,
    symptoms: tuple[Symptom, ...] | None = None,
) -> Iterator[Finding]:
    """MIG is on without an instance, or devices are addressed in a way that MIG does not allow.

    Why: a GPU in MIG mode computes only through its instances; without one CUDA finds no device. Instances are named by
    their own UUID (MIG-...): the index or UUID of the GPU does not reach them, and one process uses one instance.
    Exception: index 0 passes, and so does everything that CUDA accepted. A report that only speaks of MIG passes, as
    long as nothing in it says that a device is missing.
    Reference: https://docs.nvidia.com/datacenter/tesla/mig-user-guide/
    """
    told = next(_told(torch_runtime, driver, environment, devices or (), symptoms), None)
    if told is not None:
        summary, facts = told
        yield Finding(
            severity=Severity.ERROR,
            summary=summary,
            subject="MIG",
            facts=facts,
            remedies=(_one_instance(devices or ()),),
        )
        return
    unseen = (*_unseen(driver, torch_runtime, symptoms, devices), *_unlisted(driver, torch_runtime, symptoms, devices))
    said = (*_by_commands(symptoms, devices), *unseen)[:1]
    yield from said
    if devices is None:
        if not said:
            raise Skip("devices is unknown")
        return
    partitioned = [device for device in devices if device.mig_enabled]
    empty = [device for device in partitioned if device.mig_uuids == ()]
    if empty:
        yield _no_instance(empty, devices)
    if partitioned and environment is not None and len(empty) < len(partitioned):
        unavailable = torch_runtime is not None and torch_runtime.available is False
        for finding in _addresses(environment.get("CUDA_VISIBLE_DEVICES"), partitioned, devices, driver):
            yield replace(finding, severity=Severity.ERROR) if unavailable else finding


def _told(
    torch_runtime: TorchRuntime | None,
    driver: Driver | None,
    environment: Environment | None,
    devices: tuple[Device, ...],
    symptoms: tuple[Symptom, ...] | None,
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield what programs report of MIG devices that they cannot use, and the facts it rests on."""
    several = "PyTorch counts several MIG instances, and a process may use one only"
    names = (torch_runtime.device_names or ()) if torch_runtime is not None else ()
    found = text_with(*TOO_MANY_DEVICES, torch_runtime=torch_runtime)
    if found and any("MIG" in name for name in names):
        yield several, (found[0], "torch_runtime.device_names")
    counted = told_messages(symptoms, "torch-too-many-devices")
    named = told_messages(symptoms, "mig-device-named")
    if counted and (named or any(device.mig_enabled for device in devices)):
        yield several, (counted[0][0], *(fact for fact, _ in named[:1]))
    only_one = told_messages(symptoms, "one-device-told")[:1]
    for number, device in enumerate(devices):
        count = len(device.mig_uuids or ())
        if only_one and count > 1:
            summary = f"A program sees one of the {count} MIG instances, for a process may use one only"
            yield summary, (only_one[0][0], f"devices[{number}].mig_uuids")
    for fact, message in told_messages(symptoms, "mig-uuid-as-number"):
        yield f"A program takes {message.names.get('uuid', 'MIG-...')}, the UUID of a MIG device, for a number", (fact,)
    value = environment.get("CUDA_VISIBLE_DEVICES") if environment is not None else None
    missing = next(filter(None, (_lacks_device(code, driver, torch_runtime, symptoms) for code in NOT_THERE)), None)
    if value and value.startswith("MIG-") and missing is not None:
        yield f"CUDA does not find the MIG device {value}", ("environment.CUDA_VISIBLE_DEVICES", missing)


def _lacks_device(
    code: int, driver: Driver | None, torch_runtime: TorchRuntime | None, symptoms: tuple[Symptom, ...] | None
) -> str | None:
    return cuda_error(code, driver, torch_runtime, symptoms=symptoms)


def _by_commands(symptoms: tuple[Symptom, ...] | None, devices: tuple[Device, ...] | None) -> Iterator[Finding]:
    """Yield what `nvidia-smi` said where the devices themselves are not shown."""
    shown = any(device.mig_enabled is not None for device in devices or ())
    for fact, _ in told_messages(symptoms, "mig-no-devices")[: 0 if shown else 1]:
        yield Finding(
            severity=Severity.ERROR,
            summary="MIG is on, and nvidia-smi finds no MIG device",
            subject="MIG",
            facts=(fact,),
            remedies=_instance_remedies(0),
        )
    for fact, message in told_messages(symptoms, "mig-mode-pending", "mig-instance-not-created")[:1]:
        yield Finding(
            severity=Severity.ERROR,
            summary=f"A MIG command failed: {message.text}",
            subject="MIG",
            facts=(fact,),
            remedies=(
                Remedy(
                    summary="Stop every program on the GPU, services such as DCGM, nvidia-persistenced and a display "
                    "too, and reset it or reboot; then look which profiles still have room",
                    commands=(
                        "sudo systemctl stop nvidia-dcgm nvsm nvidia-persistenced",
                        "sudo nvidia-smi --gpu-reset",
                        "nvidia-smi mig -lgip",
                    ),
                    needs=("root", "restart"),
                    reference=GUIDE,
                ),
            ),
        )


def _unseen(
    driver: Driver | None,
    torch_runtime: TorchRuntime | None,
    symptoms: tuple[Symptom, ...] | None,
    devices: tuple[Device, ...] | None,
) -> Iterator[Finding]:
    """Yield what a report says that speaks of MIG and of a device that is not found, without showing either."""
    named = told_messages(symptoms, "mig-in-use-told")[:1]
    if not named or any(device.mig_enabled is not None for device in devices or ()):
        return
    missing = next(filter(None, (_lacks_device(code, driver, torch_runtime, symptoms) for code in NOT_THERE)), None)
    missing = missing or next((fact for fact, _ in told_messages(symptoms, "device-missing-told")), None)
    if missing is not None:
        yield Finding(
            severity=Severity.ERROR,
            summary=f'A GPU is partitioned by MIG ("{named[0][1].text}"), and a program finds no device in it',
            subject="MIG",
            facts=(named[0][0], missing),
            remedies=(
                Remedy(
                    summary="Look which MIG instances exist, and give each process one of them by its UUID; in a "
                    "container or pod, the toolkit and the device plugin must know MIG devices: update them",
                    commands=("nvidia-smi -L", "export CUDA_VISIBLE_DEVICES=MIG-<UUID>", "nvidia-smi mig -lgi"),
                    needs=("restart",),
                    reference=GUIDE,
                ),
                *_instance_remedies(0),
            ),
        )


def _unlisted(
    driver: Driver | None,
    torch_runtime: TorchRuntime | None,
    symptoms: tuple[Symptom, ...] | None,
    devices: tuple[Device, ...] | None,
) -> Iterator[Finding]:
    """Yield where CUDA finds no device on GPUs that are all in MIG mode, of which the instances are not shown."""
    if not devices or not all(device.mig_enabled and device.mig_uuids is None for device in devices):
        return
    missing = next(filter(None, (_lacks_device(code, driver, torch_runtime, symptoms) for code in NOT_THERE)), None)
    if missing is not None:
        name = devices[0].name or "the GPU"
        yield Finding(
            severity=Severity.ERROR,
            summary=f"MIG is on for {name}, and CUDA finds no device: there is no MIG instance, or not one for this "
            "process",
            subject=name,
            facts=("devices[0].mig_enabled", missing),
            remedies=(*_instance_remedies(devices[0].nvml_index), _one_instance(devices)),
        )


def _no_instance(empty: list[Device], devices: tuple[Device, ...]) -> Finding:
    first = empty[0]
    name = first.name or f"device {first.nvml_index}"
    count = f" (and of {len(empty) - 1} more)" if len(empty) > 1 else ""
    return Finding(
        severity=Severity.ERROR if len(empty) == len(devices) else Severity.WARNING,
        summary=f"MIG is on for {name}{count}, and no MIG instance exists",
        subject=name,
        facts=(f"devices[{devices.index(first)}].mig_enabled", f"devices[{devices.index(first)}].mig_uuids"),
        remedies=_instance_remedies(first.nvml_index),
    )


def _instance_remedies(index: int) -> tuple[Remedy, ...]:
    create = Remedy(
        summary="Create an instance with its compute instance: profile 0 takes the whole GPU, the list has others",
        commands=(
            f"nvidia-smi mig -i {index} -lgip",
            f"sudo nvidia-smi mig -i {index} -cgi 0 -C",
            "nvidia-smi -L",
        ),
        needs=("root",),
        reference=GUIDE,
    )
    turn_off = Remedy(
        summary="Turn MIG off, to use the GPU as a whole",
        commands=(f"sudo nvidia-smi -i {index} -mig 0", "nvidia-smi -L"),
        needs=("root", "restart"),
        reference=GUIDE,
    )
    return create, turn_off


def _addresses(
    value: str | None,
    partitioned: list[Device],
    devices: tuple[Device, ...],
    driver: Driver | None,
) -> Iterator[Finding]:
    """Yield a finding where CUDA_VISIBLE_DEVICES does not reach the instances that it means."""
    entries = [entry.strip() for entry in (value or "").split(",") if entry.strip()]
    accepted = driver.cuda_device_count if driver is not None else None
    if not entries or (accepted is not None and accepted >= len(entries)):
        return
    instances = [entry for entry in entries if entry.startswith("MIG-")]
    wrong = next((entry for entry in entries if _means_whole_gpu(entry, partitioned, devices)), None)
    if wrong is not None:
        summary = f"CUDA_VISIBLE_DEVICES names {wrong}, a GPU in MIG mode, and not one of its MIG instances"
    elif len(instances) > 1 and not _allows_several(driver):
        summary = f"CUDA_VISIBLE_DEVICES names {len(instances)} MIG instances, and a process may use one only"
    else:
        return
    yield Finding(
        severity=Severity.ERROR if accepted == 0 else Severity.WARNING,
        summary=summary,
        subject="CUDA_VISIBLE_DEVICES",
        facts=("environment.CUDA_VISIBLE_DEVICES", f"devices[{devices.index(partitioned[0])}].mig_uuids"),
        remedies=(_one_instance(tuple(partitioned)),),
    )


def _means_whole_gpu(entry: str, partitioned: list[Device], devices: tuple[Device, ...]) -> bool:
    if entry.startswith("GPU-"):
        return any((device.uuid or "").startswith(entry) for device in partitioned)
    if not entry.isdigit() or entry == "0":
        return False
    return any(device.nvml_index == int(entry) for device in partitioned) or len(partitioned) == len(devices)


def _allows_several(driver: Driver | None) -> bool:
    return driver is None or driver.version is None or driver.version.parts[0] >= FIRST_BRANCH_WITH_SEVERAL


def _one_instance(devices: tuple[Device, ...]) -> Remedy:
    if any(device.mig_uuids for device in devices):
        return Remedy(
            summary="Name one MIG instance per process by its own UUID, here the first one",
            commands=("nvidia-smi -L", FIRST_INSTANCE),
            needs=("restart",),
            reference=GUIDE,
        )
    return Remedy(
        summary="Set CUDA_VISIBLE_DEVICES to the UUID of one MIG instance (MIG-...), another one for each process",
        commands=("nvidia-smi -L",),
        needs=("restart",),
        reference=GUIDE,
    )
