"""What CUDA makes of the variables that choose devices."""

from typing import Any

import pytest

from gpudoctor.conclusions import Facts
from gpudoctor.conclusions.visible_devices import choose
from gpudoctor.model import (
    Device,
    Driver,
    Environment,
    Snapshot,
    Symptom,
    System,
    TorchRuntime,
    VisibleDevices,
)
from gpudoctor.symptoms.facts import with_symptoms

TWO = tuple(Device(nvml_index=index, uuid=f"GPU-{index}a{index}b") for index in range(2))
PARTITIONED = (Device(nvml_index=0, uuid="GPU-0a", mig_enabled=True, mig_uuids=("MIG-1a",)),)


def found(**sections: Any) -> VisibleDevices:
    concluded = Facts(with_symptoms(Snapshot(**sections))).get("visible_devices")
    assert isinstance(concluded, VisibleDevices)
    return concluded


@pytest.mark.parametrize(
    ("value", "visible", "reason", "after"),
    [
        ("0,1", ("0", "1"), "", ()),
        ("1gpu2", ("1",), "", ()),
        ("", (), "ends the list", ()),
        ("-1", (), "ends the list", ()),
        ("1,-1,0", ("1",), "ends the list", ("0",)),
        ("all", (), "ends the list", ()),
        ("$0", (), "is a variable of the shell, not a number", ()),
        ("0,$1", ("0",), "is a variable of the shell, not a number", ()),
        ("0,2,1", ("0",), "is above the highest GPU number, 1", ("1",)),
        ("0,0", (), "is named twice, which empties the list", ()),
        ("GPU-1A", ("GPU-1A",), "", ()),
        ("GPU-9", (), "names no GPU of this machine", ()),
        ("GPU-0a,1", ("GPU-0a",), "is not a UUID", ()),
    ],
)
def test_entries(value: str, visible: tuple[str, ...], reason: str, after: tuple[str, ...]) -> None:
    choice = choose(value, TWO)
    assert (choice.visible, choice.reason, choice.after, choice.count) == (visible, reason, after, 2)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("MIG-1a", ""),
        ("MIG-2", "names no GPU of this machine"),
        ("MIG-GPU-0a/1/0", ""),
        ("3", ""),  # instances have numbers, too
    ],
)
def test_instances(value: str, reason: str) -> None:
    assert choose(value, PARTITIONED).reason == reason


def test_unknown_devices_refute_no_entry() -> None:
    assert choose("7", None).visible == ("7",)
    assert choose("GPU-9", None).visible == ("GPU-9",)


@pytest.mark.parametrize(("value", "hides"), [("-1", True), ("", True), ("9", False)])
def test_what_hides_every_gpu_there_may_be(value: str, hides: bool) -> None:
    choice = found(environment=Environment(variables={"CUDA_VISIBLE_DEVICES": value}), devices=TWO).nvidia
    assert choice is not None
    assert (choice.visible, choice.hides_all) == ((), hides)


@pytest.mark.parametrize(
    ("variables", "name"),
    [
        ({"ROCR_VISIBLE_DEVICES": "1"}, "ROCR_VISIBLE_DEVICES"),
        ({"ROCR_VISIBLE_DEVICES": "0", "HIP_VISIBLE_DEVICES": "-1"}, "HIP_VISIBLE_DEVICES"),
        ({"ROCR_VISIBLE_DEVICES": "GPU-1"}, None),
        ({"HIP_VISIBLE_DEVICES": "0"}, None),
        ({}, None),
    ],
)
def test_amd(variables: dict[str, str], name: str | None) -> None:
    choice = found(environment=Environment(variables=variables), system=System(amd_gfx_targets=("gfx1100",))).amd
    assert (choice.name if choice else None) == name


@pytest.mark.parametrize(
    ("count", "value", "reason"),
    [
        (2, "1", None),
        (2, "2", "is above the highest GPU number, 1"),
        (2, "-1", "ends the list"),
        (2, "x", "ends the list"),
        (None, "5", None),
        (None, "", "ends the list"),
    ],
)
def test_why_amd_gpus_are_hidden(count: int | None, value: str, reason: str | None) -> None:
    targets = None if count is None else ("gfx1100",) * count
    environment = Environment(variables={"ROCR_VISIBLE_DEVICES": value})
    choice = found(environment=environment, system=System(amd_gfx_targets=targets)).amd
    assert (choice.reason if choice else None) == reason
    assert (choice.count if choice else count) == count


NO_DEVICE = Symptom(kind="torch-no-gpus", text="No CUDA GPUs are available", code="cuda-100")
NO_DRIVER = Symptom(kind="torch-no-driver", text="Found no NVIDIA driver on your system")


@pytest.mark.parametrize(
    ("sections", "misses", "finds_none"),
    [
        pytest.param({"symptoms": (NO_DEVICE,)}, True, True, id="no device"),
        pytest.param({"symptoms": (NO_DEVICE, NO_DRIVER)}, False, True, id="no driver in another program"),
        pytest.param({"torch_runtime": TorchRuntime(available=False)}, True, True, id="silent"),
        pytest.param(
            {"torch_runtime": TorchRuntime(available=False, availability_error="x")}, False, True, id="another reason"
        ),
        pytest.param({"torch_runtime": TorchRuntime(available=True)}, False, False, id="available"),
    ],
)
def test_what_programs_find(sections: dict[str, Any], misses: bool, finds_none: bool) -> None:
    result = found(**sections)
    assert (result.misses, result.finds_none) == (misses, finds_none)


@pytest.mark.parametrize(
    ("sections", "some"),
    [
        ({"driver": Driver(cuda_device_count=1)}, True),
        ({"driver": Driver(cuda_device_count=0)}, False),
        ({"torch_runtime": TorchRuntime(available=True, device_count=1)}, True),
        ({"torch_runtime": TorchRuntime(available=True, device_count=0)}, False),
    ],
)
def test_devices_in_spite_of_the_variable(sections: dict[str, Any], some: bool) -> None:
    assert found(**sections).finds_some is some


@pytest.mark.parametrize(("count", "too_few"), [(1, True), (2, False), (None, False)])
def test_fewer_than_are_named(count: int | None, too_few: bool) -> None:
    environment = Environment(variables={"CUDA_VISIBLE_DEVICES": "0,1"})
    runtime = TorchRuntime(available=True, device_count=count)
    assert found(environment=environment, torch_runtime=runtime).too_few is too_few


def test_a_gpu_in_one_program_and_none_in_another() -> None:
    runtime = TorchRuntime(device_names=("NVIDIA A10",))
    result = found(torch_runtime=runtime, symptoms=(NO_DEVICE,))
    assert result.seen_elsewhere == "PyTorch sees NVIDIA A10 in one program"
    assert result.seen_elsewhere_facts == ("symptoms[0].text", "torch_runtime.device_names")
    assert found(torch_runtime=runtime).seen_elsewhere == ""


def test_a_report_in_which_pytorch_sees_gpus_hides_none() -> None:
    runtime = TorchRuntime(available=True)
    assert found(environment=Environment(variables={"CUDA_VISIBLE_DEVICES": "$GPU"}), torch_runtime=runtime).finds_some
