"""How far a workload in one precision is from the same workload in float64: outputs, gradients, twenty losses.

The workload is built again for each precision from the same seed, and does the same steps with the same batches. Strict
fp32 runs in addition to the tested precision and the reference: if rounding errors grow by themselves from step
to step, it shows how much of a difference is not the precision's fault.
"""

import math
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from typing import Any

from gpudoctor.model.codec import to_json
from gpudoctor.model.tuning import COMPLEX_PRECISIONS
from gpudoctor.tuning.gates import Compared, judge, loss_errors
from gpudoctor.tuning.workers.failures import one_line
from gpudoctor.tuning.workers.precision import Precision
from gpudoctor.tuning.workers.process_state import seed, unchanged
from gpudoctor.tuning.workload import WorkloadFactory

STEPS = 20
BATCH_SIZES = (8, 4, 2, 1)
"""The first one that runs is used. Small, for float64 is slow on most devices; batch normalisation needs two."""

SEED = 2026
TESTED_UNTIL, REFERENCE_UNTIL = 0.25, 0.75
"""Shares of the time limit after which a run starts no further step; strict fp32 has the rest."""


@dataclass
class Step:
    """What one step gave, on the host; outputs and gradients of the first step only."""

    not_finite: int = 0
    """Values among those returned that are NaN or infinite."""
    loss: float | None = None
    trained: bool = False
    stepped: bool = True
    """False if the optimiser was to step and never did: no scale made the gradients finite."""
    outputs: list[Any] | None = None
    gradients: list[Any] | None = None


@dataclass
class Run:
    """The steps of one precision, until one of them failed or the time was over."""

    precision: str
    steps: list[Step] = field(default_factory=list)

    @property
    def losses(self) -> list[float | None]:
        """Return the loss of each step."""
        return [step.loss for step in self.steps]


class Watched:
    """A precision whose calls of backward() are counted: a step of the optimiser must follow each."""

    def __init__(self, precision: Precision) -> None:
        self._precision = precision
        self.backward_calls = 0

    def backward(self, loss: Any, optimizer: Any) -> None:
        self.backward_calls += 1
        self._precision.backward(loss, optimizer)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._precision, name)


def compare(
    factory: WorkloadFactory,
    device: str,
    precision_name: str,
    make_precision: Callable[[str, str], Precision],
    limit_seconds: float,
) -> dict[str, Any]:
    """Return the fields of `Numerics` as JSON values. Random states, switches and default types are left as they were.

    make_precision: takes the name and the device.
    limit_seconds: after which no further step starts; fewer steps are then compared, never fewer than one.

    Raises:
        Exception: what the workload itself raises in this precision, or in fp32 as well as in float64.
    """
    kind = "arrays" if precision_name in COMPLEX_PRECISIONS else "torch"
    library = import_module(f"gpudoctor.tuning.workers.comparing_{kind}")
    comparison = _Comparison(library, factory, device, make_precision, time.monotonic(), limit_seconds)
    return dict(to_json(judge(comparison.measure(precision_name))))


@dataclass
class _Comparison:
    library: Any
    """comparing_torch or comparing_arrays: two modules with the same functions."""
    factory: WorkloadFactory
    device: str
    make_precision: Callable[[str, str], Precision]
    started: float
    limit_seconds: float
    batch_size: int = BATCH_SIZES[0]
    batches: list[Any] = field(default_factory=list)
    """Made by the precision in question: how it rounds its input is not part of its error."""

    def measure(self, name: str) -> Compared:
        """Return what the precision, the reference and strict fp32 gave."""
        with unchanged():
            product_error = self.library.product_error(self._switched(name), self.device)
        tested = self._tested(name)
        reference, problem = self._reference(tested)
        needs_strict = self.library.STRICT not in (name, reference.precision)
        strict = self._run(self.library.STRICT, until=1.0) if needs_strict else None
        differences = _differences(self.library, tested, reference, strict)
        return replace(differences, product_error=product_error, problem=problem)

    def _tested(self, name: str) -> Run:
        """Return the run with the largest batch that works: a data set may be small, and so may the memory."""
        failures: list[Exception] = []
        for size in BATCH_SIZES:
            self.batch_size = size
            try:
                return self._run(name, until=TESTED_UNTIL)
            except Exception as error:
                failures.append(error)
            traceback.clear_frames(failures[-1].__traceback__)  # they hold the tensors
            self.batches.clear()
            self.library.free_memory()
        raise failures[0]

    def _reference(self, tested: Run) -> tuple[Run, str]:
        """Return the run to compare with, and why that is not the exact one: empty if it is."""
        if tested.precision == self.library.REFERENCE:
            return tested, ""
        try:
            return self._run(self.library.REFERENCE, until=REFERENCE_UNTIL), ""
        except Exception as error:  # a fixed float32 inside, a device without float64, too little memory
            problem = f"{self.library.REFERENCE} failed: {one_line(error)}"
        self.library.free_memory()  # out here: the exception held the run's memory
        if tested.precision == self.library.STRICT:
            return tested, problem
        return self._run(self.library.STRICT, until=REFERENCE_UNTIL), problem

    def _run(self, name: str, *, until: float) -> Run:
        run = Run(name)
        with unchanged():
            precision: Any = Watched(self._switched(name))
            seed(SEED)
            workload = self.factory(self.device, precision)
            if until != TESTED_UNTIL:
                precision.apply_switches()  # strict again, whatever the workload allows itself
            if name == self.library.REFERENCE:
                self.library.promote(workload)
            self._do_steps(run, workload, precision, self.started + until * self.limit_seconds)
        del workload
        self.library.free_memory()
        return run

    def _switched(self, name: str) -> Precision:
        precision = self.make_precision(name, self.device)
        precision.apply_switches()
        return precision

    def _do_steps(self, run: Run, workload: Any, precision: Watched, deadline: float) -> None:
        promoted = run.precision == self.library.REFERENCE
        for number in range(len(self.batches) or STEPS):
            make_batch = partial(self.library.copied, self._batch(workload, number), promoted=promoted)
            step = self.library.do_step(workload, precision, make_batch, SEED + number, keep=number == 0)
            run.steps.append(step)
            failed = not step.stepped or (step.trained and step.not_finite)
            if failed or time.monotonic() >= deadline:
                return

    def _batch(self, workload: Any, number: int) -> Any:
        if number == len(self.batches):
            seed(SEED + STEPS + number)
            self.batches.append(workload.make_batch(self.batch_size))
        return self.batches[number]


def _differences(library: Any, tested: Run, reference: Run, strict: Run | None) -> Compared:
    """Return how far the runs are from the reference; `tested` may be the reference itself."""
    first, expected = tested.steps[0], reference.steps[0]
    exact = strict.steps[0] if strict is not None else Step()
    differences = Compared(
        precision=tested.precision,
        reference=reference.precision,
        strict_output_error=library.relative_error(exact.outputs, expected.outputs),
        strict_gradient_error=library.relative_error(exact.gradients, expected.gradients),
        strict_loss_errors=loss_errors(strict.losses, reference.losses) if strict is not None else (),
        not_finite_step=_not_finite_step(tested, reference),
        losses_finite=all(math.isfinite(loss) for loss in reference.losses if loss is not None),
        stepped=all(step.stepped for step in tested.steps),
        trained=first.trained,
    )
    if tested is reference:
        return differences
    return replace(
        differences,
        output_error=library.relative_error(first.outputs, expected.outputs),
        gradient_error=library.relative_error(first.gradients, expected.gradients),
        loss_errors=loss_errors(tested.losses, reference.losses),
        steps_compared=min(len(tested.steps), len(reference.steps)),
    )


def _not_finite_step(tested: Run, reference: Run) -> int | None:
    """Return the number, from 1, of the first step with values that are finite in the reference but not here.

    Scores masked with minus infinity are so in both. If there is no other reference, only a loss shows it.
    """
    for number, step in enumerate(tested.steps, start=1):
        itself = tested is reference
        expected = 0 if itself or number > len(reference.steps) else reference.steps[number - 1].not_finite
        if step.not_finite > expected and (step.trained or not itself):
            return number
    return None
