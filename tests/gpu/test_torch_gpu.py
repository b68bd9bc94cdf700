"""PyTorch on a real device: the worker's products, and the checks that read them."""

import importlib.util
from pathlib import Path

import pytest

from gpudoctor.conclusions.torch_devices import torch_devices
from gpudoctor.data.numerics import error_bound, is_right
from gpudoctor.model import ComputeCapability, Outcome, TorchRuntime
from gpudoctor.probes.torch_build import parse_torch_runtime
from gpudoctor.testing import run_check
from tests.stand_ins import ask_worker

pytestmark = pytest.mark.gpu


def ask(**environ: str) -> TorchRuntime:
    return parse_torch_runtime(ask_worker("torch_runtime", environ, timeout=300)["facts"])


@pytest.fixture(scope="module")
def runtime() -> TorchRuntime:
    """Return the section, of a machine with a device and a CUDA build of PyTorch."""
    if not Path("/dev/nvidiactl").exists() or importlib.util.find_spec("torch") is None:
        pytest.skip("needs an NVIDIA GPU and PyTorch in this environment")
    runtime = ask()
    if runtime.cuda_version is None:
        pytest.skip("PyTorch is not built for CUDA")
    return runtime


def test_cuda_is_available_and_every_device_is_described(runtime: TorchRuntime) -> None:
    assert (runtime.available, runtime.availability_error) == (True, "")
    assert runtime.device_count
    for facts in (runtime.device_names, runtime.device_capabilities):
        assert facts is not None
        assert len(facts) == runtime.device_count
    assert runtime.architectures
    assert runtime.warnings == ()


def test_every_product_is_right(runtime: TorchRuntime) -> None:
    assert runtime.precision_results
    wrong = [result for result in runtime.precision_results if not is_right(result)]
    assert wrong == []


def test_tf32_lies_between_bf16_and_float32(runtime: TorchRuntime) -> None:
    for device in torch_devices(runtime).usable:
        if device.capability < ComputeCapability(8, 0):
            assert "tf32" not in device.errors
            continue
        errors = {precision: error or 0.0 for precision, error in device.errors.items()}
        assert 5 * errors["fp32"] < error_bound("fp32") < errors["tf32"] < errors["bf16"]


def test_the_switches_are_read_before_the_products_set_them(runtime: TorchRuntime) -> None:
    assert runtime.matmul_tf32 is False
    assert ask(TORCH_ALLOW_TF32_CUBLAS_OVERRIDE="1").matmul_tf32 is True


def test_a_hidden_device_is_an_error_with_its_text(runtime: TorchRuntime) -> None:
    hidden = ask(CUDA_VISIBLE_DEVICES="-1")
    assert (hidden.available, hidden.device_count, hidden.precision_results) == (False, 0, ())
    assert hidden.availability_error
    assert hidden.architectures == runtime.architectures


@pytest.mark.parametrize(
    "check_id", ["torch-import-failed", "torch-wrong-results", "fp16-nan", "tf32-precision-surprise"]
)
def test_a_healthy_device_has_no_finding(runtime: TorchRuntime, check_id: str) -> None:
    assert run_check(check_id, torch_runtime=runtime).outcome is Outcome.PASSED
