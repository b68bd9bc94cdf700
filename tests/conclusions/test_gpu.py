"""The NVIDIA GPU that counts."""

from dataclasses import replace

import pytest

from gpudoctor.conclusions.gpu import gpu
from gpudoctor.model import Device, Driver, PciGpu, System

GPU = PciGpu(address="0000:01:00.0", vendor="nvidia", device_id="2684", name="RTX 4090")
GPU_ON_BUS = System(pci_gpus=(GPU,))
WORKING = Driver(cuda_init_code=0, cuda_device_count=1)


@pytest.mark.parametrize(
    ("devices", "driver", "system", "name"),
    [
        pytest.param((Device(nvml_index=0, name="L4"),), None, None, "L4", id="NVML lists it"),
        pytest.param(None, None, GPU_ON_BUS, "RTX 4090", id="on the bus, NVML not asked"),
        pytest.param((), None, GPU_ON_BUS, "RTX 4090", id="on the bus, NVML lists none"),
        pytest.param(None, Driver(cuda_device_count=1), None, "a CUDA device", id="CUDA counts it"),
        pytest.param((), None, System(pci_gpus=()), "", id="none"),
        pytest.param(None, Driver(), System(), None, id="not known"),
    ],
)
def test_a_gpu_that_is_there(
    devices: tuple[Device, ...] | None, driver: Driver | None, system: System | None, name: str | None
) -> None:
    assert gpu(devices, driver or Driver(), system or System()).present == name


def test_the_bus_names_a_device_that_nvml_has_lost() -> None:
    bus = PciGpu(address="0000:01:00.0", vendor="nvidia", device_id="2204", name="NVIDIA GeForce RTX 3090")
    lost = Device(nvml_index=0, error="GPU is lost")
    assert gpu((lost,), Driver(), System(pci_gpus=(bus,))).present == "NVIDIA GeForce RTX 3090"
    assert gpu((lost, lost), Driver(), System(pci_gpus=(bus, bus))).present == "an NVIDIA GPU"


@pytest.mark.parametrize(
    ("system", "driver", "name"),
    [
        pytest.param(replace(GPU_ON_BUS, container="docker"), None, "", id="the host's"),
        pytest.param(replace(GPU_ON_BUS, container="docker"), WORKING, "RTX 4090", id="a container that got it"),
        pytest.param(replace(GPU_ON_BUS, container=""), None, "RTX 4090", id="no container"),
        pytest.param(
            System(pci_gpus=(replace(GPU, bound_driver="vfio-pci"),)), None, "", id="passed to a virtual machine"
        ),
    ],
)
def test_a_gpu_of_others_does_not_count(system: System, driver: Driver | None, name: str) -> None:
    found = gpu(None, driver or Driver(), system)
    assert (found.name, found.fact) == (name, "system.pci_gpus" if name else "")
    assert found.present == "RTX 4090"


def test_a_capability_follows_from_the_product() -> None:
    devices = (Device(nvml_index=0, error="GPU is lost"), Device(nvml_index=1, name="Tesla T4"))
    assert [(str(known), known.fact) for known in gpu(devices, Driver(), System()).known] == [
        ("Tesla T4 (sm_75)", "devices[1].name")
    ]
