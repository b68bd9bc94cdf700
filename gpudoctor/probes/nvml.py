"""The devices and the driver as NVML describes them; `nvidia-smi` if NVML gives no list of devices."""

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from gpudoctor.model import ComputeCapability, CudaVersion, Device, DeviceProcess, Driver, DriverVersion
from gpudoctor.parsers.nvidia_smi_xml import SmiReport, parse_nvidia_smi_xml, pci_address
from gpudoctor.probes.reading import whole
from gpudoctor.untrusted import cleaned

T = TypeVar("T")

# Codes of nvml.h.
LIBRARY_NOT_FOUND = 12
NOT_SUPPORTED = 3
LOST = (15, 16)  # GPU_IS_LOST, RESET_REQUIRED
NO_DEVICES = "No devices were found"  # nvidia-smi, with exit status 6
COUNTER_MAXIMUM = 2**63 - 1  # NVML_VALUE_NOT_AVAILABLE is above it
MEMORY_MAXIMUM = 2**50
WATTS_MAXIMUM = 100_000
MHZ_MAXIMUM = 100_000
CELSIUS_MAXIMUM = 250
FABRIC_STATES = {0: "not-supported", 1: "not-started", 2: "in-progress", 3: "completed"}
COMPUTE_MODES = {0: "default", 2: "prohibited", 3: "exclusive-process"}

SMI_SECONDS = 10.0
"""What nvidia-smi gets at most."""


def arguments(timeout_seconds: float) -> Mapping[str, float]:
    """Return the worker's arguments: nvidia-smi gets half of a short limit."""
    return {"nvidia_smi_seconds": min(timeout_seconds / 2, SMI_SECONDS)}


def parse_devices(facts: Mapping[str, Any]) -> tuple[Device, ...] | None:
    """Return the devices; () if there are none or certainly no driver, None if nothing could say.

    A value that its unit does not allow, or that NVML gives for "not available", is unknown.
    """
    if "devices" in facts:
        return tuple(_device(_Answers(entry["answers"]), int(entry["index"])) for entry in facts["devices"])
    report = _smi_report(facts)
    if report is not None:
        return report.devices
    if NO_DEVICES in _smi_message(facts):
        return ()
    return () if _no_driver(facts) else None


def parse_nvml_driver(facts: Mapping[str, Any]) -> Driver | None:
    """Return the driver as NVML and nvidia-smi know it; None if there is certainly none."""
    if _no_driver(facts):
        return None
    report = _smi_report(facts) or SmiReport()
    answers = _Answers(facts)
    number = answers.whole("cuda_version", 1000, 99_999)
    code, text = _initialisation(facts)
    return Driver(
        installed=True if "module" in facts else None,  # it is imported after the driver's library was loaded
        version=_parsed(DriverVersion.parse, answers.text("driver_version")) or report.driver_version,
        cuda_version=CudaVersion.from_number(number) if number is not None else report.cuda_version,
        nvml_code=code,
        nvml_error=text,
    )


def why_unknown(facts: Mapping[str, Any]) -> str:
    """Return in one line why `parse_devices` gave None."""
    module = cleaned(str(facts.get("module", {}).get("error", "")))
    _, text = _initialisation(facts)
    count = _Answers(facts).failure("device_count")
    smi = facts.get("commands", {}).get("nvidia-smi")
    reasons = [
        f"NVML: {module or text or count or 'no answer'}",
        f"nvidia-smi: {_smi_message(facts) or 'its XML cannot be read'}" if smi else "nvidia-smi: not on PATH",
    ]
    return "; ".join(reasons)


def _initialisation(facts: Mapping[str, Any]) -> tuple[int | None, str | None]:
    """Return the code and the text of nvmlInit; what nvidia-smi says instead if pynvml could not be used."""
    if "library_error" in facts:
        return LIBRARY_NOT_FOUND, cleaned(str(facts["library_error"]))
    init = facts.get("init")
    if init is None:
        return None, _smi_message(facts) or None
    return init.get("error", 0), cleaned(str(init.get("text", "")))


def _no_driver(facts: Mapping[str, Any]) -> bool:
    """Return whether there is neither the library nor any other trace of a driver."""
    return bool(facts.get("library_missing")) and not facts.get("signs") and not facts.get("commands")


def _smi_report(facts: Mapping[str, Any]) -> SmiReport | None:
    """Return what nvidia-smi reported in full, None if it did not."""
    outcome = facts.get("commands", {}).get("nvidia-smi", {})
    if outcome.get("status") != 0:
        return None
    try:
        return parse_nvidia_smi_xml(outcome["stdout"])
    except ValueError:
        return None


def _smi_message(facts: Mapping[str, Any]) -> str:
    """Return what nvidia-smi said if it failed: it writes that to its standard output."""
    outcome = facts.get("commands", {}).get("nvidia-smi", {})
    if outcome.get("status") == 0:
        return ""
    message = outcome.get("error") or outcome.get("stdout") or outcome.get("stderr") or ""
    return str(cleaned(message))


def _parsed(parse: Callable[[str], T], text: str | None) -> T | None:
    try:
        return parse(text or "")
    except ValueError:
        return None


class _Answers:
    """The answers about one device or the driver, read with care: each may be an error or garbage."""

    def __init__(self, answers: Mapping[str, Mapping[str, Any]]) -> None:
        self._answers = answers

    def value(self, name: str, part: str | int | None = None) -> Any:
        """Return the answer, or one part of it; None if there is none."""
        value = self._answers.get(name, {}).get("value")
        if part is None:
            return value
        try:
            return value[part] if value is not None else None
        except (IndexError, KeyError, TypeError):
            return None

    def failure(self, name: str) -> str:
        """Return the error text of a failed answer; empty without an error."""
        return str(cleaned(str(self._answers.get(name, {}).get("text", ""))))

    def error(self, name: str) -> int | None:
        """Return the error code of a failed answer."""
        return self._answers.get(name, {}).get("error")

    def lost(self) -> str:
        """Return the error that says that the device cannot be reached; empty for none."""
        names = (name for name in self._answers if name == "handle" or self.error(name) in LOST)
        return next((self.failure(name) for name in names), "")

    def whole(self, name: str, least: int, most: int, part: str | int | None = None) -> int | None:
        """Return a whole number between `least` and `most`."""
        return whole(self.value(name, part), least, most)

    def flag(self, name: str, part: str | int | None = None) -> bool | None:
        """Return 1 or 0 as a bool."""
        value = self.whole(name, 0, 1, part)
        return None if value is None else bool(value)

    def watts(self, name: str, part: str | int | None = None) -> float | None:
        """Return a number of milliwatts in watts."""
        value = self.whole(name, 0, 1000 * WATTS_MAXIMUM, part)
        return None if value is None else value / 1000

    def text(self, name: str, part: str | int | None = None) -> str | None:
        """Return a text; an empty one is not an answer."""
        value = self.value(name, part)
        return (cleaned(value) or None) if isinstance(value, str) else None


def _device(answers: _Answers, index: int) -> Device:
    major = answers.whole("compute_capability", 1, 99, 0)
    minor = answers.whole("compute_capability", 0, 9, 1)
    memory = "memory" if answers.value("memory") is not None else "memory_v1"
    reasons = answers.whole("event_reasons", 0, 2**64 - 1)
    mig = False if answers.error("mig_mode") == NOT_SUPPORTED else answers.flag("mig_mode", 0)
    uuids = answers.value("mig_uuids")
    listed = tuple(cleaned([uuid for uuid in uuids if isinstance(uuid, str)])) if isinstance(uuids, list) else None
    state = FABRIC_STATES.get(answers.value("fabric", "state"))
    if answers.error("fabric") == NOT_SUPPORTED:
        state = "not-supported"
    states = answers.value("nvlinks")
    known = [state == 1 for state in states] if isinstance(states, list) else None
    return Device(
        nvml_index=index,
        error=answers.lost(),
        name=answers.text("name"),
        uuid=answers.text("uuid"),
        compute_capability=None if major is None or minor is None else ComputeCapability(major, minor),
        pci_address=_parsed(pci_address, answers.text("pci", "busId")),
        pci_device_id=_pci_device_id(answers.value("pci", "pciDeviceId")),
        memory_total_bytes=answers.whole(memory, 1, MEMORY_MAXIMUM, "total"),
        memory_used_bytes=answers.whole(memory, 0, MEMORY_MAXIMUM, "used"),
        processes=_processes(answers.value("processes")),
        power_draw_watts=answers.watts("power_draw"),
        power_limit_watts=answers.watts("power_limit"),
        power_limit_default_watts=answers.watts("power_limit_default"),
        clock_sm_mhz=answers.whole("clock_sm", 0, MHZ_MAXIMUM),
        clock_sm_max_mhz=answers.whole("clock_sm_max", 1, MHZ_MAXIMUM),
        throttle_reasons=None if reasons is None else _event_reasons(reasons),
        performance_state=answers.whole("performance_state", 0, 15),  # 32 is NVML_PSTATE_UNKNOWN
        utilization_percent=answers.whole("utilization", 0, 100, "gpu"),
        temperature_celsius=answers.whole("temperature", 0, CELSIUS_MAXIMUM),
        temperature_slowdown_celsius=answers.whole("temperature_slowdown", 1, CELSIUS_MAXIMUM),
        ecc_uncorrected_volatile=answers.whole("ecc_uncorrected_volatile", 0, COUNTER_MAXIMUM),
        retired_pages_pending=answers.flag("retired_pages_pending"),
        remapped_rows_pending=answers.flag("remapped_rows", 2),
        remapped_rows_failed=answers.flag("remapped_rows", 3),
        mig_enabled=mig,
        mig_uuids=() if mig is False else listed,
        persistence_enabled=answers.flag("persistence_mode"),
        compute_mode=COMPUTE_MODES.get(answers.value("compute_mode")),
        fabric_state=state,
        pcie_generation=answers.whole("pcie_generation", 1, 16),
        pcie_generation_max=answers.whole("pcie_generation_max", 1, 16),
        pcie_width=answers.whole("pcie_width", 1, 64),
        pcie_width_max=answers.whole("pcie_width_max", 1, 64),
        nvlinks_active=None if known is None else sum(known),
    )


def _pci_device_id(number: Any) -> str | None:
    """Return the upper half of 32 bits, which is the device's id; the lower one is the vendor's."""
    found = re.fullmatch("([0-9A-F]{4})10DE", f"{number:08X}") if isinstance(number, int) else None
    return found[1] if found else None


def _processes(entries: Any) -> tuple[DeviceProcess, ...] | None:
    if not isinstance(entries, list):
        return None
    return tuple(
        DeviceProcess(
            pid=int(entry["pid"]),
            name=cleaned(str(entry["name"])),
            used_bytes=whole(entry["used_bytes"], 0, MEMORY_MAXIMUM),
        )
        for entry in entries
    )


def _event_reasons(mask: int) -> tuple[str, ...] | None:
    """Return the names of the bits; None if most of them have no name, because it is not a mask then."""
    from gpudoctor.nvml import EVENT_REASONS  # with ctypes, which a machine without a device does not need

    unnamed = mask & ~sum(EVENT_REASONS)
    if unnamed.bit_count() > 4:
        return None
    unknown = tuple(f"reason_{1 << bit:#x}" for bit in range(unnamed.bit_length()) if unnamed >> bit & 1)
    return tuple(name for bit, name in EVENT_REASONS.items() if mask & bit) + unknown
