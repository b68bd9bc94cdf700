"""Ask the NVIDIA driver about its devices through NVML, by the module pynvml of nvidia-ml-py.

Where NVML gives no list of devices, `nvidia-smi -q -x` is asked. Nothing here judges.
Standard library and pynvml only, from Python 3.8 on.
"""

from __future__ import annotations

import ctypes
import os
from contextlib import suppress

from gpudoctor.nvml import GPU, LIBRARY, MEMORY_V2, SM, Gate, is_own, read_start

TYPE_CHECKING = False
if TYPE_CHECKING:  # the module typing takes as long to import as all of this one
    import subprocess
    from typing import Any, Dict, Iterator, List, Mapping, Optional, Set, Tuple

    from gpudoctor.nvml import Answer

# Paths that only a driver, or the hardware that needs one, puts there: WSL, Jetson and NixOS among them.
SIGNS = (
    "/proc/driver/nvidia/version",
    "/dev/nvidiactl",
    "/dev/nvidia0",
    "/dev/dxg",
    "/dev/nvmap",
    "/dev/nvgpu",
    "/dev/nvhost-gpu",
    "/etc/nv_tegra_release",
    "/usr/lib/wsl/lib/libnvidia-ml.so.1",
    "/run/opengl-driver/lib/libnvidia-ml.so.1",
)
SMI_PLACES = ("/usr/lib/wsl/lib/nvidia-smi", "/run/current-system/sw/bin/nvidia-smi")  # where PATH leaves it out
SMI_SECONDS = 10.0
SMI_BYTES = 8 * 2**20

MOST_DEVICES = 256
MOST_PROCESSES = 64
MOST_LINKS = 36  # NVML_NVLINK_MAX_LINKS
MOST_INSTANCES = 64

# Codes of nvml.h.
INVALID_ARGUMENT, NOT_SUPPORTED, NOT_FOUND = 2, 3, 6
LOST = (15, 16)  # GPU_IS_LOST, RESET_REQUIRED: whatever else is asked of this device fails too, or waits
# nvmlTemperatureThresholds_t, nvmlMemoryErrorType_t, nvmlEccCounterType_t.
SLOWDOWN, UNCORRECTED, VOLATILE = 1, 1, 0
FABRIC_V2 = 0x02000024  # nvmlGpuFabricInfo_v2

# Fact, functions that give it (a library or pynvml may lack the first ones), arguments after the device.
QUESTIONS: Tuple[Tuple[str, str, Tuple[Any, ...]], ...] = (
    ("uuid", "nvmlDeviceGetUUID", ()),
    ("name", "nvmlDeviceGetName", ()),
    ("pci", "nvmlDeviceGetPciInfo", ()),
    ("compute_capability", "nvmlDeviceGetCudaComputeCapability", ()),
    ("memory", "nvmlDeviceGetMemoryInfo", (MEMORY_V2,)),
    ("memory_v1", "nvmlDeviceGetMemoryInfo", ()),
    ("power_draw", "nvmlDeviceGetPowerUsage", ()),
    ("power_limit", "nvmlDeviceGetEnforcedPowerLimit", ()),
    ("power_limit_default", "nvmlDeviceGetPowerManagementDefaultLimit", ()),
    ("clock_sm", "nvmlDeviceGetClockInfo", (SM,)),
    ("clock_sm_max", "nvmlDeviceGetMaxClockInfo", (SM,)),
    ("event_reasons", "nvmlDeviceGetCurrentClocksEventReasons nvmlDeviceGetCurrentClocksThrottleReasons", ()),
    ("performance_state", "nvmlDeviceGetPerformanceState", ()),
    ("utilization", "nvmlDeviceGetUtilizationRates", ()),
    ("temperature", "nvmlDeviceGetTemperatureV nvmlDeviceGetTemperature", (GPU,)),
    ("temperature_slowdown", "nvmlDeviceGetTemperatureThreshold", (SLOWDOWN,)),
    ("ecc_uncorrected_volatile", "nvmlDeviceGetTotalEccErrors", (UNCORRECTED, VOLATILE)),
    ("retired_pages_pending", "nvmlDeviceGetRetiredPagesPendingStatus", ()),
    ("remapped_rows", "nvmlDeviceGetRemappedRows", ()),
    ("mig_mode", "nvmlDeviceGetMigMode", ()),
    ("persistence_mode", "nvmlDeviceGetPersistenceMode", ()),
    ("compute_mode", "nvmlDeviceGetComputeMode", ()),
    ("pcie_generation", "nvmlDeviceGetCurrPcieLinkGeneration", ()),
    ("pcie_generation_max", "nvmlDeviceGetMaxPcieLinkGeneration", ()),
    ("pcie_width", "nvmlDeviceGetCurrPcieLinkWidth", ()),
    ("pcie_width_max", "nvmlDeviceGetMaxPcieLinkWidth", ()),
)


def collect(arguments: Mapping[str, Any]) -> Dict[str, Any]:
    """Return what NVML says, and what nvidia-smi says if NVML gives no list of devices.

    arguments: `own_pids`, processes to leave out with all that they started; `nvidia_smi_seconds`, its time limit.
    """
    facts: Dict[str, Any] = {"signs": [path for path in SIGNS if os.path.exists(path)], "commands": {}}
    try:
        library = ctypes.CDLL(LIBRARY)
    except OSError as error:
        facts["library_error"] = str(error)
        facts["library_missing"] = _is_missing(error)
    else:
        own_pids = {os.getpid(), os.getppid(), *arguments.get("own_pids", ())}
        facts.update(_ask_nvml(library, own_pids))
    if "devices" not in facts:
        facts["commands"].update(_run_nvidia_smi(float(arguments.get("nvidia_smi_seconds", SMI_SECONDS))))
    return facts


def _is_missing(error: OSError) -> bool:
    """Return whether the library itself is not there, rather than broken or without another one that it needs."""
    text = str(error)
    return isinstance(error, FileNotFoundError) or (LIBRARY in text and "No such file or directory" in text)


def _ask_nvml(library: Any, own_pids: Set[int]) -> Dict[str, Any]:
    try:
        import pynvml
    except Exception as error:
        return {"module": {"error": "%s: %s" % (type(error).__name__, error)}}
    facts: Dict[str, Any] = {
        "module": {"file": str(getattr(pynvml, "__file__", "")), "version": str(getattr(pynvml, "__version__", ""))}
    }
    if not hasattr(pynvml, "nvmlInit") or not hasattr(pynvml, "NVMLError"):
        facts["module"]["error"] = "the module pynvml is not from nvidia-ml-py"
        return facts
    gate = Gate(pynvml, library)
    facts["init"] = gate.ask("nvmlInit")
    if "error" in facts["init"]:
        return facts
    facts["driver_version"] = gate.ask("nvmlSystemGetDriverVersion")
    facts["cuda_version"] = gate.ask("nvmlSystemGetCudaDriverVersion")
    facts["device_count"] = gate.ask("nvmlDeviceGetCount")
    if "value" in facts["device_count"]:
        facts["devices"] = list(_devices(gate, facts["device_count"]["value"], own_pids))
    gate.ask("nvmlShutdown")
    return facts


def _devices(gate: Gate, count: int, own_pids: Set[int]) -> Iterator[Dict[str, Any]]:
    for index in range(min(count, MOST_DEVICES)):
        handle, failure = gate.call("nvmlDeviceGetHandleByIndex", index)
        if failure is None:
            yield {"index": index, "answers": _device(gate, handle, own_pids)}
        elif failure["error"] == INVALID_ARGUMENT:  # there are fewer than NVML counted
            return
        else:
            yield {"index": index, "answers": {"handle": failure}}


def _device(gate: Gate, handle: Any, own_pids: Set[int]) -> Dict[str, Answer]:
    answers: Dict[str, Answer] = {}
    for fact, functions, arguments in QUESTIONS:
        if fact == "memory_v1" and answers["memory"].get("error", NOT_SUPPORTED) == NOT_SUPPORTED:
            continue  # version 2 has answered
        answers[fact] = gate.ask(functions, handle, *arguments)
        if answers[fact].get("error") in LOST:
            return answers
    answers["mig_uuids"] = _mig_uuids(gate, handle, answers["mig_mode"])
    answers["nvlinks"] = _links(gate, handle)
    answers["fabric"] = _fabric(gate, handle)
    answers["processes"] = _processes(gate, handle, own_pids)
    return answers


def _mig_uuids(gate: Gate, handle: Any, mode: Answer) -> Answer:
    if "value" not in mode:
        return mode
    uuids: List[str] = []
    if mode["value"][0] == 0:
        return {"value": uuids}
    most = gate.ask("nvmlDeviceGetMaxMigDeviceCount", handle)
    refused: Optional[Answer] = None if "value" in most else most
    for index in range(min(most.get("value", 0), MOST_INSTANCES)):
        instance, failure = gate.call("nvmlDeviceGetMigDeviceHandleByIndex", handle, index)
        uuid = failure or gate.ask("nvmlDeviceGetUUID", instance)
        if "value" in uuid:
            uuids.append(uuid["value"])
        elif uuid["error"] not in (NOT_FOUND, INVALID_ARGUMENT):  # those two: no instance in this place
            refused = uuid
    return refused if refused is not None and not uuids else {"value": uuids}


def _links(gate: Gate, handle: Any) -> Answer:
    """Return 1 or 0 for each NVLink of the device, active or not."""
    states: List[int] = []
    failure: Answer = {}
    for link in range(MOST_LINKS):
        state = gate.ask("nvmlDeviceGetNvLinkState", handle, link)
        if "value" in state:
            states.append(state["value"])
            continue
        failure = failure or state
        if state["error"] != NOT_SUPPORTED:  # INVALID_ARGUMENT: the device has no more links
            break
    return {"value": states} if states else failure


class FabricInfo(ctypes.Structure):
    """nvmlGpuFabricInfo_t of nvml.h. That of the package pynvml 11 has its fields in other places."""

    _fields_ = [
        ("cluster", ctypes.c_ubyte * 16),
        ("status", ctypes.c_int),
        ("clique", ctypes.c_uint),
        ("state", ctypes.c_ubyte),
    ]


class FabricInfoV(ctypes.Structure):
    """nvmlGpuFabricInfo_v2_t of nvml.h."""

    _fields_ = [("version", ctypes.c_uint), *FabricInfo._fields_, ("health", ctypes.c_uint)]


def _fabric(gate: Gate, handle: Any) -> Answer:
    answer: Answer = {}
    structures: Tuple[Tuple[str, Any], ...] = (
        ("nvmlDeviceGetGpuFabricInfoV", FabricInfoV(version=FABRIC_V2)),
        ("nvmlDeviceGetGpuFabricInfo", FabricInfo()),
    )
    for function, info in structures:
        answer = gate.ask(function, handle, ctypes.byref(info))
        if "value" in answer:
            return {"value": {"state": int(info.state)}}
        if answer["error"] in LOST:
            break
    return answer


def _processes(gate: Gate, handle: Any, own_pids: Set[int]) -> Answer:
    """Return the processes on the device, each once, without those of this run."""
    lists = [
        gate.ask_list("nvmlDeviceGet%sRunningProcesses_v3 nvmlDeviceGet%sRunningProcesses_v2" % (kind, kind), handle)
        for kind in ("Compute", "Graphics")
    ]
    if all("error" in answer for answer in lists):
        return lists[0]
    found: Dict[int, Dict[str, Any]] = {}
    for process in [process for answer in lists for process in answer.get("value", ())]:
        pid = process["pid"]
        if pid not in found and len(found) < MOST_PROCESSES and not is_own(pid, own_pids):
            name = gate.ask("nvmlSystemGetProcessName", pid).get("value") or read_start("/proc/%d/comm" % pid).strip()
            found[pid] = {"pid": pid, "name": str(name), "used_bytes": process["usedGpuMemory"]}
    return {"value": list(found.values())}


def _start_nvidia_smi() -> Optional[subprocess.Popen[bytes]]:
    """Start it; None if there is no such program, or none that this user may run.

    Raises:
        OSError: it cannot be started for another reason.
    """
    import subprocess

    for program in ("nvidia-smi", *SMI_PLACES):
        with suppress(FileNotFoundError, PermissionError):  # the second also for a folder of PATH that is closed
            return subprocess.Popen(
                [program, "-q", "-x"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
            )
    return None


def _run_nvidia_smi(seconds: float) -> Dict[str, Any]:
    """Return the outcome of `nvidia-smi -q -x` by its name; {} if there is no such program."""
    import subprocess
    import threading

    outcome: Dict[str, Any] = {"status": None, "stdout": "", "stderr": "", "error": ""}
    try:
        process = _start_nvidia_smi()
    except OSError as error:
        outcome["error"] = str(error)
        return {"nvidia-smi": outcome}
    if process is None:
        return {}

    def read(name: str, stream: Any, most: int) -> None:
        # What comes after `most` bytes is left in the pipe: the program waits there until it is killed.
        outcome[name] = stream.read(most).decode("utf-8", "replace")

    streams = (("stdout", process.stdout, SMI_BYTES), ("stderr", process.stderr, 4096))
    threads = [threading.Thread(target=read, args=stream, daemon=True) for stream in streams]
    for thread in threads:
        thread.start()
    try:
        outcome["status"] = process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        outcome["error"] = "no end after %g s" % seconds
    for thread in threads:
        thread.join(1.0)
    return {"nvidia-smi": outcome}
