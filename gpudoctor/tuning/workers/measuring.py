"""One trial: build the workload, make a batch, warm up until steady, time the steps, look at the memory."""

import math
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from gpudoctor.errors import UsageError
from gpudoctor.model.tuning import UNSUPPORTED, Conditions, Measurement, Settings, Trial
from gpudoctor.tuning.executor import Effort
from gpudoctor.tuning.figures import spoilt_by
from gpudoctor.tuning.workers.devices import Device, timed_one_by_one
from gpudoctor.tuning.workers.failures import WORKLOAD, Failure, failure_of
from gpudoctor.tuning.workers.library import Library, Unsupported, leaves
from gpudoctor.tuning.workers.process_state import modes, seed, set_modes
from gpudoctor.tuning.workload import Workload, WorkloadFactory

SEED = 2026
LEAST_WARMUP_STEPS = 2
"""The optimiser's state comes with the first step: https://github.com/pytorch/pytorch/blob/main/torch/optim/adam.py"""

STEADY = 0.05
"""Two consecutive blocks of steps that differ by less are steady."""

BLOCK_SECONDS = 0.05
MOST_BLOCKS = 8
WARMUP_SHARE = 0.25
"""Of the limit, for waiting until the steps are steady."""

LEAST_STEPS, SLOW_SECONDS = 3, 60.0
"""Timed steps of a slow model, beyond the limit of the trial if need be, but no longer than this."""

TIMED_SECONDS = 0.1
MOST_STEPS = 100
"""Steps so short that all of them take less than TIMED_SECONDS are repeated more often than asked for, up to this."""

COUNTED_BATCH = 2
"""Samples of the step whose operations are counted: batch normalisation of a single one is undefined."""

MAXIMUM_LEAVES = 64


class Bench:
    """One workload on one device, kept from trial to trial as long as nothing of it changes."""

    def __init__(self, factory: WorkloadFactory, device: Device, library: Library) -> None:
        self._factory, self._device, self._library = factory, device, library
        self._workload: Any = None
        self._built_for: tuple[object, ...] | None = None
        self._flops_per_sample: float | None = None
        self._counted = False
        self._plain, self._own = modes(), dict[str, Any]()

    def measure(self, trial: Trial, effort: Effort) -> Measurement | Failure:
        """Return the measurement of the trial, or its failure."""
        try:
            return self._run(trial, effort)
        except UsageError:
            raise
        except Unsupported as error:
            failure = Failure(kind=UNSUPPORTED, detail=str(error))
        except BaseException as error:  # a script that calls sys.exit() is one too
            failure = failure_of(error, memory_full=self._device.is_full())
        self.forget()  # out here: the exception held the frames, and they held the tensors (pytorch/pytorch#18853)
        return failure

    def works(self, trial: Trial) -> bool:
        """Return whether one step of the trial works, or fails for a reason that is not the workload's own."""
        try:
            workload = self.build(trial.precision, trial.settings, trial.batch_size)
            workload.step(self._library.arranged(_checked_batch(workload, trial.batch_size), trial.settings))
            self._device.synchronize()
            return True
        except BaseException as error:
            return failure_of(error, memory_full=self._device.is_full()).kind != WORKLOAD
        finally:
            self.forget()

    def build(self, precision: str, settings: Settings | None = None, batch_size: int = 0) -> Workload:
        """Return the workload, built again unless it is already as requested.

        Each batch size is compiled by itself: for a second one torch.compile would make slower kernels for all sizes.
        Modes that its steps have changed are put back; those that its `__init__` sets apply to every trial.
        """
        chosen = settings or Settings()
        wanted = (precision, chosen.channels_last, batch_size if chosen.compile else None)
        if self._built_for != wanted:
            self.forget()
        set_modes(self._plain)
        made = self._library.prepare(precision, chosen)
        set_modes(self._own)
        if self._built_for != wanted:
            seed(SEED)
            before = modes()
            self._workload = self._factory(self._device.name, made)
            self._own = {name: value for name, value in modes().items() if value != before.get(name)}
            self._count_flops()
            self._library.arrange(self._workload, chosen)
            self._built_for = wanted
        return self._workload  # type: ignore[no-any-return]

    def forget(self) -> None:
        """Release the workload and its memory."""
        self._workload, self._built_for, self._own = None, None, {}
        set_modes(self._plain)
        with suppress(Exception):  # after an error of the device nothing is given back
            self._device.free_memory()

    def _run(self, trial: Trial, effort: Effort) -> Measurement:
        workload = self.build(trial.precision, trial.settings, trial.batch_size)
        samples, flops = samples_of(workload, trial.batch_size), self._flops_per_sample
        batches = [self._library.arranged(_checked_batch(workload, trial.batch_size), trial.settings)]
        self._device.begin()
        timed = time_trial(lambda: workload.step(batches[0]), self._device, effort)
        on_host = all(str(getattr(leaf, "device", "cpu")) == "cpu" for leaf in arrays(batches[0]))
        batches.clear()
        self._library.require_effect(trial.settings)
        use = self._device.memory_use()
        _require_use(self._device, use.peak_bytes, on_host)
        measurement = Measurement(
            **vars(trial),
            step_seconds=tuple(timed.steps),
            warmup_seconds=tuple(timed.warmup),
            samples_per_step=samples,
            unit=unit_of(workload),
            peak_memory_bytes=use.peak_bytes,
            resident_memory_bytes=use.resident_bytes,
            reserved_memory_bytes=use.reserved_bytes,
            allocation_retries=use.allocation_retries,
            flops_per_step=None if flops is None else flops * samples,
            conditions=timed.after,
        )
        own = tuple(f"the workload itself sets {name} to {value}" for name, value in self._own.items())
        return replace(measurement, warnings=(*spoilt_by(measurement, timed.before), *own))

    def _count_flops(self) -> None:
        """Count the operations of one small step, once: they grow with the samples.

        Done before the model is compiled, which hides them, and before the memory is watched.
        """
        if self._counted:
            return
        self._counted = True
        with suppress(Exception):  # a workload that cannot do so small a batch has an unknown count
            batch = self._workload.make_batch(COUNTED_BATCH)
            flops = self._library.flops(lambda: self._workload.step(batch))
            self._flops_per_sample = flops / samples_of(self._workload, COUNTED_BATCH) if flops else None


@dataclass
class Timed:
    """The seconds of each step of one trial, and the conditions before and at the end of the timed ones."""

    warmup: list[float]
    steps: list[float]
    before: Conditions
    after: Conditions


def time_trial(step: Callable[[], object], device: Device, effort: Effort) -> Timed:
    """Warm up and time. The limit counts from the end of the first step, which compiles, loads and tunes kernels.

    A slow step gets more time, because one step is not a measurement. Without any, the last warm-up step counts too.
    """
    warmup = timed_one_by_one(step, 1, math.inf, device.synchronize)
    start = time.perf_counter()
    deadline = start + effort.limit_seconds
    further = max(effort.warmup_steps, LEAST_WARMUP_STEPS) - 1
    warmup += timed_one_by_one(step, further, deadline, device.synchronize)
    warmup += _until_steady(step, device, warmup[-1], start + WARMUP_SHARE * effort.limit_seconds)
    before = device.conditions()
    left = deadline - time.perf_counter()
    if left < LEAST_STEPS * warmup[-1]:
        extended = start + max(effort.limit_seconds, min(effort.most_seconds, SLOW_SECONDS))
        if time.perf_counter() >= extended:
            last = [warmup.pop(), *timed_one_by_one(step, 1, extended, device.synchronize)]
            return Timed(warmup, last, before, device.conditions())
        slow = timed_one_by_one(step, LEAST_STEPS, extended, device.synchronize)
        if time.perf_counter() < deadline:  # only the last step of the warm-up was slow
            slow += timed_one_by_one(step, effort.steps - LEAST_STEPS, deadline, device.synchronize)
        return Timed(warmup, slow, before, device.conditions())
    wanted = max(effort.steps, _times(warmup[-1], TIMED_SECONDS))
    affordable = max(int(left / warmup[-1]), 1) if warmup[-1] else wanted
    if effort.one_by_one:
        waited = timed_one_by_one(step, wanted, deadline, device.synchronize)
        return Timed(warmup, waited, before, device.conditions())
    steps, after = device.time_steps(step, min(wanted, affordable), deadline)
    return Timed(warmup, steps, before, after)


def _times(step_seconds: float, seconds: float) -> int:
    """Return how many steps fill `seconds`: one at least, MOST_STEPS at most."""
    return min(math.ceil(seconds / step_seconds), MOST_STEPS) if step_seconds else MOST_STEPS


def _until_steady(step: Callable[[], object], device: Device, estimate: float, deadline: float) -> list[float]:
    """Do blocks of steps until two in a row take the same time; return the seconds of each step."""
    seconds: list[float] = []
    previous = math.inf
    for _ in range(MOST_BLOCKS):
        if time.perf_counter() >= deadline:
            break
        count = _times(estimate, BLOCK_SECONDS)
        started = time.perf_counter()
        for _ in range(count):
            step()
        device.synchronize()
        estimate = (time.perf_counter() - started) / count
        seconds += [estimate] * count
        if abs(estimate - previous) <= STEADY * estimate:
            break
        previous = estimate
    return seconds


def samples_of(workload: Workload, batch_size: int) -> int:
    """Return the samples of one batch, as the workload says; else the batch size."""
    count = getattr(workload, "samples_per_batch", None)
    return int(count(batch_size)) if callable(count) else batch_size


def unit_of(workload: Workload) -> str:
    """Return the unit of the throughput: "images/s"."""
    return f"{getattr(workload, 'unit', None) or 'samples'}/s"


def dataset_size(workload: Workload) -> int | None:
    """Return the samples of the workload's data set; None if it has none, or one without a length."""
    try:
        return len(workload.dataset)  # type: ignore[attr-defined]
    except Exception:
        return None


def _checked_batch(workload: Workload, size: int) -> Any:
    """Return a batch that contains what it should: one cut short by the end of the data would look fast.

    Raises:
        Unsupported: it does not.
    """
    available = dataset_size(workload)
    if available is not None and size > available:
        raise Unsupported(f"the data set has only {available} samples")
    batch = workload.make_batch(size)
    if not callable(getattr(workload, "samples_per_batch", None)):
        shapes = [tuple(leaf.shape) for leaf in arrays(batch) if len(leaf.shape)]
        lengths = {shape[0] for shape in shapes}
        if len(lengths) == 1 and max(lengths) < size and not any(size in shape for shape in shapes):
            raise Unsupported(f"make_batch({size}) returned {max(lengths)} samples")
    return batch


def _require_use(device: Device, peak_bytes: int | None, on_host: bool) -> None:
    """Raise UsageError if a workload for a GPU has left it alone. on_host: its batch is there.

    An allocator that torch or CuPy does not count shows no use either; then the batch does.
    """
    if device.kind == "cuda" and peak_bytes == 0 and on_host:
        raise UsageError(
            f"the workload runs on the CPU: it uses no memory of {device.name}, its first argument. "
            "Put the model and the batches there"
        )


def arrays(batch: Any) -> list[Any]:
    """Return the tensors or arrays of a batch, at most MAXIMUM_LEAVES of them."""
    return [leaf for leaf in islice(leaves(batch), MAXIMUM_LEAVES) if hasattr(leaf, "shape")]
