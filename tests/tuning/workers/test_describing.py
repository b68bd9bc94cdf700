"""What a device is, and which precisions it has itself."""

from __future__ import annotations

import pytest

from gpudoctor.errors import UsageError
from gpudoctor.tuning.workers import describing
from gpudoctor.tuning.workers.describing import choose_device, cuda_precisions, describe_arrays, describe_torch
from gpudoctor.tuning.workers.devices import Host

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


def test_where_there_is_no_gpu_at_all_a_check_tells_why() -> None:
    with pytest.raises(UsageError, match=r"^--device cuda: .* this machine has cpu; gpudoctor check shows why$"):
        choose_device("cuda", ["cpu"])


@pytest.mark.parametrize(
    ("capability", "bf16_native", "supported"),
    [
        pytest.param((9, 0), True, ("fp32", "tf32", "bf16", "fp16"), id="H100"),
        pytest.param((8, 0), None, ("fp32", "tf32", "bf16", "fp16"), id="A100, torch that tells nothing"),
        pytest.param((7, 5), False, ("fp32", "fp16"), id="T4"),
        pytest.param((7, 5), None, ("fp32", "fp16"), id="T4, torch that counts emulation"),
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
