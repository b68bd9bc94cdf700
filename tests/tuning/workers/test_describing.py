"""What a device is, and which precisions it has itself."""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError
from types import SimpleNamespace
from typing import Any

import pytest

from gpudoctor.errors import UsageError
from gpudoctor.model.tuning import TunedDevice
from gpudoctor.tuning.workers import describing
from gpudoctor.tuning.workers.describing import (
    choose_device,
    cuda_precisions,
    describe_arrays,
    describe_torch,
    visible_name,
)
from gpudoctor.tuning.workers.devices import Device, Host
from tests.tuning.workers.asked import Asked

TWO_GPUS = ["cuda:0", "cuda:1", "cpu"]


@pytest.mark.parametrize(
    ("wanted", "names", "chosen"),
    [
        ("auto", TWO_GPUS, "cuda:0"),
        ("auto", ["mps", "cpu"], "mps"),
        ("auto", ["cpu"], "cpu"),
        ("cpu", TWO_GPUS, "cpu"),
        ("cuda", TWO_GPUS, "cuda:0"),
        ("cuda:1", TWO_GPUS, "cuda:1"),
    ],
)
def test_the_device_that_is_meant(wanted: str, names: list[str], chosen: str) -> None:
    assert choose_device(wanted, names) == chosen


@pytest.mark.parametrize("wanted", ["cuda:2", "mps", "gpu", "", "cuda:01"])
def test_a_device_that_is_not_there(wanted: str) -> None:
    with pytest.raises(UsageError, match="no such device; this machine has cuda:0, cuda:1, cpu$"):
        choose_device(wanted, TWO_GPUS)


def test_without_any_gpu_a_check_says_why() -> None:
    with pytest.raises(UsageError, match=r"^--device cuda: .* this machine has cpu; gpudoctor check shows why$"):
        choose_device("cuda", ["cpu"])


@pytest.mark.parametrize(
    ("capability", "bf16_native", "supported"),
    [
        pytest.param((9, 0), True, ("fp32", "tf32", "bf16", "fp16"), id="H100"),
        pytest.param((8, 0), None, ("fp32", "tf32", "bf16", "fp16"), id="A100, torch that tells nothing"),
        pytest.param((7, 5), False, ("fp32", "fp16"), id="T4"),
        pytest.param((7, 5), None, ("fp32", "fp16"), id="T4, torch that counts emulation"),
        pytest.param((5, 3), False, ("fp32", "fp16"), id="Jetson TX1"),
        pytest.param((5, 2), False, ("fp32",), id="Maxwell"),
        pytest.param(None, True, ("fp32", "bf16", "fp16"), id="AMD"),
    ],
)
def test_precisions_of_a_device(
    capability: tuple[int, int] | None, bf16_native: bool | None, supported: tuple[str, ...]
) -> None:
    found, refused = cuda_precisions(capability, bf16_native=bf16_native)
    assert found == supported
    assert {reason.partition(":")[0] for reason in refused} == {"fp32", "tf32", "bf16", "fp16"} - set(supported)


def test_emulation_is_named() -> None:
    _, refused = cuda_precisions((7, 5), bf16_native=False)
    assert "bf16: emulated: native from compute capability 8.0, this device has 7.5" in refused


def test_the_host_for_torch() -> None:
    torch = pytest.importorskip("torch")
    device = describe_torch(Host())
    assert (device.kind, device.torch_version) == ("cpu", str(torch.__version__))
    assert device.name
    assert device.threads == torch.get_num_threads()
    assert device.precisions == ("fp32", "bf16")
    assert [reason.partition(":")[0] for reason in device.unsupported] == ["tf32", "fp16"]


def test_the_host_for_arrays() -> None:
    device = describe_arrays(Host())
    assert (device.kind, device.precisions, device.threads) == ("cpu", ("complex128", "complex64"), None)


@pytest.mark.parametrize(
    ("cpuinfo", "processor", "name"),
    [
        ("processor\t: 0\nmodel name\t: AMD EPYC 9454 \nflags\t: a\n", "x86_64", "AMD EPYC 9454"),
        ("processor\t: 0\nCPU part\t: 0xd40\n", "arm", "arm"),
        ("", "", "aarch64"),
    ],
)
def test_the_name_of_the_processor(monkeypatch: pytest.MonkeyPatch, cpuinfo: str, processor: str, name: str) -> None:
    monkeypatch.setattr(describing, "read_start", lambda path: cpuinfo if path == "/proc/cpuinfo" else "model name: x")
    monkeypatch.setattr("platform.processor", lambda: processor)
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    assert describing._processor_name() == name


@pytest.mark.parametrize(
    ("available", "count", "mps", "names"),
    [
        pytest.param(True, 2, None, ["cuda:0", "cuda:1", "cpu"], id="two GPUs"),
        pytest.param(False, 2, None, ["cpu"], id="CUDA that does not work"),
        pytest.param(False, 0, True, ["mps", "cpu"], id="a Mac"),
        pytest.param(False, 0, False, ["cpu"], id="a Mac of Intel"),
    ],
)
def test_the_devices_of_torch(
    available: bool, count: int, mps: bool | None, names: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = {"cuda.is_available": available, "cuda.device_count": count, "backends.mps.is_available": mps}
    values: dict[str, Any] = {"backends__mps": None} if mps is None else {}
    monkeypatch.setitem(sys.modules, "torch", Asked(answers, **values))
    assert describing.torch_device_names() == names


@pytest.mark.parametrize(
    ("count", "names"), [(2, ["cuda:0", "cuda:1", "cpu"]), (0, ["cpu"]), (RuntimeError("no driver"), ["cpu"])]
)
def test_the_devices_of_cupy(count: Any, names: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", Asked({"cuda.runtime.getDeviceCount": count}))
    assert describing.array_device_names() == names


class Gpu(Device):
    """A device of which nothing but kind, name and driver is known."""

    def __init__(self, name: str) -> None:
        self.kind, self.name = name.partition(":")[0], name

    def driver_version(self) -> str | None:
        return "580.1"


@pytest.fixture
def packages(monkeypatch: pytest.MonkeyPatch) -> None:
    """torch, and CuPy by the name of its package for CUDA 12."""
    installed = {"torch": "2.9.0", "cupy-cuda12x": "13.6.0"}

    def version(name: str) -> str:
        if name not in installed:
            raise PackageNotFoundError
        return installed[name]

    monkeypatch.setattr(describing, "version", version)
    monkeypatch.setattr(describing, "host_memory", lambda: (800, 500))
    monkeypatch.setattr(describing, "read_start", lambda path: "vendor\t: x\nmodel name\t: EPYC 9654 \n")


A100 = {
    "cuda.get_device_properties": SimpleNamespace(name="NVIDIA A100", major=8, minor=0),
    "cuda.mem_get_info": (300, 400),
    "cuda.is_bf16_supported": True,
}
DRIVEN: dict[str, Any] = {"driver_version": "580.1", "cupy_version": "13.6.0"}
ON_CUDA: dict[str, Any] = {"kind": "cuda", "index": 1, "memory_total_bytes": 400, "memory_usable_bytes": 300, **DRIVEN}
NEEDS_NVIDIA = "tf32: only NVIDIA GPUs have this format"
T4 = SimpleNamespace(name="Tesla T4", major=7, minor=5)


@pytest.mark.usefixtures("packages")
@pytest.mark.parametrize(
    ("answers", "hip", "expected"),
    [
        pytest.param(
            A100,
            None,
            {
                "name": "NVIDIA A100",
                "compute_capability": "8.0",
                "cuda_version": "12.8",
                "precisions": ("fp32", "tf32", "bf16", "fp16"),
            },
            id="A100",
        ),
        pytest.param(
            {**A100, "cuda.get_device_properties": T4, "cuda.is_bf16_supported": TypeError("an older torch")},
            None,
            {
                "name": "Tesla T4",
                "compute_capability": "7.5",
                "cuda_version": "12.8",
                "precisions": ("fp32", "fp16"),
                "unsupported": (
                    "tf32: needs compute capability 8.0, this device has 7.5",
                    "bf16: emulated: native from compute capability 8.0, this device has 7.5",
                ),
            },
            id="T4",
        ),
        pytest.param(
            A100,
            "6.2",
            {"name": "NVIDIA A100", "precisions": ("fp32", "bf16", "fp16"), "unsupported": (NEEDS_NVIDIA,)},
            id="AMD",
        ),
    ],
)
def test_a_gpu_for_torch(
    answers: dict[str, Any], hip: str | None, expected: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = Asked(answers, version__hip=hip, version__cuda="12.8", __version__="2.9.0+cu128")
    monkeypatch.setitem(sys.modules, "torch", torch)
    assert describe_torch(Gpu("cuda:1")) == TunedDevice(torch_version="2.9.0+cu128", **ON_CUDA, **expected)
    assert ("cuda.get_device_properties", "cuda:1") in torch.calls
    assert ("cuda.mem_get_info", "cuda:1") in torch.calls
    assert ("cuda.is_bf16_supported", {"including_emulation": False}) in torch.calls


@pytest.mark.parametrize(
    ("index", "environ", "rocm", "name"),
    [
        pytest.param(0, {"CUDA_VISIBLE_DEVICES": "3"}, False, "3", id="renumbered"),
        pytest.param(1, {"CUDA_VISIBLE_DEVICES": "3, GPU-5f1c"}, False, "GPU-5f1c", id="a UUID"),
        pytest.param(0, {"HIP_VISIBLE_DEVICES": "2", "CUDA_VISIBLE_DEVICES": "3"}, True, "2", id="AMD"),
        pytest.param(2, {"CUDA_VISIBLE_DEVICES": "3"}, False, "", id="no such device"),
        pytest.param(0, {}, False, "", id="not set"),
    ],
)
def test_what_the_environment_calls_a_device(index: int, environ: dict[str, str], rocm: bool, name: str) -> None:
    assert visible_name(index, environ, rocm=rocm) == name


@pytest.mark.usefixtures("packages")
@pytest.mark.parametrize(("recommended", "memory"), [(700, (700, 700)), (AttributeError("before 2.4"), (800, 500))])
def test_a_mac_for_torch(recommended: Any, memory: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    torch = Asked({"mps.recommended_max_memory": recommended}, __version__="2.9.0", bfloat16="bf16", float16="fp16")
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setattr(describing, "_why_no_autocast", lambda _, kind, dtype: "" if dtype == "fp16" else f"not {kind}")
    assert describe_torch(Gpu("mps")) == TunedDevice(
        kind="mps",
        name="EPYC 9654",
        memory_total_bytes=memory[0],
        memory_usable_bytes=memory[1],
        torch_version="2.9.0",
        precisions=("fp32", "fp16"),
        unsupported=(NEEDS_NVIDIA, "bf16: not mps"),
        **DRIVEN,
    )


def test_what_autocast_says() -> None:
    torch = pytest.importorskip("torch")
    why = describing._why_no_autocast
    assert why(torch, "cpu", torch.bfloat16) == ""
    assert why(torch, "cpu", torch.float64) == "autocast does not support it on this device"
    assert why(torch, "no such kind", torch.bfloat16).startswith("RuntimeError: ")
    assert len(why(SimpleNamespace(), "cpu", None)) == len(
        "AttributeError: 'types.SimpleNamespace' object has no attribute 'autocast'"
    )


@pytest.mark.usefixtures("packages")
@pytest.mark.parametrize(
    ("name", "runtime", "version"), [(b"NVIDIA A100", 12080, "12.8"), ("NVIDIA A100", 11990, "11.99")]
)
def test_a_gpu_for_cupy(name: Any, runtime: int, version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {
        "cuda.runtime.getDeviceProperties": {"name": name, "major": 8, "minor": 6},
        "cuda.runtime.runtimeGetVersion": runtime,
        "cuda.Device": SimpleNamespace(mem_info=(300, 400)),
    }
    cupy = Asked(answers)
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    assert describe_arrays(Gpu("cuda:1")) == TunedDevice(
        name="NVIDIA A100",
        compute_capability="8.6",
        cuda_version=version,
        precisions=("complex128", "complex64"),
        torch_version="2.9.0",
        **ON_CUDA,
    )
    assert [call[1:] for call in cupy.calls] == [(1,), (1,), ()]


@pytest.mark.usefixtures("packages")
def test_the_whole_host_for_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = TunedDevice(
        kind="cpu",
        name="EPYC 9654",
        memory_total_bytes=800,
        memory_usable_bytes=500,
        torch_version="2.9.0",
        cupy_version="13.6.0",
        precisions=("complex128", "complex64"),
    )
    assert describe_arrays(Device()) == expected
    monkeypatch.setattr(describing, "host_memory", lambda: (None, None))
    monkeypatch.setattr(describing, "version", Asked({"": PackageNotFoundError()}))
    bare = TunedDevice(kind="cpu", name="EPYC 9654", precisions=("complex128", "complex64"))
    assert describe_arrays(Device()) == bare
