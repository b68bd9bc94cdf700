"""Every fault that a tuner must come through, and what it recommends in the end: whole runs on a simulated device.

Scenario, and the tests that show the verdict: of this file where none is named.

out of memory
    building, batch, forward, backward, the optimiser's first step, step 2, evaluation
                        workers/test_measuring.py::test_out_of_memory_wherever_it_comes
                        test_worker_faults.py::test_out_of_memory_at_any_moment_is_an_outcome
                        test_local.py::test_out_of_memory_is_an_outcome_and_the_next_trial_runs
    in every wording    workers/test_failures.py::test_wordings_of_full_memory, ::test_types_of_full_memory,
                        ::test_libraries_without_a_workspace_mean_memory_only_if_it_is_full
    of torch itself     test_local_torch.py::test_memory_that_is_full_is_an_outcome
a bug of the user's     test_a_bug_that_shows_only_at_a_large_batch_ends_the_search_above_it
                        test_local.py::test_a_bug_is_shown_with_its_traceback_and_never_taken_for_too_large
memory that spills      test_spilled_memory_is_not_recommended
more than 65535 blocks  test_a_grid_that_is_too_large_is_a_bound_and_not_out_of_memory
memory not monotone     test_a_batch_that_fails_between_two_that_run_is_not_recommended
                        test_memory.py::test_memory_that_is_not_monotone_widens_the_bound
memory taken by others  test_memory_taken_in_mid_run_leaves_a_batch_that_still_fits
                        test_a_batch_that_fails_when_it_is_measured_again_is_not_recommended
                        test_figures.py::test_what_may_have_spoilt_a_measurement
allocator that retries  test_an_allocator_that_retries_is_not_recommended
noise of 5 %            test_noise_of_5_percent_leaves_the_choice
noise of 20 %           test_noise_of_20_percent_is_reported_or_refused
                        test_search.py::test_noise_everywhere_still_gets_an_answer
clocks 10 % lower       test_drifting_clocks, test_drift_between_two_precisions_does_not_decide
a hang                  test_a_hang_is_a_bound_and_costs_no_recommendation
                        test_local.py::test_a_hang_is_killed_with_everything_that_it_started
a batch larger than the data set
                        test_a_data_set_bounds_the_batch_whether_it_is_reported_or_not
                        test_local.py::test_a_batch_larger_than_the_data_set
batch normalisation of one sample
                        test_batch_normalisation_of_one_sample_leaves_the_other_precisions
                        test_search.py::test_a_single_sample_is_never_tried_before_two_failed
an error that sticks to the process
                        test_worker_faults.py::test_an_error_that_sticks_to_the_process_spoils_no_other_trial
                        test_local.py::test_a_device_side_assert_is_the_users_bug
an exception that holds tensors
                        workers/test_measuring.py::test_a_failure_leaves_nothing_of_the_trial_alive
TF32 without effect     test_a_precision_whose_numbers_are_wrong_is_never_recommended
                        workers/test_comparing_with_torch.py::test_a_tf32_switch_without_effect_is_reported_by_the_error
bf16 that is emulated   test_emulated_bf16_is_left_out
                        workers/test_describing.py::test_precisions_of_a_device
fp16 that overflows     test_a_precision_whose_numbers_are_wrong_is_never_recommended
                        workers/test_comparing_with_torch.py::test_fp16_that_overflows
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from gpudoctor.errors import WorkloadError
from gpudoctor.model.tuning import (
    NUMERICS,
    OK,
    OUT_OF_MEMORY,
    UNSUPPORTED,
    Measurement,
    Numerics,
    Recommendation,
    Trial,
    TunedDevice,
    TunedWorkload,
    Tuning,
)
from gpudoctor.tuning.executor import Effort
from gpudoctor.tuning.gates import Compared, judge
from gpudoctor.tuning.tuner import tune
from gpudoctor.tuning.tuning_run import Request
from gpudoctor.tuning.workers.describing import cuda_precisions
from tests.tuning import simulated_device
from tests.tuning.simulated_device import GIB, PrecisionTraits, Scenario, SimulatedDevice

PLAIN = replace(simulated_device.PLAIN, fixed_seconds=0.05, sample_seconds=0.0001)
"""Some 970 samples fit, and the more the faster: the search goes for the limit."""

LEVEL = replace(PLAIN, fixed_seconds=0.0002)
"""From 128 samples on a larger batch gains nothing."""

Fault = Callable[[Measurement], Measurement]


class Faulty(SimulatedDevice):
    """A simulated device on which something goes wrong.

    fault: turns what would have been measured into what is.
    claims_bytes: memory that it says it has; all of it where None.
    """

    def __init__(
        self,
        scenario: Scenario = PLAIN,
        fault: Fault = lambda measured: measured,
        *,
        noise: float = 0.0,
        seed: int = 0,
        claims_bytes: int | None = None,
    ) -> None:
        super().__init__(scenario, noise, seed)
        self.fault = fault
        self.claims_bytes = claims_bytes or scenario.memory_bytes
        self.asked = 0

    def describe(self) -> TunedDevice:
        return replace(super().describe(), memory_usable_bytes=self.claims_bytes)

    def measure(self, trial: Trial, effort: Effort) -> Measurement:
        self.asked += 1
        return self.fault(super().measure(trial, effort))

    def wait(self, seconds: float) -> None:
        """Let the virtual clock run."""
        self._clock += seconds


def failed(measured: Measurement, status: str = OUT_OF_MEMORY, detail: str = "CUDA out of memory") -> Measurement:
    return replace(measured, status=status, detail=detail, step_seconds=())


def slower(measured: Measurement, factor: float) -> Measurement:
    return replace(measured, step_seconds=tuple(factor * seconds for seconds in measured.step_seconds))


def tuned(device: Faulty, **request: object) -> tuple[Tuning, Recommendation]:
    tuning = tune(device, Request(**{"budget_seconds": 10_000.0, **request}))  # type: ignore[arg-type]
    assert tuning.recommendation is not None
    return tuning, tuning.recommendation


def share_of_best(scenario: Scenario, advice: Recommendation) -> float:
    """Return the true throughput of what is recommended, as a share of the best there is."""
    best = max(scenario.rate(name, size) for name in scenario.precisions for size in range(1, 1100))
    return scenario.rate(advice.precision, advice.batch_size) / best


@pytest.mark.parametrize("measures_memory", [True, False])
def test_spilled_memory_is_not_recommended(measures_memory: bool) -> None:
    """As on Windows: the driver claims three times the memory, no allocation fails, steps take ten times as long."""
    spilling = replace(PLAIN, spills=True, measures_memory=measures_memory)

    def spill(measured: Measurement) -> Measurement:
        spills = spilling.held("fp32", measured.batch_size) > spilling.memory_bytes
        return slower(measured, 10.0) if spills else measured

    tuning, advice = tuned(Faulty(spilling, spill, claims_bytes=3 * spilling.memory_bytes))
    assert spilling.held("fp32", advice.batch_size) <= spilling.memory_bytes
    assert spilling.held("fp32", advice.max_batch_size or 0) <= spilling.memory_bytes
    assert advice.batch_size >= 512
    assert {m.status for m in tuning.measurements} == {OK}


def test_a_grid_that_is_too_large_is_a_bound_and_not_out_of_memory() -> None:
    small = replace(PLAIN, curves=((0.1 * GIB, 4e4),), sample_seconds=1e-6)
    detail = "RuntimeError: CUDA error: invalid configuration argument"
    device = Faulty(small, lambda m: failed(m, UNSUPPORTED, detail) if m.batch_size > 65535 else m)
    tuning, advice = tuned(device)
    assert {m.status for m in tuning.measurements} == {OK, UNSUPPORTED}
    assert 32768 <= advice.batch_size <= (advice.max_batch_size or 0) <= 65535


@pytest.mark.parametrize("scenario", [pytest.param(PLAIN, id="rising"), pytest.param(LEVEL, id="level")])
@pytest.mark.parametrize("bad", [8, 32, 64, 128, 512])
def test_a_batch_that_fails_between_two_that_run_is_not_recommended(scenario: Scenario, bad: int) -> None:
    """A library takes a larger workspace for one size alone, as in DL4J's issue 5461: 16 fails, 32 runs."""
    _, advice = tuned(Faulty(scenario, lambda m: failed(m) if m.batch_size == bad else m))
    assert advice.batch_size != bad
    assert share_of_best(scenario, advice) > 0.95


@pytest.mark.parametrize("measures_memory", [True, False])
@pytest.mark.parametrize("trials", [2, 3, 4, 5, 6, 8])
def test_memory_taken_in_mid_run_leaves_a_batch_that_still_fits(measures_memory: bool, trials: int) -> None:
    """After some trials another process takes three quarters of the memory: what ran before does not any more."""

    def take(measured: Measurement) -> Measurement:
        return failed(measured) if device.asked > trials and measured.batch_size > 200 else measured

    device = Faulty(replace(PLAIN, measures_memory=measures_memory), take)
    _, advice = tuned(device)
    assert 96 <= advice.batch_size <= 200
    assert advice.max_batch_size is not None
    assert advice.max_batch_size <= 200


def test_a_batch_that_fails_when_it_is_measured_again_is_not_recommended() -> None:
    """Two precisions are measured in turns in the end; by then 256 samples do not fit any more."""
    close = replace(LEVEL, precisions={"fp32": PrecisionTraits(), "tf32": PrecisionTraits(sample_factor=0.98)})
    searched = Faulty(close)
    before, _ = tuned(searched)
    turns = len(before.measurements) - 4

    def take(measured: Measurement) -> Measurement:
        return failed(measured) if device.asked > turns and measured.batch_size > 50 else measured

    device = Faulty(close, take)
    tuning, advice = tuned(device)
    assert OUT_OF_MEMORY in {m.status for m in tuning.measurements[turns:]}
    assert advice.batch_size <= 50


def test_an_allocator_that_retries_is_not_recommended() -> None:
    """The device claims more than there is: beyond it the allocator frees its cache in every step, and goes on."""
    short = replace(PLAIN, fragmentation=0.6, stubborn=0.0)
    tuning, advice = tuned(Faulty(short, claims_bytes=2 * short.memory_bytes))
    assert any(m.allocation_retries for m in tuning.measurements)
    assert short.held("fp32", advice.batch_size) <= short.memory_bytes
    assert share_of_best(short, advice) > 0.9


@pytest.mark.parametrize("seed", range(5))
def test_noise_of_5_percent_leaves_the_choice(seed: int) -> None:
    _, advice = tuned(Faulty(LEVEL, noise=0.05, seed=seed))
    assert share_of_best(LEVEL, advice) > 0.95


@pytest.mark.parametrize("seed", range(5))
def test_noise_of_20_percent_is_reported_or_refused(seed: int) -> None:
    """Around what torch.utils.benchmark refuses to rank: some batch sizes are ranked, with a warning, or none is."""
    advice = tune(Faulty(LEVEL, noise=0.2, seed=seed), Request(budget_seconds=10_000.0)).recommendation
    if advice is not None:
        assert any(warning.startswith("step times vary") for warning in advice.warnings)
        assert share_of_best(LEVEL, advice) > 0.9


@pytest.mark.parametrize("after", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("scenario", [pytest.param(PLAIN, id="rising"), pytest.param(LEVEL, id="level")])
def test_drifting_clocks(scenario: Scenario, after: int) -> None:
    """From a trial on, the clocks are a tenth lower."""
    device = Faulty(scenario, lambda m: slower(m, 1 / 0.9) if device.asked > after else m)
    _, advice = tuned(device)
    assert share_of_best(scenario, advice) > 0.9


@pytest.mark.parametrize("gain", [0.04, 0.08])
def test_drift_between_two_precisions_does_not_decide(gain: float) -> None:
    """tf32 is searched before the clocks fall, fp32 afterwards; in truth fp32 is faster."""
    traits = {"fp32": PrecisionTraits(), "tf32": PrecisionTraits(fixed_factor=1 + gain, sample_factor=1 + gain)}
    close = replace(LEVEL, precisions=traits)
    device = Faulty(close, lambda m: slower(m, 1 / 0.9) if falls["now"] else m)
    falls = {"now": False}

    def say(words: str) -> None:
        falls["now"] = falls["now"] or words.startswith("fp32: ")

    advice = tune(device, Request(budget_seconds=10_000.0), say).recommendation
    assert advice is not None
    assert advice.precision == "fp32"


def test_a_hang_is_a_bound_and_costs_no_recommendation() -> None:
    """Above 100 samples the device hangs; after two minutes the process is killed."""

    def hang(measured: Measurement) -> Measurement:
        if measured.batch_size <= 100:
            return measured
        device.wait(120.0)
        return failed(measured, UNSUPPORTED, "no answer in 120 s, so that the process was killed")

    device = Faulty(PLAIN, hang)
    tuning, advice = tuned(device, budget_seconds=300.0)
    assert 64 <= advice.batch_size <= 100
    assert tuning.elapsed_seconds < 300.0 + 120.0 + 10.0


@pytest.mark.parametrize("told", [True, False])
def test_a_data_set_bounds_the_batch_whether_it_is_reported_or_not(told: bool) -> None:
    class OfHundred(Faulty):
        def describe_workload(self, precision: str) -> TunedWorkload:
            return TunedWorkload(name="work", dataset_size=100 if told else None)

    detail = "the data set has only 100 samples"
    device = OfHundred(PLAIN, lambda m: failed(m, UNSUPPORTED, detail) if m.batch_size > 100 else m)
    tuning, advice = tuned(device)
    assert 64 <= advice.batch_size <= 100
    assert {m.status for m in tuning.measurements} == ({OK} if told else {OK, UNSUPPORTED})


def test_batch_normalisation_of_one_sample_leaves_the_other_precisions() -> None:
    """Two samples do not fit in fp32, and one cannot be normalised; bf16 takes half the memory."""
    halves = {"fp32": PrecisionTraits(), "bf16": PrecisionTraits(memory_factor=0.5, error=2.3e-3)}
    tight = replace(PLAIN, curves=((0.1 * GIB, 6e9),), precisions=halves)

    def normalise(measured: Measurement) -> Measurement:
        if measured.batch_size == 1:
            raise WorkloadError("the workload failed: ValueError: Expected more than 1 value per channel when training")
        return measured

    _, advice = tuned(Faulty(tight, normalise))
    assert (advice.precision, advice.batch_size) == ("bf16", 2)


def test_a_bug_that_shows_only_at_a_large_batch_ends_the_search_above_it() -> None:
    def fail(measured: Measurement) -> Measurement:
        if measured.batch_size > 30:
            raise WorkloadError("the workload failed: IndexError: index 30 is out of bounds", "line 3, in step")
        return measured

    said: list[str] = []
    tuning = tune(Faulty(PLAIN, fail), Request(), said.append)
    assert tuning.recommendation is not None
    assert tuning.recommendation.batch_size <= 30
    failed = [measured for measured in tuning.measurements if measured.batch_size > 30]
    assert {(measured.status, measured.traceback) for measured in failed} == {(UNSUPPORTED, "line 3, in step")}
    assert "line 3, in step" in said


class Judged(Faulty):
    """A device whose precisions are judged by what was measured of their numbers."""

    measured: dict[str, Compared]

    def compare(self, precision: str) -> Numerics:
        return judge(self.measured.get(precision, Compared(precision=precision, reference="fp64", output_error=2e-7)))


@pytest.mark.parametrize(
    ("compared", "reason"),
    [
        pytest.param(
            Compared(precision="tf32", reference="fp64", product_error=2.4e-7),
            "tf32 is not in effect",
            id="TF32 switched on without effect",
        ),
        pytest.param(
            Compared(precision="fp16", reference="fp64", output_error=math.inf),
            "fp16 ends at 65504",
            id="fp16 overflows",
        ),
        pytest.param(
            Compared(precision="fp16", reference="fp64", stepped=False, trained=True),
            "the optimiser never takes a step",
            id="fp16 gradients overflow at any scale",
        ),
    ],
)
def test_a_precision_whose_numbers_are_wrong_is_never_recommended(compared: Compared, reason: str) -> None:
    """Though it is three times as fast."""
    fast = {"fp32": PrecisionTraits(), compared.precision: PrecisionTraits(sample_factor=0.3, fixed_factor=0.3)}
    device = Judged(replace(PLAIN, precisions=fast))
    device.measured = {compared.precision: compared}
    tuning, advice = tuned(device)
    assert advice.precision == "fp32"
    (left_out,) = (m for m in tuning.measurements if m.precision == compared.precision)
    assert (left_out.status, left_out.batch_size) == (NUMERICS, 0)
    assert reason in left_out.detail


@pytest.mark.parametrize("asked_for", [(), ("bf16", "fp32")])
def test_emulated_bf16_is_left_out(asked_for: tuple[str, ...]) -> None:
    """As on a T4, whose is_bf16_supported() says yes."""

    class Turing(Faulty):
        def describe(self) -> TunedDevice:
            precisions, unsupported = cuda_precisions((7, 5), bf16_native=False)
            return replace(super().describe(), precisions=precisions, unsupported=unsupported)

    fast = {"fp32": PrecisionTraits(), "fp16": PrecisionTraits(), "bf16": PrecisionTraits(sample_factor=0.1)}
    tuning, advice = tuned(Turing(replace(PLAIN, precisions=fast)), precisions=asked_for)
    assert advice.precision == "fp32"
    left_out = [(m.status, m.batch_size, m.detail[:8]) for m in tuning.measurements if m.precision == "bf16"]
    assert left_out == ([(UNSUPPORTED, 0, "emulated")] if asked_for else [])


def test_every_test_named_above_exists() -> None:
    folder, file = Path(__file__).parent, Path(__file__).name
    for line in (__doc__ or "").splitlines():
        named = re.search(r"(\S+\.py)::", line)
        file = named[1] if named else file if line.strip().startswith("::") else Path(__file__).name
        for test in re.findall(r"test_\w+(?!\.py|\w)", line):
            assert f"def {test}(" in (folder / file).read_text(encoding="utf-8"), (file, test)
