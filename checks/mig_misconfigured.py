"""Multi-Instance GPU: instances, and how devices are addressed."""

from collections.abc import Iterator
from dataclasses import replace

from gpudoctor.model import Device, Devices, Driver, Environment, Finding, Fix, Severity, TorchRuntime
from gpudoctor.registry import CUDA_FAILS, Skip, check
from gpudoctor.symptoms import Symptoms, first, of_kind, with_code
from gpudoctor.symptoms.answers import answers

VARIABLE = "CUDA_VISIBLE_DEVICES"
# From R570 on, with CUDA 12, one process may use one instance of each GPU instance; before, one in all.
# Source: "Device Enumeration", https://docs.nvidia.com/datacenter/tesla/mig-user-guide/mig-device-names.html
FIRST_BRANCH_WITH_SEVERAL = 570


@check(family="multi-gpu", explains=(*CUDA_FAILS, "cuda-visible-devices-hides-gpu", "nvidia-container-toolkit-missing"))
def mig_misconfigured(
    devices: Devices = None,
    driver: Driver = Driver(),
    environment: Environment = Environment(),
    torch_runtime: TorchRuntime = TorchRuntime(),
    symptoms: Symptoms = None,
) -> Iterator[Finding]:
    """MIG is on without an instance, or devices are addressed in a way that MIG does not allow.

    Why: a GPU in MIG mode computes only through its instances. Without an instance CUDA finds no device. An instance
    has its own UUID (MIG-...): the GPU's index or UUID does not reach it. One process uses one instance.
    Exception: index 0 passes, and so does everything that CUDA accepted. A report that only mentions MIG passes if
    nothing in it says that a device is missing.
    Reference: https://docs.nvidia.com/datacenter/tesla/mig-user-guide/
    """
    value = environment.get(VARIABLE)
    names = torch_runtime.device_names or ()
    unusable = next(_unusable(symptoms, value, devices or (), names, no_device=torch_runtime.device_count == 0), None)
    if unusable is not None:
        yield unusable
        return
    said = (*_by_commands(symptoms, devices), *_unseen(symptoms, devices), *_unlisted(symptoms, devices))[:1]
    yield from said
    if devices is None:
        if not said:
            raise Skip("devices is unknown")
        return
    partitioned = [device for device in devices if device.mig_enabled]
    empty = [device for device in partitioned if device.mig_uuids == ()]
    if empty:
        yield _no_instance(empty, devices)
    if partitioned and len(empty) < len(partitioned):
        unavailable = torch_runtime.available is False
        for finding in _addresses(value, partitioned, devices, driver):
            yield replace(finding, severity=Severity.ERROR) if unavailable else finding


def _missing(symptoms: Symptoms) -> str:
    """Return the fact in which CUDA finds no device, or not that one; "" if none does."""
    said = first(with_code(symptoms, "cuda-100"), with_code(symptoms, "cuda-101"))
    return said.fact if said is not None else ""


def _unusable(
    symptoms: Symptoms, value: str | None, devices: tuple[Device, ...], names: tuple[str, ...], *, no_device: bool
) -> Iterator[Finding]:
    """Yield what programs report of MIG devices that they cannot use. names: what PyTorch calls the devices."""
    counted = first(of_kind(symptoms, "torch-too-many-devices"))
    named = first(of_kind(symptoms, "mig-device-named"))
    by_name = ("torch_runtime.device_names",) if any("MIG" in name for name in names) else ()
    if counted is not None and (by_name or named or any(device.mig_enabled for device in devices)):
        facts = by_name or ((named.fact,) if named is not None else ())
        summary = "PyTorch counts several MIG instances, but a process can use only one"
        yield Finding.error("MIG", summary, (counted.fact, *facts), _one_instance(devices))
    only_one = first(of_kind(symptoms, "one-device-visible"))
    for number, device in enumerate(devices):
        count = len(device.mig_uuids or ())
        if only_one is not None and count > 1:
            summary = f"A program sees one of the {count} MIG instances: a process can use only one"
            yield Finding.error("MIG", summary, (only_one.fact, f"devices[{number}].mig_uuids"), _one_instance(devices))
    for said in of_kind(symptoms, "mig-uuid-as-number"):
        summary = f"A program reads {said.names.get('uuid', 'MIG-...')}, the UUID of a MIG device, as a number"
        yield Finding.error("MIG", summary, (said.fact,), _one_instance(devices))
    missing = _missing(symptoms) or ("torch_runtime.device_count" if no_device else "")
    if value and value.startswith("MIG-") and missing:
        summary = f"CUDA does not find the MIG device {value}"
        yield Finding.error("MIG", summary, (f"environment.{VARIABLE}", missing), _one_instance(devices))


def _one_instance(devices: tuple[Device, ...]) -> Fix:
    listed = any(device.mig_uuids for device in devices)
    return Fix("name-first-mig-instance" if listed else "name-a-mig-instance")


def _instance(index: int) -> tuple[Fix, Fix]:
    return Fix("create-mig-instance", index=index), Fix("turn-mig-off", index=index)


def _by_commands(symptoms: Symptoms, devices: Devices) -> Iterator[Finding]:
    none = first(of_kind(symptoms, "mig-no-devices"))
    if none is not None and not any(device.mig_enabled is not None for device in devices or ()):
        yield Finding.error("MIG", "MIG is on, but nvidia-smi finds no MIG device", (none.fact,), *_instance(0))
    yield from answers(symptoms, "mig-misconfigured")


def _unseen(symptoms: Symptoms, devices: Devices) -> Iterator[Finding]:
    """Yield the findings of a report that mentions MIG and a missing device without showing either."""
    named = first(of_kind(symptoms, "mig-in-use"))
    reported = first(of_kind(symptoms, "device-missing-reported"))
    missing = _missing(symptoms) or (reported.fact if reported is not None else "")
    if named is not None and missing and not any(device.mig_enabled is not None for device in devices or ()):
        summary = f'A GPU is partitioned by MIG ("{named.text}"), but a program finds no device in it'
        yield Finding.error("MIG", summary, (named.fact, missing), Fix("list-mig-instances"), *_instance(0))


def _unlisted(symptoms: Symptoms, devices: Devices) -> Iterator[Finding]:
    """Yield where CUDA finds no device on GPUs that are all in MIG mode, of which the instances are not shown."""
    missing = _missing(symptoms)
    if devices and missing and all(device.mig_enabled and device.mig_uuids is None for device in devices):
        name = devices[0].name or "the GPU"
        summary = f"MIG is on for {name}, but CUDA finds no device: there is no MIG instance, or none for this process"
        fixes = (*_instance(devices[0].nvml_index), _one_instance(devices))
        yield Finding.error(name, summary, ("devices[0].mig_enabled", missing), *fixes)


def _no_instance(empty: list[Device], devices: tuple[Device, ...]) -> Finding:
    name = empty[0].name or f"device {empty[0].nvml_index}"
    count = f" (and of {len(empty) - 1} more)" if len(empty) > 1 else ""
    path = f"devices[{devices.index(empty[0])}]"
    severity = Severity.ERROR if len(empty) == len(devices) else Severity.WARNING
    summary = f"MIG is on for {name}{count}, but no MIG instance exists"
    facts = (f"{path}.mig_enabled", f"{path}.mig_uuids")
    return Finding.of(severity, name, summary, facts, *_instance(empty[0].nvml_index))


def _addresses(
    value: str | None, partitioned: list[Device], devices: tuple[Device, ...], driver: Driver
) -> Iterator[Finding]:
    entries = [entry.strip() for entry in (value or "").split(",") if entry.strip()]
    accepted = driver.cuda_device_count
    if not entries or (accepted is not None and accepted >= len(entries)):
        return
    instances = [entry for entry in entries if entry.startswith("MIG-")]
    wrong = next((entry for entry in entries if _means_whole_gpu(entry, partitioned, devices)), None)
    several_allowed = driver.version is None or driver.version.parts[0] >= FIRST_BRANCH_WITH_SEVERAL
    if wrong is not None:
        summary = f"{VARIABLE} names {wrong}, a GPU in MIG mode, but none of its MIG instances"
    elif len(instances) > 1 and not several_allowed:
        summary = f"{VARIABLE} names {len(instances)} MIG instances, but a process can use only one"
    else:
        return
    facts = (f"environment.{VARIABLE}", f"devices[{devices.index(partitioned[0])}].mig_uuids")
    finding = Finding.error(VARIABLE, summary, facts, _one_instance(tuple(partitioned)))
    yield finding if accepted == 0 else replace(finding, severity=Severity.WARNING)


def _means_whole_gpu(entry: str, partitioned: list[Device], devices: tuple[Device, ...]) -> bool:
    if entry.startswith("GPU-"):
        return any((device.uuid or "").startswith(entry) for device in partitioned)
    if not entry.isdigit() or entry == "0":
        return False
    return any(device.nvml_index == int(entry) for device in partitioned) or len(partitioned) == len(devices)
