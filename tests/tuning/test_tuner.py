"""Whole runs of the tuner on a simulated device."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from gpudoctor.errors import WorkloadError
from gpudoctor.model.tuning import NUMERICS, OK, UNSUPPORTED, Loading, Measurement, Numerics, Transfer, Trial, Tuning
from gpudoctor.tuning.executor import BUDGET_ENDED, Effort
from gpudoctor.tuning.tuner import tune
from gpudoctor.tuning.tuning_run import Request
from tests.tuning.simulated_device import TUNED_ON, SimulatedDevice, draw


class Device(SimulatedDevice):
    """A simulated device that can be interrupted, whose precisions can fail, and that is closed in the end."""

    def __init__(self, seed: int = 1, **options: object) -> None:
        super().__init__(draw(seed, TUNED_ON))
        self.options = options
        self.closed = False
        self.started = 0

    def measure(self, trial: Trial, effort: Effort) -> Measurement:
        self.started += 1
        if self.started == self.options.get("interrupted_at"):
            raise KeyboardInterrupt
        if self.started >= self.options.get("bug_from", math.inf):  # type: ignore[operator]
            raise WorkloadError("the workload failed: ValueError: no", "Traceback ...")
        return super().measure(trial, effort)

    def compare(self, precision: str) -> Numerics | Measurement:  # type: ignore[override]
        if precision in self.options.get("bug_in", ()):  # type: ignore[operator]
            raise WorkloadError(f"the workload failed: KeyError: {precision}", "Traceback ...")
        if precision in self.options.get("unsupported", ()):  # type: ignore[operator]
            return Measurement(precision=precision, batch_size=0, status=UNSUPPORTED, detail="no LSTM in this type")
        if precision in self.options.get("failing", ()):  # type: ignore[operator]
            return Numerics(precision=precision, reference="fp64", passed=False, reason="outputs are not finite")
        return super().compare(precision)

    def transfers(self) -> tuple[Transfer, ...]:
        ways = {(False, False): 8.0, (False, True): 8.0, (True, False): 20.0, (True, True): 24.0}
        return tuple(Transfer(pinned=p, non_blocking=n, gb_s=rate) for (p, n), rate in ways.items())

    def loading(self, batch_size: int) -> tuple[Loading, ...]:
        if self.options.get("loads") is False:
            raise WorkloadError("the workload failed: OSError: no such file", "Traceback ...")
        rates = {0: 100.0, 2: 190.0, 4: 400.0, 8: 405.0}
        return tuple(Loading(workers=workers, samples_per_second=rate) for workers, rate in rates.items())

    def close(self) -> None:
        self.closed = True


def statuses(tuning: Tuning, precision: str) -> set[str]:
    return {m.status for m in tuning.measurements if m.precision == precision}


def test_a_run_recommends_and_closes() -> None:
    device = Device()
    told: list[str] = []
    tuning = tune(device, Request(budget_seconds=1000), told.append)
    assert tuning.recommendation is not None
    assert tuning.interrupted is None
    assert device.closed
    assert told[0] == "1000 s left: Reading the device"


def test_the_time_left_is_never_zero() -> None:
    told: list[str] = []
    tune(Device(), Request(budget_seconds=5), told.append)
    assert told[0] == "5 s left: Reading the device"
    assert told[-1].startswith("budget used, finishing: ")
    assert not [line for line in told if line.startswith("0 s left")]


def test_every_measurement_carries_the_error_of_its_precision() -> None:
    tuning = tune(Device(), Request(budget_seconds=1000))
    errors = {n.precision: n.relative_error for n in tuning.numerics}
    assert {m.relative_error for m in tuning.measurements if m.precision == "bf16"} == {errors["bf16"]}


def test_a_precision_in_which_the_workload_does_not_run_is_unsupported() -> None:
    tuning = tune(Device(unsupported=("bf16", "fp16")), Request(budget_seconds=1000))
    left_out = [m for m in tuning.measurements if m.precision in ("bf16", "fp16")]
    assert {(m.batch_size, m.status, m.detail) for m in left_out} == {(0, UNSUPPORTED, "no LSTM in this type")}
    assert {m.unit for m in left_out} == {tuning.workload.unit}
    assert {n.precision for n in tuning.numerics} == {"fp32", "tf32"}, "it was not compared"
    assert tuning.recommendation is not None
    assert tuning.recommendation.precision in ("fp32", "tf32")


def test_a_precision_that_fails_is_named_and_not_measured() -> None:
    tuning = tune(Device(failing=("bf16", "fp16")), Request(budget_seconds=1000))
    assert statuses(tuning, "bf16") == {NUMERICS}
    assert tuning.recommendation is not None
    assert tuning.recommendation.precision in ("fp32", "tf32")
    (left_out,) = (m for m in tuning.measurements if m.precision == "fp16")
    assert (left_out.batch_size, left_out.detail) == (0, "outputs are not finite")


def test_a_precision_that_the_device_has_not_is_named() -> None:
    tuning = tune(Device(), Request(precisions=("fp32", "fp8"), budget_seconds=1000))
    assert statuses(tuning, "fp8") == {UNSUPPORTED}
    assert OK in statuses(tuning, "fp32")
    assert statuses(tuning, "bf16") == set()


def test_nothing_is_recommended_if_nothing_is_safe() -> None:
    failing = ("fp32", "tf32", "bf16", "fp16")
    tuning = tune(Device(failing=failing), Request(budget_seconds=1000))
    assert tuning.recommendation is None
    assert {m.status for m in tuning.measurements} == {NUMERICS}


@pytest.mark.parametrize("at", [1, 2, 5])
def test_an_interruption_keeps_what_is_known(at: int) -> None:
    device = Device(interrupted_at=at)
    tuning = tune(device, Request(budget_seconds=1000))
    assert tuning.interrupted == "signal"
    assert device.closed
    assert len(tuning.measurements) == at - 1
    assert (tuning.recommendation is None) is (at == 1)


@pytest.mark.parametrize("smallest", [None, 4])
def test_latency_is_measured_at_the_smallest_batch_alone(smallest: int | None) -> None:
    efforts: set[tuple[bool, int]] = set()

    class Noting(Device):
        def measure(self, trial: Trial, effort: Effort) -> Measurement:
            efforts.add((effort.one_by_one, trial.batch_size))
            return super().measure(trial, effort)

    request = Request(budget_seconds=1000, goal="latency", smallest_batch=smallest)
    tuning = tune(Noting(), request)
    assert efforts == {(True, smallest or 1)}
    assert tuning.recommendation is not None
    latency = tuning.recommendation.latency
    assert latency is not None
    assert 0 < latency.median_seconds <= latency.p95_seconds <= latency.p99_seconds
    assert tune(Device(), Request(budget_seconds=1000)).recommendation.latency is None  # type: ignore[union-attr]


def test_a_bug_of_the_users_ends_the_run() -> None:
    device = Device(bug_from=1)
    with pytest.raises(WorkloadError, match="ValueError: no"):
        tune(device, Request(budget_seconds=1000))
    assert device.closed


@pytest.mark.parametrize("number", [4, 12, 20, 22])
def test_a_step_that_fails_now_and_then_costs_no_recommendation(number: int) -> None:
    class Flaky(Device):
        def measure(self, trial: Trial, effort: Effort) -> Measurement:
            if len(self.trials) >= number:
                raise WorkloadError("the workload failed: RuntimeError: flaky storage")
            return super().measure(trial, effort)

    tuning = tune(Flaky(), Request(budget_seconds=1000))
    assert tuning.recommendation is not None
    told = (*tuning.warnings, *(m.detail for m in tuning.measurements))
    assert any("flaky storage" in text for text in told)


def test_a_bug_of_the_users_in_one_precision_is_its_result() -> None:
    said: list[str] = []
    tuning = tune(Device(bug_in=("fp32",)), Request(budget_seconds=1000), said.append)
    assert tuning.recommendation is not None
    (failed,) = (m for m in tuning.measurements if m.precision == "fp32")
    assert (failed.batch_size, failed.status, failed.detail) == (0, UNSUPPORTED, "the workload failed: KeyError: fp32")
    assert "Traceback ..." in said
    with pytest.raises(WorkloadError, match="KeyError: bf16"):
        tune(Device(bug_in=("bf16", "fp16", "tf32", "fp32")), Request(budget_seconds=1000))


def test_a_data_set_that_fails_at_last_loses_nothing() -> None:
    tuning = tune(Device(loads=False), Request(budget_seconds=1000))
    assert tuning.recommendation is not None
    assert (tuning.loading, len(tuning.transfers)) == ((), 4)
    assert "data loading was not measured: the workload failed: OSError: no such file" in tuning.warnings


def test_a_search_that_the_budget_ends_says_so() -> None:
    short = tune(Device(), Request(budget_seconds=2.0))
    assert short.interrupted == "budget"
    (missing,) = (text for text in short.warnings if text.startswith("not measured"))
    assert set(missing.partition("first: ")[2].split(", ")) >= {"fp32", "compile"}
    assert short.budget_needed_seconds == 30.0
    assert any(text.endswith("A complete search probably needs --budget 30") for text in short.warnings)
    unhurried = tune(Device(), Request(budget_seconds=1000))
    assert (unhurried.interrupted, unhurried.warnings, unhurried.budget_needed_seconds) == (None, (), None)


def test_a_switch_that_the_budget_ended_was_not_measured() -> None:
    class Compiling(Device):
        def measure(self, trial: Trial, effort: Effort) -> Measurement:
            measured = super().measure(trial, effort)
            ended = replace(measured, status=UNSUPPORTED, step_seconds=(), detail=BUDGET_ENDED)
            return ended if trial.settings.compile else measured

    (missing,) = tune(Compiling(), Request(budget_seconds=1000)).warnings
    assert missing.endswith(": compile")


def test_no_batch_is_smaller_or_larger_than_asked_for() -> None:
    tuning = tune(Device(), Request(budget_seconds=1000, smallest_batch=5, largest_batch=20))
    measured = {m.batch_size for m in tuning.measurements if m.batch_size}
    assert (min(measured), max(measured) <= 20) == (5, True)


@pytest.mark.parametrize("budget", [2.0, 10.0, 40.0])
def test_the_budget_is_kept(budget: float) -> None:
    tuning = tune(Device(), Request(budget_seconds=budget))
    assert tuning.elapsed_seconds <= 1.5 * budget + 5
    assert tuning.recommendation is not None, "some precision is always measured"


def test_the_exhaustive_search_measures_every_power_of_two() -> None:
    tuning = tune(Device(), Request(precisions=("fp32",), exhaustive=True, budget_seconds=1.0))
    sizes = {m.batch_size for m in tuning.measurements if m.status == OK}
    powers = {size for size in sizes if size & (size - 1) == 0}
    assert powers == {1 << exponent for exponent in range(1, max(powers).bit_length())}


def test_no_batch_is_larger_than_the_data_set() -> None:
    tuning = tune(Device(), Request(largest_batch=5, budget_seconds=1000))
    assert max(m.batch_size for m in tuning.measurements) <= 5


def test_transfers_and_loading_become_settings() -> None:
    tuning = tune(Device(), Request(budget_seconds=1000))
    assert tuning.recommendation is not None
    settings = tuning.recommendation.settings
    assert (settings.pin_memory, settings.non_blocking, settings.loader_workers) == (True, True, 4)


def test_two_runs_agree() -> None:
    answers = {
        (r.precision, r.batch_size)
        for r in (tune(Device(), Request(budget_seconds=1000)).recommendation for _ in range(2))
        if r is not None
    }
    assert len(answers) == 1


def test_a_slower_precision_is_a_runner_up_with_its_reason() -> None:
    tuning = tune(Device(), Request(budget_seconds=1000))
    assert tuning.recommendation is not None
    assert all(runner.why for runner in tuning.recommendation.runners_up)
