"""The GPUs that PyTorch lists, and those on which it computes."""

import pytest

from gpudoctor.conclusions.torch_devices import torch_devices
from gpudoctor.model import described
from gpudoctor.registry import Skip, usable_devices
from tests.torch_runtimes import L4, T4, with_result, working


def test_a_device_is_known_by_its_number_name_capability_and_results() -> None:
    device = torch_devices(working(L4, T4)).usable[1]
    assert (device.cuda_index, str(device)) == (1, "Tesla T4 (compute capability 7.5)")
    assert (device.computes("fp16"), device.computes("tf32")) == (True, False)
    assert device.capability_fact == "torch_runtime.device_capabilities[1]"
    assert device.error_facts["fp32"] == "torch_runtime.precision_results[4].relative_error"


def test_a_device_with_a_wrong_product_is_not_usable() -> None:
    runtime = with_result(working(L4, T4), "fp32", relative_error=0.5)
    assert [device.name for device in torch_devices(runtime).usable] == ["Tesla T4"]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"available": False}, "PyTorch can use no GPU here"),
        ({"available": None}, "torch_runtime.available is unknown"),
        ({"hip_version": "6.4"}, "PyTorch is built for ROCm"),
        ({"precision_results": None}, "torch_runtime.precision_results is unknown"),
        ({"device_capabilities": None}, "torch_runtime.device_capabilities is unknown"),
        ({"precision_results": ()}, "PyTorch computed no correct float32 product on a GPU"),
    ],
)
def test_why_there_is_no_usable_device(changes: dict[str, object], reason: str) -> None:
    with pytest.raises(Skip, match=reason):
        usable_devices(torch_devices(working(**changes)))


def test_nothing_is_listed_of_a_rocm_build() -> None:
    assert torch_devices(working(hip_version="6.4")).listed == ()


def test_the_devices_are_listed_though_the_results_are_unknown() -> None:
    assert [device.name for device in torch_devices(working(T4, precision_results=None)).listed] == ["Tesla T4"]


def test_without_an_import_nothing_is_known() -> None:
    with pytest.raises(Skip, match="torch_runtime is unknown"):
        usable_devices(torch_devices(None))


def test_equal_devices_are_counted() -> None:
    assert described(["A", "B", "A"]) == "2 x A and B"
