"""Whether a precision is safe for a workload, from the errors measured; pure, without any library.

Limits come from the largest errors of networks that train as they should: "Numerics" in tests/benchmarks/RESULTS.md.
"""

import math
from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import Annotated

from gpudoctor.data.numerics import percent
from gpudoctor.model.record import Fact, record
from gpudoctor.model.tuning import Numerics

OUTPUT_LIMITS = {"fp32": 1e-3, "tf32": 0.02, "bf16": 0.05, "fp16": 0.02, "complex64": 1e-4}
"""Several times the largest error of a network that trains: see the calibration. tf32 rounds as fp16 does."""

GRADIENT_LIMIT = 0.9
"""Above the largest of a network that trains, 0.82. Lost to underflow they differ by 1, meaningless ones by more."""

EARLY_STEPS = 4
LOSS_LIMIT = 0.01
"""Of the early steps, of precisions below fp32. In bf16 the losses of healthy networks differ by at most 5e-3 there (a
residual CNN of 32 layers); of logits shifted by 1000 and back, which loses information in every step, by 1.8e-2."""

DRIFT_LIMIT = 0.05
"""Of the steps after them, which start from weights that differ already: a residual CNN of 32 layers that trains as it
should drifts by 2.7e-2 within 20 steps in bf16, one of 24 layers by 1.5e-2."""

USUAL_GROWTH = 100.0
"""By how much strict fp32's error of the loss grows within 20 steps before training counts as chaotic."""

FP32_ROUNDOFF = 2.0**-24

PRODUCT_LIMITS = {"fp32": 1e-5, "tf32": 1e-3, "bf16": 1e-2, "fp16": 1e-3, "complex64": 1e-5}
"""Of a product of zero-mean matrices, norm over norm. Measured against float64, the same for 64 to 16384 terms: fp32
3e-7, tf32 2.9e-4 (7.7e-4 if it truncates), fp16 3.6e-4, bf16 2.9e-3 (rounding emulated in torch 2.13.0, 2026-11)."""

IN_EFFECT = 1e-5
"""A product with a smaller error was not computed in tf32, fp16 or bf16, whatever the switch says."""

ABOVE_STRICT = 3.0
"""Times the error of strict fp32 that bf16 and fp16 must at least have; they round 8192 and 65536 times as coarsely."""

NO_FINITE_LOSS = "losses: they are NaN or infinite in the reference too"

_ROUNDED = ("tf32", "bf16", "fp16")
_AUTOCAST = ("bf16", "fp16")


@record
class Compared:
    """What was measured of one precision compared with the reference. None means not measured."""

    precision: str
    reference: str
    output_error: Annotated[float | None, Fact("relative error of the outputs of the first step")] = None
    gradient_error: Annotated[float | None, Fact("relative error of the gradients of the first step")] = None
    strict_output_error: Annotated[float | None, Fact("that of strict fp32, if another precision is compared")] = None
    strict_gradient_error: Annotated[float | None, Fact("that of strict fp32")] = None
    loss_errors: Annotated[tuple[float | None, ...], Fact("relative difference of the loss, step by step")] = ()
    strict_loss_errors: Annotated[tuple[float | None, ...], Fact("those of strict fp32")] = ()
    steps_compared: int = 0
    product_error: Annotated[float | None, Fact("relative error of a product of zero-mean matrices")] = None
    not_finite_step: Annotated[int | None, Fact("first step with NaN or infinity if the reference has none")] = None
    losses_finite: Annotated[bool, Fact("whether no loss of the reference is NaN or infinite")] = True
    stepped: Annotated[bool, Fact("whether the optimiser stepped every time")] = True
    trained: bool = False
    problem: Annotated[str, Fact("why it is not compared with the best reference; empty if it is")] = ""


def judge(compared: Compared) -> Numerics:
    """Return whether the precision passes, with the first reason against it and the parts that were not compared."""
    reason = next(_objections(compared), "")
    losses = [error for error in compared.loss_errors if error is not None]
    return Numerics(
        precision=compared.precision,
        reference=compared.reference,
        passed=not reason,
        reason=reason,
        output_error=compared.output_error,
        gradient_error=compared.gradient_error,
        loss_error=max(losses, default=None),
        steps_compared=compared.steps_compared,
        product_error=compared.product_error,
        not_compared=tuple(_not_compared(compared)),
    )


def _objections(compared: Compared) -> Iterator[str]:
    """Yield what speaks against the precision, the cause before what follows from it."""
    yield from _product_objections(compared)
    yield from _finite_objections(compared)
    yield from _effect_objections(compared)
    name, output_limit = reference_name(compared.reference), OUTPUT_LIMITS.get(compared.precision, math.inf)
    for what, error, limit, strict in (
        ("outputs", compared.output_error, output_limit, compared.strict_output_error),
        ("gradients", compared.gradient_error, GRADIENT_LIMIT, compared.strict_gradient_error),
    ):
        if error is not None and error > limit:
            own = f"; fp32 has {percent(strict)}" if strict is not None else ""
            yield f"the error of the {what} against {name} is {percent(error)}; the limit is {percent(limit)}{own}"
    yield from _loss_objections(compared)


def _product_objections(compared: Compared) -> Iterator[str]:
    error, name = compared.product_error, compared.precision
    limit = PRODUCT_LIMITS.get(name)
    if error is None or limit is None:
        return
    if name in _ROUNDED and error < IN_EFFECT:
        yield f"{name} is not in effect: the error of a matrix product is {percent(error)}, the same as in fp32"
    elif name == "fp32" and IN_EFFECT < error <= PRODUCT_LIMITS["tf32"]:
        yield f"fp32 uses TF32: the error of a matrix product is {percent(error)}; the limit is {percent(limit)}"
    elif not error <= limit:
        yield f"the error of a matrix product is {percent(error)}; the limit is {percent(limit)}"


def _finite_objections(compared: Compared) -> Iterator[str]:
    values = "the loss is" if compared.trained else "the outputs are"
    hint = " (fp16 ends at 65504)" if compared.precision == "fp16" else ""
    for what, error in (("outputs", compared.output_error), ("gradients", compared.gradient_error)):
        if error == math.inf:
            yield f"the {what} are not finite, but they are in {compared.reference}{hint}"
    if compared.not_finite_step is not None:
        yield f"{values} not finite in step {compared.not_finite_step}{hint}"
    if not compared.stepped:
        yield f"the gradients are not finite at any scale{hint}, so the optimiser never takes a step"


def _effect_objections(compared: Compared) -> Iterator[str]:
    """Yield where bf16 or fp16 computes what fp32 does: the workload does not use autocast()."""
    outputs = (compared.output_error, compared.strict_output_error)
    gradients = (compared.gradient_error, compared.strict_gradient_error)
    errors = [(error, strict or 0.0) for error, strict in (outputs, gradients) if error is not None]
    if compared.precision not in _AUTOCAST or not errors:
        return
    if all(error <= max(IN_EFFECT, ABOVE_STRICT * strict) for error, strict in errors):
        largest = max(error for error, _ in errors)
        yield f"{compared.precision} is not in effect: the error is {percent(largest)}, the same as in fp32"


def _loss_objections(compared: Compared) -> Iterator[str]:
    if compared.precision not in _ROUNDED:
        return
    for number, (error, limit) in enumerate(zip(compared.loss_errors, _loss_limits(compared), strict=False), start=1):
        if error is not None and error > limit:
            name = reference_name(compared.reference)
            yield f"the loss of step {number} differs from {name} by {percent(error)}; the limit is {percent(limit)}"


def _loss_limits(compared: Compared) -> Iterator[float]:
    """Yield the limit of each step: more where strict fp32's own error has grown from its first step on.

    Growth counts, not the error: a loss that subtracts large numbers is inexact from the first step on, in fp32 too.
    """
    strict = [error or 0.0 for error in compared.strict_loss_errors]
    least = max(strict[0], FP32_ROUNDOFF) if strict else 1.0
    largest = 0.0
    for number in range(len(compared.loss_errors)):
        largest = max([largest, *strict[number : number + 1]])
        limit = LOSS_LIMIT if number < EARLY_STEPS else DRIFT_LIMIT
        yield limit * max(1.0, largest / least / USUAL_GROWTH)


def _not_compared(compared: Compared) -> Iterator[str]:
    if compared.problem:
        yield f"{reference_name(compared.reference)} is the reference: {compared.problem}"
    if compared.precision == compared.reference:
        yield "this is the reference itself; only NaN and infinity were checked"
        return
    if compared.output_error is None:
        yield (
            "outputs: the step does not call the workload's `model`"
            if compared.trained
            else "outputs: the step returns nothing and the workload has no `model`"
        )
    if compared.trained and compared.gradient_error is None:
        yield "gradients: no torch optimiser received any"
    if compared.trained and not compared.losses_finite:
        yield NO_FINITE_LOSS
    elif compared.trained and not any(error is not None for error in compared.loss_errors):
        yield "losses: the step returns no loss"


def reference_name(precision: str) -> str:
    """Return the format of a reference as PyTorch names it."""
    return {"fp64": "float64", "fp32": "float32"}.get(precision, precision)


def loss_errors(losses: Sequence[float | None], reference: Sequence[float | None]) -> tuple[float | None, ...]:
    """Return the relative difference of each loss; None if either step has none.

    Near zero, a loss is measured against a hundredth of the mean: its relative difference would mean nothing.
    """
    known = [abs(loss) for loss in reference if loss is not None and math.isfinite(loss)]
    least = fmean(known) / 100 if known else 0.0
    return tuple(_relative(loss, expected, least) for loss, expected in zip(losses, reference, strict=False))


def _relative(loss: float | None, expected: float | None, least: float) -> float | None:
    if loss is None or expected is None or not math.isfinite(expected):
        return None
    if not math.isfinite(loss):
        return math.inf
    difference = abs(loss - expected)
    return difference / max(abs(expected), least) if difference else 0.0
