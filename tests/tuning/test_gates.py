"""Measured errors to a verdict: what is caught, and by which reason; what must pass."""

import math
from dataclasses import replace
from typing import Any

import pytest

from gpudoctor.tuning.gates import GRADIENT_LIMIT, Compared, judge, loss_errors

FP32 = Compared(
    precision="fp32",
    reference="fp64",
    output_error=2e-7,
    gradient_error=3e-7,
    loss_errors=(1e-7,) * 20,
    steps_compared=20,
    product_error=2.4e-7,
    trained=True,
)
BF16 = replace(
    FP32,
    precision="bf16",
    output_error=3.6e-3,
    gradient_error=9.3e-3,
    strict_output_error=2e-7,
    strict_gradient_error=3e-7,
    loss_errors=(1e-4,) * 20,
    strict_loss_errors=(1e-7,) * 20,
    product_error=2.9e-3,
)
FP16 = replace(BF16, precision="fp16", output_error=4e-4, gradient_error=3e-3, product_error=3.6e-4)
TF32 = replace(FP16, precision="tf32", product_error=2.9e-4)
COMPLEX64 = Compared(precision="complex64", reference="complex128", output_error=1.5e-7, product_error=4e-7)


@pytest.mark.parametrize("compared", [FP32, TF32, BF16, FP16, COMPLEX64], ids=lambda compared: compared.precision)
def test_usual_errors_pass(compared: Compared) -> None:
    numerics = judge(compared)
    assert (numerics.passed, numerics.reason) == (True, "")
    assert numerics.output_error == compared.output_error
    assert numerics.product_error == compared.product_error


@pytest.mark.parametrize(
    ("compared", "reason"),
    [
        pytest.param(
            replace(TF32, product_error=2.4e-7),
            "tf32 is not in effect: the error of a matrix product is 0.000024 %, the same as in fp32",
            id="flag set, not effective",
        ),
        pytest.param(
            replace(TF32, product_error=2e-3),
            "the error of a matrix product is 0.20 %; the limit is 0.10 %",
            id="wrong product",
        ),
        pytest.param(
            replace(FP32, product_error=2.9e-4),
            "fp32 uses TF32: the error of a matrix product is 0.029 %; the limit is 0.0010 %",
            id="TF32 silently on",
        ),
        pytest.param(
            replace(FP32, product_error=2.9e-3),
            "the error of a matrix product is 0.29 %; the limit is 0.0010 %",
            id="bf16 silently on",
        ),
        pytest.param(
            replace(FP32, product_error=math.nan),
            "the error of a matrix product is not finite; the limit is 0.0010 %",
            id="NaN product",
        ),
        pytest.param(
            replace(COMPLEX64, product_error=3e-4),
            "the error of a matrix product is 0.030 %; the limit is 0.0010 %",
            id="CuPy with TF32",
        ),
        pytest.param(
            replace(COMPLEX64, output_error=2e-3),
            "the error of the outputs against complex128 is 0.20 %; the limit is 0.010 %",
            id="complex64 too coarse",
        ),
        pytest.param(
            replace(BF16, output_error=2e-7, gradient_error=3e-7),
            "bf16 is not in effect: the error is 0.000030 %, the same as in fp32",
            id="autocast does nothing",
        ),
        pytest.param(
            replace(BF16, output_error=2e-6, gradient_error=4e-3, strict_output_error=2e-6, strict_gradient_error=4e-3),
            "bf16 is not in effect: the error is 0.40 %, the same as in fp32",
            id="autocast does nothing in a network where fp32 itself is inexact",
        ),
        pytest.param(
            replace(BF16, output_error=0.31),
            "the error of the outputs against float64 is 31 %; the limit is 5.0 %; fp32 has 0.000020 %",
            id="outputs",
        ),
        pytest.param(
            replace(FP16, gradient_error=1.0, strict_gradient_error=None),
            "the error of the gradients against float64 is 100 %; the limit is 90 %",
            id="gradients underflow",
        ),
        pytest.param(
            replace(FP16, output_error=math.inf),
            "the outputs are not finite, but they are in fp64 (fp16 ends at 65504)",
            id="outputs overflow",
        ),
        pytest.param(
            replace(BF16, gradient_error=math.inf),
            "the gradients are not finite, but they are in fp64",
            id="gradients overflow",
        ),
        pytest.param(replace(BF16, not_finite_step=3), "the loss is not finite in step 3", id="NaN at step 3"),
        pytest.param(
            replace(BF16, not_finite_step=2, trained=False, gradient_error=None),
            "the outputs are not finite in step 2",
            id="NaN in inference",
        ),
        pytest.param(
            replace(FP16, stepped=False, gradient_error=None),
            "the gradients are not finite at any scale (fp16 ends at 65504), so the optimiser never takes a step",
            id="no scale helps",
        ),
        pytest.param(
            replace(BF16, loss_errors=(1e-4, 0.05, 0.06)),
            "the loss of step 2 differs from float64 by 5.0 %; the limit is 1.0 %",
            id="loss is off early",
        ),
        pytest.param(
            replace(BF16, loss_errors=(1e-4, 5e-3, 5e-3, 9e-3, 0.04, 0.06)),
            "the loss of step 6 differs from float64 by 6.0 %; the limit is 5.0 %",
            id="loss drifts far",
        ),
        pytest.param(
            replace(BF16, loss_errors=(0.4,) * 20, strict_loss_errors=(6e-5,) * 20),
            "the loss of step 1 differs from float64 by 40 %; the limit is 1.0 %",
            id="loss subtracts large numbers: fp32 is inexact too, from the first step on",
        ),
    ],
)
def test_reasons(compared: Compared, reason: str) -> None:
    numerics = judge(compared)
    assert (numerics.passed, numerics.reason) == (False, reason)


def test_weights_may_drift_apart_in_later_steps() -> None:
    assert judge(replace(BF16, loss_errors=(1e-4, 5e-3, 5e-3, 9e-3, 0.04, 0.049))).passed


def test_chaotic_training_is_not_blamed_on_the_precision() -> None:
    """Losses of a residual network of depth 20, SGD at 0.1: fp32 drifts from 4e-9 to 1.8e-2, bf16 to 8.5e-2."""
    chaotic = replace(
        BF16, loss_errors=(5.9e-4, 8.7e-3, 8.5e-2), strict_loss_errors=(3.8e-9, 8.5e-4, 1.8e-2), steps_compared=3
    )
    assert judge(chaotic).passed
    assert judge(chaotic).loss_error == 8.5e-2
    calm = replace(chaotic, strict_loss_errors=(1e-7, 1e-7, 1e-7))
    assert judge(calm).reason == "the loss of step 3 differs from float64 by 8.5 %; the limit is 1.0 %"


def test_drift_of_fp32_itself_is_no_reason_against_fp32() -> None:
    assert judge(replace(FP32, loss_errors=(1e-7, 1e-3, 3.9e-2))).passed


def test_the_limit_itself_passes() -> None:
    assert judge(replace(BF16, gradient_error=GRADIENT_LIMIT)).passed
    assert not judge(replace(BF16, gradient_error=GRADIENT_LIMIT + 0.01)).passed


def test_the_cause_comes_before_what_follows_from_it() -> None:
    everything = replace(FP16, product_error=2e-7, output_error=math.inf, not_finite_step=1)
    assert judge(everything).reason.startswith("fp16 is not in effect")


def test_what_could_not_be_compared_is_said() -> None:
    plain = Compared(precision="bf16", reference="fp64", trained=True, loss_errors=(None,), product_error=2.9e-3)
    assert judge(plain).passed
    assert judge(plain).not_compared == (
        "outputs: the step does not call the workload's `model`",
        "gradients: no torch optimiser received any",
        "losses: the step returns no loss",
    )
    not_finite = judge(replace(plain, losses_finite=False)).not_compared
    assert not_finite[-1] == "losses: they are NaN or infinite in the reference too"
    itself = Compared(precision="fp32", reference="fp32", problem="fp64 failed: TypeError: no float64 on MPS")
    assert judge(itself).not_compared == (
        "float32 is the reference: fp64 failed: TypeError: no float64 on MPS",
        "this is the reference itself; only NaN and infinity were checked",
    )


def test_loss_errors_are_relative() -> None:
    assert loss_errors([2.02, 0.5], [2.0, 0.5]) == pytest.approx((0.01, 0.0))


def test_a_loss_that_crosses_zero_is_measured_against_the_mean() -> None:
    assert loss_errors([1.0, 1e-4], [1.0, 0.0]) == pytest.approx((0.0, 1e-4 / 0.005))


def test_losses_that_are_missing_or_not_finite() -> None:
    assert loss_errors([None, math.nan, 1.0], [1.0, 1.0, math.nan]) == (None, math.inf, None)
    assert loss_errors([1.0, 2.0], [1.0]) == (0.0,)
    assert loss_errors([0.0], [0.0]) == (0.0,)


def above(limit: float) -> float:
    return math.nextafter(limit, math.inf)


OUTPUTS = {"fp32": 1e-3, "tf32": 0.02, "bf16": 0.05, "fp16": 0.02, "complex64": 1e-4}
PRODUCTS = {"fp32": 1e-5, "tf32": 1e-3, "bf16": 1e-2, "fp16": 1e-3, "complex64": 1e-5}


@pytest.mark.parametrize("usual", [FP32, TF32, BF16, FP16, COMPLEX64], ids=lambda usual: usual.precision)
def test_each_limit_passes_and_nothing_above_it(usual: Compared) -> None:
    output, product = OUTPUTS[usual.precision], PRODUCTS[usual.precision]
    assert judge(replace(usual, output_error=output, gradient_error=0.9, product_error=product)).passed
    for field, limit in (("output_error", output), ("gradient_error", 0.9), ("product_error", product)):
        assert not judge(replace(usual, **{field: above(limit)})).passed, field  # type: ignore[arg-type]
    assert judge(replace(usual, output_error=None, gradient_error=None, product_error=None)).passed


@pytest.mark.parametrize(
    ("compared", "reason"),
    [
        (replace(FP32, product_error=1e-5), ""),
        (replace(FP32, product_error=above(1e-5)), "fp32 uses TF32"),
        (replace(FP32, product_error=1e-3), "fp32 uses TF32"),
        (replace(FP32, product_error=above(1e-3)), "the error of a matrix product"),
        (replace(TF32, product_error=1e-5), ""),
        (replace(TF32, product_error=math.nextafter(1e-5, 0)), "tf32 is not in effect"),
        (replace(BF16, product_error=math.nextafter(1e-5, 0)), "bf16 is not in effect"),
        (replace(FP16, product_error=math.nextafter(1e-5, 0)), "fp16 is not in effect"),
        (replace(FP16, output_error=2e-7, gradient_error=None), "fp16 is not in effect"),
        (replace(TF32, output_error=2e-7, gradient_error=2e-7), ""),
        (replace(BF16, output_error=2e-7), ""),  # the gradients show that it is in effect
        (replace(BF16, gradient_error=2e-7), ""),
        (replace(BF16, output_error=1e-5, gradient_error=1e-5), "bf16 is not in effect"),
        (replace(BF16, output_error=above(1e-5), gradient_error=1e-5), ""),
        (
            replace(BF16, output_error=3 * 2.0**-13, strict_output_error=2.0**-13, gradient_error=None),
            "bf16 is not in effect",
        ),
        (replace(BF16, output_error=above(3 * 2.0**-13), strict_output_error=2.0**-13, gradient_error=None), ""),
        (replace(BF16, output_error=1e-5, strict_output_error=None, gradient_error=None), "bf16 is not in effect"),
        (replace(BF16, loss_errors=(0.0, 0.0, 0.0, 0.01)), ""),
        (replace(BF16, loss_errors=(0.0, 0.0, 0.0, above(0.01))), "the loss of step 4"),
        (replace(BF16, loss_errors=(None, None, None, None, 0.05)), ""),
        (replace(BF16, loss_errors=(None, None, None, None, above(0.05))), "the loss of step 5"),
        (replace(TF32, loss_errors=(0.2,)), "the loss of step 1"),
        (replace(FP16, loss_errors=(0.2,)), "the loss of step 1"),
        (replace(FP32, loss_errors=(0.2,)), ""),
        (replace(BF16, loss_errors=(0.0, 0.02), strict_loss_errors=(0.0, 200 * 2.0**-24)), ""),
        (
            replace(BF16, loss_errors=(0.0, above(0.02)), strict_loss_errors=(None, 200 * 2.0**-24)),
            "the loss of step 2",
        ),
        (replace(BF16, loss_errors=(0.02,), strict_loss_errors=(0.0, 1.0)), "the loss of step 1"),
        (replace(BF16, loss_errors=(0.01, 0.02), strict_loss_errors=()), "the loss of step 2"),
    ],
)
def test_the_edges_of_each_rule(compared: Compared, reason: str) -> None:
    found = judge(compared)
    assert (found.passed, found.reason[: len(reason)]) == (not reason, reason)


REFERENCE = "this is the reference itself; only NaN and infinity were checked"
OUTPUTS_OF_A_STEP = "outputs: the step returns nothing and the workload has no `model`"
OUTPUTS_OF_A_MODEL = "outputs: the step does not call the workload's `model`"
GRADIENTS, LOSSES = "gradients: no torch optimiser received any", "losses: the step returns no loss"


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({}, (OUTPUTS_OF_A_STEP,)),
        ({"trained": True}, (OUTPUTS_OF_A_MODEL, GRADIENTS, LOSSES)),
        ({"trained": True, "output_error": 0.0}, (GRADIENTS, LOSSES)),
        ({"trained": True, "output_error": 0.0, "gradient_error": 0.0}, (LOSSES,)),
        ({"trained": True, "output_error": 0.0, "loss_errors": (None, 0.0)}, (GRADIENTS,)),
        ({"output_error": 0.0, "loss_errors": (None,)}, ()),
        ({"reference": "x", "problem": "no"}, ("x is the reference: no", REFERENCE)),
        ({"problem": "no", "output_error": 0.0}, ("float64 is the reference: no",)),
    ],
)
def test_all_that_could_not_be_compared(fields: dict[str, Any], told: tuple[str, ...]) -> None:
    found = judge(Compared(**{"precision": "x", "reference": "fp64", **fields}))
    assert (found.not_compared, found.steps_compared, found.passed) == (told, 0, True)


@pytest.mark.parametrize(
    ("losses", "reference", "errors"),
    [
        ((1.0, 2.0), (2.0,), (0.5,)),
        ((None, 1.0, 1.0), (1.0, None, 1.0), (None, None, 0.0)),
        ((math.inf, math.nan), (1.0, 1.0), (math.inf, math.inf)),
        ((1.0, 1.0), (math.inf, math.nan), (None, None)),
        ((0.02, 4.0), (0.0, 4.0), (1.0, 0.0)),  # against a hundredth of the mean, which is 2
        ((0.02, 4.0, 1.0), (0.0, -4.0, math.inf), (1.0, 2.0, None)),
        ((0.0,), (0.0,), (0.0,)),
        ((), (), ()),
    ],
)
def test_the_error_of_each_loss(losses: Any, reference: Any, errors: Any) -> None:
    assert loss_errors(losses, reference) == errors
