"""NVML, the library of the NVIDIA driver, asked through the module pynvml of nvidia-ml-py.

Each call is kept as {"value": ...} or {"error": code, "text": ...}: "not supported", "no permission" and "GPU is lost"
are different answers, and a function that an old library lacks is one unknown fact. A code of None is not from NVML.
Standard library only, from Python 3.8 on: workers use it under any interpreter.
"""

from __future__ import annotations

import ctypes
import sys
from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:  # the module typing takes as long to import as all of this one
    from typing import Any

    Answer = dict[str, Any]

LIBRARY = "nvml.dll" if sys.platform == "win32" else "libnvidia-ml.so.1"
FUNCTION_NOT_FOUND = 13  # nvml.h
SM, GPU = 1, 0  # nvmlClockType_t, nvmlTemperatureSensors_t
MEMORY_V2 = 0x02000028  # nvmlMemory_v2: its "used" leaves out what the driver reserves, as nvidia-smi's does
MOST_PARENTS = 16  # of a process
START_CHARACTERS = 4096
MOST_ENTRIES = 4096  # of a list that NVML counts: a larger number is garbage, and its memory would be asked for
_EVENT_REASONS = (  # nvmlClocksEventReasons of nvml.h from the lowest bit on, and two that only pynvml names
    *("gpu_idle", "applications_clocks_setting", "sw_power_cap", "hw_slowdown", "sync_boost", "sw_thermal_slowdown"),
    *("hw_thermal_slowdown", "hw_power_brake_slowdown", "display_clock_setting", "board_limit", "reliability"),
)
EVENT_REASONS = {1 << bit: name for bit, name in enumerate(_EVENT_REASONS)}


def open_nvml(module_path: str | None = None) -> tuple[Gate | None, str]:
    """Return the initialised NVML gate; None and the reason, in one line, if NVML cannot be used.

    module_path: the file of pynvml, for an environment that has none of its own.
    """
    try:
        library = ctypes.CDLL(LIBRARY)
    except OSError:
        return None, f"the NVIDIA driver's library {LIBRARY} cannot be loaded"
    try:
        module = _load_module(module_path)
    except Exception as error:
        return None, f"the module pynvml of nvidia-ml-py cannot be imported: {error}"
    if not hasattr(module, "nvmlInit") or not hasattr(module, "NVMLError"):
        return None, "the module pynvml is not from nvidia-ml-py"
    gate = Gate(module, library)
    answer = gate.ask("nvmlInit")
    return (None, f"NVML does not start: {answer['text']}") if "error" in answer else (gate, "")


def _load_module(path: str | None) -> Any:
    try:
        return import_module("pynvml")
    except Exception:  # a broken one is no better than none
        import importlib.util

        spec = importlib.util.spec_from_file_location("pynvml", path) if path else None
        if spec is None or spec.loader is None:
            raise
        module = importlib.util.module_from_spec(spec)
        sys.modules["pynvml"] = module  # it looks itself up there
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules["pynvml"]
            raise
        return module


class Gate:
    """Access to NVML: each call gives an answer or an error code, whatever the module raises."""

    def __init__(self, module: Any, library: Any) -> None:
        self.module = module
        self.library = library

    def ask(self, functions: str, *arguments: Any) -> Answer:
        """Return the answer of the first of `functions` that exists in both module and library."""
        value, failure = self.call(functions, *arguments)
        return failure or {"value": _plain(value)}

    def ask_list(self, functions: str, *arguments: Any) -> Answer:
        """Return the answer of a function that fills a list, unless the number of entries that NVML counts is garbage.

        pynvml asks for the memory of twice that number.
        """
        failure: Answer = _failed(FUNCTION_NOT_FOUND, "Function Not Found")
        for function in functions.split():
            if hasattr(self.library, function):
                count = ctypes.c_uint()
                getattr(self.library, function)(*arguments, ctypes.byref(count), None)
                if count.value > MOST_ENTRIES:
                    return _failed(None, f"{function} counts {count.value} entries")
                return self.ask(function, *arguments)
        return failure

    def call(self, functions: str, *arguments: Any) -> tuple[Any, Answer | None]:
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
        """Return the error code and NVML's text for it, which nvidia-smi prints too."""
        if isinstance(error, AttributeError) or type(error).__name__ == "NVMLLibraryMismatchError":
            return _failed(FUNCTION_NOT_FOUND, "Function Not Found")
        if not isinstance(error, self.module.NVMLError):
            return _failed(None, f"{type(error).__name__}: {error}")
        code = int(getattr(error, "value", -1))
        try:
            return _failed(code, _plain(self.module.nvmlErrorString(code)))
        except Exception:
            return _failed(code, str(error))


def _failed(code: int | None, text: str) -> Answer:
    return {"error": code, "text": text[:1000]}


def _plain(value: Any) -> Any:
    """Return `value` as JSON has it: bytes as text, structures as objects."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, ctypes.Structure):
        return {item[0]: _plain(getattr(value, item[0])) for item in value._fields_}
    if isinstance(value, (list, tuple, ctypes.Array)):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, (int, float, str)):
        return value
    return {name: _plain(item) for name, item in vars(value).items()}  # nvmlFriendlyObject


def is_own(pid: int, own_pids: set[int]) -> bool:
    """Return whether this run started the process: another of its workers may use the device meanwhile."""
    for _ in range(MOST_PARENTS):
        if pid in own_pids:
            return True
        fields = read_start(f"/proc/{pid}/stat").rpartition(")")[2].split()
        if len(fields) < 2 or not fields[1].isdigit():
            return False
        pid = int(fields[1])
    return False


def read_start(path: str) -> str:
    """Return the first characters of a file; empty if it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(START_CHARACTERS)
    except OSError:
        return ""
