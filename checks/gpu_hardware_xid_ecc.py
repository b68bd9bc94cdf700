"""Signs of a fault in the hardware: Xid errors of the driver, memory errors, a device that is lost."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from gpudoctor.conclusions.error_codes import in_container, text_with
from gpudoctor.conclusions.messages import reported
from gpudoctor.data import xid_meaning
from gpudoctor.model import (
    CupyRuntime,
    Device,
    Driver,
    Finding,
    Remedy,
    Severity,
    Symptom,
    System,
    TorchRuntime,
    Xid,
)
from gpudoctor.registry import Skip, check
from gpudoctor.remedies import reboot
from gpudoctor.remedies.commands import with_sudo

CATALOG = "https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html"
MEMORY_ERRORS = "https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/index.html"
# Immediate actions of NVIDIA's catalogue after which the device is not used before a reset.
RESET_ACTIONS = (
    "RESET_GPU",
    "RESTART_BM",
    "RESTART_VM",
    "WORKFLOW_XID_48",
    "WORKFLOW_NVLINK_ERR",
    "WORKFLOW_NVLINK5_ERR",
)
# Uncorrectable errors in memory that come with Xid 48, and a PCIe timeout: the catalogue names no action for them.
FATAL = (167, 171, 172)
# Faults of memory, power or a link that the driver survives: row remapping, power not connected, many corrected errors,
# a contained memory error, the chip-to-chip link, less memory than there was.
LASTING = (54, 63, 92, 94, 121, 157, 168)
CHANNEL_ENDED = 45  # names in newer drivers the error for which: "Ch 00000001 caused by previous Xid 149"
RECOVERY_ACTION = 154  # "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)"
TESTS = (106, 107)
# Texts of cudaGetErrorString for 214 and 220, in lower case.
REPORTED = ("uncorrectable ecc error encountered", "uncorrectable nvlink error detected")
LOST = ("lost", "reset", "restart", "fallen off", "err!", "cannot be read")  # "GPU is lost", "GPU requires restart"
# Kinds of messages that say so of a device that they do not name.
LOST_KINDS = ("gpu-fallen-off-bus", "gpu-is-lost", "gpu-handle-unknown-error", "gpu-pcie-bus-error")
FAULT_KINDS = (
    *LOST_KINDS,
    *(
        "gpu-requires-reset",
        "gpu-ecc-*",
        "gpu-nvlink-*",
        "gpu-nvswitch-error",
        "gpu-gsp-*",
        "gpu-error-contained",
        "gpu-not-init*",
    ),
)


@dataclass
class _Faults:
    """What one device shows: sentences, the facts they rest on, and what it takes."""

    severity: Severity = Severity.WARNING
    texts: list[str] = field(default_factory=list)
    facts: list[str] = field(default_factory=list)
    xids: list[Xid] = field(default_factory=list)
    replace: bool = False
    lost: bool = False

    def add(self, severity: Severity, text: str, fact: str) -> None:
        """Note one more symptom."""
        self.severity = max(self.severity, severity)
        self.facts.append(fact)
        if text not in self.texts:
            self.texts.append(text)


@check(
    family="device",
    explains=("torch-cuda-unavailable", "cupy-unusable", "cuda-init-unknown-error-999", "nccl-p2p-problem"),
)
def gpu_hardware_xid_ecc(
    driver: Driver | None = None,
    devices: tuple[Device, ...] | None = None,
    torch_runtime: TorchRuntime | None = None,
    cupy_runtime: CupyRuntime | None = None,
    system: System | None = None,
    symptoms: tuple[Symptom, ...] | None = None,
) -> Iterator[Finding]:
    """The driver logged a fault of the hardware, memory has uncorrectable errors, or a device is lost.

    Why: programs die with "uncorrectable ECC error", "unspecified launch failure" or hang, and no change in software
    helps; a device off the bus comes back by a restart at the earliest.
    Exception: Xid errors that the catalogue lays to a program (13, 31, 43, 45 and others) are advice only, and so are
    numbers that it does not have. Errors in the device's whole life count for nothing while the present is clean.
    Reference: https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html
    """
    logged = driver.xids if driver is not None else None
    by_device = {device.nvml_index: _of_device(number, device) for number, device in enumerate(devices or ())}
    elsewhere: dict[str, _Faults] = {}
    harmless: list[tuple[int, Xid]] = []
    for number, xid in enumerate(map(_cause, logged or ())):
        severity = _severity(xid)
        if severity is None:
            if xid.number not in TESTS:
                harmless.append((number, xid))
            continue
        owner = _owner(xid, devices or ())
        faults = by_device[owner] if owner is not None else elsewhere.setdefault(xid.pci_address, _Faults())
        faults.add(severity, _text(xid), f"driver.xids[{number}]")
        faults.xids.append(xid)
        faults.lost = faults.lost or _action(xid) == "RESTART_BM"
    told = tuple(_reported(driver, torch_runtime, cupy_runtime, symptoms))
    if told and not any(faults.texts for faults in (*by_device.values(), *elsewhere.values())):
        only = by_device[devices[0].nvml_index] if devices is not None and len(devices) == 1 else None
        fact, text, lost = told[0]
        faults = elsewhere.setdefault("", _Faults()) if only is None else only
        faults.add(Severity.ERROR, f'the error "{text}"', fact)
        faults.lost = lost
    for fact, _ in reported(symptoms, "gpu-sensor-error")[:1]:
        unread = elsewhere.setdefault("", _Faults())
        unread.add(Severity.WARNING, 'a sensor that nvidia-smi cannot read ("ERR!")', fact)
    findings = [_finding(d.label, by_device[d.nvml_index], d, system) for d in devices or ()]
    findings += [_finding(address or "GPU", faults, None, system) for address, faults in elsewhere.items()]
    found = [finding for finding in findings if finding is not None]
    silent = reported(symptoms, "nvidia-smi-no-devices") if not devices and not in_container(system) else ()
    if silent and not found:
        found.append(_not_started(silent[0][0], system))
    yield from found
    if harmless:
        yield _of_programs(harmless)
    elif not found and logged is None and not any(_has_counters(device) for device in devices or ()):
        raise Skip("driver.xids and the memory errors of the devices are unknown")


def _reported(
    driver: Driver | None,
    torch_runtime: TorchRuntime | None,
    cupy_runtime: CupyRuntime | None,
    symptoms: tuple[Symptom, ...] | None,
) -> Iterator[tuple[str, str, bool]]:
    """Yield the fault as NVML, PyTorch or CuPy report it, without a word on which device it is, and if that is lost."""
    if driver is not None and "is lost" in (driver.nvml_error or ""):
        yield "driver.nvml_error", driver.nvml_error or "", True
    found = text_with(*REPORTED, torch_runtime=torch_runtime, cupy_runtime=cupy_runtime)
    if found is not None:
        yield found[0], next(phrase for phrase in REPORTED if phrase in found[1].lower()), False
    lost = [message.kind for _, message in reported(symptoms, *LOST_KINDS)]
    for fact, message in reported(symptoms, *FAULT_KINDS):
        yield fact, message.text, bool(lost)


def _of_device(number: int, device: Device) -> _Faults:
    """Return what NVML says about one device."""
    faults = _Faults()
    path = f"devices[{number}]"
    if any(word in device.error.lower() for word in LOST):
        faults.add(Severity.ERROR, f'the error "{device.error}"', f"{path}.error")
        faults.lost = True
    if device.ecc_uncorrected_volatile:
        count = device.ecc_uncorrected_volatile
        text = f"{count} uncorrected memory error{'' if count == 1 else 's'} since the driver was loaded"
        faults.add(Severity.ERROR, text, f"{path}.ecc_uncorrected_volatile")
    if device.remapped_rows_failed:
        faults.add(Severity.ERROR, "a memory row that could not be remapped", f"{path}.remapped_rows_failed")
        faults.replace = True
    if device.remapped_rows_pending:
        text = "a row remapping that waits for a reset"
        faults.add(Severity.WARNING, text, f"{path}.remapped_rows_pending")
    if device.retired_pages_pending:
        text = "memory pages that wait for a reboot to be retired"
        faults.add(Severity.WARNING, text, f"{path}.retired_pages_pending")
    return faults


def _has_counters(device: Device) -> bool:
    facts = (device.ecc_uncorrected_volatile, device.remapped_rows_failed, device.retired_pages_pending)
    return any(fact is not None for fact in facts)


def _cause(xid: Xid) -> Xid:
    """Return the error of which this one says that it is a consequence; itself where it names none."""
    named = re.search(r"previous Xid (\d{1,3})\b", xid.text) if xid.number == CHANNEL_ENDED else None
    return replace(xid, number=int(named[1])) if named else xid


def _severity(xid: Xid) -> Severity | None:
    """Return how much an Xid matters; None where it is laid to a program, or nobody knows."""
    if _action(xid) in RESET_ACTIONS or xid.number in FATAL:
        return Severity.ERROR
    if xid.number == RECOVERY_ACTION and "required" in xid.text.lower().rpartition(" to ")[2]:
        return Severity.ERROR
    return Severity.WARNING if xid.number in LASTING or _action(xid) == "CHECK_MECHANICALS" else None


def _action(xid: Xid) -> str:
    meaning = xid_meaning(xid.number)
    return meaning.action if meaning is not None else ""


def _text(xid: Xid) -> str:
    meaning = xid_meaning(xid.number)
    return f"Xid {xid.number} ({meaning.description if meaning is not None else 'not in the catalogue'})"


def _owner(xid: Xid, devices: tuple[Device, ...]) -> int | None:
    """Return the NVML index of the device that an Xid is about; None where its address is no device's.

    NVML tells no address of a device that it cannot reach: what belongs to no other device belongs to that one.
    """
    address = _bus_address(xid.pci_address)
    owners = [device.nvml_index for device in devices if address and _bus_address(device.pci_address or "") == address]
    lost = [device.nvml_index for device in devices if address and device.error and device.pci_address is None]
    return owners[0] if owners else lost[0] if len(lost) == 1 else None


def _bus_address(address: str) -> str:
    """Return "1:c1:00" of "PCI:0001:C1:00", "00000001:C1:00.0" and the like: the kernel log leaves out the function."""
    parts = address.lower().removeprefix("pci:").partition(".")[0].split(":")
    return ":".join([parts[0].lstrip("0") or "0", *parts[1:]]) if len(parts) == 3 else ""


def _finding(subject: str, faults: _Faults, device: Device | None, system: System | None) -> Finding | None:
    if not faults.texts:
        return None
    return Finding(
        severity=faults.severity,
        summary=f"{subject} shows {', '.join(faults.texts)}",
        subject=subject,
        facts=tuple(dict.fromkeys(faults.facts)),
        remedies=tuple(_remedies(faults, device, system)),
        details={"xids": [_row(xid) for xid in faults.xids]},
    )


def _row(xid: Xid) -> dict[str, object]:
    meaning = xid_meaning(xid.number)
    row: dict[str, object] = {"number": xid.number, "pci_address": xid.pci_address, "text": xid.text}
    if meaning is not None:
        row |= {"mnemonic": meaning.mnemonic, "action": meaning.action, "investigation": meaning.investigation}
    return row


def _remedies(faults: _Faults, device: Device | None, system: System | None) -> Iterator[Remedy]:
    again = "and if it comes again, ask the vendor for a new one"
    if faults.replace:
        yield Remedy(summary="Have the device replaced: its spare memory is used up", reference=MEMORY_ERRORS)
    if system is not None and system.container:
        yield Remedy(summary=f"Reset the GPU or reboot, on the host: a container cannot; {again}", reference=CATALOG)
        return
    resettable = device is not None and not faults.lost and system is not None and system.os == "linux"
    if device is not None and resettable and not (system is not None and system.wsl):
        yield Remedy(
            summary=f"Stop every program on the device and reset it, {again}",
            commands=(
                with_sudo(f"nvidia-smi --gpu-reset -i {device.nvml_index}", system),
                f"nvidia-smi -i {device.nvml_index} -q -d ECC,PAGE_RETIREMENT,ROW_REMAPPER",
            ),
            needs=("root",),
            reference=MEMORY_ERRORS,
        )
    if not resettable and not faults.lost and not (system is not None and system.os == "windows"):
        yield Remedy(
            summary="Look which device it is and what its memory errors are: uncorrectable ones end with a reset",
            commands=("nvidia-smi -q -d ECC,PAGE_RETIREMENT,ROW_REMAPPER", with_sudo("nvidia-smi --gpu-reset", system)),
            needs=("root",),
            reference=MEMORY_ERRORS,
        )
    yield reboot(system=system, summary=f"Restart the machine, with the power off in between if it can be, {again}")
    if faults.lost:
        yield Remedy(
            summary="Turn the power off, seat the card and its power cables again, look at its cooling and at the "
            "power supply: a GPU leaves the PCIe bus when it is too hot, gets too little power or is broken",
            commands=(with_sudo("dmesg -T", system) + " | grep -iE 'nvrm|xid|aer'",),
            needs=("root",),
            reference=CATALOG,
        )


def _not_started(fact: str, system: System | None) -> Finding:
    """Return the finding where the driver answers and shows no device: it could not initialise the GPU that it found.

    The module nvidia stays loaded only where it found one. Source: nvidia_init_module in kernel-open/nvidia/nv.c.
    """
    return Finding(
        severity=Severity.WARNING,
        summary="The driver is loaded, and nvidia-smi finds no device: it could not initialise the GPU",
        subject="GPU",
        facts=(fact,),
        remedies=(
            Remedy(
                summary="See in the kernel log why: RmInitAdapter failed (power cables, seat of the card, firmware), "
                "not supported by this driver or this kind of kernel module (open or proprietary), fallen off the bus",
                commands=(with_sudo("dmesg", system) + " | grep -iE 'nvrm|xid'", "lspci -k | grep -iA 3 nvidia"),
                needs=("root",),
                reference=CATALOG,
            ),
            reboot(system=system, summary="Turn the machine off and on again: a warm restart does not reset the GPU"),
        ),
    )


def _of_programs(harmless: list[tuple[int, Xid]]) -> Finding:
    texts = list(dict.fromkeys(_text(xid) for _, xid in harmless))
    return Finding(
        severity=Severity.INFO,
        summary=f"The driver logged {', '.join(texts)}, for which NVIDIA asks no reset of the device",
        subject="kernel log",
        facts=tuple(f"driver.xids[{number}]" for number, _ in harmless),
        remedies=(
            Remedy(
                summary="Look for an illegal memory access in the program that ran then (compute-sanitizer finds it)",
                reference=CATALOG,
            ),
        ),
        details={"xids": [_row(xid) for _, xid in harmless]},
    )
