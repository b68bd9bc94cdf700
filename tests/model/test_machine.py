"""What the records of the machine say of themselves."""

from typing import Any

import pytest

from gpudoctor.model import Device, DeviceFile, Driver, DriverVersion, PciGpu, System

NVIDIA = PciGpu(address="0000:01:00.0", vendor="nvidia", device_id="2684", name="NVIDIA GeForce RTX 4090")
AMD = PciGpu(address="0000:02:00.0", vendor="amd", device_id="744C")


def test_nvidia_gpus_leaves_the_other_vendors_out() -> None:
    assert System(pci_gpus=(AMD, NVIDIA)).nvidia_gpus == (NVIDIA,)


def test_none_on_the_bus_is_not_an_unknown_bus() -> None:
    assert System(pci_gpus=(AMD,)).nvidia_gpus == ()
    assert System().nvidia_gpus is None


def test_a_gpu_without_a_name_is_called_by_its_id() -> None:
    assert [NVIDIA.label, AMD.label] == ["NVIDIA GeForce RTX 4090", "PCI device amd:744C"]


@pytest.mark.parametrize(
    ("path", "opened"),
    [
        pytest.param("/dev/nvidia0", True, id="device"),
        pytest.param("/dev/nvidia10", True, id="two digits"),
        pytest.param("/dev/nvidiactl", True, id="control"),
        pytest.param("/dev/nvidia-uvm", True, id="memory"),
        pytest.param("/dev/nvidia-uvm-tools", False, id="for debuggers"),
        pytest.param("/dev/nvidia-modeset", False, id="for displays"),
        pytest.param("/dev/nvidia-caps/nvidia-cap1", False, id="capabilities"),
        pytest.param("/dev/dxg", True, id="WSL"),
        pytest.param("/dev/nvgpu/igpu0/as", True, id="Jetson"),
    ],
)
def test_nodes_that_cuda_opens(path: str, opened: bool) -> None:
    node = DeviceFile(path=path)
    assert Driver(device_files=(node,)).gpu_nodes == ((node,) if opened else ())


def test_unknown_nodes() -> None:
    assert Driver().gpu_nodes is None


def test_the_driver_is_called_by_its_version() -> None:
    assert Driver(version=DriverVersion.parse("580.65.06")).label == "driver 580.65.06"
    assert Driver().label == "NVIDIA driver"


@pytest.mark.parametrize(
    ("error", "refusal"),
    [
        pytest.param("libcuda.so.1: cannot open shared object file: No such file or directory", "", id="not found"),
        pytest.param("libcuda.so.1: file\n too short", "libcuda.so.1: file too short", id="refused"),
        pytest.param(None, "", id="unknown"),
    ],
)
def test_why_the_loader_refuses_libcuda(error: str | None, refusal: str) -> None:
    assert Driver(libcuda_error=error).libcuda_refusal == refusal


@pytest.mark.parametrize(
    ("facts", "differs"),
    [
        ({"fabric_manager_version": "580.95.05"}, False),
        ({"fabric_manager_version": "580.82.07"}, True),
        ({"fabric_manager_version": "580.82.07", "nvswitches": 0}, False),
        ({"fabric_manager_version": "580.82.07", "fabric_manager": "not-installed"}, False),
        ({"fabric_manager_version": None}, False),
    ],
)
def test_a_fabric_manager_of_another_version(facts: dict[str, Any], differs: bool) -> None:
    version = facts.pop("fabric_manager_version")
    manager = DriverVersion.parse(version) if version else None
    driver = Driver(version=DriverVersion.parse("580.95.05"), fabric_manager_version=manager, **facts)
    assert driver.has_other_fabric_manager is differs


@pytest.mark.parametrize(("error", "by_cgroup"), [("Operation not permitted", True), ("Permission denied", False)])
def test_a_node_that_a_cgroup_refuses(error: str, by_cgroup: bool) -> None:
    assert DeviceFile(path="/dev/nvidia0", error=error).refused_by_cgroup is by_cgroup


@pytest.mark.parametrize(
    ("operating", "slowdown", "limit"),
    [(None, None, None), (87, None, 87), (None, 95, 95), (87, 95, 87), (97, 95, 95), (0, 95, 95)],
)
def test_the_temperature_from_which_on_clocks_are_lowered(
    operating: int | None, slowdown: int | None, limit: int | None
) -> None:
    device = Device(nvml_index=0, temperature_operating_celsius=operating, temperature_slowdown_celsius=slowdown)
    assert device.temperature_limit_celsius == limit
