"""Ask the NVIDIA driver about its devices through NVML, by the module pynvml of nvidia-ml-py.

Each call keeps the code of its error: "not supported", "no permission" and "GPU is lost" are different answers.
Standard library and pynvml only, from Python 3.8 on.
"""

from __future__ import annotations

import ctypes
import os
import sys
from typing import Any, Callable, Mapping

LIBRARY = "nvml.dll" if sys.platform == "win32" else "libnvidia-ml.so.1"
MOST_DEVICES = 256
MOST_PROCESSES = 64
MOST_LINKS = 36
LOST = (15, 16)  # NVML_ERROR_GPU_IS_LOST, NVML_ERROR_RESET_REQUIRED
REASONS = {  # nvmlClocksEventReasons of nvml.h
    0x001: "gpu_idle",
    0x002: "applications_clocks_setting",
    0x004: "sw_power_cap",
    0x008: "hw_slowdown",
    0x010: "sync_boost",
    0x020: "sw_thermal_slowdown",
    0x040: "hw_thermal_slowdown",
    0x080: "hw_power_brake_slowdown",
    0x100: "display_clock_setting",
}
FABRIC_STATES = {0: "not-supported", 1: "not-started", 2: "in-progress", 3: "completed"}
COMPUTE_MODES = {0: "default", 2: "prohibited", 3: "exclusive-process"}


def collect(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return what NVML tells, and what nvidia-smi tells where NVML cannot be used."""
    facts: dict[str, Any] = {}
    try:
        ctypes.CDLL(LIBRARY)
    except OSError as error:
        facts["library_error"] = str(error)
    else:
        _ask_nvml(facts, set(arguments.get("own_pids", ())) | {os.getpid(), os.getppid()})
    if "library_error" in facts or facts.get("init_code") != 0:
        facts["nvidia_smi"] = _run_nvidia_smi()
    return facts


def _ask_nvml(facts: dict[str, Any], own_pids: set[int]) -> None:
    try:
        import pynvml

        initialise = pynvml.nvmlInit
    except Exception as error:  # another module of that name, or a broken one
        facts["module_error"] = f"{type(error).__name__}: {error}"
        facts["module"] = str(getattr(sys.modules.get("pynvml"), "__file__", ""))
        return
    facts["init_code"], facts["init_error"] = _code_of(pynvml, initialise)
    if facts["init_code"] != 0:
        return
    gate = Gate(pynvml)
    facts["driver_version"] = gate.value("driver_version", pynvml.nvmlSystemGetDriverVersion)
    facts["cuda_version"] = gate.value("cuda_version", pynvml.nvmlSystemGetCudaDriverVersion_v2)
    count = gate.value("device_count", pynvml.nvmlDeviceGetCount)
    facts["device_count"] = count
    facts["devices"] = [_device(pynvml, index, own_pids) for index in range(min(count or 0, MOST_DEVICES))]
    facts["errors"] = gate.errors
    pynvml.nvmlShutdown()


def _code_of(pynvml: Any, call: Callable[[], Any]) -> tuple[int, str]:
    try:
        call()
    except pynvml.NVMLError as error:
        return int(error.value), _text(str(error))
    return 0, ""


class Gate:
    """Makes NVML calls and keeps the error of each that fails, by the name of the fact that it was to give."""

    def __init__(self, pynvml: Any) -> None:
        self.pynvml = pynvml
        self.errors: dict[str, list[Any]] = {}

    def value(self, fact: str, call: Callable[..., Any], *arguments: Any) -> Any:
        """Return the call's value, None where it fails. A function that an older driver lacks fails too."""
        try:
            value = call(*arguments)
        except (self.pynvml.NVMLError, UnicodeDecodeError, ctypes.ArgumentError, AttributeError) as error:
            self.errors[fact] = [getattr(error, "value", None), _text(str(error))]
            return None
        return _text(value) if isinstance(value, (str, bytes)) else value

    def lost(self) -> str:
        """Return the error that says that the device cannot be reached, "" where none does."""
        return next((text for code, text in self.errors.values() if code in LOST), "")


def _device(pynvml: Any, index: int, own_pids: set[int]) -> dict[str, Any]:
    gate = Gate(pynvml)
    handle = gate.value("handle", pynvml.nvmlDeviceGetHandleByIndex, index)
    facts: dict[str, Any] = {"nvml_index": index}
    if handle is None:
        return {**facts, "error": gate.errors["handle"][1], "errors": gate.errors}
    for part in (_identity, _memory, _power_and_clocks, _health, _modes, _links):
        facts.update(part(gate, pynvml, handle))
    facts["processes"] = _processes(gate, pynvml, handle, own_pids)
    facts = {name: value for name, value in facts.items() if value is not None}
    return {**facts, "error": gate.lost(), "errors": gate.errors}


def _identity(gate: Gate, pynvml: Any, handle: Any) -> dict[str, Any]:
    pci = gate.value("pci_address", pynvml.nvmlDeviceGetPciInfo, handle)
    capability = gate.value("compute_capability", pynvml.nvmlDeviceGetCudaComputeCapability, handle)
    return {
        "name": gate.value("name", pynvml.nvmlDeviceGetName, handle),
        "uuid": gate.value("uuid", pynvml.nvmlDeviceGetUUID, handle),
        "pci_address": None if pci is None else _text(pci.busId).lower(),
        # The device id stands in the upper half, the vendor's in the lower.
        "pci_device_id": None if pci is None else "%04X" % (pci.pciDeviceId >> 16 & 0xFFFF),
        "compute_capability": None if capability is None else "%d.%d" % tuple(capability),
    }


def _memory(gate: Gate, pynvml: Any, handle: Any) -> dict[str, Any]:
    memory = gate.value("memory", pynvml.nvmlDeviceGetMemoryInfo, handle)
    return {f"memory_{name}_bytes": getattr(memory, name, None) for name in ("total", "used", "free")}


def _power_and_clocks(gate: Gate, pynvml: Any, handle: Any) -> dict[str, Any]:
    def watts(name: str, call: Callable[..., Any]) -> float | None:
        milliwatts = gate.value(name, call, handle)
        return None if milliwatts is None else milliwatts / 1000

    limits = gate.value("power_limit_max_watts", pynvml.nvmlDeviceGetPowerManagementLimitConstraints, handle)
    reasons = gate.value("throttle_reasons", pynvml.nvmlDeviceGetCurrentClocksThrottleReasons, handle)
    utilization = gate.value("utilization_percent", pynvml.nvmlDeviceGetUtilizationRates, handle)
    sm, memory = pynvml.NVML_CLOCK_SM, pynvml.NVML_CLOCK_MEM
    slowdown = pynvml.NVML_TEMPERATURE_THRESHOLD_SLOWDOWN
    return {
        "power_draw_watts": watts("power_draw_watts", pynvml.nvmlDeviceGetPowerUsage),
        "power_limit_watts": watts("power_limit_watts", pynvml.nvmlDeviceGetEnforcedPowerLimit),
        "power_limit_default_watts": watts(
            "power_limit_default_watts", pynvml.nvmlDeviceGetPowerManagementDefaultLimit
        ),
        "power_limit_max_watts": None if limits is None else limits[1] / 1000,
        "clock_sm_mhz": gate.value("clock_sm_mhz", pynvml.nvmlDeviceGetClockInfo, handle, sm),
        "clock_sm_max_mhz": gate.value("clock_sm_max_mhz", pynvml.nvmlDeviceGetMaxClockInfo, handle, sm),
        "clock_memory_mhz": gate.value("clock_memory_mhz", pynvml.nvmlDeviceGetClockInfo, handle, memory),
        "clock_memory_max_mhz": gate.value("clock_memory_max_mhz", pynvml.nvmlDeviceGetMaxClockInfo, handle, memory),
        "throttle_reasons": None if reasons is None else [name for bit, name in REASONS.items() if reasons & bit],
        "performance_state": _within(gate.value("pstate", pynvml.nvmlDeviceGetPerformanceState, handle), 15),
        "utilization_percent": getattr(utilization, "gpu", None),
        "temperature_celsius": gate.value(
            "temperature_celsius", pynvml.nvmlDeviceGetTemperature, handle, pynvml.NVML_TEMPERATURE_GPU
        ),
        "temperature_slowdown_celsius": gate.value(
            "temperature_slowdown_celsius", pynvml.nvmlDeviceGetTemperatureThreshold, handle, slowdown
        ),
        "fan_percent": gate.value("fan_percent", pynvml.nvmlDeviceGetFanSpeed, handle),
    }


def _health(gate: Gate, pynvml: Any, handle: Any) -> dict[str, Any]:
    def errors(name: str, kind: int, counter: int) -> Any:
        return gate.value(name, pynvml.nvmlDeviceGetTotalEccErrors, handle, kind, counter)

    corrected, uncorrected = pynvml.NVML_MEMORY_ERROR_TYPE_CORRECTED, pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED
    volatile, aggregate = pynvml.NVML_VOLATILE_ECC, pynvml.NVML_AGGREGATE_ECC
    ecc = gate.value("ecc_enabled", pynvml.nvmlDeviceGetEccMode, handle)
    retired = [
        gate.value("retired_pages", pynvml.nvmlDeviceGetRetiredPages, handle, cause)
        for cause in range(pynvml.NVML_PAGE_RETIREMENT_CAUSE_COUNT)
    ]
    pending = gate.value("retired_pages_pending", pynvml.nvmlDeviceGetRetiredPagesPendingStatus, handle)
    rows = gate.value("remapped_rows", pynvml.nvmlDeviceGetRemappedRows, handle)
    return {
        "ecc_enabled": None if ecc is None else bool(ecc[0]),
        "ecc_uncorrected_volatile": errors("ecc_uncorrected_volatile", uncorrected, volatile),
        "ecc_uncorrected_aggregate": errors("ecc_uncorrected_aggregate", uncorrected, aggregate),
        "ecc_corrected_volatile": errors("ecc_corrected_volatile", corrected, volatile),
        "retired_pages": None if None in retired else sum(len(pages) for pages in retired),
        "retired_pages_pending": None if pending is None else bool(pending),
        "remapped_rows_uncorrectable": None if rows is None else rows[1],
        "remapped_rows_pending": None if rows is None else bool(rows[2]),
        "remapped_rows_failed": None if rows is None else bool(rows[3]),
    }


def _modes(gate: Gate, pynvml: Any, handle: Any) -> dict[str, Any]:
    mig = gate.value("mig_enabled", pynvml.nvmlDeviceGetMigMode, handle)
    persistence = gate.value("persistence_enabled", pynvml.nvmlDeviceGetPersistenceMode, handle)
    mode = gate.value("compute_mode", pynvml.nvmlDeviceGetComputeMode, handle)
    facts: dict[str, Any] = {
        "mig_enabled": None if mig is None else bool(mig[0]),
        "persistence_enabled": None if persistence is None else bool(persistence),
        "compute_mode": COMPUTE_MODES.get(mode),
    }
    if facts["mig_enabled"]:
        facts["mig_uuids"] = list(_mig_uuids(gate, pynvml, handle))
    return {**facts, **_fabric(gate, pynvml, handle)}


def _mig_uuids(gate: Gate, pynvml: Any, handle: Any) -> Any:
    most = gate.value("mig_count", pynvml.nvmlDeviceGetMaxMigDeviceCount, handle) or 0
    for index in range(min(most, MOST_DEVICES)):
        instance = gate.value("mig_instance", pynvml.nvmlDeviceGetMigDeviceHandleByIndex, handle, index)
        uuid = None if instance is None else gate.value("mig_uuids", pynvml.nvmlDeviceGetUUID, instance)
        if uuid is not None:
            yield uuid


def _fabric(gate: Gate, pynvml: Any, handle: Any) -> dict[str, Any]:
    try:
        info = pynvml.c_nvmlGpuFabricInfo_t()
    except AttributeError:  # a pynvml that does not know it
        return {}
    if gate.value("fabric_state", pynvml.nvmlDeviceGetGpuFabricInfo, handle, ctypes.byref(info)) is None:
        return {}
    status = "" if info.status == 0 else _text(str(pynvml.NVMLError(info.status)))
    return {"fabric_state": FABRIC_STATES.get(info.state), "fabric_status": status}


def _links(gate: Gate, pynvml: Any, handle: Any) -> dict[str, Any]:
    states = []
    for link in range(MOST_LINKS):
        state = gate.value("nvlinks_active", pynvml.nvmlDeviceGetNvLinkState, handle, link)
        if state is None:
            break
        states.append(bool(state))
    return {
        "pcie_generation": gate.value("pcie_generation", pynvml.nvmlDeviceGetCurrPcieLinkGeneration, handle),
        "pcie_generation_max": gate.value("pcie_generation_max", pynvml.nvmlDeviceGetMaxPcieLinkGeneration, handle),
        "pcie_width": gate.value("pcie_width", pynvml.nvmlDeviceGetCurrPcieLinkWidth, handle),
        "pcie_width_max": gate.value("pcie_width_max", pynvml.nvmlDeviceGetMaxPcieLinkWidth, handle),
        "nvlinks_active": sum(states) if states else None,
        "nvlinks_inactive": len(states) - sum(states) if states else None,
    }


def _processes(gate: Gate, pynvml: Any, handle: Any, own_pids: set[int]) -> list[dict[str, Any]] | None:
    """Return the processes on the device, one entry a process; None where NVML tells neither kind."""
    lists = [
        gate.value("processes", pynvml.nvmlDeviceGetComputeRunningProcesses, handle),
        gate.value("processes", pynvml.nvmlDeviceGetGraphicsRunningProcesses, handle),
    ]
    if lists == [None, None]:
        return None
    found: dict[int, dict[str, Any]] = {}
    for process in [process for listed in lists for process in listed or ()][:MOST_PROCESSES]:
        if process.pid not in own_pids:
            name = gate.value("process_name", pynvml.nvmlSystemGetProcessName, process.pid)
            found[process.pid] = {"pid": process.pid, "name": name or "", "used_bytes": process.usedGpuMemory}
    return list(found.values())


def _within(value: int | None, most: int) -> int | None:
    """Return the value unless it is one that says "unknown", above `most`."""
    return value if value is not None and value <= most else None


def _text(value: Any) -> str:
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
    return text[:500]


def _run_nvidia_smi() -> dict[str, Any] | None:
    """Return the outcome of `nvidia-smi -q -x`; None where there is no such program."""
    import shutil
    import subprocess

    program = shutil.which("nvidia-smi")
    if program is None:
        return None
    argv = [program, "-q", "-x"]
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=15, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return {"argv": argv, "error": str(error)}
    output, errors = (stream[: 2**20].decode("utf-8", "replace") for stream in (done.stdout, done.stderr))
    return {"argv": argv, "status": done.returncode, "stdout": output, "stderr": errors}
