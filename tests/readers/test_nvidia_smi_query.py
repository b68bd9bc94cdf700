"""The list of `nvidia-smi -q`, whole, in parts and cut off."""

import re
import time

import pytest

from gpudoctor.model import CudaVersion, Device, DeviceProcess, DriverVersion
from gpudoctor.parsers.nvidia_smi_xml import MIB
from gpudoctor.readers import nvidia_smi_query
from gpudoctor.readers.facts import Facts
from gpudoctor.readers.text import clean_text
from tests.readers import pasted

HEAD = """==============NVSMI LOG==============

Timestamp                                 : Mon Aug  7 11:10:06 2023
Driver Version                            : 535.86.05
CUDA Version                              : 12.2

Attached GPUs                             : 1
GPU 00000000:84:00.0
"""
WHOLE = """    Product Name                          : NVIDIA A100-PCIE-40GB
    Persistence Mode                      : Enabled
    MIG Mode
        Current                           : Enabled
        Pending                           : Enabled
    MIG Devices                           : None
    GPU UUID                              : GPU-5a0c1f9e-11aa-22bb-33cc-0123456789ab
    GPU Reset Status
        Reset Required                    : No
        Drain and Reset Recommended       : No
    PCI
        Bus                               : 0x84
        Device Id                         : 0x20F110DE
        Bus Id                            : 00000000:84:00.0
        GPU Link Info
            PCIe Generation
                Max                       : 4
                Current                   : 3
                Device Current            : 1
            Link Width
                Max                       : 16x
                Current                   : 8x
    Fan Speed                             : N/A
    Performance State                     : P0
    Clocks Event Reasons
        Idle                              : Not Active
        SW Power Cap                      : Not Active
        HW Slowdown                       : Active
            HW Thermal Slowdown           : Active
            HW Power Brake Slowdown       : Not Active
        SW Thermal Slowdown               : Not Active
    Clocks Event Reasons Counters
        SW Power Capping                  : 120 us
    FB Memory Usage
        Total                             : 40960 MiB
        Used                              : 900 MiB
        Free                              : 40060 MiB
    BAR1 Memory Usage
        Total                             : 65536 MiB
        Used                              : 1 MiB
    Compute Mode                          : Default
    Utilization
        Gpu                               : 99 %
        Memory                            : 12 %
    ECC Mode
        Current                           : Enabled
    ECC Errors
        Volatile
            SRAM Uncorrectable            : 0
            DRAM Correctable              : 1
            DRAM Uncorrectable            : 3
        Aggregate
            DRAM Uncorrectable            : 8
    Retired Pages
        Single Bit ECC                    : 1
        Double Bit ECC                    : 2
        Pending Page Blacklist            : Yes
    Remapped Rows
        Uncorrectable Error               : 1
        Pending                           : Yes
        Remapping Failure Occurred        : No
        Bank Remap Availability Histogram
            Max                           : 640 bank(s)
    Temperature
        GPU Current Temp                  : 85 C
        GPU Slowdown Temp                 : 82 C
    GPU Power Readings
        Power Draw                        : 50.37 W
        Current Power Limit               : 240.00 W
        Default Power Limit               : 250.00 W
    Clocks
        SM                                : 210 MHz
        Memory                            : 1215 MHz
    Max Clocks
        SM                                : 1410 MHz
    Processes
        GPU instance ID                   : N/A
        Process ID                        : 4711
            Type                          : C
            Name                          : python
            Used GPU Memory               : 100 MiB
"""


def read(raw: str) -> Facts:
    return nvidia_smi_query.read(clean_text(raw, "report.txt"))


def device(raw: str) -> Device:
    (found,) = read(raw)["devices"]
    assert isinstance(found, Device)
    return found


def test_a_whole_list() -> None:
    facts = read(HEAD + WHOLE)
    assert facts["driver"].version == DriverVersion((535, 86, 5))
    assert (facts["driver"].cuda_version, facts["taken_at"]) == (CudaVersion(12, 2), "2023-08-07T11:10:06Z")
    assert facts["devices"] == (
        Device(
            nvml_index=0,
            name="NVIDIA A100-PCIE-40GB",
            uuid="GPU-5a0c1f9e-11aa-22bb-33cc-0123456789ab",
            pci_address="0000:84:00.0",
            pci_device_id="20F1",
            memory_total_bytes=40960 * MIB,
            memory_used_bytes=900 * MIB,
            processes=(DeviceProcess(pid=4711, name="python", used_bytes=100 * MIB),),
            power_draw_watts=50.37,
            power_limit_watts=240.0,
            power_limit_default_watts=250.0,
            clock_sm_mhz=210,
            clock_sm_max_mhz=1410,
            throttle_reasons=("hw_slowdown", "hw_thermal_slowdown"),
            performance_state=0,
            utilization_percent=99,
            temperature_celsius=85,
            temperature_slowdown_celsius=82,
            ecc_uncorrected_volatile=3,
            retired_pages_pending=True,
            remapped_rows_pending=True,
            remapped_rows_failed=False,
            mig_enabled=True,
            mig_uuids=(),
            persistence_enabled=True,
            compute_mode="default",
            pcie_generation=3,
            pcie_generation_max=4,
            pcie_width=8,
            pcie_width_max=16,
        ),
    )


@pytest.mark.parametrize("cut", range(0, len(WHOLE), 97))
def test_a_list_cut_off_shows_nothing_else(cut: int) -> None:
    whole = device(HEAD + WHOLE)
    part = device(HEAD + WHOLE[:cut])
    told = {name: getattr(part, name) for name in ("name", "uuid", "pci_address", "memory_total_bytes", "compute_mode")}
    assert all(value in (None, getattr(whole, name)) for name, value in told.items())


def test_the_old_name_of_the_reasons() -> None:
    old = HEAD + "    Clocks Throttle Reasons\n        Idle       : Active\n        HW Slowdown   : Not Active\n"
    assert device(old).throttle_reasons == ("gpu_idle",)


def test_old_counters_of_memory_errors() -> None:
    old = """    ECC Errors
        Volatile
            Single Bit
                Device Memory       : 5
                Total               : 5
            Double Bit
                Device Memory       : 2
                Total               : 2
"""
    assert device(old).ecc_uncorrected_volatile == 2


def test_a_part_without_its_head() -> None:
    found = device(
        "$ nvidia-smi -q | grep -A 2 Fabric\n    Fabric\n        State      : In Progress\n        Status   : N/A\n"
    )
    assert found == Device(nvml_index=0, fabric_state="in-progress")


@pytest.mark.parametrize(
    ("lines", "error"),
    [
        ("    GPU Reset Status\n        Reset Required    : Yes\n", "GPU requires reset"),
        ("    GPU Recovery Action    : Node Reboot\n", "GPU requires restart"),
        ("    GPU Recovery Action    : None\n", ""),
        ("    Product Name    : GPU is lost\n", "GPU is lost"),
        ("    Product Name    : Unknown Error\n", ""),
        (
            re.sub(": .*", ": Unknown Error", WHOLE.partition("GPU Reset Status")[0] + WHOLE.partition("Clocks\n")[2]),
            "values cannot be read: Unknown Error",
        ),
    ],
)
def test_a_device_out_of_reach(lines: str, error: str) -> None:
    assert device(HEAD + lines).error == error


def test_several_devices_and_lists() -> None:
    two = HEAD + "    Product Name : A\nGPU 00000000:85:00.0\n    Product Name : B\n"
    assert [found.name for found in read(two)["devices"]] == ["A", "B"]
    assert [found.name for found in read(HEAD + WHOLE + two)["devices"]] == ["A", "B"]


@pytest.mark.parametrize("text", ["", pasted.COLLECT_ENV, pasted.NVIDIA_SMI, "NVSMI LOG", "Fabric State: fine"])
def test_another_text_shows_nothing(text: str) -> None:
    assert read(text) == {}


@pytest.mark.parametrize("piece", ["GPU 00000000:84:00.0\n", "  A : b\n", "    Processes\n", " " * 50 + "Fabric\n"])
def test_a_long_text_is_quick(piece: str) -> None:
    began = time.process_time()
    read(HEAD + piece * 50_000)
    assert time.process_time() - began < 5.0  # generous; it takes about one second


def test_the_highest_operating_temperature() -> None:
    found = device(
        """==============NVSMI LOG==============
GPU 00000000:2D:00.0
    Temperature
        GPU Current Temp                  : 71 C
        GPU Slowdown Temp                 : 97 C
        GPU Max Operating Temp            : 72 C
        Memory Max Operating Temp         : N/A
"""
    )
    assert (found.temperature_celsius, found.temperature_operating_celsius) == (71, 72)
