"""One trial on a device that is not there: order, limits, failures."""

from __future__ import annotations

import sys
import time
import weakref
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from gpudoctor.errors import UsageError
from gpudoctor.model.tuning import OK, OUT_OF_MEMORY, UNSUPPORTED, Conditions, Measurement, Settings, Trial
from gpudoctor.tuning.executor import Effort
from gpudoctor.tuning.workers import devices, measuring
from gpudoctor.tuning.workers.devices import Device, MemoryUse
from gpudoctor.tuning.workers.failures import WORKLOAD, Failure
from gpudoctor.tuning.workers.library import Library, Unsupported
from gpudoctor.tuning.workers.measuring import Bench, time_trial

TRIAL = Trial(precision="fp32", batch_size=8, predicted_memory_bytes=900)
EFFORT = Effort(warmup_steps=2, steps=5, limit_seconds=2.0)


class StillDevice(Device):
    """A device with a queue whose steps take a millisecond each."""

    kind, name = "cuda", "cuda:0"

    def __init__(self) -> None:
        self.events: list[str] = []

    def begin(self) -> None:
        self.events.append("begin")

    def memory_use(self) -> MemoryUse:
        self.events.append("memory")
        return MemoryUse(peak_bytes=1000, resident_bytes=400, reserved_bytes=1200, allocation_retries=1)

    def synchronize(self) -> None:
        self.events.append("wait")

    def time_steps(self, step: Callable[[], object], count: int, deadline: float) -> tuple[list[float], Conditions]:
        self.events.append("timed")
        for _ in range(count):
            step()
        return [0.001] * count, self.conditions()

    def conditions(self) -> Conditions:
        return Conditions(clock_mhz=1980)


class PlainLibrary(Library):
    """No switches, and a hundred operations in each step."""

    def prepare(self, precision: str, settings: Settings) -> Any:
        if settings.allocator:
            raise Unsupported("no such allocator")
        return precision

    def flops(self, step: Callable[[], object]) -> float | None:
        step()
        return 100.0


class Batch:
    """An array of which nothing but the shape is known."""

    def __init__(self, *shape: int) -> None:
        self.shape = shape


class Work:
    """A workload that counts."""

    unit = "images"

    def __init__(self, device: str = "", precision: Any = None) -> None:
        self.sizes: list[int] = []

    def make_batch(self, size: int) -> Any:
        return Batch(size, 3)

    def step(self, batch: Any) -> Any:
        self.sizes.append(batch.shape[0])
        time.sleep(0.001)


def bench(factory: Any, device: StillDevice | None = None) -> Bench:
    return Bench(factory, device or StillDevice(), PlainLibrary())


def measured(outcome: Measurement | Failure) -> Measurement:
    assert isinstance(outcome, Measurement), outcome
    return outcome


def failed(outcome: Measurement | Failure) -> Failure:
    assert isinstance(outcome, Failure), outcome
    return outcome


def test_a_trial_shows_all_that_was_seen() -> None:
    measurement = measured(bench(Work).measure(TRIAL, EFFORT))
    assert (measurement.status, measurement.batch_size, measurement.samples_per_step) == (OK, 8, 8)
    assert measurement.unit == "images/s"
    assert (measurement.peak_memory_bytes, measurement.resident_memory_bytes) == (1000, 400)
    assert (measurement.reserved_memory_bytes, measurement.predicted_memory_bytes) == (1200, 900)
    assert measurement.flops_per_step == 400.0  # counted with two samples
    assert measurement.conditions.clock_mhz == 1980
    assert measurement.warnings == ("the allocator emptied its cache 1 times: memory is nearly full",)


def test_two_full_steps_come_before_the_timed_ones_and_the_memory_is_looked_at_last() -> None:
    device = StillDevice()
    work = Work()
    measurement = measured(bench(lambda *_: work, device).measure(TRIAL, Effort(warmup_steps=0, steps=5)))
    assert device.events[0] == "begin"
    assert device.events.index("timed") >= 3  # each warm-up step was waited for
    assert device.events[-1] == "memory"
    assert len(measurement.warmup_seconds) >= 2
    assert work.sizes == [2] + [8] * (len(measurement.warmup_seconds) + len(measurement.step_seconds))


def test_short_steps_are_repeated_more_often_than_asked_for() -> None:
    assert len(measured(bench(Work).measure(TRIAL, EFFORT)).step_seconds) > EFFORT.steps


def test_the_first_step_is_outside_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    now, takes = [0.0], iter([0.3])
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])

    def step() -> None:
        now[0] += next(takes, 0.001)

    timed = time_trial(step, StillDevice(), Effort(warmup_steps=2, steps=5, limit_seconds=0.2))
    assert timed.warmup[0] >= 0.3
    assert len(timed.steps) >= 5


@pytest.mark.parametrize(
    ("seconds", "effort", "warmup", "steps", "end"),
    [
        pytest.param([1 / 8], Effort(warmup_steps=2, steps=5, limit_seconds=2.0), 4, 5, 2.0, id="two steady blocks"),
        pytest.param([1 / 8], Effort(warmup_steps=0, steps=5, limit_seconds=2.0), 4, 5, 2.0, id="at least two steps"),
        pytest.param([1 / 8], Effort(warmup_steps=6, steps=50, limit_seconds=2.0), 6, 11, 3.0, id="what the limit has"),
        pytest.param(
            [1 / 1024], Effort(warmup_steps=2, steps=5, limit_seconds=2.0), 106, 100, 1.2001953125, id="short"
        ),
        pytest.param([0.0], Effort(warmup_steps=2, steps=5, limit_seconds=2.0), 202, 100, 1.0, id="no time at all"),
        pytest.param([1 / 4], Effort(warmup_steps=2, steps=40, limit_seconds=1.0), 2, 3, 2.0, id="three fit exactly"),
        pytest.param([1 / 4], Effort(warmup_steps=2, steps=40, limit_seconds=1.25), 3, 3, 2.25, id="one more block"),
        pytest.param(
            [1.0], Effort(warmup_steps=2, steps=40, limit_seconds=0.5, most_seconds=10.0), 2, 3, 5.0, id="slow"
        ),
        pytest.param(
            [1.0], Effort(warmup_steps=2, steps=40, limit_seconds=0.5, most_seconds=2.0), 2, 1, 3.0, id="one more"
        ),
        pytest.param(
            [1.0], Effort(warmup_steps=2, steps=40, limit_seconds=0.5, most_seconds=1.0), 1, 2, 3.0, id="none is left"
        ),
        pytest.param(
            [32.0], Effort(warmup_steps=2, steps=40, limit_seconds=0.5, most_seconds=999.0), 2, 1, 65.0, id="a minute"
        ),
        pytest.param(
            [64.0], Effort(warmup_steps=2, steps=40, limit_seconds=99.0, most_seconds=999.0), 2, 1, 129.0, id="slower"
        ),
        pytest.param(
            [1 / 8, 1 / 4] * 30, Effort(warmup_steps=2, steps=5, limit_seconds=20.0), 10, 5, 3.625, id="never steady"
        ),
        pytest.param(
            [1 / 2, 1 / 4, 1 / 8, 1 / 16, *[1 / 32] * 30],
            Effort(warmup_steps=2, steps=5, limit_seconds=20.0),
            8,
            5,
            2.1875,
            id="steady in the end",
        ),
    ],
)
def test_how_many_steps_are_done(
    monkeypatch: pytest.MonkeyPatch, seconds: list[float], effort: Effort, warmup: int, steps: int, end: float
) -> None:
    """After a first step of a second. What is timed takes exactly as long as `seconds` say, the last one on and on."""
    now, takes = [0.0], iter([1.0, *seconds])
    monkeypatch.setattr(measuring, "time", SimpleNamespace(perf_counter=lambda: now[0]))

    def step() -> None:
        now[0] += next(takes, seconds[-1])

    monkeypatch.setattr(devices, "time", SimpleNamespace(perf_counter=lambda: now[0]))
    timed = time_trial(step, StillDevice(), effort)
    assert (len(timed.warmup), len(timed.steps), now[0]) == (warmup, steps, end)


@pytest.mark.parametrize(("most_seconds", "steps"), [(10.0, 3), (0.01, 2)])
def test_a_slow_step_gets_time_for_three_while_the_budget_lasts(most_seconds: float, steps: int) -> None:
    effort = Effort(warmup_steps=2, steps=5, limit_seconds=0.01, most_seconds=most_seconds)
    timed = time_trial(lambda: time.sleep(0.05), StillDevice(), effort)
    assert len(timed.steps) == steps
    assert min(timed.steps) >= 0.05


def test_latency_waits_for_each_step() -> None:
    """What a queue hides is the time that the host takes to launch the work."""
    device = StillDevice()
    time_trial(lambda: time.sleep(0.02), device, Effort(warmup_steps=2, steps=5, limit_seconds=2.0, one_by_one=True))
    assert "timed" not in device.events
    last = device.events[-5:]
    assert last == ["wait"] * 5


def test_the_workload_is_kept_until_its_settings_change() -> None:
    built: list[int] = []

    class Counted(Work):
        def __init__(self, device: str, precision: Any) -> None:
            built.append(1)
            super().__init__()

    kept = bench(Counted)
    for size in (2, 4):
        kept.measure(Trial(precision="fp32", batch_size=size), EFFORT)
    assert len(built) == 1
    kept.measure(Trial(precision="fp32", batch_size=4, settings=Settings(channels_last=True)), EFFORT)
    assert len(built) == 2
    for size in (4, 8):  # each size is compiled by itself
        kept.measure(Trial(precision="fp32", batch_size=size, settings=Settings(compile=True)), EFFORT)
    assert len(built) == 4


OUT = "CUDA out of memory. Tried to allocate 2.00 GiB"


class FakeTorch:
    """The gradient mode, the default type and cudnn.benchmark of a process."""

    def __init__(self) -> None:
        self.gradients, self.dtype = True, "float32"
        self.backends = SimpleNamespace(cudnn=SimpleNamespace(benchmark=False))
        self.is_grad_enabled = lambda: self.gradients
        self.set_grad_enabled = lambda value: setattr(self, "gradients", value)
        self.get_default_dtype = lambda: self.dtype
        self.set_default_dtype = lambda value: setattr(self, "dtype", value)
        self.manual_seed = lambda number: None


def test_what_a_workload_switches_holds_in_each_of_its_trials_and_in_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    torch: Any = FakeTorch()
    monkeypatch.setitem(sys.modules, "torch", torch)
    seen: list[tuple[bool, str, bool]] = []

    class Switching(Work):
        def __init__(self, device: str, precision: Any) -> None:
            super().__init__(device, precision)
            torch.set_default_dtype("float64")

        def step(self, batch: Batch) -> Any:
            seen.append((torch.gradients, torch.dtype, torch.backends.cudnn.benchmark))
            return super().step(batch)

    tuned = bench(Switching)
    first = measured(tuned.measure(TRIAL, EFFORT))
    torch.set_grad_enabled(False)  # as a forward pass may
    torch.set_default_dtype("float16")
    torch.backends.cudnn.benchmark = True
    second = measured(tuned.measure(replace(TRIAL, batch_size=16), EFFORT))
    assert set(seen) == {(True, "float64", False)}
    assert first.warnings[1:] == second.warnings[1:] == ("the workload itself sets default dtype to float64",)
    tuned.forget()
    assert (torch.gradients, torch.dtype) == (True, "float32")


class InBuild(Work):
    def __init__(self, device: str, precision: Any) -> None:
        raise MemoryError


class InBatch(Work):
    def make_batch(self, size: int) -> Any:
        raise RuntimeError("[enforce fail at alloc_cpu.cpp:127] . DefaultCPUAllocator: can't allocate memory")


class InForward(Work):
    def step(self, batch: Any) -> Any:
        raise RuntimeError(OUT)


class InOptimizer(Work):
    """The optimiser's state comes at the end of the first step."""

    def step(self, batch: Any) -> Any:
        super().step(batch)
        if batch.shape[0] == 8:
            raise RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`")


class InSecondStep(Work):
    def step(self, batch: Any) -> Any:
        super().step(batch)
        if self.sizes.count(8) == 2:
            raise RuntimeError(OUT)


class InEvaluation(Work):
    """The user's step evaluates now and then."""

    def step(self, batch: Any) -> Any:
        super().step(batch)
        if self.sizes.count(8) == 5:
            raise RuntimeError("CUDA error: out of memory\nCUDA kernel errors might be asynchronously reported")


@pytest.mark.parametrize("factory", [InBuild, InBatch, InForward, InOptimizer, InSecondStep, InEvaluation])
def test_out_of_memory_wherever_it_comes(factory: Any) -> None:
    assert failed(bench(factory).measure(TRIAL, EFFORT)).kind == OUT_OF_MEMORY


def test_a_failure_leaves_nothing_of_the_trial_alive() -> None:
    alive: list[weakref.ref[Any]] = []

    class Holding(Work):
        def step(self, batch: Any) -> Any:
            activations = Batch(8)
            alive.extend((weakref.ref(activations), weakref.ref(batch), weakref.ref(self)))
            raise RuntimeError(OUT)  # the exception holds this frame, and the frame its variables

    assert failed(bench(Holding).measure(TRIAL, EFFORT)).kind == OUT_OF_MEMORY
    assert [reference() for reference in alive[-3:]] == [None] * 3


def test_a_bug_is_the_users_with_its_traceback() -> None:
    class Wrong(Work):
        def step(self, batch: Any) -> Any:
            return batch.labels

    failure = failed(bench(Wrong).measure(TRIAL, EFFORT))
    assert failure.kind == WORKLOAD
    assert failure.detail == "AttributeError: 'Batch' object has no attribute 'labels'"
    assert "return batch.labels" in failure.traceback
    assert "time_trial" not in failure.traceback


def test_a_script_that_exits_is_a_bug() -> None:
    def exits(device: str, precision: Any) -> Any:
        raise SystemExit(2)

    assert failed(bench(exits).measure(TRIAL, EFFORT)).detail == "SystemExit: 2"


def test_a_mistake_in_what_was_typed_goes_through() -> None:
    def unusable(device: str, precision: Any) -> Any:
        raise UsageError("train.py has no Training")

    with pytest.raises(UsageError, match="has no Training"):
        bench(unusable).measure(TRIAL, EFFORT)


def test_a_batch_larger_than_the_data_set_is_refused() -> None:
    class Small(Work):
        dataset = (1, 2, 3, 4, 5)

    failure = failed(bench(Small).measure(TRIAL, EFFORT))
    assert (failure.kind, failure.detail) == (UNSUPPORTED, "the data set has only 5 samples")


def test_a_batch_cut_short_by_the_end_of_the_data_is_refused() -> None:
    class Short(Work):
        def make_batch(self, size: int) -> Any:
            return {"images": Batch(min(size, 5), 3), "labels": [Batch(min(size, 5))]}

    failure = failed(bench(Short).measure(TRIAL, EFFORT))
    assert (failure.kind, failure.detail) == (UNSUPPORTED, "make_batch(8) returned 5 samples")


@pytest.mark.parametrize("shape", [(100, 8), (4, 8, 16), (2048,)], ids=["sequence first", "layers first", "packed"])
def test_other_shapes_of_a_full_batch_are_believed(shape: tuple[int, ...]) -> None:
    class Shaped(Work):
        def make_batch(self, size: int) -> Any:
            return Batch(*shape)

    assert measured(bench(Shaped).measure(TRIAL, EFFORT)).samples_per_step == 8


def test_the_workload_may_count_its_samples_itself() -> None:
    class Packed(Work):
        unit = "tokens"

        def make_batch(self, size: int) -> Any:
            return Batch(1, 3)

        def samples_per_batch(self, size: int) -> int:
            return 512 * size

    measurement = measured(bench(Packed).measure(TRIAL, EFFORT))
    assert (measurement.samples_per_step, measurement.unit) == (4096, "tokens/s")


def test_a_setting_that_is_not_there_is_unsupported() -> None:
    trial = Trial(precision="fp32", batch_size=8, settings=Settings(allocator="expandable_segments:True"))
    failure = failed(bench(Work).measure(trial, EFFORT))
    assert (failure.kind, failure.detail) == (UNSUPPORTED, "no such allocator")


@pytest.mark.parametrize(
    ("kind", "peak_bytes", "on_host", "refused"),
    [
        pytest.param("cuda", 0, True, True, id="a GPU that was left alone"),
        pytest.param("cuda", 0, False, False, id="an allocator that counts nothing"),
        pytest.param("cuda", 512, True, False, id="a step that copies its batch"),
        pytest.param("cuda", None, True, False, id="memory that is unknown"),
        pytest.param("cpu", 0, True, False, id="the host"),
    ],
)
def test_a_workload_that_leaves_the_device_alone(
    kind: str, peak_bytes: int | None, on_host: bool, refused: bool
) -> None:
    device: Any = SimpleNamespace(kind=kind, name="cuda:0")
    expected: Any = pytest.raises(UsageError, match="uses no memory of cuda:0") if refused else nullcontext()
    with expected:
        measuring._require_use(device, peak_bytes, on_host)
