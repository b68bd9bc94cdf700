"""How many GPUs a program can use, which source says so, and what each of them has."""

from __future__ import annotations

from typing import Any

import pytest

from gpudoctor.conclusions.requirements.gpus import (
    PROPERTIES,
    Gpu,
    Gpus,
    judge_count,
    judge_property,
    least_count,
    usable_gpus,
)
from gpudoctor.model import (
    ComputeCapability,
    CudaDevice,
    Device,
    Driver,
    Snapshot,
    Torch,
    TorchRuntime,
)
from gpudoctor.model.requirement import MachineRequirement

GIB = 2**30
FOR_CUDA, FOR_CPU = Torch(build="cuda"), Torch(build="cpu")
ROCM = TorchRuntime(hip_version="6.2", available=True, device_count=3)
L4 = Device(nvml_index=0, name="NVIDIA L4", memory_total_bytes=24 * GIB, compute_capability=ComputeCapability(8, 9))
BROKEN = Device(nvml_index=1, name="NVIDIA L4", error="lost")
ONE = TorchRuntime(available=True, device_count=1)


@pytest.mark.parametrize(
    ("sections", "count", "fact"),
    [
        pytest.param({"torch_runtime": ROCM}, 3, "torch_runtime.device_count", id="ROCm"),
        pytest.param({"driver": Driver(cuda_device_count=2)}, 2, "driver.cuda_device_count", id="CUDA counts"),
        pytest.param({"driver": Driver(cuda_device_count=0)}, 0, "driver.cuda_device_count", id="CUDA counts none"),
        pytest.param({"driver": Driver(cuda_init_code=803)}, 0, "driver.cuda_init_code", id="CUDA does not start"),
        pytest.param({"driver": Driver(cuda_init_code=0)}, None, "", id="CUDA starts"),
        pytest.param({"driver": Driver(installed=False)}, 0, "driver.installed", id="no driver"),
        pytest.param({"driver": Driver(installed=True)}, None, "", id="a driver"),
        pytest.param({"driver": Driver(libcuda_path="")}, 0, "driver.libcuda_error", id="no libcuda"),
        pytest.param({"driver": Driver(libcuda_path="/usr/lib/libcuda.so.1")}, None, "", id="libcuda"),
        pytest.param({"torch": FOR_CUDA, "torch_runtime": ONE}, 1, "torch_runtime.device_count", id="PyTorch counts"),
        pytest.param({"torch": FOR_CUDA}, None, "", id="PyTorch was not imported"),
        pytest.param({"torch": FOR_CPU, "torch_runtime": ONE}, None, "", id="a CPU build knows nothing"),
        pytest.param(
            {"torch": FOR_CUDA, "torch_runtime": TorchRuntime(available=False, device_count=1)},
            0,
            "torch_runtime.available",
            id="PyTorch sees none",
        ),
        pytest.param({"torch": FOR_CUDA, "torch_runtime": TorchRuntime(device_count=1)}, None, "", id="not asked"),
        pytest.param(
            {"torch": FOR_CUDA, "torch_runtime": TorchRuntime(available=True, device_names=("a", "b"))},
            2,
            "torch_runtime.device_names",
            id="PyTorch names them",
        ),
        pytest.param({"torch": FOR_CUDA, "torch_runtime": TorchRuntime(available=True)}, None, "", id="not counted"),
        pytest.param({"devices": ()}, 0, "devices", id="NVML lists none"),
        pytest.param({"devices": (L4,)}, None, "", id="NVML of this machine lists what CUDA may not use"),
        pytest.param(
            {"devices": (L4, BROKEN), "contradictions": ()}, 1, "devices", id="a report lists one that answers"
        ),
        pytest.param({"devices": (BROKEN,), "contradictions": ()}, 0, "devices", id="a report lists a broken one"),
        pytest.param({"contradictions": ()}, None, "", id="a report lists nothing"),
    ],
)
def test_who_counts_the_gpus(sections: dict[str, Any], count: int | None, fact: str) -> None:
    found = usable_gpus(Snapshot(**sections))
    assert (found.count, found.facts) == (count, (fact,) if fact else ())
    assert bool(found.why) is (not count)


@pytest.mark.parametrize("change", [{"hip_version": None}, {"available": False}, {"device_count": None}])
def test_rocm_needs_all_three(change: dict[str, Any]) -> None:
    runtime = TorchRuntime(**{"hip_version": "6.2", "available": True, "device_count": 3, **change})
    assert usable_gpus(Snapshot(torch_runtime=runtime)).count is None


def cuda_device(name: str | None = "NVIDIA L4", gibibytes: int | None = 22) -> CudaDevice:
    memory = None if gibibytes is None else gibibytes * GIB
    return CudaDevice(name=name, compute_capability=ComputeCapability(8, 9), memory_total_bytes=memory)


SMALL = Device(nvml_index=1, name="NVIDIA L4", memory_total_bytes=12 * GIB)
UNSIZED = Device(nvml_index=1, name="NVIDIA L4")
SPLIT = Device(nvml_index=0, name="NVIDIA L4", memory_total_bytes=24 * GIB, mig_enabled=True)
OTHER = Device(nvml_index=0, name="NVIDIA T4", memory_total_bytes=16 * GIB)


@pytest.mark.parametrize(
    ("cuda", "devices", "gibibytes", "fact"),
    [
        pytest.param(cuda_device(), (L4,), 24, "devices[0].memory_total_bytes", id="the whole, by NVML"),
        pytest.param(cuda_device(), (OTHER, L4), 24, "devices[1].memory_total_bytes", id="the one of that name"),
        pytest.param(cuda_device(), (L4, L4), 24, "devices[0].memory_total_bytes", id="two alike"),
        pytest.param(cuda_device(), (L4, SMALL), 22, "driver.cuda_devices[0].memory_total_bytes", id="two sizes"),
        pytest.param(cuda_device(), (L4, UNSIZED), 22, "driver.cuda_devices[0].memory_total_bytes", id="one unknown"),
        pytest.param(cuda_device(), (SPLIT,), 22, "driver.cuda_devices[0].memory_total_bytes", id="a part of one"),
        pytest.param(cuda_device(), (OTHER,), 22, "driver.cuda_devices[0].memory_total_bytes", id="another"),
        pytest.param(cuda_device(), (), 22, "driver.cuda_devices[0].memory_total_bytes", id="NVML lists none"),
        pytest.param(cuda_device(gibibytes=None), (), None, None, id="nobody knows"),
    ],
)
def test_the_memory_of_a_gpu_that_cuda_names(
    cuda: CudaDevice, devices: tuple[Device, ...], gibibytes: int | None, fact: str | None
) -> None:
    driver = Driver(cuda_device_count=1, cuda_devices=(cuda,))
    (gpu,) = usable_gpus(Snapshot(driver=driver, devices=devices)).listed
    assert (gpu.name, gpu.capability) == ("NVIDIA L4", ComputeCapability(8, 9))
    assert gpu.memory_bytes == (None if gibibytes is None else gibibytes * GIB)
    named = ("driver.cuda_devices[0].name", "driver.cuda_devices[0].compute_capability")
    assert gpu.facts == (*named, *([fact] if fact else []))


@pytest.mark.parametrize(
    ("device", "name", "gibibytes"),
    [
        (L4, "NVIDIA L4", 24),
        (SPLIT, "NVIDIA L4", None),
        (Device(nvml_index=3, memory_total_bytes=GIB), "GPU 3", 1),
        (Device(nvml_index=0, name="A100 MIG 1g.5gb", memory_total_bytes=GIB), "A100 MIG 1g.5gb", None),
    ],
)
def test_a_gpu_that_nvml_lists(device: Device, name: str, gibibytes: int | None) -> None:
    (gpu,) = usable_gpus(Snapshot(driver=Driver(cuda_device_count=1), devices=(device, BROKEN))).listed
    assert (gpu.name, gpu.memory_bytes) == (name, None if gibibytes is None else gibibytes * GIB)


def test_one_of_two_is_hidden() -> None:
    found = usable_gpus(Snapshot(driver=Driver(cuda_device_count=1), devices=(L4, SMALL)))
    assert (found.count, len(found.listed), found.hidden) == (1, 2, 1)
    assert usable_gpus(Snapshot(driver=Driver(cuda_device_count=3), devices=(L4, SMALL))).hidden == 0


def asks(name: str, operator: str = "", value: Any = None) -> MachineRequirement:
    return MachineRequirement(text=f"{name}{operator}{value or ''}", name=name, operator=operator, value=value)


@pytest.mark.parametrize(
    ("requirements", "least"),
    [
        ((), 0),
        ((asks("gpu"),), 1),
        ((asks("gpu", ">=", 2),), 2),
        ((asks("gpu", "==", 2),), 2),
        ((asks("gpu", ">", 2),), 3),
        ((asks("gpu", "<", 2),), 0),
        ((asks("gpu", "<=", 2), asks("gpu", ">=", 1)), 1),
        ((asks("vram", ">=", 8),), 0),
    ],
)
def test_how_many_are_asked_for(requirements: tuple[MachineRequirement, ...], least: int) -> None:
    assert least_count(requirements) == least


@pytest.mark.parametrize(
    ("requirement", "count", "met"),
    [
        (asks("gpu"), 0, False),
        (asks("gpu"), 1, True),
        (asks("gpu", ">=", 2), 1, False),
        (asks("gpu", ">=", 2), 2, True),
        (asks("gpu", "==", 0), 0, True),
        (asks("gpu"), None, None),
    ],
)
def test_a_count_is_judged(requirement: MachineRequirement, count: int | None, met: bool | None) -> None:
    judgement = judge_count(requirement, Gpus(count=count, facts=("devices",)))
    assert (judgement.met, bool(judgement.faults)) == (met, not count)


@pytest.mark.parametrize(
    ("devices", "count", "least", "met", "left"),
    [
        pytest.param((L4, L4), 2, 0, True, 2, id="all of them"),
        pytest.param((L4, SMALL), 2, 0, False, 2, id="one of them has less"),
        pytest.param((L4, SMALL), 2, 1, True, 1, id="one is enough"),
        pytest.param((L4, SMALL), 1, 1, False, 2, id="the one that is hidden may be the larger"),
        pytest.param((L4, UNSIZED), 2, 0, None, 2, id="of one nobody knows"),
        pytest.param((L4,), 2, 0, None, 1, id="one is not listed"),
        pytest.param((L4,), 1, 5, True, 1, id="fewer than are asked for: that is judged elsewhere"),
        pytest.param((L4,), 0, 0, False, 1, id="none can be used"),
    ],
)
def test_a_property_is_judged(devices: tuple[Device, ...], count: int, least: int, met: bool | None, left: int) -> None:
    gpus = usable_gpus(Snapshot(driver=Driver(cuda_device_count=count), devices=devices))
    judgement, rest = judge_property(asks("vram", ">=", 20 * GIB), gpus, least)
    assert (judgement.met, len(rest.listed)) == (met, left)


def gpu(name: str = "", capability: tuple[int, int] | None = None, memory_bytes: int | None = None) -> Gpu:
    known = None if capability is None else ComputeCapability(*capability)
    device = Device(nvml_index=0, name=name or None, compute_capability=known)
    return Gpu(name=name or "GPU 0", device=device, capability=known, memory_bytes=memory_bytes, facts=("devices",))


@pytest.mark.parametrize(
    ("requirement", "of", "met", "words"),
    [
        (asks("vram", ">=", 24 * GIB), gpu(memory_bytes=24 * GIB), True, "has 24.00 GiB"),
        (asks("vram", ">=", 25 * GIB), gpu(memory_bytes=24 * GIB), False, "has 24.00 GiB"),
        (asks("vram", ">=", 24 * GIB), gpu(), None, "does not show its memory"),
        (asks("compute_capability", ">=", "8.0"), gpu("NVIDIA L4", (8, 9)), True, "has compute capability 8.9"),
        (asks("compute_capability", ">=", "9.0"), gpu("NVIDIA L4", (8, 9)), False, "has compute capability 8.9"),
        (asks("compute_capability", ">=", "9.0"), gpu(), None, "does not show its compute capability"),
        (asks("bf16"), gpu("NVIDIA L4", (8, 9)), True, "has bf16 (compute"),
        (asks("bf16"), gpu("Tesla T4", (7, 5)), False, "emulates bf16 (compute"),
        (asks("fp16"), gpu("GeForce GTX 1080", (6, 1)), False, "has fp16 far below the fp32 rate (compute"),
        (asks("tf32"), gpu("Tesla T4", (7, 5)), False, "has no tf32 (compute"),
        (asks("fp8"), gpu("NVIDIA L4", (8, 9)), True, "has fp8 (compute"),
        (asks("tf32"), gpu("NVIDIA L4", (8, 9)), True, "has tf32 (compute"),
        (asks("bf16"), gpu(), None, "does not show its compute capability, and with it whether bf16 is native"),
        (
            asks("fp8"),
            gpu("NVIDIA X", (99, 0)),
            None,
            "has compute capability 99.0, for which native fp8 is not verified",
        ),
    ],
)
def test_what_a_gpu_has(requirement: MachineRequirement, of: Gpu, met: bool | None, words: str) -> None:
    found, said = PROPERTIES[requirement.name](requirement, of)
    assert found is met
    assert said.startswith(words)


def test_of_an_unknown_number_nothing_is_said_of_each() -> None:
    gpus = Gpus(count=None, why="CUDA was not asked")
    judgement, rest = judge_property(asks("vram", ">=", GIB), gpus, 1)
    assert (judgement.met, rest) == (None, gpus)
    assert Gpus(count=1).hidden == 0


@pytest.mark.parametrize(
    ("devices", "facts"), [((L4, UNSIZED), ("devices[1].name",)), ((L4,), ("driver.cuda_device_count",))]
)
def test_what_is_not_known_is_named(devices: tuple[Device, ...], facts: tuple[str, ...]) -> None:
    gpus = usable_gpus(Snapshot(driver=Driver(cuda_device_count=2), devices=devices))
    judgement, _ = judge_property(asks("vram", ">=", 20 * GIB), gpus, 0)
    assert judgement.facts == facts
    known = (
        "NVIDIA L4 does not show its memory"
        if len(devices) == 2
        else "of the 2 GPUs that can be used, it is known for 1"
    )
    assert judgement.found == known
