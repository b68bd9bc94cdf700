"""Ask libcuda by ctypes: which file the loader takes, its CUDA version, whether it initialises, which devices it sees.

No context is created. Standard library only, from Python 3.8 on.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Any, Mapping

LIBRARY = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
MOST_DEVICES = 256
CAPABILITY_MAJOR, CAPABILITY_MINOR = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_* of cuda.h


def collect(_arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return what libcuda answers; `library_error` where it cannot be loaded."""
    try:
        cuda = ctypes.CDLL(LIBRARY)
    except OSError as error:
        return {"library_error": str(error)}
    facts: dict[str, Any] = {"path": _path_of(LIBRARY)}
    number = ctypes.c_int()
    if _call(cuda, "cuDriverGetVersion", ctypes.byref(number)) == 0:
        facts["cuda_version"] = number.value
    facts["init_code"] = _call(cuda, "cuInit", 0)
    if facts["init_code"]:
        facts["init_error"] = _name_of(cuda, facts["init_code"])
    elif _call(cuda, "cuDeviceGetCount", ctypes.byref(number)) == 0:
        facts["device_count"] = number.value
        facts["devices"] = [_device(cuda, index) for index in range(min(number.value, MOST_DEVICES))]
    return facts


def _call(cuda: Any, function: str, *arguments: Any) -> int | None:
    """Return the function's result; None where the library lacks it, as a stand-in or a stub may."""
    try:
        return int(getattr(cuda, function)(*arguments))
    except AttributeError:
        return None


def _name_of(cuda: Any, code: int) -> str:
    text = ctypes.c_char_p()
    if _call(cuda, "cuGetErrorName", code, ctypes.byref(text)) == 0 and text.value:
        return text.value[:100].decode("utf-8", "replace")
    return f"error {code}"


def _device(cuda: Any, index: int) -> dict[str, Any]:
    name = ctypes.create_string_buffer(256)
    major, minor = ctypes.c_int(), ctypes.c_int()
    facts: dict[str, Any] = {"cuda_index": index}
    if _call(cuda, "cuDeviceGetName", name, len(name), index) == 0:
        facts["name"] = name.value.decode("utf-8", "replace")
    codes = (
        _call(cuda, "cuDeviceGetAttribute", ctypes.byref(major), CAPABILITY_MAJOR, index),
        _call(cuda, "cuDeviceGetAttribute", ctypes.byref(minor), CAPABILITY_MINOR, index),
    )
    if codes == (0, 0):
        facts["compute_capability"] = f"{major.value}.{minor.value}"
    return facts


def _path_of(library: str) -> str:
    """Return the file that was loaded, links followed; the name alone where the system does not tell."""
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
            paths = {line.split(None, 5)[5].strip() for line in maps if "libcuda.so" in line}
    except OSError:
        return library
    return min(paths, default=library)
