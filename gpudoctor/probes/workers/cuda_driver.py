"""Ask libcuda by ctypes: which file the loader takes, its CUDA version, whether it initialises, which devices it sees.

No context is created, so that nothing of a device's memory is used. Standard library only, from Python 3.8 on.
"""

from __future__ import annotations

import ctypes
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # the module typing takes as long to import as all of this one
    from typing import Any, Dict, Mapping, Optional, Tuple

LIBRARY = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
MOST_DEVICES = 256
# CUdevice_attribute of cuda.h.
CAPABILITY_MAJOR, CAPABILITY_MINOR = 75, 76
RTLD_DI_LINKMAP = 2  # dlfcn.h of glibc


def collect(_arguments: Mapping[str, Any]) -> Dict[str, Any]:
    """Return what libcuda answers; `library_error` if it cannot be loaded."""
    try:
        cuda = ctypes.CDLL(LIBRARY)
    except OSError as error:
        return {"library_error": str(error)}
    path = _loaded_path(cuda)
    facts: Dict[str, Any] = {"path": path, "file": os.path.realpath(path)}
    number = ctypes.c_int()
    facts["version_code"] = _call(cuda, "cuDriverGetVersion", ctypes.byref(number))
    if facts["version_code"] == 0:
        facts["cuda_version"] = number.value
    facts["init_code"] = _call(cuda, "cuInit", 0)
    if facts["init_code"]:
        facts["init_error"] = _error_name(cuda, facts["init_code"])
    elif facts["init_code"] == 0:
        facts["count_code"] = _call(cuda, "cuDeviceGetCount", ctypes.byref(number))
        if facts["count_code"] == 0:
            facts["device_count"] = number.value
            facts["devices"] = [_device(cuda, index) for index in range(min(number.value, MOST_DEVICES))]
    return facts


def _call(cuda: Any, function: str, *arguments: Any) -> Optional[int]:
    """Return the function's result; None if the library lacks it, as the stub of a toolkit may."""
    try:
        return int(getattr(cuda, function)(*arguments))
    except AttributeError:
        return None


def _error_name(cuda: Any, code: int) -> Optional[str]:
    text = ctypes.c_char_p()
    if _call(cuda, "cuGetErrorName", code, ctypes.byref(text)) == 0 and text.value:
        return text.value[:200].decode("utf-8", "replace")
    return None


def _device(cuda: Any, index: int) -> Dict[str, Any]:
    """Return what is known of a device by the order of CUDA, which CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER set."""
    name = ctypes.create_string_buffer(256)
    uuid = (ctypes.c_ubyte * 16)()
    major, minor, device = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
    facts: Dict[str, Any] = {"cuda_index": index}
    if _call(cuda, "cuDeviceGet", ctypes.byref(device), index) != 0:
        return facts
    if _call(cuda, "cuDeviceGetName", name, len(name) - 1, device) == 0:
        facts["name"] = name.value.decode("utf-8", "replace")
    codes: Tuple[Optional[int], ...] = (
        _call(cuda, "cuDeviceGetAttribute", ctypes.byref(major), CAPABILITY_MAJOR, device),
        _call(cuda, "cuDeviceGetAttribute", ctypes.byref(minor), CAPABILITY_MINOR, device),
    )
    if codes == (0, 0):
        facts["compute_capability"] = [major.value, minor.value]
    memory = ctypes.c_size_t()
    if _call(cuda, "cuDeviceTotalMem_v2", ctypes.byref(memory), device) == 0:
        facts["memory_total_bytes"] = memory.value
    # Version 2 gives the UUID of a MIG instance rather than that of its GPU.
    if 0 in (
        _call(cuda, function, ctypes.byref(uuid), device) for function in ("cuDeviceGetUuid_v2", "cuDeviceGetUuid")
    ):
        facts["uuid"] = bytes(uuid).hex()
    return facts


def _loaded_path(cuda: Any) -> str:
    """Return the path by which the loader found the library; its name alone if the system does not say."""
    if sys.platform == "win32":
        buffer = ctypes.create_unicode_buffer(1024)
        kernel = ctypes.windll.kernel32
        found = kernel.GetModuleFileNameW(ctypes.c_void_p(cuda._handle), buffer, len(buffer))
        return buffer.value if found else LIBRARY
    return _path_of_link_map(cuda) or _mapped_path() or LIBRARY


def _path_of_link_map(cuda: Any) -> str:
    """Return l_name of the library's struct link_map: {address, char *l_name, ...}."""
    link_map = ctypes.POINTER(ctypes.c_void_p)()
    try:
        dlinfo = ctypes.CDLL(None).dlinfo
    except (AttributeError, OSError):  # macOS
        return ""
    if dlinfo(ctypes.c_void_p(cuda._handle), RTLD_DI_LINKMAP, ctypes.byref(link_map)) != 0 or not link_map:
        return ""
    return os.fsdecode(ctypes.string_at(link_map[1])) if link_map[1] else ""


def _mapped_path() -> str:
    """Return the file of that name that is mapped into this process."""
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
            paths = {line.rstrip("\n").split(None, 5)[5] for line in maps if "libcuda.so" in line}
    except OSError:
        return ""
    return min(paths, default="")
