"""Compute capabilities by product name and PCI device id."""

import pytest

from gpudoctor.data.gpu_names import capability_of
from gpudoctor.data.tables import load_table
from gpudoctor.model import ComputeCapability


@pytest.mark.parametrize(
    ("name", "capability"),
    [
        pytest.param("NVIDIA GeForce RTX 4090", "8.9", id="as NVML prints it"),
        pytest.param("GeForce RTX 3090", "8.6", id="as older drivers print it"),
        pytest.param("rtx 3090", "8.6", id="as people write it"),
        pytest.param("Tesla V100-SXM2-16GB", "7.0", id="form factor and memory left out"),
        pytest.param("Tesla P100-PCIE-16GB", "6.0", id="PCIE"),
        pytest.param("NVIDIA A100-SXM4-80GB MIG 1g.10gb", "8.0", id="MIG device"),
        pytest.param("NVIDIA H100 80GB HBM3", "9.0", id="H100"),
        pytest.param("NVIDIA GeForce GTX 1060 6GB", "6.1", id="memory"),
        pytest.param("NVIDIA GeForce GTX 1070 with Max-Q Design", "6.1", id="Max-Q"),
        pytest.param("NVIDIA GeForce GTX 1050 Ti", "6.1", id="GTX 1050 Ti"),
        pytest.param("Quadro RTX 6000", "7.5", id="Turing, by name like the next two"),
        pytest.param("NVIDIA RTX 6000 Ada Generation", "8.9", id="Ada"),
        pytest.param("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "12.0", id="Blackwell"),
        pytest.param("NVIDIA GeForce RTX 3050 A Laptop GPU", "8.9", id="a 3050 that is Ada"),
        pytest.param("NVIDIA GeForce RTX 3050 Laptop GPU", "8.6", id="a 3050 that is Ampere"),
        pytest.param("GeForce GTX TITAN X", "5.2", id="Maxwell's TITAN X"),
        pytest.param("NVIDIA TITAN X (Pascal)", "6.1", id="Pascal's TITAN X"),
        pytest.param("Tesla V100S-PCIE-32GB", "7.0", id="V100S"),
        pytest.param("GeForce 940MX", "5.0", id="Maxwell of a laptop"),
        pytest.param("Quadro K4200", "3.0", id="Kepler"),
        pytest.param("GRID V100D-8C", "7.0", id="vGPU with a name of its own"),
        pytest.param("NVIDIA L40S-48C", "8.9", id="vGPU of the driver's newer naming"),
        pytest.param("GRID T4-16Q", "7.5", id="vGPU of a workstation"),
        pytest.param("Orin (nvgpu)", "8.7", id="as nvidia-smi of a Jetson prints it"),
        pytest.param("Quadro M3000M", "5.2", id="second Maxwell, whatever NVIDIA's list of legacy GPUs says"),
        pytest.param("GeForce 910M", None, id="Fermi or Kepler"),
        pytest.param("GeForce GT 730", None, id="a name of two chips, which the table leaves out"),
        pytest.param("NVIDIA GeForce RTX 9090", None, id="newer than the table"),
        pytest.param("AMD Radeon RX 7900 XTX", None, id="another vendor"),
        pytest.param("NVIDIA", None, id="no product"),
    ],
)
def test_by_name(name: str, capability: str | None) -> None:
    assert capability_of(name) == (None if capability is None else ComputeCapability.parse(capability))


@pytest.mark.parametrize(
    ("number", "capability"),
    [
        pytest.param("2684", "8.9", id="in the table"),
        pytest.param("0x2684", "8.9", id="with 0x"),
        pytest.param("2bff", "12.0", id="by its family"),
        pytest.param("1DB1", "7.0", id="Volta, by three digits"),
        pytest.param("1BE1", "6.1", id="Pascal of a laptop"),
        pytest.param("139A", "5.0", id="GTX 950M, of the first Maxwell"),
        pytest.param("13C0", "5.2", id="GTX 980, of the second"),
        pytest.param("1023", "3.5", id="K40"),
        pytest.param("102D", "3.7", id="K80, by all four digits"),
        pytest.param("129A", "3.5", id="the 910M that is Kepler"),
        pytest.param("1140", None, id="Fermi, which is not in the table"),
        pytest.param("26", None, id="cut short"),
    ],
)
def test_by_pci_device_id(number: str, capability: str | None) -> None:
    expected = None if capability is None else ComputeCapability.parse(capability)
    assert capability_of(pci_device_id=number) == expected


def test_the_pci_device_id_wins_and_the_name_helps_if_it_is_unknown() -> None:
    assert capability_of("NVIDIA GeForce RTX 3090", "2684") == ComputeCapability(8, 9)
    assert capability_of("Tesla V100-SXM2-16GB", "3EFF") == ComputeCapability(7, 0)
    assert capability_of() is None


def test_no_pci_device_id_and_no_name_stands_for_two_capabilities() -> None:
    by_key: dict[str, set[str]] = {}
    for row in load_table("gpu_names")["gpus"]:
        for key in (row["name"].casefold(), *row.get("pci", ())):
            by_key.setdefault(key, set()).add(row["capability"])
    assert {key: found for key, found in by_key.items() if len(found) > 1} == {}


def test_every_name_in_the_table_finds_itself() -> None:
    for row in load_table("gpu_names")["gpus"]:
        assert str(capability_of(row["name"])) == row["capability"], row


@pytest.mark.parametrize(
    ("name", "capability"),
    [
        pytest.param("GeForce RTX 208...", "7.5", id="all of the series"),
        pytest.param("Tesla V100-SXM3...", "7.0", id="a form factor that is cut"),
        pytest.param("NVIDIA H100 80G...", "9.0", id="a size that is cut"),
        pytest.param("NVIDIA GeForce ...", "None", id="nothing but the maker"),
        pytest.param("Quadro RTX 600...", "None", id="of two generations"),
        pytest.param("GeForce RTX 208", "None", id="not marked as cut"),
    ],
)
def test_a_name_that_nvidia_smi_cuts(name: str, capability: str) -> None:
    assert str(capability_of(name)) == capability
