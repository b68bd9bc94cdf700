"""Switches at the chosen point: which are tried where, and which are kept."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpudoctor.model.tuning import (
    OUT_OF_MEMORY,
    Loading,
    Measurement,
    Settings,
    SettingTrial,
    Transfer,
    Trial,
    TunedDevice,
)
from gpudoctor.tuning import settings
from gpudoctor.tuning.executor import Effort
from gpudoctor.tuning.settings import (
    candidates,
    choose_transfer,
    choose_workers,
    fits_on_device,
    improve,
    wait_fraction,
)

CUDA = TunedDevice(kind="cuda")
CPU = TunedDevice(kind="cpu", threads=4)
PLAIN = Measurement(precision="bf16", batch_size=64, samples_per_step=64, step_seconds=(0.010,) * 9)


class Bench:
    """Measures what it is told: seconds of a step by the switches that are on. Each trial takes a second."""

    def __init__(self, **seconds: float) -> None:
        self.seconds = seconds
        self.clock = 0.0
        self.trials: list[Trial] = []

    def now(self) -> float:
        return self.clock

    def measure(self, trial: Trial, effort: Effort) -> Measurement:
        self.clock += 1.0
        self.trials.append(trial)
        step = 0.010
        for name, factor in self.seconds.items():
            if getattr(trial.settings, name):
                step *= factor
        if trial.settings.compile and "compile" in self.seconds:
            return replace(PLAIN, settings=trial.settings, step_seconds=(step,) * 9, warmup_seconds=(20.0, step))
        return replace(PLAIN, settings=trial.settings, step_seconds=(step,) * 9)


def improved(
    bench: Bench, device: TunedDevice = CUDA, deadline: float = 1000.0
) -> tuple[Settings, dict[str, SettingTrial]]:
    switches: list[SettingTrial] = []
    best = improve(bench, device, PLAIN, deadline, switches.append)  # type: ignore[arg-type]  # all that it needs
    return best.settings, {switch.name: switch for switch in switches}


def test_switches_that_gain_are_kept_together() -> None:
    settings, switches = improved(Bench(channels_last=0.8, cudnn_benchmark=0.9))
    assert settings == Settings(channels_last=True, cudnn_benchmark=True)
    assert switches["channels_last"].gain == pytest.approx(0.25)


@pytest.mark.parametrize(("factor", "kept"), [(0.975, True), (0.985, False), (1.2, False)])
def test_a_switch_must_be_worth_it(factor: float, kept: bool) -> None:
    _, switches = improved(Bench(channels_last=factor))
    assert switches["channels_last"].kept is kept


def test_a_gain_within_the_noise_is_none() -> None:
    noisy = replace(PLAIN, step_seconds=(0.006, 0.007, 0.009, 0.010, 0.011, 0.013, 0.014))

    class Noisy(Bench):
        def measure(self, trial: Trial, effort: Effort) -> Measurement:
            shift = 0.95 if trial.settings.channels_last else 1.0
            steps = tuple(second * shift for second in noisy.step_seconds)
            return replace(noisy, settings=trial.settings, step_seconds=steps)

    _, switches = improved(Noisy())
    assert not switches["channels_last"].kept


QUIET, NOISY = PLAIN.step_seconds, (0.006, 0.007, 0.008, 0.009, 0.010, 0.011, 0.012, 0.013, 0.014)


@pytest.mark.parametrize(
    ("before", "after", "kept"), [(QUIET, QUIET, True), (NOISY, QUIET, False), (QUIET, NOISY, False)]
)
def test_the_noise_of_either_side_hides_a_gain(before: tuple[float, ...], after: tuple[float, ...], kept: bool) -> None:
    class OneNoisy(Bench):
        def measure(self, trial: Trial, effort: Effort) -> Measurement:
            steps = tuple(second * 0.95 for second in after) if trial.settings.channels_last else before
            return replace(PLAIN, settings=trial.settings, step_seconds=steps)

    _, switches = improved(OneNoisy())
    assert switches["channels_last"].kept is kept


def test_compiling_that_gains_nothing_never_pays_off() -> None:
    _, switches = improved(Bench(compile=1.0))
    assert "pays off" not in switches["compile"].why


def test_compiling_says_when_it_is_paid_off() -> None:
    _, switches = improved(Bench(compile=0.5))
    assert switches["compile"].why == "+100.0 %; compilation took 20 s and pays off after 3,999 steps"


def test_a_switch_that_does_not_run_is_left_off() -> None:
    class Failing(Bench):
        def measure(self, trial: Trial, effort: Effort) -> Measurement:
            measurement = super().measure(trial, effort)
            if trial.settings.cudnn_benchmark:
                return replace(measurement, status=OUT_OF_MEMORY, detail="no memory for its workspace")
            return measurement

    settings, switches = improved(Failing())
    assert (settings.cudnn_benchmark, switches["cudnn_benchmark"].why) == (False, "no memory for its workspace")


class Drifting(Bench):
    """Its channels_last gains what it is told, one round after another; the last gain stays."""

    def __init__(self, *gains: float) -> None:
        super().__init__()
        self.gains = list(gains)

    def measure(self, trial: Trial, effort: Effort) -> Measurement:
        found = super().measure(trial, effort)
        if not trial.settings.channels_last:
            return found
        gain = self.gains.pop(0) if len(self.gains) > 1 else self.gains[0]
        return replace(found, step_seconds=(0.010 / (1 + gain),) * 9)


@pytest.mark.parametrize(
    ("gains", "kept", "why"),
    [
        pytest.param((0.1, 0.1), True, "+10.0 %", id="twice the same"),
        pytest.param((-0.01,), False, "-1.0 %, less than the 2.0 % that noise allows", id="one slower round is enough"),
        pytest.param((0.5, -0.1, 0.3, -0.2), False, "less than the", id="the median decides"),
        pytest.param((0.2, 0.2, -0.1, 0.2), True, "+20.0 %", id="no third round if the gain is clear"),
        pytest.param((0.05, -0.001, 0.05), False, "+5.0 %, but -0.1 % when it was repeated", id="not every time"),
    ],
)
def test_a_gain_is_repeated_in_turns(gains: tuple[float, ...], kept: bool, why: str) -> None:
    _, switches = improved(Drifting(*gains))
    assert switches["channels_last"].kept is kept
    assert why in switches["channels_last"].why


def test_a_gain_that_the_budget_left_no_time_to_repeat_is_not_kept() -> None:
    bench = Drifting(0.5)
    _, switches = improved(bench, TunedDevice(kind="cpu"), deadline=2.5)
    assert switches["channels_last"].why == "+50.0 %, but the budget ended before it was repeated"
    assert not switches["channels_last"].kept


def test_what_the_allocator_is_set_to_stays_there() -> None:
    merged = dict(candidates(TunedDevice(kind="cuda", allocator="max_split_size_mb:64")))["allocator"]
    assert merged == {"allocator": "max_split_size_mb:64,expandable_segments:True"}
    decided = dict(candidates(TunedDevice(kind="cuda", allocator="expandable_segments:False")))
    assert "allocator" not in decided


def test_nothing_new_is_tried_after_the_deadline() -> None:
    _, switches = improved(Bench(), deadline=3.0)
    assert list(switches) == ["cudnn_benchmark", "allocator"]


def transfers(pageable: float, pageable_queued: float, pinned: float, pinned_queued: float) -> tuple[Transfer, ...]:
    return (
        Transfer(pinned=False, non_blocking=False, gb_s=pageable),
        Transfer(pinned=False, non_blocking=True, gb_s=pageable_queued),
        Transfer(pinned=True, non_blocking=False, gb_s=pinned, copy_gb_s=24.0),
        Transfer(pinned=True, non_blocking=True, gb_s=pinned_queued, copy_gb_s=26.0),
    )


@pytest.mark.parametrize(
    ("rates", "chosen"),
    [
        pytest.param((6, 6, 4, 5), (False, False), id="pinning costs more than it gains"),
        pytest.param((6, 6, 9, 12), (True, True), id="pinned and queued"),
        pytest.param((6, 6, 11.7, 12), (True, False), id="simpler, within 3 %"),
        pytest.param((5.9, 6, 6, 6), (False, False), id="all alike"),
        pytest.param((5.7, 6, 5, 5), (False, True), id="beyond 3 %"),
    ],
)
def test_choose_transfer(rates: tuple[float, float, float, float], chosen: tuple[bool, bool]) -> None:
    transfer = choose_transfer(transfers(*rates))
    assert transfer is not None
    assert (transfer.pinned, transfer.non_blocking) == chosen


def test_a_thread_that_pins_meanwhile_leaves_the_copy_alone_to_count() -> None:
    transfer = choose_transfer(transfers(6, 6, 4, 5), pinned_in_background=True)
    assert transfer is not None
    assert (transfer.pinned, transfer.non_blocking) == (True, True)


def test_nothing_measured_nothing_chosen() -> None:
    assert choose_transfer(()) is None
    assert choose_workers(()) is None


def loadings(*pairs: tuple[int, float, float | None]) -> tuple[Loading, ...]:
    return tuple(Loading(workers=w, samples_per_second=rate, wait_fraction=wait) for w, rate, wait in pairs)


@pytest.mark.parametrize(
    ("measured", "workers"),
    [
        pytest.param(loadings((0, 100, 0.5), (1, 90, 0.2), (2, 180, 0.0)), 2, id="the step is fed by two"),
        pytest.param(loadings((0, 100, 0.01), (1, 90, 0.0)), 0, id="nothing to wait for"),
        pytest.param(loadings((0, 100, 0.5), (2, 180, 0.1), (4, 190, 0.09), (8, 170, 0.12)), 2, id="never fed"),
        pytest.param(loadings((0, 100, None), (2, 180, None), (4, 184, None)), 2, id="time of a step unknown"),
    ],
)
def test_choose_workers(measured: tuple[Loading, ...], workers: int) -> None:
    assert choose_workers(measured) == workers


def test_fits_on_device() -> None:
    assert fits_on_device(50_000, usable_bytes=100_000, peak_bytes=50_000) is True
    assert fits_on_device(50_001, usable_bytes=100_000, peak_bytes=50_000) is False
    assert fits_on_device(None, usable_bytes=100_000, peak_bytes=50_000) is None
    assert fits_on_device(51_000, usable_bytes=None, peak_bytes=50_000) is None


@pytest.mark.parametrize(
    ("batch_seconds", "step_seconds", "workers", "expected"),
    [
        pytest.param(0.1, 0.3, 0, 0.25, id="without workers the step waits for the whole batch"),
        pytest.param(0.1, 0.3, 2, 0.0, id="workers keep up"),
        pytest.param(0.4, 0.3, 2, 0.25, id="workers do not"),
        pytest.param(0.4, None, 2, None, id="unknown step"),
    ],
)
def test_wait_fraction(batch_seconds: float, step_seconds: float | None, workers: int, expected: float | None) -> None:
    assert wait_fraction(batch_seconds, step_seconds, workers) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("kind", "threads", "names"),
    [
        ("cuda", 4, ["cudnn_benchmark", "allocator", "channels_last", "compile"]),
        ("mps", 4, ["channels_last", "compile"]),
        ("cpu", None, ["channels_last", "compile"]),
        ("cpu", 1, ["channels_last", "compile"]),
        ("cpu", 2, ["channels_last", "threads=1", "threads=4", "compile"]),
        ("cpu", 5, ["channels_last", "threads=2", "threads=10", "compile"]),
    ],
)
def test_what_is_tried_where(kind: str, threads: int | None, names: list[str]) -> None:
    assert [name for name, _ in candidates(TunedDevice(kind=kind, threads=threads))] == names


@pytest.mark.parametrize(
    ("deadline", "steps", "tried"),
    [
        pytest.param(12 * 0.5, (0.5,) * 9, False, id="a quarter of the time left holds three steps"),
        pytest.param(12 * 0.5 + 0.25, (0.5,) * 9, True, id="it holds more"),
        pytest.param(0.25, (), True, id="nobody knows how long a step takes"),
        pytest.param(0.0, (), False, id="no time is left"),
    ],
)
def test_how_much_time_a_switch_needs(deadline: float, steps: tuple[float, ...], tried: bool) -> None:
    efforts: list[Effort] = []

    class Noting(Bench):
        def measure(self, trial: Trial, effort: Effort) -> Measurement:
            efforts.append(effort)
            return super().measure(trial, effort)

    executor: Any = Noting()
    improve(executor, CUDA, replace(PLAIN, step_seconds=steps), deadline, lambda _: None)
    assert bool(efforts) is tried
    assert [(effort.warmup_steps, effort.steps, effort.limit_seconds) for effort in efforts[:1]] == (
        [(3, 15, deadline / 4)] if tried else []
    )


def test_among_equal_ways_the_simplest_is_chosen() -> None:
    ways = [
        Transfer(pinned=pinned, non_blocking=queued, gb_s=100.0) for pinned in (True, False) for queued in (True, False)
    ]
    found = [choose_transfer(ways[:count]) for count in (1, 2, 3, 4)]
    assert [(way.pinned, way.non_blocking) for way in found if way is not None] == [
        *((True, True), (True, False), (False, True), (False, False)),
    ]
    fast, near, far = (
        replace(ways[0], gb_s=rate, pinned=pinned) for rate, pinned in ((100.0, True), (97.0, False), (96.0, False))
    )
    assert (choose_transfer([fast, near]), choose_transfer([fast, far])) == (near, fast)
    few, many = (
        Loading(workers=0, samples_per_second=9.0, wait_fraction=0.03),
        Loading(workers=4, samples_per_second=9.0, wait_fraction=0.0),
    )
    assert (choose_workers([many, few]), choose_workers([many, replace(few, wait_fraction=0.04)])) == (0, 4)


@pytest.mark.parametrize(("seconds", "kept"), [(0.4, False), (0.39, True)])
def test_a_gain_on_the_bound_is_not_worth_it(seconds: float, kept: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "WORTH_IT", 0.25)

    class Exact(Bench):
        def measure(self, trial: Trial, effort: Effort) -> Measurement:
            second = seconds if trial.settings.channels_last else 0.5
            return replace(PLAIN, settings=trial.settings, step_seconds=(second,) * 9)

    _, switches = improved(Exact())
    assert switches["channels_last"].gain == pytest.approx(0.5 / seconds - 1)
    assert switches["channels_last"].kept is kept
