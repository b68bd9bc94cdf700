"""The XML that `nvidia-smi -q -x` prints."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from gpudoctor.model import CudaVersion, Device, DeviceProcess, DriverVersion
from gpudoctor.model.record import record

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

T = TypeVar("T")
MIB = 2**20


@record
class SmiReport:
    """What nvidia-smi reported of the driver and its devices."""

    driver_version: DriverVersion | None = None
    cuda_version: CudaVersion | None = None
    devices: tuple[Device, ...] = ()


def parse_nvidia_smi_xml(text: str) -> SmiReport:
    """Return what the XML says. "N/A", "Not Supported" and "[Unknown Error]" are unknown.

    Raises:
        ValueError: it is no such XML, or it declares entities, which nvidia-smi never does.
    """
    from xml.etree.ElementTree import ParseError, fromstring

    if "<!ENTITY" in text:
        raise ValueError("not the XML of nvidia-smi: it declares entities")
    try:
        root = fromstring(text)  # noqa: S314 - entities are refused above, and expat bounds the rest
    except ParseError as error:
        raise ValueError(f"not the XML of nvidia-smi: {error}") from None
    return SmiReport(
        driver_version=_value(root, "driver_version", DriverVersion.parse),
        cuda_version=_value(root, "cuda_version", CudaVersion.parse),
        devices=tuple(_device(number, gpu) for number, gpu in enumerate(root.iter("gpu"))),
    )


def _device(index: int, gpu: Element) -> Device:
    return Device(
        nvml_index=index,
        name=_value(gpu, "product_name", str),
        uuid=_value(gpu, "uuid", str),
        pci_address=_value(gpu, "pci/pci_bus_id", str.lower),
        pci_device_id=_value(gpu, "pci/pci_device_id", lambda text: text.removeprefix("0x")[:4].upper()),
        memory_total_bytes=_value(gpu, "fb_memory_usage/total", _mebibytes),
        memory_used_bytes=_value(gpu, "fb_memory_usage/used", _mebibytes),
        memory_free_bytes=_value(gpu, "fb_memory_usage/free", _mebibytes),
        processes=tuple(_processes(gpu)),
        temperature_celsius=_value(gpu, "temperature/gpu_temp", _integer),
        performance_state=_value(gpu, "performance_state", _integer),
        utilization_percent=_value(gpu, "utilization/gpu_util", _integer),
        persistence_enabled=_value(gpu, "persistence_mode", _enabled),
        mig_enabled=_value(gpu, "mig_mode/current_mig", _enabled),
        ecc_enabled=_value(gpu, "ecc_mode/current_ecc", _enabled),
        pcie_generation=_value(gpu, "pci/pci_gpu_link_info/pcie_gen/current_link_gen", _integer),
        pcie_generation_max=_value(gpu, "pci/pci_gpu_link_info/pcie_gen/max_link_gen", _integer),
        pcie_width=_value(gpu, "pci/pci_gpu_link_info/link_widths/current_link_width", _integer),
        pcie_width_max=_value(gpu, "pci/pci_gpu_link_info/link_widths/max_link_width", _integer),
    )


def _processes(gpu: Element) -> Any:
    for process in gpu.iterfind("processes/process_info"):
        pid = _value(process, "pid", _integer)
        if pid is not None:
            name = _value(process, "process_name", str) or ""
            yield DeviceProcess(pid=pid, name=name, used_bytes=_value(process, "used_memory", _mebibytes))


def _value(element: Element, path: str, read: Callable[[str], T]) -> T | None:
    """Return what `read` makes of the text at `path`, None where there is none that it can read."""
    text = "".join(filter(str.isprintable, element.findtext(path, ""))).strip()[:200]
    if not text or text.strip("[]").lower() in ("n/a", "not supported", "unknown error", "not found"):
        return None
    try:
        return read(text)
    except ValueError:
        return None


def _integer(text: str) -> int:
    match = re.match(r"P?(\d{1,18})", text)
    if match is None:
        raise ValueError(text)
    return int(match[1])


def _mebibytes(text: str) -> int:
    return _integer(text) * MIB


def _enabled(text: str) -> bool:
    return text.lower() in ("enabled", "on")
