"""The driver as libcuda and the kernel log describe it, and the section combined from all sources."""

import re
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, TypeVar

from gpudoctor.model import ComputeCapability, CudaDevice, CudaVersion, Driver, DriverVersion
from gpudoctor.parsers.linux import driver_messages, parse_xids
from gpudoctor.probes.reading import Facts, whole
from gpudoctor.untrusted import cleaned

T = TypeVar("T")

# Folders whose libcuda proves no driver: the stub of a toolkit and the forward compatibility package.
NO_DRIVER = ("/stubs/", "/compat/")
MOST_XIDS = 50
MOST_MESSAGES = 20


def parse_cuda_driver(facts: Mapping[str, Any]) -> Driver:
    """Return the driver as far as libcuda knows it."""
    if "library_error" in facts:
        return Driver(libcuda_path="", libcuda_error=cleaned(str(facts["library_error"])))
    path, file = cleaned(str(facts.get("path", ""))), cleaned(str(facts.get("file", "")))
    drivers_own = not any(folder in place for folder in NO_DRIVER for place in (path, file))
    number = whole(facts.get("cuda_version"), 1000, 99_999)
    code = whole(facts.get("init_code"), 0, 2**31 - 1)
    name = facts.get("init_error")
    return Driver(
        installed=True if drivers_own else None,
        library_version=_version(file) if drivers_own else None,
        libcuda_path=path or None,
        libcuda_error="",
        cuda_version=None if number is None else CudaVersion.from_number(number),
        cuda_init_code=code,
        cuda_init_error="" if code == 0 else cleaned(name) if isinstance(name, str) else None,
        cuda_device_count=whole(facts.get("device_count"), 0, 1024),
        cuda_devices=tuple(map(_device, facts["devices"])) if isinstance(facts.get("devices"), list) else None,
    )


def _device(facts: Mapping[str, Any]) -> CudaDevice:
    name, capability = facts.get("name"), facts.get("compute_capability")
    return CudaDevice(
        name=cleaned(name) if isinstance(name, str) else None,
        compute_capability=None if capability is None else ComputeCapability(*map(int, capability)),
        memory_total_bytes=whole(facts.get("memory_total_bytes"), 1, 2**50),
    )


def _version(file: str) -> DriverVersion | None:
    """Return the version in the name of the library's file: "libcuda.so.535.129.03"."""
    match = re.search(r"/libcuda\.so\.(\d{3,4}(?:\.\d{1,4}){1,3})$", file)
    return DriverVersion.parse(match[1]) if match else None


def parse_kernel_log(facts: Facts) -> Driver:
    """Return the last Xid errors and messages; unknown if the log may not be read."""
    lines = facts.get("kernel_log", {}).get("lines")
    if lines is None:
        return Driver()
    lines = [cleaned(line) for line in lines]
    return Driver(xids=parse_xids(lines)[-MOST_XIDS:], kernel_messages=driver_messages(lines, MOST_MESSAGES))


def first_known(*parts: T) -> T:
    """Return a section with each fact from the first part that knows it."""
    if len(parts) == 1:
        return parts[0]
    section: Any = parts[0]
    names = [item.name for item in fields(section)]
    known = {name: next((v for v in (getattr(p, name) for p in parts) if v is not None), None) for name in names}
    merged: T = replace(section, **known)
    return merged


def merge_driver(*parts: Driver) -> Driver:
    """Return the driver with each fact from the first part that knows it.

    Its version is NVML's, else that of the loaded kernel module. It is installed if any part proves it.
    """
    driver = first_known(*parts)
    driver = replace(driver, version=driver.version or driver.module_version)
    proofs = [part.installed for part in parts]
    proven = True in proofs or driver.version is not None or driver.module_loaded or driver.nvml_code == 0
    return replace(driver, installed=True) if proven else driver
