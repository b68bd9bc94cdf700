"""GPUs as torch knows them, by a stand-in for torch: what it is asked, in which order, and what its answers mean."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("torch")

from gpudoctor.tuning.workers import torch_devices as module
from gpudoctor.tuning.workers.devices import Host, MemoryUse
from gpudoctor.tuning.workers.torch_devices import open_device
from tests.tuning.workers.asked import Asked

H100 = SimpleNamespace(
    total_memory=1000, name="NVIDIA H100", uuid="1a-2b", pci_domain_id=1, pci_bus_id=26, pci_device_id=0
)
ON_DEVICE = {
    "cuda.get_device_properties": H100,
    "cuda.max_memory_allocated": 70,
    "cuda.memory_allocated": 20,
    "cuda.max_memory_reserved": 90,
    "monitor": "its monitor",
}


def torch_of(monkeypatch: pytest.MonkeyPatch, answers: dict[str, Any], **values: Any) -> Asked:
    """Put a stand-in in the place of torch, of the garbage collector and of NVML."""
    torch = Asked(answers, **{"version__hip": None, **values})
    monkeypatch.setattr(module, "torch", torch)
    monkeypatch.setattr(module, "gc", torch.gc)
    monkeypatch.setattr(module, "open_monitor", torch.monitor)
    return torch


def test_a_trial_on_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    retries = iter([{"num_alloc_retries": 2}, {}, {"num_alloc_retries": 5}])
    torch = torch_of(monkeypatch, {**ON_DEVICE, "cuda.memory_stats": retries, "cuda.Event": "an event"})
    device: Any = open_device("cuda:1", "/pynvml.py")
    assert (device.kind, device.name, device.monitor) == ("cuda", "cuda:1", "its monitor")
    assert torch.calls == [
        ("cuda.set_device", 1),
        ("cuda.init",),
        ("cuda.get_device_properties", 1),
        ("monitor", {"uuid": "GPU-1a-2b", "pci_bus_id": "00000001:1A:00.0", "module_path": "/pynvml.py"}),
        ("cuda.get_device_properties", 1),
    ]
    torch.calls.clear()
    use = {"peak_bytes": 70, "resident_bytes": 20, "reserved_bytes": 90}
    assert device.memory_use() == MemoryUse(**use, allocation_retries=2)
    torch.calls.clear()
    device.begin()
    assert device.memory_use() == MemoryUse(**use, allocation_retries=5)
    assert torch.calls == [
        ("gc.collect",),
        ("cuda.empty_cache",),
        ("cuda.reset_peak_memory_stats", 1),
        ("cuda.memory_stats", 1),
        ("cuda.synchronize", 1),
        ("gc.collect",),
        ("cuda.max_memory_allocated", 1),
        ("cuda.memory_allocated", 1),
        ("cuda.max_memory_reserved", 1),
        ("cuda.memory_stats", 1),
    ]
    assert device.new_event() == "an event"
    assert torch.calls[-1] == ("cuda.Event", {"enable_timing": True})
    assert device.milliseconds_between(SimpleNamespace(elapsed_time=lambda after: after * 2), 3) == 6.0


@pytest.mark.parametrize(
    ("limit", "free", "reserved", "share", "full"),
    [
        pytest.param(None, 50, 950, None, False, id="a twentieth is left"),
        pytest.param(None, 49, 900, None, True, id="less is free"),
        pytest.param(None, 500, 951, None, True, id="less is left of what the process may have"),
        pytest.param(400, 500, 380, 0.4, False, id="a limit"),
        pytest.param(400, 500, 381, 0.4, True, id="nearly at the limit"),
        pytest.param(2000, 500, 900, 1.0, False, id="a limit beyond the device's memory"),
        pytest.param(None, RuntimeError("CUDA error"), 999, None, False, id="a device that answers no longer"),
    ],
)
def test_when_the_memory_of_cuda_is_full(
    limit: int | None, free: Any, reserved: int, share: float | None, full: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = free if isinstance(free, Exception) else (free, 1000)
    torch = torch_of(monkeypatch, {**ON_DEVICE, "cuda.mem_get_info": info, "cuda.memory_reserved": reserved})
    device = open_device("cuda:0", None)
    if limit is not None:
        device.limit_memory(limit)
        assert torch.calls[-1] == ("cuda.set_per_process_memory_fraction", share, 0)
    assert device.is_full() is full


@pytest.mark.parametrize(
    ("changes", "uuid", "pci"),
    [
        pytest.param({}, "GPU-1a-2b", "00000001:1A:00.0", id="a GPU"),
        pytest.param({"uuid": "GPU-1a-2b"}, "GPU-1a-2b", "00000001:1A:00.0", id="a UUID with its prefix"),
        pytest.param({"name": "NVIDIA H100 MIG 1g.10gb"}, "MIG-1a-2b", "00000001:1A:00.0", id="a part of one"),
        pytest.param({"uuid": None}, None, "00000001:1A:00.0", id="torch that tells no UUID"),
        pytest.param({"pci_device_id": None}, "GPU-1a-2b", None, id="torch that tells no place"),
    ],
)
def test_how_nvml_finds_the_device(
    changes: dict[str, Any], uuid: str | None, pci: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = {name: value for name, value in {**vars(H100), **changes}.items() if value is not None}
    torch = torch_of(monkeypatch, {**ON_DEVICE, "cuda.get_device_properties": SimpleNamespace(**known)})
    open_device("cuda:0", None)
    assert ("monitor", {"uuid": uuid, "pci_bus_id": pci, "module_path": None}) in torch.calls


def test_a_device_of_amd_has_no_monitor(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = torch_of(monkeypatch, ON_DEVICE, version__hip="6.2")
    device: Any = open_device("cuda:0", None)
    assert device.monitor is None
    assert "monitor" not in {call[0] for call in torch.calls}


def test_a_trial_on_mps(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {"mps.driver_allocated_memory": 80, "mps.current_allocated_memory": 30, "mps.recommended_max_memory": 100}
    torch = torch_of(monkeypatch, answers)
    device = open_device("mps", None)
    assert (device.kind, device.name) == ("mps", "mps")
    device.begin()
    assert device.memory_use() == MemoryUse(peak_bytes=80, resident_bytes=30, reserved_bytes=80)
    device.limit_memory(50)
    device.limit_memory(300)
    assert torch.calls == [
        ("gc.collect",),
        ("mps.empty_cache",),
        ("mps.synchronize",),
        ("gc.collect",),
        ("mps.driver_allocated_memory",),
        ("mps.current_allocated_memory",),
        ("mps.recommended_max_memory",),
        ("mps.set_per_process_memory_fraction", 0.5),
        ("mps.recommended_max_memory",),
        ("mps.set_per_process_memory_fraction", 1.0),
    ]


@pytest.mark.parametrize(("held", "full"), [(95, False), (96, True), (RuntimeError("MPS"), False)])
def test_when_the_memory_of_mps_is_full(held: Any, full: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    torch_of(monkeypatch, {"mps.driver_allocated_memory": held, "mps.recommended_max_memory": 100})
    assert open_device("mps", None).is_full() is full


def test_an_mps_that_recommends_no_memory_has_no_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = torch_of(monkeypatch, {"mps.recommended_max_memory": AttributeError("before torch 2.4")})
    open_device("mps", None).limit_memory(50)
    assert torch.calls == [("mps.recommended_max_memory",)]


def test_the_host_is_no_gpu() -> None:
    assert isinstance(open_device("cpu", None), Host)
