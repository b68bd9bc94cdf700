"""Ask the NVIDIA driver about its devices through NVML, by the module pynvml of nvidia-ml-py.

Each call is kept as {"value": ...} or {"error": code, "text": ...}: "not supported", "no permission" and "GPU is lost"
are different answers, and a function that an old library lacks is one unknown fact. A code of None is no code of NVML.
Where NVML gives no list of devices, `nvidia-smi -q -x` is asked. Nothing here judges.
Standard library and pynvml only, from Python 3.8 on.
"""

from __future__ import annotations

import ctypes
import os
import sys
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:  # the module typing takes as long to import as all of this one
    import subprocess
    from typing import Any, Dict, Iterator, List, Mapping, Optional, Set, Tuple

    Answer = Dict[str, Any]

LIBRARY = "nvml.dll" if sys.platform == "win32" else "libnvidia-ml.so.1"
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
MOST_ENTRIES = 4096  # of a list that NVML counts: a larger number is garbage, and its memory would be asked for
MOST_PROCESSES = 64
MOST_LINKS = 36  # NVML_NVLINK_MAX_LINKS
MOST_INSTANCES = 64

# Codes of nvml.h.
INVALID_ARGUMENT, NOT_SUPPORTED, NOT_FOUND, FUNCTION_NOT_FOUND = 2, 3, 6, 13
LOST = (15, 16)  # GPU_IS_LOST, RESET_REQUIRED: whatever else is asked of this device fails too, or waits
# nvmlClockType_t, nvmlTemperatureSensors_t, nvmlTemperatureThresholds_t, nvmlMemoryErrorType_t, nvmlEccCounterType_t.
SM, GPU, SLOWDOWN, UNCORRECTED, VOLATILE = 1, 0, 1, 1, 0
FABRIC_V2 = 0x02000024  # nvmlGpuFabricInfo_v2
MEMORY_V2 = 0x02000028  # nvmlMemory_v2: its "used" leaves out what the driver reserves, as nvidia-smi's does

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
WINDOWS_QUESTIONS = (("driver_model", "nvmlDeviceGetDriverModel", ()),)


def collect(arguments: Mapping[str, Any]) -> Dict[str, Any]:
    """Return what NVML tells, and what nvidia-smi tells where NVML gives no list of devices.

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
    """Tell whether the library itself is not there, rather than broken or without another one that it needs."""
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
        facts["module"]["error"] = "the module pynvml is not that of nvidia-ml-py"
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


class Gate:
    """The one way to NVML: an answer or the code of its error, whatever the module raises."""

    def __init__(self, module: Any, library: Any) -> None:
        self.module = module
        self.library = library

    def ask(self, functions: str, *arguments: Any) -> Answer:
        """Return the answer of the first of `functions` that module and library have."""
        value, failure = self.call(functions, *arguments)
        return failure or {"value": _plain(value)}

    def ask_list(self, functions: str, *arguments: Any) -> Answer:
        """Return the answer of a function that fills a list, unless the number of entries that NVML counts is garbage.

        pynvml asks for the memory of twice that number.
        """
        failure: Answer = _failed(FUNCTION_NOT_FOUND, "Function Not Found")
        for function in functions.split():
            if hasattr(self.library, function):
                count = ctypes.c_uint(0)
                getattr(self.library, function)(*arguments, ctypes.byref(count), None)
                if count.value > MOST_ENTRIES:
                    return _failed(None, "%s counts %d entries" % (function, count.value))
                return self.ask(function, *arguments)
        return failure

    def call(self, functions: str, *arguments: Any) -> Tuple[Any, Optional[Answer]]:
        """Return what the call returned and None, or None and the failure."""
        failure: Answer = {}
        for function in functions.split():
            try:
                return getattr(self.module, function)(*arguments), None
            except UnicodeDecodeError as error:  # pynvml decodes names strictly
                return error.object, None
            except Exception as error:
                failure = self.failure(error)
            if failure["error"] != FUNCTION_NOT_FOUND:
                break
        return None, failure

    def failure(self, error: Exception) -> Answer:
        """Return the error's code and the text that NVML has for it, which is the one that nvidia-smi prints."""
        if isinstance(error, AttributeError) or type(error).__name__ == "NVMLLibraryMismatchError":
            return _failed(FUNCTION_NOT_FOUND, "Function Not Found")
        if not isinstance(error, self.module.NVMLError):
            return _failed(None, "%s: %s" % (type(error).__name__, error))
        code = int(getattr(error, "value", -1))
        try:
            return _failed(code, _plain(self.module.nvmlErrorString(code)))
        except Exception:
            return _failed(code, str(error))


def _failed(code: Optional[int], text: str) -> Answer:
    return {"error": code, "text": text[:1000]}


def _plain(value: Any) -> Any:
    """Return `value` as JSON has it: bytes as text, structures as objects."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, ctypes.Structure):
        return {item[0]: _plain(getattr(value, item[0])) for item in value._fields_}
    if isinstance(value, (list, tuple, ctypes.Array)):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return {name: _plain(item) for name, item in vars(value).items()}  # nvmlFriendlyObject


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
    for fact, functions, arguments in QUESTIONS + (WINDOWS_QUESTIONS if sys.platform == "win32" else ()):
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
            found[pid] = {"pid": pid, "name": _process_name(gate, pid), "used_bytes": process["usedGpuMemory"]}
    return {"value": list(found.values())}


def _process_name(gate: Gate, pid: int) -> str:
    name = gate.ask("nvmlSystemGetProcessName", pid).get("value")
    return str(name) if name else _read("/proc/%d/comm" % pid).strip()


def is_own(pid: int, own_pids: Set[int]) -> bool:
    """Tell whether this run started the process: another of its workers may use the device meanwhile."""
    for _ in range(16):
        if pid in own_pids:
            return True
        fields = _read("/proc/%d/stat" % pid).rpartition(")")[2].split()
        if len(fields) < 2 or not fields[1].isdigit():
            return False
        pid = int(fields[1])
    return False


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(4096)
    except OSError:
        return ""


def _start_nvidia_smi() -> Optional[subprocess.Popen[bytes]]:
    """Start it; None where there is no such program, or none that this user may run.

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
    """Return the outcome of `nvidia-smi -q -x` by its name; {} where there is no such program."""
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
    for stream in streams:
        threading.Thread(target=read, args=stream, daemon=True).start()
    try:
        outcome["status"] = process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        outcome["error"] = "no end after %g s" % seconds
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and thread.daemon:
            thread.join(1.0)
    return {"nvidia-smi": outcome}
