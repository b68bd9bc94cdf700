"""The NVIDIA driver as files describe it: libraries, kernel modules, device nodes, fabric manager."""

import re
from typing import Any

from gpudoctor.model import DeviceFile, Driver
from gpudoctor.model.versions import DriverVersion
from gpudoctor.parsers import attempt
from gpudoctor.parsers.libraries import LDCONFIG_WORDS, parse_ldconfig
from gpudoctor.parsers.linux import BRIDGE, parse_proc_driver_version
from gpudoctor.probes.container_engines import CONTAINER_SIGNS, container_engine
from gpudoctor.probes.reading import (
    Facts,
    file_name,
    file_text,
    found,
    is_linux,
    known_paths,
    link_target,
    listed,
    output,
    value,
)
from gpudoctor.probes.system import PCI_UEVENTS, pci_devices

# A toolkit's folder compat/ is not one of these: its libcuda is newer than the driver on purpose.
LIBRARY_FOLDERS = known_paths("library_folders")
LIBRARIES = ("libcuda.so", "libnvidia-ml.so")
MODULE_FILES = known_paths("module_files")
# "nvidia-current.ko" and "nvidia-tesla-470-current.ko" are Debian's; nvidia-drm, -modeset, -uvm, -peermem are extra
_MODULE = r"nvidia(?:-current|-open|-tesla|-legacy|-\d+(?:xx)?)*\.ko(?:\.\w+)?"
_VERSIONED = r"lib(?:cuda|nvidia-ml)\.so\.(\d{3,4}(?:\.\d+)+)"
DEVICE_NODES = known_paths("device_nodes")
WINDOWS_LIBRARY = "C:\\Windows\\System32\\nvcuda.dll"
FABRIC_MANAGER = "nv-fabricmanager"
FABRIC_MANAGER_UNIT = "/lib/systemd/system/nvidia-fabricmanager.service"


_LIBRARY_PATHS = [f"{folder}/{library}" for library in LIBRARIES for folder in LIBRARY_FOLDERS]
READING_LIST: dict[str, Any] = {
    "files": [*known_paths("driver_files"), PCI_UEVENTS, *CONTAINER_SIGNS["files"]],
    "listings": [
        *(f"{library}*" for library in _LIBRARY_PATHS),
        *MODULE_FILES,
        *known_paths("driver_listings"),
        WINDOWS_LIBRARY,
        FABRIC_MANAGER_UNIT,
        *CONTAINER_SIGNS["listings"],
    ],
    "links": [f"{library}.*" for library in _LIBRARY_PATHS],
    "nodes": list(DEVICE_NODES),
    "commands": {"ldconfig": ["/sbin/ldconfig", "-p"], "fabric-manager": [FABRIC_MANAGER, "--version"]},
    "lines": {"ldconfig": LDCONFIG_WORDS},
    "values": ["uname", f"running:{FABRIC_MANAGER}", *CONTAINER_SIGNS["values"]],
    "which": [FABRIC_MANAGER],
}


def parse_driver_files(facts: Facts) -> Driver:
    """Return the part of the section that files show."""
    if not is_linux(facts):
        library = listed(facts, WINDOWS_LIBRARY)
        return Driver(installed=bool(library) if value(facts, "platform") == "win32" else None)
    libraries = _libraries(facts)
    module = attempt(parse_proc_driver_version, file_text(facts, "/proc/driver/nvidia/version"))
    shown = attempt(DriverVersion.parse, file_text(facts, "/sys/module/nvidia/version"))
    loaded = True if module else _is_loaded(facts, "nvidia")
    module_files, sources = _module_files(facts), listed(facts, "/var/lib/dkms/nvidia*")
    return Driver(
        installed=bool(libraries or module_files or loaded),
        module_version=module.version if module else shown,
        module_flavor=module.flavor if module else None,
        library_version=_library_version(facts, libraries),
        module_loaded=loaded,
        uvm_loaded=_is_loaded(facts, "nvidia_uvm"),
        nouveau_loaded=_is_loaded(facts, "nouveau"),
        module_built_for_kernel=_built_for_kernel(facts, module_files),
        dkms=None if sources is None else bool(sources),
        libcuda_files=tuple(path for path in libraries if file_name(path).startswith("libcuda.")),
        device_files=_device_files(facts),
        **_fabric(facts),
    )


def _libraries(facts: Facts) -> tuple[str, ...]:
    """Return the driver's libraries in the loader's cache and in the usual folders, the loader's own first."""
    cache = attempt(parse_ldconfig, output(facts, "ldconfig")) or ()
    cached = [library.path for library in cache if library.soname in ("libcuda.so.1", "libnvidia-ml.so.1")]
    folders = [
        path
        for library in LIBRARIES
        for folder in LIBRARY_FOLDERS
        for path in listed(facts, f"{folder}/{library}*") or ()
    ]
    return tuple(
        dict.fromkeys(path for path in (*cached, *folders) if "/compat/" not in path and "/stubs/" not in path)
    )


def _library_version(facts: Facts, libraries: tuple[str, ...]) -> DriverVersion | None:
    """Return the version in the name of the file that libcuda.so.1 or libnvidia-ml.so.1 leads to.

    Names alone do not say: an image saved from a container with a GPU keeps empty files of that host's version.
    """
    linked = [path for path in libraries if path.endswith(".so.1")]
    for path in (*linked, *libraries):
        match = re.fullmatch(_VERSIONED, file_name(link_target(facts, path) or path))
        if match:
            return attempt(DriverVersion.parse, match[1])
    return None


def _is_loaded(facts: Facts, module: str) -> bool | None:
    text = file_text(facts, "/proc/modules")
    return None if text is None else any(line.startswith(f"{module} ") for line in text.splitlines())


def _module_files(facts: Facts) -> tuple[str, ...]:
    paths = (path for pattern in MODULE_FILES for path in listed(facts, pattern) or ())
    return tuple(path for path in paths if re.fullmatch(_MODULE, file_name(path)))


def _built_for_kernel(facts: Facts, module_files: tuple[str, ...]) -> bool | None:
    """Return whether a module is in the running kernel's folder; unknown without it, as in a container."""
    folder = f"/lib/modules/{(value(facts, 'uname') or {}).get('release')}"
    if any(path.startswith(f"{folder}/") for path in module_files):
        return True
    if folder not in (listed(facts, "/lib/modules/*") or ()) or _is_loaded(facts, "nvidia"):
        return None
    return False


def _device_files(facts: Facts) -> tuple[DeviceFile, ...]:
    nodes = facts.get("nodes", {})
    return tuple(
        DeviceFile(
            path=path,
            mode=node["mode"],
            accessible=node["accessible"],
            error=node["error"].partition(" ")[2],  # without the name of the errno
        )
        for path, node in nodes.items()
        if node.get("mode")
    )


def _fabric(facts: Facts) -> dict[str, Any]:
    devices = pci_devices(facts)
    switches = None if devices is None else sum(device.kind == BRIDGE and device.vendor == "10DE" for device in devices)
    answer = output(facts, "fabric-manager")
    match = re.search(r"Fabric Manager version is\s*:\s*(\S+)", answer) if answer else None
    return {
        "nvswitches": switches,
        "fabric_manager": _fabric_manager(facts),
        "fabric_manager_version": attempt(DriverVersion.parse, match[1]) if match else None,
    }


def _fabric_manager(facts: Facts) -> str | None:
    """Return its state; unknown in a container, from which the host's processes and files are not seen."""
    if value(facts, f"running:{FABRIC_MANAGER}"):
        return "running"
    if container_engine(facts) or value(facts, f"running:{FABRIC_MANAGER}") is None:
        return None
    installed = found(facts, FABRIC_MANAGER) or listed(facts, FABRIC_MANAGER_UNIT)
    return "not-running" if installed else "not-installed"
