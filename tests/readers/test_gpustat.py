"""The lines of gpustat."""

from gpudoctor.model import Device, Driver, DriverVersion
from gpudoctor.parsers.nvidia_smi_xml import MIB
from gpudoctor.readers.facts import Facts
from gpudoctor.readers.nvidia_smi_list import read_gpustat
from gpudoctor.readers.text import clean_text
from tests.readers import pasted


def read(raw: str) -> Facts:
    return read_gpustat(clean_text(raw, "report.txt"))


def test_devices_and_driver() -> None:
    assert read(pasted.GPUSTAT) == {
        "devices": (
            Device(
                nvml_index=0,
                name="NVIDIA L40S",
                temperature_celsius=41,
                memory_used_bytes=812 * MIB,
                memory_total_bytes=46068 * MIB,
            ),
            Device(
                nvml_index=1,
                name="NVIDIA L40S",
                temperature_celsius=38,
                memory_used_bytes=4 * MIB,
                memory_total_bytes=46068 * MIB,
            ),
        ),
        "driver": Driver(installed=True, version=DriverVersion((550, 90, 7))),
    }


def test_without_its_head_the_version_is_unknown() -> None:
    raw = "[3] Tesla P100 | 55°C, 100 % | ?? / 16384 MB | (Not Supported)"
    facts = read(raw)
    assert facts["devices"] == (
        Device(nvml_index=3, name="Tesla P100", temperature_celsius=55, memory_total_bytes=16384 * MIB),
    )
    assert facts["driver"] == Driver(installed=True)


def test_other_lists_are_not_of_its_kind() -> None:
    assert read("[0] loss 0.3 | lr 1e-4 | 12 / 300 steps\n[1] 40 MB") == {}
