"""Comparing on real torch, on the CPU: healthy networks pass, planted faults are caught, nothing is left changed."""

import math
import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

from gpudoctor.tuning.workers import comparing, comparing_torch  # noqa: E402
from gpudoctor.tuning.workers.comparing import compare  # noqa: E402
from gpudoctor.tuning.workers.precision import make_precision  # noqa: E402
from tests.tuning.workers.small_networks import (  # noqa: E402
    CLASSES,
    FEATURES,
    Attentive,
    Recurrent,
    Training,
    convolutional,
    cross_entropy,
    images,
    perceptron,
    texts,
    trained,
    vectors,
    without_onednn,
)

Function: Any = torch.autograd.Function
TorchFunctionMode: Any = torch.overrides.TorchFunctionMode


@pytest.mark.parametrize("available", [True, False])
@pytest.mark.parametrize("initialised", [True, False])
def test_memory_is_given_back_if_cuda_is_in_use(
    available: bool, initialised: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    emptied: list[bool] = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: available)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: initialised)
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: emptied.append(True))
    comparing_torch.free_memory()
    assert emptied == [True] * (available and initialised)


LIMIT_SECONDS = 1000.0  # so that all steps are done on a busy machine too


def compared(factory: Any, precision: str, make: Any = make_precision) -> dict[str, Any]:
    return compare(factory, "cpu", precision, make, LIMIT_SECONDS)


@pytest.mark.parametrize(
    ("factory", "precision"),
    [
        pytest.param(trained(perceptron), "fp32", id="mlp-fp32"),
        pytest.param(trained(perceptron), "bf16", id="mlp-bf16"),
        pytest.param(trained(lambda: perceptron(depth=20)), "bf16", id="mlp of 20 layers-bf16"),
        pytest.param(trained(lambda: convolutional(12), images), "bf16", id="cnn of 24 layers-bf16"),
        pytest.param(trained(Recurrent, texts), "fp32", id="lstm-fp32"),
        pytest.param(trained(Recurrent, texts), "bf16", id="lstm-bf16"),
        pytest.param(trained(lambda: Attentive(3), texts), "bf16", id="transformer of 3 layers-bf16"),
    ],
)
def test_healthy_networks_pass(
    factory: Any, precision: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "lstm" in request.node.callspec.id:
        without_onednn(monkeypatch)
    facts = compared(factory, precision)
    assert (facts["passed"], facts["reason"], facts["not_compared"]) == (True, "", [])
    assert (facts["reference"], facts["steps_compared"]) == ("fp64", 20)
    if precision == "fp32":
        assert facts["output_error"] < 1e-5
    else:
        assert 1e-4 < facts["output_error"] < 2e-2
        assert facts["gradient_error"] > 1e-4
    assert 0 <= facts["loss_error"] < 0.05


class ScaledPrecision:
    """fp16 with gradient scaling on the CPU, from torch's own first scale on: the first steps are skipped."""

    name = "fp16"

    def __init__(self) -> None:
        self.scaler = torch.amp.GradScaler("cpu", init_scale=2.0**24)

    def apply_switches(self) -> None:
        """Nothing to switch on the CPU."""

    def autocast(self) -> Any:
        return torch.autocast("cpu", dtype=torch.float16)

    def backward(self, loss: Any, optimizer: Any) -> None:
        self.scaler.scale(loss).backward()
        self.scaler.step(optimizer)
        self.scaler.update()
        optimizer.zero_grad(set_to_none=True)


def scaled(name: str, device: str) -> Any:
    return ScaledPrecision() if name == "fp16" else make_precision(name, device)


def test_steps_that_scaling_skips_at_first_are_no_failure() -> None:
    facts = compared(trained(perceptron), "fp16", scaled)
    assert (facts["passed"], facts["reason"]) == (True, "")
    assert facts["gradient_error"] < 0.2
    assert facts["steps_compared"] == 20


class Overflowing(nn.Module):  # type: ignore[misc]
    """Activations above 65504, normalised afterwards, as T5's are."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(FEATURES, 64), nn.Linear(64, CLASSES)

    def forward(self, inputs: Any) -> Any:
        hidden = self.first(inputs * 300) * 300
        return self.last(functional.layer_norm(hidden, (64,)))


def test_fp16_that_overflows() -> None:
    assert "fp16 ends at 65504" in compared(trained(Overflowing), "fp16", scaled)["reason"]
    assert compared(trained(Overflowing), "bf16")["passed"]


def test_gradients_that_no_scale_makes_finite() -> None:
    class Infinite(Function):  # type: ignore[misc]
        @staticmethod
        def forward(context: Any, values: Any) -> Any:
            return values.clone()

        @staticmethod
        def backward(context: Any, gradient: Any) -> Any:
            return gradient * math.inf if gradient.dtype == torch.float16 else gradient

    factory = trained(perceptron, loss=lambda outputs, labels: cross_entropy(Infinite.apply(outputs), labels))
    facts = compared(factory, "fp16", scaled)
    assert "the optimiser never takes a step" in facts["reason"]


def test_fp16_gradients_that_underflow() -> None:
    """Without scaling, gradients below 6e-8 are zero."""
    facts = compared(trained(perceptron, loss=lambda outputs, labels: cross_entropy(outputs * 1e-8, labels)), "fp16")
    assert facts["reason"].startswith("the error of the gradients against float64 is 100 %; the limit is 90 %")


@pytest.mark.parametrize(
    ("loss", "reason"),
    [
        pytest.param(lambda o, y: cross_entropy(o, y) + (1e4 + o.mean()) - 1e4, "the loss of step", id="constant"),
        pytest.param(
            lambda o, y: ((o + 1000) - 1001).square().mean(), "the error of the gradients", id="shifted outputs"
        ),
        pytest.param(lambda o, y: cross_entropy((o + 1000) - 1000, y), "the loss of step", id="shifted logits"),
        pytest.param(
            lambda o, y: (o + 30).square().mean() - (o + 30).mean().square(),
            "the error of the gradients",
            id="variance",
        ),
    ],
)
def test_bf16_loss_that_subtracts_large_numbers(loss: Any, reason: str) -> None:
    facts = compared(trained(perceptron, loss=loss), "bf16")
    assert facts["reason"].startswith(reason)
    assert compared(trained(perceptron, loss=loss), "fp32")["passed"]


@pytest.mark.parametrize(
    "loss",
    [
        pytest.param(lambda o, y: (o - 1).square().mean(), id="mean square"),
        pytest.param(lambda o, y: (o - y[:, None]).abs().mean(), id="mean distance"),
    ],
)
def test_other_losses_pass(loss: Any) -> None:
    assert compared(trained(perceptron, loss=loss), "bf16")["reason"] == ""


def test_nan_at_step_3() -> None:
    def factory(device: str, precision: Any) -> Any:
        steps = iter(range(1, 100))

        def loss(outputs: Any, labels: Any) -> Any:
            factor = math.nan if next(steps) == 3 and outputs.dtype == torch.bfloat16 else 1.0
            return cross_entropy(outputs, labels) * factor

        return Training(perceptron, vectors, loss, precision)

    facts = compared(factory, "bf16")
    assert facts["reason"] == "the loss is not finite in step 3"
    assert facts["steps_compared"] == 3


def test_autocast_that_the_workload_does_not_use() -> None:
    class Plain(Training):
        def step(self, batch: Any) -> Any:
            loss = cross_entropy(self.model(batch[0]), batch[1])
            self.precision.backward(loss, self.optimizer)
            return loss

    facts = compared(lambda device, precision: Plain(perceptron, vectors, None, precision), "bf16")
    assert facts["reason"].startswith("bf16 is not in effect: the error is")


def test_a_tf32_switch_without_effect_is_reported_by_the_error() -> None:
    facts = compared(trained(perceptron), "tf32")  # the CPU has none
    assert facts["reason"].startswith("tf32 is not in effect: the error of a matrix product is 0.00002")


def to_tf32(tensor: Any) -> Any:
    """Return float32 rounded to TF32: 10 bits of the mantissa are kept."""
    bits = tensor.view(torch.int32)
    return ((bits + 0x1000) & ~0x1FFF).view(torch.float32)


class EmulatedTf32(TorchFunctionMode):  # type: ignore[misc]
    """Products as a tensor core computes them."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in (torch.mm, functional.linear) and args[0].dtype == torch.float32:
            args = (to_tf32(args[0]), to_tf32(args[1]), *args[2:])
        return func(*args, **(kwargs or {}))


class Tf32Precision:
    """fp32 by name, TF32 in effect; or tf32 by name."""

    def __init__(self, name: str) -> None:
        self.name = name

    def apply_switches(self) -> None:
        """Emulated: autocast() is the switch."""

    def autocast(self) -> Any:
        return EmulatedTf32()

    def backward(self, loss: Any, optimizer: Any) -> None:
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def test_tf32_in_effect_passes() -> None:
    facts = compared(
        trained(perceptron), "tf32", lambda n, d: Tf32Precision(n) if n == "tf32" else make_precision(n, d)
    )
    assert (facts["passed"], facts["reason"]) == (True, "")
    assert 1e-4 < facts["product_error"] < 1e-3
    assert 1e-5 < facts["output_error"] < 1e-2


def test_tf32_silently_on_is_not_strict_fp32() -> None:
    facts = compared(
        trained(perceptron), "fp32", lambda n, d: Tf32Precision(n) if n == "fp32" else make_precision(n, d)
    )
    assert facts["reason"].startswith("fp32 uses TF32")


def test_positive_data_would_hide_the_rounding() -> None:
    """Why the product's factors have zero mean: of uniform ones, TF32 looks ten times as exact."""
    generator = torch.Generator().manual_seed(0)
    errors = []
    for draw in (torch.rand, torch.randn):
        left, right = (draw(1024, 1024, generator=generator) for _ in range(2))
        exact = left.double() @ right.double()
        errors.append(float((to_tf32(left).double() @ to_tf32(right).double() - exact).norm() / exact.norm()))
    positive, zero_mean = errors
    assert positive < 3e-5
    assert 1e-4 < zero_mean < 1e-3


class Outputs:
    """A user's workload with neither model nor optimiser."""

    def __init__(self, device: str, precision: Any) -> None:
        self.precision = precision
        self.matrix = torch.randn(FEATURES, FEATURES)

    def make_batch(self, size: int) -> Any:
        return {"signal": torch.randn(size, FEATURES), "labels": torch.arange(size)}

    def step(self, batch: Any) -> Any:
        with self.precision.autocast():
            return {"product": batch["signal"].to(self.matrix.dtype) @ self.matrix, "labels": batch["labels"]}


def test_only_returned_values_if_there_is_no_model() -> None:
    facts = compared(Outputs, "bf16")
    assert facts["passed"]
    assert 1e-4 < facts["output_error"] < 1e-2
    assert "gradient_error" not in facts
    assert "loss_error" not in facts


def test_a_loss_that_is_never_finite_is_said() -> None:
    class Broken(Training):
        def step(self, batch: Any) -> Any:
            return super().step(batch) * math.nan

    facts = compared(lambda device, precision: Broken(perceptron, vectors, cross_entropy, precision), "bf16")
    assert facts["not_compared"] == ["losses: they are NaN or infinite in the reference too"]


def test_a_step_that_returns_nothing() -> None:
    class Silent(Training):
        def step(self, batch: Any) -> Any:
            super().step(batch)

    facts = compared(lambda device, precision: Silent(perceptron, vectors, cross_entropy, precision), "bf16")
    assert facts["passed"]
    assert facts["not_compared"] == ["losses: the step returns no loss"]
    assert facts["gradient_error"] > 1e-4


def test_minus_infinity_that_masks_scores_is_no_overflow() -> None:
    def masked(device: str, precision: Any) -> Any:
        class Masked(Outputs):
            def step(self, batch: Any) -> Any:
                scores = super().step(batch)["product"]
                return scores.masked_fill(torch.eye(*scores.shape, dtype=torch.bool), -math.inf)

        return Masked(device, precision)

    assert compared(masked, "bf16")["passed"]


def test_a_workload_that_float64_does_not_run_is_compared_with_fp32() -> None:
    class Fixed(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.layers = perceptron()

        def forward(self, inputs: Any) -> Any:
            return self.layers(inputs.float())

    facts = compared(trained(Fixed), "bf16")
    assert (facts["passed"], facts["reference"]) == (True, "fp32")
    assert facts["not_compared"][0].startswith("float32 is the reference: fp64 failed: RuntimeError")
    itself = compared(trained(Fixed), "fp32")
    assert (itself["passed"], itself["steps_compared"]) == (True, 0)
    assert "output_error" not in itself


def test_random_numbers_are_the_same_in_every_precision() -> None:
    """A diffusion model's noise and functional dropout: float64 would draw other numbers from the same seed."""

    class Noisy(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.layers = perceptron()

        def forward(self, inputs: Any) -> Any:
            noise = torch.randn_like(inputs) + torch.rand(inputs.shape, dtype=inputs.dtype)
            noise = noise + torch.zeros_like(inputs).normal_()
            return self.layers(functional.dropout(inputs + noise, 0.5))

    assert compared(trained(Noisy), "fp32")["output_error"] < 1e-5


def test_a_bug_of_the_workload_is_raised() -> None:
    def broken(outputs: Any, labels: Any) -> Any:
        raise ZeroDivisionError("the user's own")

    with pytest.raises(ZeroDivisionError, match="the user's own"):
        compared(trained(perceptron, loss=broken), "bf16")


def test_fewer_steps_if_the_time_is_over() -> None:
    facts = compare(trained(perceptron), "cpu", "bf16", make_precision, 0.0)
    assert (facts["passed"], facts["steps_compared"]) == (True, 1)


@contextmanager
def switched() -> Iterator[None]:
    """Set what a program may have set, and put it back."""
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.backends.cudnn.benchmark = True
    torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)
        torch.backends.cudnn.benchmark = False
        torch.set_float32_matmul_precision("highest")


def state() -> list[Any]:
    backends = torch.backends
    return [
        torch.get_rng_state().tolist(),
        random.getstate(),
        torch.get_default_dtype(),
        torch.is_grad_enabled(),
        torch.are_deterministic_algorithms_enabled(),
        backends.cudnn.benchmark,
        backends.cuda.matmul.allow_tf32,
        backends.cudnn.allow_tf32,
        torch.get_float32_matmul_precision(),
        getattr(backends.cuda.matmul, "fp32_precision", None),
    ]


@pytest.mark.parametrize("precision", ["fp32", "tf32", "bf16"])
def test_nothing_is_left_changed(precision: str) -> None:
    with switched():
        before = state()
        compared(trained(perceptron), precision)
        assert state() == before


def test_switches_come_back_after_an_error() -> None:
    before = state()
    with pytest.raises(TypeError):
        compared(lambda device, precision: Training(None, vectors, None, precision), "bf16")  # type: ignore[arg-type]
    assert state() == before


def test_signals_in_complex64() -> None:
    numpy = pytest.importorskip("numpy")

    class Spectrum:
        def __init__(self, device: str, precision: Any) -> None:
            self.name = precision.name

        def make_batch(self, size: int) -> Any:
            noise = numpy.random.standard_normal((size, 512))
            return noise.astype(self.name)

        def step(self, batch: Any) -> Any:
            spectrum = numpy.fft.fft(batch)
            return spectrum, [numpy.abs(spectrum) ** 2]

    facts = compared(Spectrum, "complex64")
    assert (facts["passed"], facts["reference"], facts["steps_compared"]) == (True, "complex128", 20)
    assert 1e-9 < facts["output_error"] < 1e-5
    exact = compared(Spectrum, "complex128")
    assert (exact["passed"], exact["steps_compared"]) == (True, 0)


def test_complex64_that_overflows() -> None:
    numpy = pytest.importorskip("numpy")

    class Power:
        def __init__(self, device: str, precision: Any) -> None:
            self.name = precision.name

        def make_batch(self, size: int) -> Any:
            return (numpy.random.standard_normal((size, 64)) * 1e30).astype(self.name)

        def step(self, batch: Any) -> Any:
            with numpy.errstate(over="ignore"):
                return batch.real**2

    assert compared(Power, "complex64")["reason"] == "the outputs are not finite, but they are in complex128"


def test_the_largest_batch_that_runs_is_compared() -> None:
    """A data set of three samples, for example, has no batch of eight."""

    def at_most_three(size: int) -> Any:
        if size > 3:
            raise IndexError("the data set has 3 samples")
        return vectors(size)

    facts = compared(trained(perceptron, at_most_three), "bf16")
    assert (facts["passed"], facts["steps_compared"]) == (True, 20)


def test_if_no_batch_runs_the_first_failure_counts() -> None:
    def broken(size: int) -> Any:
        raise ValueError(f"no batch of {size}")

    with pytest.raises(ValueError, match="no batch of 8"):
        compared(trained(perceptron, broken), "bf16")


def test_batches_are_made_once() -> None:
    made = []

    def counted(size: int) -> Any:
        made.append(size)
        return vectors(size)

    compared(trained(perceptron, counted), "bf16")
    assert made == [comparing.BATCH_SIZES[0]] * comparing.STEPS
