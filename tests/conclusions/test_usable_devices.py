"""Which GPUs are there, and on which PyTorch computes."""

import pytest

from gpudoctor.conclusions.usable_devices import described, is_minor_turing, present_gpu, usable_devices
from gpudoctor.model import Device, Driver, PciGpu, System
from gpudoctor.registry import Skip
from tests.torch_runtimes import L4, T4, with_result, working


def test_a_device_is_known_by_its_number_name_capability_and_results() -> None:
    device = usable_devices(working(L4, T4))[1]
    assert (device.cuda_index, str(device)) == (1, "Tesla T4 (compute capability 7.5)")
    assert (device.computes("fp16"), device.computes("tf32")) == (True, False)
    assert device.capability_fact == "torch_runtime.device_capabilities[1]"
    assert device.error_fact("fp32") == "torch_runtime.precision_results[4].relative_error"


def test_a_device_with_a_wrong_product_is_not_usable() -> None:
    runtime = with_result(working(L4, T4), "fp32", relative_error=0.5)
    assert [device.name for device in usable_devices(runtime)] == ["Tesla T4"]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"available": False}, "PyTorch can use no GPU here"),
        ({"available": None}, "torch_runtime.available is unknown"),
        ({"hip_version": "6.4"}, "PyTorch is built for ROCm"),
        ({"precision_results": None}, "torch_runtime.precision_results is unknown"),
        ({"device_capabilities": None}, "torch_runtime.device_capabilities is unknown"),
        ({"precision_results": ()}, "no float32 product of PyTorch came out right on a GPU"),
    ],
)
def test_why_there_is_no_usable_device(changes: dict[str, object], reason: str) -> None:
    with pytest.raises(Skip, match=reason):
        usable_devices(working(**changes))


def test_equal_devices_are_counted() -> None:
    assert described(["A", "B", "A"]) == "2 x A and B"


@pytest.mark.parametrize(
    ("name", "minor"),
    [
        ("NVIDIA GeForce GTX 1660 Ti", True),
        ("GeForce GTX 1650", True),
        ("Quadro T1000", True),
        ("NVIDIA T600 Laptop GPU", True),
        ("NVIDIA T1000 8GB", True),
        ("NVIDIA GeForce GTX 1080 Ti", False),
        ("NVIDIA GeForce RTX 2060", False),
        ("Tesla T4", False),
        ("Quadro RTX 4000", False),
        ("NVIDIA T4G", False),
    ],
)
def test_turing_chips_without_tensor_cores(name: str, minor: bool) -> None:
    assert is_minor_turing(name) is minor


GPU_ON_BUS = System(pci_gpus=(PciGpu(address="0000:01:00.0", vendor="nvidia", device_id="2684", name="RTX 4090"),))


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
    assert present_gpu(devices, driver, system) == name


def test_the_bus_names_a_device_that_nvml_has_lost() -> None:
    bus = PciGpu(address="0000:01:00.0", vendor="nvidia", device_id="2204", name="NVIDIA GeForce RTX 3090")
    lost = Device(nvml_index=0, error="GPU is lost")
    assert present_gpu((lost,), None, System(pci_gpus=(bus,))) == "NVIDIA GeForce RTX 3090"
    assert present_gpu((lost, lost), None, System(pci_gpus=(bus, bus))) == "an NVIDIA GPU"
