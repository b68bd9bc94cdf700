"""The devices and the driver as NVML tells of them; `nvidia-smi` where NVML cannot be used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpudoctor.host import Question, Setting
from gpudoctor.model import CudaVersion, Device, Driver, DriverVersion
from gpudoctor.model.codec import from_json
from gpudoctor.parsers.nvidia_smi_xml import SmiReport, parse_nvidia_smi_xml
from gpudoctor.probes.untrusted import cleaned


def question(_setting: Setting) -> Question:
    """Return the question; pynvml is gpudoctor's own, so the interpreter is too."""
    return Question(name="nvml", worker="nvml_devices")


def parse_devices(facts: Mapping[str, Any]) -> tuple[Device, ...] | None:
    """Return the devices; () where there is no driver to have any, None where they cannot be known.

    Raises:
        ValueError: a fact is no such value; the message names it.
    """
    if facts.get("init_code") == 0 and facts.get("device_count") is not None:
        return tuple(from_json(Device, cleaned(entry), "device") for entry in facts["devices"])
    report = _smi(facts)
    if report is not None:
        return report.devices
    no_program = facts.get("nvidia_smi") is None
    return () if "library_error" in facts and no_program else None


def parse_nvml_driver(facts: Mapping[str, Any]) -> Driver | None:
    """Return the driver as far as NVML knows it; None where the library is not there."""
    report = _smi(facts)
    smi = facts.get("nvidia_smi") or {}
    message = cleaned(smi.get("stdout") or smi.get("stderr") or "") if report is None else ""
    if "init_code" not in facts:
        known = Driver(version=report.driver_version, cuda_version=report.cuda_version) if report else None
        if known is None and smi:
            return Driver(nvml_error=message or None)
        return known
    version = facts.get("driver_version")
    number = facts.get("cuda_version")
    return Driver(
        nvml_code=int(facts["init_code"]),
        nvml_error=cleaned(str(facts["init_error"])),
        version=DriverVersion.parse(version) if version else report.driver_version if report else None,
        cuda_version=CudaVersion.from_number(number) if number else report.cuda_version if report else None,
    )


def _smi(facts: Mapping[str, Any]) -> SmiReport | None:
    """Return what nvidia-smi reported in full, None where it did not."""
    smi = facts.get("nvidia_smi") or {}
    if smi.get("status") != 0:
        return None
    try:
        return parse_nvidia_smi_xml(smi["stdout"])
    except ValueError:
        return None
