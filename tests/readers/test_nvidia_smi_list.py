"""Lines of `nvidia-smi -L` and rows of `nvidia-smi --query-gpu`."""

import pytest

from gpudoctor.model import ComputeCapability, Device, DriverVersion
from gpudoctor.parsers.nvidia_smi_xml import MIB
from gpudoctor.readers import nvidia_smi_list
from gpudoctor.readers.facts import Facts
from gpudoctor.readers.text import clean_text
from tests.readers import pasted

LISTED = """$ nvidia-smi -L
GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-5a0c1f9e-11aa-22bb-33cc-0123456789ab)
  MIG 3g.20gb     Device  0: (UUID: MIG-5a0c1f9e-11aa-22bb-33cc-0123456789ac)
  MIG 1g.5gb      Device  1: (UUID: MIG-GPU-5a0c1f9e-11aa-22bb-33cc-0123456789ab/7/0)
GPU 1: Orin (nvgpu) (UUID: GPU-6a0c1f9e-11aa-22bb-33cc-0123456789ab)
"""
TABLE = """index, name, driver_version, memory.total [MiB], power.draw [W], clocks_event_reasons.active, fan.speed [%]
0, NVIDIA A10, 535.54.03, 23028 MiB, 20.31 W, 0x0000000000000041, 30 %
1, NVIDIA A10, 535.54.03, [GPU is lost], [N/A], [N/A], [N/A]
"""


def read(raw: str) -> Facts:
    return nvidia_smi_list.read(clean_text(raw, "report.txt"))


@pytest.mark.parametrize("raw", [LISTED, LISTED.replace("\n", " ")], ids=["lines", "lines joined"])
def test_devices_and_mig_devices(raw: str) -> None:
    assert read(raw)["devices"] == (
        Device(
            nvml_index=0,
            name="NVIDIA A100-SXM4-40GB",
            uuid="GPU-5a0c1f9e-11aa-22bb-33cc-0123456789ab",
            mig_enabled=True,
            mig_uuids=(
                "MIG-5a0c1f9e-11aa-22bb-33cc-0123456789ac",
                "MIG-GPU-5a0c1f9e-11aa-22bb-33cc-0123456789ab/7/0",
            ),
        ),
        Device(nvml_index=1, name="Orin (nvgpu)", uuid="GPU-6a0c1f9e-11aa-22bb-33cc-0123456789ab"),
    )


def test_rows_below_their_header() -> None:
    facts = read(TABLE)
    assert facts["driver"].version == DriverVersion((535, 54, 3))
    assert facts["devices"] == (
        Device(
            nvml_index=0,
            name="NVIDIA A10",
            memory_total_bytes=23028 * MIB,
            power_draw_watts=20.31,
            throttle_reasons=("gpu_idle", "hw_thermal_slowdown"),
        ),
        Device(nvml_index=1, name="NVIDIA A10", error="GPU is lost"),
    )


def test_rows_whose_columns_the_command_names() -> None:
    command = "$ nvidia-smi --query-gpu=name,compute_cap --format=csv,noheader"
    assert read(f"{command}\nNVIDIA GeForce RTX 5090, 12.0\nand more, 1.0, 2")["devices"] == (
        Device(nvml_index=0, name="NVIDIA GeForce RTX 5090", compute_capability=ComputeCapability(12, 0)),
    )


def test_each_reason_in_a_column_of_its_own() -> None:
    header = "index, clocks_throttle_reasons.sw_power_cap, clocks_throttle_reasons.hw_slowdown, pstate"
    assert read(f"{header}\n0, Active, Not Active, P0")["devices"] == (
        Device(nvml_index=0, performance_state=0, throttle_reasons=("sw_power_cap",)),
    )


@pytest.mark.parametrize(
    "text", ["", pasted.COLLECT_ENV, pasted.PIP_LIST, "name, value\nA10, 3", "GPU 0: NVIDIA RTX A4000", "uuid, name"]
)
def test_another_text_shows_nothing(text: str) -> None:
    assert read(text) == {}


@pytest.mark.parametrize(
    ("column", "cell", "field", "value"),
    [
        ("name", "NVIDIA A10", "name", "NVIDIA A10"),
        ("gpu_name", "NVIDIA A10", "name", "NVIDIA A10"),
        ("uuid", "GPU-5a0c1f9e-11aa-22bb-33cc-0123456789ab", "uuid", "GPU-5a0c1f9e-11aa-22bb-33cc-0123456789ab"),
        ("gpu_uuid", "GPU-5a0c1f9e-11aa-22bb-33cc-0123456789ab", "uuid", "GPU-5a0c1f9e-11aa-22bb-33cc-0123456789ab"),
        ("pci.bus_id", "00000000:17:00.0", "pci_address", "0000:17:00.0"),
        ("gpu_bus_id", "00000000:17:00.0", "pci_address", "0000:17:00.0"),
        ("compute_cap", "8.6", "compute_capability", ComputeCapability(8, 6)),
        ("memory.total [MiB]", "1024 MiB", "memory_total_bytes", 1024 * MIB),
        ("memory.used [MiB]", "5 MiB", "memory_used_bytes", 5 * MIB),
        ("temperature.gpu", "38", "temperature_celsius", 38),
        ("utilization.gpu [%]", "97 %", "utilization_percent", 97),
        ("pstate", "P8", "performance_state", 8),
        ("power.draw [W]", "20.31 W", "power_draw_watts", 20.31),
        ("power.draw.instant [W]", "20.31 W", "power_draw_watts", 20.31),
        ("enforced.power.limit [W]", "150.00 W", "power_limit_watts", 150.0),
        ("power.limit [W]", "150.00 W", "power_limit_watts", 150.0),
        ("power.default_limit [W]", "150.00 W", "power_limit_default_watts", 150.0),
        ("clocks.sm [MHz]", "210 MHz", "clock_sm_mhz", 210),
        ("clocks.current.sm [MHz]", "210 MHz", "clock_sm_mhz", 210),
        ("clocks.max.sm [MHz]", "1695 MHz", "clock_sm_max_mhz", 1695),
        ("persistence_mode", "Disabled", "persistence_enabled", False),
        ("mig.mode.current", "Enabled", "mig_enabled", True),
        ("ecc.errors.uncorrected.volatile.total", "3", "ecc_uncorrected_volatile", 3),
        ("pcie.link.gen.current", "1", "pcie_generation", 1),
        ("pcie.link.gen.gpucurrent", "1", "pcie_generation", 1),
        ("pcie.link.gen.max", "4", "pcie_generation_max", 4),
        ("pcie.link.width.current", "8", "pcie_width", 8),
        ("pcie.link.width.max", "16", "pcie_width_max", 16),
    ],
)
def test_a_column(column: str, cell: str, field: str, value: object) -> None:
    (device,) = read(f"index, driver_version, {column}\n0, 535.54.03, {cell}\n")["devices"]
    assert getattr(device, field) == value


@pytest.mark.parametrize(
    "cell", ["", "[N/A]", "N/A", "[Not Supported]", "[Unknown Error]", "[Insufficient Permissions]", "[Not Found]"]
)
def test_a_cell_without_an_answer_is_unknown(cell: str) -> None:
    columns = "index, driver_version, name, power.draw [W], clocks_event_reasons.sw_power_cap"
    rows = f"{columns}\n0, 535.54.03{f', {cell}' * 3}\n"
    assert read(rows)["devices"] == (Device(nvml_index=0),)


@pytest.mark.parametrize("bit", range(9))
def test_each_reason_has_its_bit(bit: int) -> None:
    names = (
        *("gpu_idle", "applications_clocks_setting", "sw_power_cap", "hw_slowdown", "sync_boost"),
        *("sw_thermal_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown", "display_clock_setting"),
    )
    rows = f"index, name, driver_version, clocks_event_reasons.active\n0, NVIDIA A10, 535.54.03, 0x{1 << bit:016x}\n"
    assert read(rows)["devices"][0].throttle_reasons == (names[bit],)
