"""Autocast, gradient scaling and the switches of TF32."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from gpudoctor.tuning.workers.precision import Precision, TorchPrecision, make_precision  # noqa: E402

BACKENDS = torch.backends
NEWER_SWITCHES = pytest.mark.skipif(not hasattr(BACKENDS, "fp32_precision"), reason="needs torch 2.9 or newer")


@pytest.fixture(autouse=True)
def switches_as_they_were() -> Iterator[None]:
    """Set the switches of TF32 back to torch's defaults."""
    yield
    if hasattr(BACKENDS, "fp32_precision"):
        BACKENDS.cudnn.fp32_precision = BACKENDS.fp32_precision = "none"
    torch.set_float32_matmul_precision("highest")
    BACKENDS.cudnn.allow_tf32 = True


def product_type(precision: Any) -> Any:
    with precision.autocast():
        return (torch.ones(2, 2) @ torch.ones(2, 2)).dtype


@pytest.mark.parametrize(
    ("name", "expected"),
    [("fp32", torch.float32), ("tf32", torch.float32), ("bf16", torch.bfloat16), ("fp16", torch.float16)],
)
def test_autocast_decides_the_type_of_a_product(name: str, expected: Any) -> None:
    assert product_type(make_precision(name, "cpu")) is expected
    assert torch.get_default_dtype() is torch.float32


def test_the_reference_leaves_double_as_it_is() -> None:
    with make_precision("fp64", "cpu").autocast():
        assert (torch.ones(2, 2).double() @ torch.ones(2, 2).double()).dtype is torch.float64


def test_an_unknown_precision_is_named_with_those_there_are() -> None:
    with pytest.raises(ValueError, match="no precision is called 'fp8': there are fp32, tf32, bf16, fp16, complex128"):
        make_precision("fp8", "cpu")


def test_backward_steps_and_clears_the_gradients() -> None:
    weight = torch.nn.Parameter(torch.tensor([1.0, 2.0]))
    make_precision("fp32", "cpu").backward((3 * weight).sum(), torch.optim.SGD([weight], lr=0.1))
    assert torch.allclose(weight, torch.tensor([0.7, 1.7]))
    assert weight.grad is None


def scaled() -> TorchPrecision:
    """Return fp16 with the gradient scaler that it has on CUDA, working on the CPU."""
    precision = TorchPrecision("fp16", "cpu")
    precision.scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    return precision


def test_scaled_gradients_are_unscaled_before_the_optimiser_steps() -> None:
    weight = torch.nn.Parameter(torch.tensor([1.0, 2.0]))
    seen: list[Any] = []
    weight.register_hook(seen.append)
    scaled().backward((3 * weight).sum(), torch.optim.SGD([weight], lr=0.1))
    assert seen[0].tolist() == [3072.0, 3072.0]
    assert torch.allclose(weight, torch.tensor([0.7, 1.7]))
    assert weight.grad is None


def test_a_step_whose_gradients_overflow_is_left_out_and_the_scale_halved() -> None:
    weight = torch.nn.Parameter(torch.tensor([1.0, 2.0]))
    precision: Any = scaled()
    precision.backward((weight * float("inf")).sum(), torch.optim.SGD([weight], lr=0.1))
    assert weight.tolist() == [1.0, 2.0]
    assert precision.scaler.get_scale() == 512.0


@pytest.mark.parametrize(("name", "device"), [("fp16", "cpu"), ("fp16", "mps"), ("bf16", "cuda:0"), ("fp32", "cuda:0")])
def test_only_fp16_on_cuda_is_scaled(name: str, device: str) -> None:
    assert TorchPrecision(name, device).scaler is None


@pytest.mark.parametrize("name", ["fp32", "bf16", "fp16", "fp64"])
def test_tf32_is_off_everywhere_but_in_tf32(name: str) -> None:
    make_precision("tf32", "cpu").apply_switches()
    assert (BACKENDS.cuda.matmul.allow_tf32, BACKENDS.cudnn.allow_tf32) == (True, True)
    make_precision(name, "cpu").apply_switches()
    assert (BACKENDS.cuda.matmul.allow_tf32, BACKENDS.cudnn.allow_tf32) == (False, False)
    assert torch.get_float32_matmul_precision() == "highest"


def effective(operations: Any) -> str:
    """Return what an operation of cuDNN computes in, "none" resolved as torch does: from its owner, then from above."""
    own = operations.fp32_precision, BACKENDS.cudnn.fp32_precision, BACKENDS.fp32_precision
    return next((value for value in own if value != "none"), "ieee")


@NEWER_SWITCHES
@pytest.mark.parametrize("program", ["none", "ieee", "tf32"])
@pytest.mark.parametrize("owner", [BACKENDS, BACKENDS.cudnn], ids=["all", "cudnn"])
@pytest.mark.parametrize(("name", "expected"), [("fp32", "ieee"), ("tf32", "tf32")])
def test_what_the_program_has_set_by_the_newer_switches_is_overruled(
    owner: Any, program: str, name: str, expected: str
) -> None:
    owner.fp32_precision = program
    with warnings.catch_warnings(record=True) as given:
        make_precision(name, "cpu").apply_switches()
    assert given == []
    assert effective(BACKENDS.cudnn.conv) == effective(BACKENDS.cudnn.rnn) == expected
    assert BACKENDS.cuda.matmul.fp32_precision == expected
    assert BACKENDS.cudnn.allow_tf32 == (expected == "tf32"), "the older switches can still be read"
    with BACKENDS.cudnn.flags(enabled=False):
        assert not BACKENDS.cudnn.enabled


@pytest.mark.parametrize("name", ["complex64", "complex128"])
def test_arrays_have_no_context_and_no_gradients(name: str) -> None:
    precision = make_precision(name, "cpu")
    assert type(precision) is Precision
    with precision.autocast():
        precision.apply_switches()
    with pytest.raises(TypeError, match=f"a workload in {name} has no gradients"):
        precision.backward(None, None)


@pytest.mark.gpu
class TestOnCuda:
    """What only a GPU can show."""

    @pytest.fixture(autouse=True)
    def _device(self) -> None:
        if not torch.cuda.is_available():
            pytest.skip("needs an NVIDIA GPU and a CUDA build of PyTorch")

    @staticmethod
    def relative_error(name: str) -> float:
        """Return the error of a product of two random matrices against float64."""
        torch.manual_seed(0)
        left, right = torch.randn(2, 1024, 1024, device="cuda", dtype=torch.float64)
        make_precision(name, "cuda:0").apply_switches()
        error = (left.float() @ right.float()).double() - left @ right
        return float(error.norm() / (left @ right).norm())

    def test_tf32_shows_in_the_error_of_a_product(self) -> None:
        if torch.cuda.get_device_capability() < (8, 0):
            pytest.skip("TF32 needs compute capability 8.0")
        assert self.relative_error("fp32") < 1e-5
        assert 1e-5 < self.relative_error("tf32") < 1e-2

    def test_the_first_steps_of_fp16_are_not_left_out(self) -> None:
        precision = make_precision("fp16", "cuda:0")
        model = torch.nn.Linear(64, 10).cuda()
        optimizer = torch.optim.Adam(model.parameters())
        with precision.autocast():
            loss = torch.nn.functional.cross_entropy(model(torch.randn(1, 64).cuda()), torch.tensor([3]).cuda())
        precision.backward(loss, optimizer)
        assert optimizer.state


def test_before_torch_2_3_the_scaler_is_that_of_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(torch.amp, "GradScaler")
    monkeypatch.setattr(torch.cuda.amp, "GradScaler", lambda init_scale: ("the older one", init_scale))
    assert TorchPrecision("fp16", "cuda:0").scaler == ("the older one", 1024.0)
