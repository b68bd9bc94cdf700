"""GPUs with hardware faults: Xid errors, memory errors, lost devices."""

from collections.abc import Iterator

from gpudoctor.data.errors import xid_cause, xid_effect, xid_label
from gpudoctor.model import Device, Devices, Driver, FaultSign, GpuFault, GpuFaults, Place, Xid
from gpudoctor.symptoms import Symptoms, first, of_kind, with_code

LOST_WORDS = ("lost", "reset", "restart", "fallen off", "err!", "cannot be read")  # "GPU is lost", "requires restart"
# Messages about a lost GPU and other faults. None of them says which GPU it is.
PCIE_ERROR = "gpu-pcie-bus-error"
LOST = ("gpu-fallen-off-bus", "gpu-is-lost", "gpu-handle-unknown-error", PCIE_ERROR)
NVML_LOST = "nvml-15"  # NVML_ERROR_GPU_IS_LOST of nvml.h


def gpu_faults(driver: Driver, devices: Devices, symptoms: Symptoms, place: Place) -> GpuFaults:
    """Return the faults of each GPU, NVML's devices first."""
    listed = devices or ()
    logged = driver.xids
    signs: dict[int | str, list[FaultSign]] = {d.nvml_index: list(_of_device(n, d)) for n, d in enumerate(listed)}
    of_programs = []
    for number, xid in enumerate(map(xid_cause, logged or ())):
        effect = xid_effect(xid)
        sign = FaultSign(
            text=xid_label(xid.number),
            fact=f"driver.xids[{number}]",
            severe=effect in ("reset", "lost"),
            lost=effect == "lost",
            xid=xid,
        )
        if effect == "program":
            of_programs.append(sign)
        elif effect != "test":
            owner = _owner(xid, listed)
            signs.setdefault(xid.pci_address if owner is None else owner, []).append(sign)
    reported = _reported(symptoms, listed)
    if reported is not None and not any(signs.values()):
        signs.setdefault(listed[0].nvml_index if len(listed) == 1 else "", []).append(reported)
    for symptom in of_kind(symptoms, "gpu-sensor-error")[:1]:
        unread = FaultSign(text='a sensor that nvidia-smi cannot read ("ERR!")', fact=symptom.fact)
        signs.setdefault("", []).append(unread)
    labels = {device.nvml_index: device.label for device in listed}
    faulty = tuple(
        GpuFault(subject=labels[owner], signs=tuple(shown), nvml_index=owner)
        if isinstance(owner, int)
        else GpuFault(subject=owner or "GPU", signs=tuple(shown))
        for owner, shown in signs.items()
        if shown
    )
    withheld = place.in_container or of_kind(symptoms, "no-gpu-in-slurm-*", "windows-device-stopped")
    silent = None if listed or withheld else first(of_kind(symptoms, "nvidia-smi-no-devices"))
    return GpuFaults(
        faulty=faulty,
        not_started=None if faulty else silent,
        of_programs=tuple(of_programs),
        known=logged is not None or any(map(_has_counters, listed)),
    )


def _of_device(number: int, device: Device) -> Iterator[FaultSign]:
    """Yield the faults that NVML reports for one device."""
    path = f"devices[{number}]"
    if any(word in device.error.lower() for word in LOST_WORDS):
        yield FaultSign(text=f'the error "{device.error}"', fact=f"{path}.error", severe=True, lost=True)
    if device.ecc_uncorrected_volatile:
        count = device.ecc_uncorrected_volatile
        text = f"{count} uncorrected memory error{'' if count == 1 else 's'} since the driver was loaded"
        yield FaultSign(text=text, fact=f"{path}.ecc_uncorrected_volatile", severe=True)
    if device.remapped_rows_failed:
        text = "a memory row that could not be remapped"
        yield FaultSign(text=text, fact=f"{path}.remapped_rows_failed", severe=True, worn_out=True)
    if device.remapped_rows_pending:
        yield FaultSign(text="a row remapping that waits for a reset", fact=f"{path}.remapped_rows_pending")
    if device.retired_pages_pending:
        text = "memory pages that wait for a reboot to be retired"
        yield FaultSign(text=text, fact=f"{path}.retired_pages_pending")


def _has_counters(device: Device) -> bool:
    facts = (device.ecc_uncorrected_volatile, device.remapped_rows_failed, device.retired_pages_pending)
    return any(fact is not None for fact in facts)


def _reported(symptoms: Symptoms, devices: tuple[Device, ...]) -> FaultSign | None:
    """Return the fault that a program or NVML reports; None without one.

    The kernel log begins at boot: while a device answers, a line without an Xid may be from the past.
    """
    answering = any(not device.error for device in devices)
    said = of_kind(symptoms, "@gpu-fault")
    found = tuple(s for s in said if not (answering and s.fact.startswith("driver.kernel_mess")))
    lost = (*with_code(symptoms, NVML_LOST), *of_kind(found, *LOST))
    symptom = first(with_code(symptoms, NVML_LOST), found)
    if symptom is None:
        return None
    error = "GPU is lost" if symptom.text.isdecimal() else symptom.text
    text = "a PCIe error that was not corrected" if symptom.kind == PCIE_ERROR else f'the error "{error}"'
    return FaultSign(text=text, fact=symptom.fact, severe=True, lost=bool(lost))


def _owner(xid: Xid, devices: tuple[Device, ...]) -> int | None:
    """Return the NVML index of the device that an Xid is about; None if no device has its address.

    NVML reports no address for a device that does not answer; an unmatched Xid belongs to that device.
    """
    address = _bus_address(xid.pci_address)
    owners = [device.nvml_index for device in devices if address and _bus_address(device.pci_address or "") == address]
    lost = [device.nvml_index for device in devices if address and device.error and device.pci_address is None]
    return owners[0] if owners else lost[0] if len(lost) == 1 else None


def _bus_address(address: str) -> str:
    """Return "1:c1:00" of "PCI:0001:C1:00", "00000001:C1:00.0" and the like: the kernel log leaves out the function."""
    parts = address.lower().removeprefix("pci:").partition(".")[0].split(":")
    return ":".join([parts[0].lstrip("0") or "0", *parts[1:]]) if len(parts) == 3 else ""
