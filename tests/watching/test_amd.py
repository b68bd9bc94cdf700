"""AMD GPUs: answers in the form that amdsmi documents, also those that say that nothing is known."""

from __future__ import annotations

import os
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from gpudoctor.watching.amd import AmdGpus
from gpudoctor.watching.samples import DeviceSample, WatchedDevice

MIB = 2**20
ANSWERS: dict[str, Any] = {
    "amdsmi_init": None,
    "amdsmi_get_processor_handles": ["first", "second"],
    "amdsmi_get_gpu_asic_info": {"market_name": "AMD Instinct MI300X", "vendor_id": "0x1002"},
    "amdsmi_get_gpu_vram_usage": {"vram_total": 196592, "vram_used": 1300},
    "amdsmi_get_gpu_activity": {"gfx_activity": 37, "umc_activity": 2, "mm_activity": "N/A"},
    "amdsmi_get_clock_info": {"clk": 1305, "min_clk": 500, "max_clk": 2100},
    "amdsmi_get_power_info": {"current_socket_power": 310, "average_socket_power": "N/A"},
    "amdsmi_get_gpu_process_list": [
        {"name": "python", "pid": os.getpid(), "mem": 1000 * MIB},
        {"name": "other", "pid": os.getppid(), "mem": 600 * MIB},
    ],
}


@pytest.fixture(autouse=True)
def no_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"):
        monkeypatch.delenv(name, raising=False)


def amdsmi(monkeypatch: pytest.MonkeyPatch, **changed: Any) -> None:
    """Let amdsmi answer so; an answer that is an error is raised."""
    module = ModuleType("amdsmi")
    vars(module)["AmdSmiClkType"] = SimpleNamespace(GFX=1)
    for name, answer in {**ANSWERS, **changed}.items():

        def function(*_: Any, answer: Any = answer) -> Any:
            if isinstance(answer, Exception):
                raise answer
            return answer

        setattr(module, name, function)
    monkeypatch.setitem(sys.modules, "amdsmi", module)


def test_what_is_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    amdsmi(monkeypatch)
    gpus = AmdGpus()
    (device, handle), _ = gpus.devices()
    assert (device, handle) == (
        WatchedDevice(nvml_index=0, name="AMD Instinct MI300X", memory_total_bytes=196592 * MIB, clock_max_mhz=2100),
        "first",
    )
    assert gpus.sample(0, handle, {os.getpid(), 78}) == DeviceSample(
        nvml_index=0,
        utilization_percent=37,
        memory_used_bytes=1300 * MIB,
        clock_mhz=1305,
        power_watts=310,
        is_used_by_program=True,
        other_bytes=600 * MIB,
    )
    assert gpus.sample(0, handle, {99}).is_used_by_program is False


def test_process_ids_of_another_namespace(monkeypatch: pytest.MonkeyPatch) -> None:
    amdsmi(monkeypatch, amdsmi_get_gpu_process_list=[{"name": "python", "pid": 2**30, "mem": MIB}])
    assert AmdGpus().sample(0, "first", {99}).is_used_by_program is None


def test_what_is_not_supported_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = dict.fromkeys((name for name in ANSWERS if "get_gpu" in name or "info" in name), RuntimeError("refused"))
    amdsmi(monkeypatch, **{**refused, "amdsmi_get_gpu_activity": {"gfx_activity": "N/A"}})
    gpus = AmdGpus()
    device, handle = next(gpus.devices())
    assert device == WatchedDevice(nvml_index=0, name="AMD GPU")
    assert gpus.sample(0, handle, {77}) == DeviceSample(nvml_index=0)


@pytest.mark.parametrize(("chosen", "expected"), [("1", [1]), ("0,1", [0, 1]), ("", [0, 1]), ("-1", [])])
def test_gpus_that_the_job_has(chosen: str, expected: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    amdsmi(monkeypatch)
    monkeypatch.setenv("HIP_VISIBLE_DEVICES", chosen)
    assert [device.nvml_index for device, _ in AmdGpus().devices()] == expected


def test_no_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    amdsmi(monkeypatch, amdsmi_init=RuntimeError("no driver"))
    assert list(AmdGpus().devices()) == []


def test_no_module(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "amdsmi", None)
    assert list(AmdGpus().devices()) == []
