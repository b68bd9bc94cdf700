"""The XML that `nvidia-smi -q -x` prints, of R450 to R590 (nvsmi_device_v11.dtd to v13)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from gpudoctor.model import CudaVersion, Device, DeviceProcess, DriverVersion
from gpudoctor.model.codec import json_next_to
from gpudoctor.model.record import record
from gpudoctor.parsers import required
from gpudoctor.untrusted import cleaned

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

T = TypeVar("T")
MIB = 2**20
MAXIMUM_CHARACTERS = 16 * MIB
MAXIMUM_TAGS = 400_000  # of 256 devices; one has some 700 of them
MAXIMUM_DEVICES = 256
MAXIMUM_PROCESSES = 64
UNREACHABLE = ("GPU is lost", "GPU requires reset")
UNKNOWN = "Unknown Error"
FEW = 4  # values that the driver may fail to read of a device in good health, such as fan, power and clocks of a laptop

_TABLE = json_next_to(__file__, "nvidia_smi_xml")
RECOVERY: Mapping[str, str] = _TABLE["recovery"]
COMPUTE_MODES: Mapping[str, str] = _TABLE["compute_modes"]
FABRIC_STATES: Mapping[str, str] = _TABLE["fabric_states"]


@record
class SmiReport:
    """What nvidia-smi reported of the driver and its devices."""

    driver_version: DriverVersion | None = None
    cuda_version: CudaVersion | None = None
    devices: tuple[Device, ...] = ()


def parse_nvidia_smi_xml(text: str, *, cut: bool = False) -> SmiReport:
    """Return the report in the XML. "N/A", "Not Supported" and similar values are unknown.

    cut: the end may be missing, as in pasted text; the part before it counts.

    Raises:
        ValueError: it is not such XML, or it declares entities, which nvidia-smi never does.
    """
    from xml.etree.ElementTree import ParseError, fromstring

    if len(text) > MAXIMUM_CHARACTERS or text.count("<") > MAXIMUM_TAGS:
        raise ValueError(f"not the XML of nvidia-smi: {len(text)} characters")
    if "<!ENTITY" in text:
        raise ValueError("not the XML of nvidia-smi: it declares entities")
    try:
        root = _beginning(text) if cut else fromstring(text)  # noqa: S314 - entities are refused above, and expat reads no other file
    except ParseError as error:
        raise ValueError(f"not the XML of nvidia-smi: {error}") from None
    if root.tag != "nvidia_smi_log":
        raise ValueError(f"not the XML of nvidia-smi: its root is {cleaned(root.tag)!r}")
    return read_log(root)


def _beginning(text: str) -> Element:
    """Return the root with all that is whole in the text. Raises ParseError: it is not XML."""
    from xml.etree.ElementTree import Element, ParseError, TreeBuilder, XMLParser

    builder = TreeBuilder()
    XMLParser(target=builder).feed(text[: text.rfind(">") + 1])  # noqa: S314 - as above
    root = builder.close()
    if not isinstance(root, Element):
        raise ParseError("no element")
    return root


def read_log(root: Element) -> SmiReport:
    """Return the report in a log's tree, which uses the names of the XML."""
    return SmiReport(
        driver_version=_value(root, DriverVersion.parse, "driver_version", "kmd_version"),  # from R595 on: kmd
        cuda_version=_value(root, CudaVersion.parse, "cuda_version", "cuda_umd_version"),
        devices=tuple(_device(number, gpu) for number, gpu in enumerate(root.findall("gpu")[:MAXIMUM_DEVICES])),
    )


def pci_address(text: str) -> str:
    """Return the address in the form of sysfs: "0000:01:00.0" for "00000000:01:00.0".

    Raises:
        ValueError: it is not such an address.
    """
    pattern = r"^0{0,4}([0-9a-f]{4,8}):([0-9a-f]{2}:[0-9a-f]{2}\.[0-7])$"
    return ":".join(required(pattern, text.strip().lower(), "not a PCI address").groups())


def _device(index: int, gpu: Element) -> Device:
    known = {field: _value(gpu, read, *paths) for field, (read, *paths) in FIELDS.items()}
    mig, instances = known["mig_enabled"], gpu.findtext("mig_devices", "").strip()
    return Device(
        nvml_index=index,
        error=_error(gpu),
        processes=_processes(gpu),
        throttle_reasons=_event_reasons(gpu),
        ecc_uncorrected_volatile=_uncorrected_errors(gpu),
        mig_uuids=() if mig is False or (mig and instances == "None") else None,  # the log has no UUIDs
        fabric_state=FABRIC_STATES.get(cleaned(gpu.findtext("fabric/state", "")).lower()),
        **known,
    )


def _value(element: Element, read: Callable[[str], T], *paths: str) -> T | None:
    """Return what `read` makes of the text at the first of `paths` that it can read, None if there is none.

    Texts that say why there is no value ("N/A", "[Unknown Error]", "Requested functionality has been deprecated") are
    such for every reader, so that none is taken for a name.
    """
    for path in paths:
        text: str = cleaned(element.findtext(path, ""))
        reason = text.strip("[]").lower()
        if not text or reason in ("n/a", "unknown error", "not found", "gpu is lost", "err!", "error"):
            continue
        if reason.startswith(("not supported", "requested functionality", "insufficient permission", "gpu requires")):
            continue
        try:
            return read(text)
        except ValueError:
            continue
    return None


def _error(gpu: Element) -> str:
    """Return why the device cannot be reached, by what is in place of values; empty if it can."""
    texts = [(element.text or "").strip().strip("[]") for element in gpu.iter()]
    lost = next((text for text in texts if text in UNREACHABLE), "")
    if not lost and _value(gpu, yes, "gpu_reset_status/reset_required"):
        return "GPU requires reset"
    unreadable = f"values cannot be read: {UNKNOWN}" if texts.count(UNKNOWN) > FEW else ""
    return lost or RECOVERY.get(gpu.findtext("gpu_recovery_action", "").lower(), unreadable)


def integer(text: str) -> int:
    """Return 16 of "16", "16x", "16 %", "16 MHz" and "P16"."""
    return int(required(r"^P?(\d{1,18})(?:x| ?%| (?:C|MHz))?$", text, "no number")[1])


def mebibytes(text: str) -> int:
    """Return the bytes in "512 MiB" or, of a table that leaves units out, "512"."""
    return int(required(r"^(\d{1,12})(?: Mi?B)?$", text, "no size")[1]) * MIB


def watts(text: str) -> float:
    """Return the power in "71.30 W" or "71.30"."""
    return float(required(r"^(\d{1,6}(?:\.\d{1,6})?)(?: W)?$", text, "no power")[1])


def _flag(text: str, words: tuple[str, str]) -> bool:
    if text.lower() not in words:
        raise ValueError(text)
    return text.lower() == words[1]


def enabled(text: str) -> bool:
    """Return whether it says "Enabled"."""
    return _flag(text, ("disabled", "enabled"))


def yes(text: str) -> bool:
    """Return whether it says "Yes"."""
    return _flag(text, ("no", "yes"))


def _pci_device_id(text: str) -> str:
    """Return "2684" of "268410DE" or "0x268410DE": the device's id precedes the vendor's."""
    return required(r"^(?:0x)?([0-9A-Fa-f]{4})10[dD][eE]$", text, "no device id")[1].upper()


_READERS: Mapping[str, Callable[[str], Any]] = {
    "text": str,
    "integer": integer,
    "MiB": mebibytes,
    "watts": watts,
    "yes": yes,
    "enabled": enabled,
    "PCI address": pci_address,
    "PCI device id": _pci_device_id,
    "compute mode": lambda text: COMPUTE_MODES.get(text.lower()),
}
FIELDS = {field: (_READERS[row["read"]], *row["paths"]) for field, row in _TABLE["fields"].items()}
"""Field of the device → how it is read, and where it is: the first path that can be read counts."""


def _event_reasons(gpu: Element) -> tuple[str, ...] | None:
    active: list[str] = []
    states: list[bool] = []
    for kind in ("event", "throttle"):
        for reason in gpu.iterfind(f"clocks_{kind}_reasons/*"):
            if reason.text in ("Active", "Not Active"):
                states.append(reason.text == "Active")
                name = cleaned(reason.tag.removeprefix(f"clocks_{kind}_reason_"))
                active += [name.replace("display_clocks", "display_clock")] if states[-1] else []
    return tuple(active) if states else None


def _uncorrected_errors(gpu: Element) -> int | None:
    """Return the sum of the errors that nvidia-smi counts apart by memory; older ones give a total."""
    names = ("sram_uncorrectable", "sram_uncorrectable_parity", "sram_uncorrectable_secded", "dram_uncorrectable")
    counts = [_value(gpu, integer, f"ecc_errors/volatile/{name}") for name in names]
    known = [count for count in counts if count is not None]
    return sum(known) if known else _value(gpu, integer, "ecc_errors/volatile/double_bit/total")


def _processes(gpu: Element) -> tuple[DeviceProcess, ...] | None:
    listed = gpu.find("processes")
    if listed is None or (len(listed) == 0 and cleaned(listed.text or "").strip("[]").lower() not in ("", "none")):
        return None
    pids = ((process, _value(process, integer, "pid")) for process in listed.iterfind("process_info"))
    found = (
        DeviceProcess(
            pid=pid,
            name=_value(process, str, "process_name") or "",
            used_bytes=_value(process, mebibytes, "used_memory"),
        )
        for process, pid in pids
        if pid is not None
    )
    return tuple(found)[:MAXIMUM_PROCESSES]
