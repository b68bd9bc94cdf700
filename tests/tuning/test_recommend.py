"""The choice among precisions, and what is said of it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from gpudoctor.model.tuning import (
    OUT_OF_MEMORY,
    UNSUPPORTED,
    Conditions,
    Measurement,
    Numerics,
    Recommendation,
    Trial,
)
from gpudoctor.tuning.executor import BUDGET_ENDED, Effort
from gpudoctor.tuning.gates import NO_FINITE_LOSS
from gpudoctor.tuning.known import Limits
from gpudoctor.tuning.reasons import near_best, why_this_size
from gpudoctor.tuning.recommend import recommend
from gpudoctor.tuning.search import SearchResult
from tests.tuning.simulated_device import GIB, SimulatedDevice, draw


def measurement(precision: str, throughput: float, batch_size: int = 100, noise: float = 0.002) -> Measurement:
    """Return twenty steps that spread evenly by the noise around the median."""
    seconds = batch_size / throughput
    steps = tuple(seconds * (1 + noise * (number - 9.5) / 10) for number in range(20))
    return Measurement(
        precision=precision,
        batch_size=batch_size,
        step_seconds=steps,
        samples_per_step=batch_size,
        unit="images/s",
        peak_memory_bytes=6 * GIB,
    )


def result(*measurements: Measurement, best: bool = True, max_batch_size: int | None = None) -> SearchResult:
    return SearchResult(
        precision=measurements[0].precision,
        measurements=measurements,
        best=measurements[-1] if best else None,
        max_batch_size=max_batch_size,
    )


def passed(*precisions: str) -> list[Numerics]:
    return [Numerics(precision=name, reference="fp64", passed=True, output_error=2e-3) for name in precisions]


NO_LIMITS = Limits()


def advice(
    *results: SearchResult, numerics: Sequence[Numerics] | None = None, limits: Limits = NO_LIMITS
) -> Recommendation:
    verdicts = passed(*(r.precision for r in results)) if numerics is None else numerics
    found = recommend(None, results, verdicts, limits)
    assert found is not None
    return found


FP32 = result(measurement("fp32", 1000.0))


class Device(SimulatedDevice):
    """Tells what it is asked for, and answers with given throughputs in turns."""

    def __init__(self, **throughputs: float) -> None:
        super().__init__(draw(0))
        self.throughputs = throughputs
        self.asked: list[str] = []

    def measure(self, trial: Trial, effort: Effort) -> Measurement:
        self.asked.append(trial.precision)
        self._clock += 1.0
        return measurement(trial.precision, self.throughputs[trial.precision], trial.batch_size)


def test_the_fastest_precision_wins() -> None:
    found = advice(FP32, result(measurement("bf16", 3000.0), max_batch_size=900))
    assert (found.precision, found.batch_size, found.max_batch_size) == ("bf16", 100, 900)
    assert found.unit == "images/s"


def test_a_safer_precision_wins_if_it_is_as_fast() -> None:
    bf16, fp16 = result(measurement("bf16", 3000.0)), result(measurement("fp16", 3040.0))
    found = advice(fp16, bf16)
    assert found.precision == "bf16"
    assert any("fp16 is 1.3 % faster" in sentence for sentence in found.why)


def test_beyond_the_noise_speed_wins() -> None:
    assert advice(result(measurement("bf16", 3000.0)), result(measurement("fp16", 3090.0))).precision == "fp16"


def test_wide_noise_asks_for_a_larger_gain() -> None:
    bf16 = result(measurement("bf16", 3000.0, noise=0.3))
    fp16 = result(measurement("fp16", 3120.0, noise=0.3))
    assert advice(bf16, fp16).precision == "bf16"


@pytest.mark.parametrize(("faster", "precision"), [(1.04, "fp32"), (1.06, "fp16")])
def test_a_few_steps_do_not_make_a_clear_gain_noise(faster: float, precision: str) -> None:
    """Of three steps no noise is known: a safer precision that is a sixth slower was chosen."""
    fp32, fp16 = measurement("fp32", 1000.0, noise=0.0), measurement("fp16", 1000.0 * faster, noise=0.0)
    few = [result(replace(one, step_seconds=one.step_seconds[:3])) for one in (fp32, fp16)]
    assert advice(*few).precision == precision


def test_a_precision_that_failed_its_numerics_is_never_recommended() -> None:
    failed = Numerics(precision="fp16", reference="fp64", passed=False, reason="the gradients are not finite")
    found = advice(FP32, result(measurement("fp16", 9000.0)), numerics=[*passed("fp32"), failed])
    assert found.precision == "fp32"
    assert [(r.precision, r.why) for r in found.runners_up] == [
        ("fp16", "numerical error: the gradients are not finite")
    ]


def test_a_precision_that_was_not_compared_stands_back_behind_one_that_was() -> None:
    found = advice(FP32, result(measurement("fp16", 9000.0)), numerics=passed("fp32"))
    assert found.precision == "fp32"
    assert found.runners_up[0].why == "its numerical error was not measured"


def test_if_none_was_compared_the_recommendation_warns() -> None:
    found = advice(FP32, numerics=[])
    assert found.warnings == ("the numerical error of fp32 was not measured",)


def test_nothing_safe_is_no_recommendation() -> None:
    failed = Numerics(precision="fp32", reference="fp64", passed=False)
    assert recommend(None, [FP32], [failed]) is None
    assert recommend(None, [], []) is None


def test_the_baseline_is_fp32_at_its_best() -> None:
    found = advice(FP32, result(measurement("bf16", 3000.0)))
    assert found.baseline is not None
    assert (found.baseline.precision, found.baseline.why) == ("fp32", "3.00 times slower")
    assert "3.00 times as fast as fp32 at its best batch size, 100" in found.why[0]


def test_alone_it_is_its_own_baseline() -> None:
    found = advice(FP32)
    assert found.baseline is not None
    assert found.baseline.why == "the recommendation itself"
    assert found.why[1] == "Only batch size 100 was measured."


def test_the_headroom_is_reported() -> None:
    found = advice(FP32, limits=Limits(memory_bytes=8 * GIB))
    assert found.peak_memory_bytes == 6 * GIB
    assert found.why[-2] == "Its peak memory is 6.00 GiB of 8.0 GiB available; 25 % is free."


@pytest.mark.parametrize(("noise", "is_noise"), [(0.002, False), (0.1, True)])
def test_the_reason_for_the_batch_size_names_the_fastest_one_and_the_noise(noise: float, is_noise: bool) -> None:
    chosen = measurement("fp32", 1000.0, batch_size=64, noise=noise)
    found = advice(result(measurement("fp32", 1008.0, batch_size=256, noise=noise), chosen))
    assert found.why[1].startswith("Batch size 256 is 0.8 % faster")
    assert ("within the noise" in found.why[1]) is is_noise


@pytest.mark.parametrize(("effective", "steps"), [(None, None), (300, 3), (100, 1), (250, None)])
def test_how_many_batches_make_the_effective_one(effective: int | None, steps: int | None) -> None:
    assert advice(FP32, limits=Limits(effective_batch=effective)).accumulation_steps == steps


@pytest.mark.parametrize(
    ("steps", "noise", "others", "confidence"),
    [
        pytest.param(20, 0.002, 1, "high", id="many steady steps"),
        pytest.param(20, 0.2, 1, "medium", id="noisy"),
        pytest.param(20, 1.0, 1, "low", id="very noisy"),
        pytest.param(3, 0.002, 1, "low", id="three steps"),
        pytest.param(20, 0.002, 0, "low", id="a single batch size"),
    ],
)
def test_the_confidence_follows_the_steps(steps: int, noise: float, others: int, confidence: str) -> None:
    chosen = measurement("fp32", 1000.0, noise=noise)
    chosen = replace(chosen, step_seconds=chosen.step_seconds[:steps])
    other = measurement("fp32", 500.0, batch_size=8)
    found = advice(result(*[other] * others, chosen))
    assert found.confidence == confidence
    assert found.why[-1].startswith(f"Confidence: {confidence}. ")


@pytest.mark.parametrize(
    ("unsteady", "cut_short", "confidence"),
    [(0.15, False, "high"), (0.2, False, "medium"), (0.6, False, "low"), (0.2, True, "low")],
)
def test_a_throughput_that_differs_from_turn_to_turn_is_not_certain(
    unsteady: float, cut_short: bool, confidence: str
) -> None:
    found = result(measurement("fp32", 500.0, batch_size=8), measurement("fp32", 1000.0))
    given = advice(replace(found, unsteady=unsteady, cut_short=cut_short))
    assert given.confidence == confidence
    assert (f"differed by {100 * unsteady:.0f} % from one turn" in given.why[-1]) is (confidence != "high")


def test_what_did_not_run_is_among_the_runners_up() -> None:
    unsupported = Measurement(precision="bf16", batch_size=2, status=UNSUPPORTED, detail="emulated on this device")
    too_large = Measurement(precision="tf32", batch_size=2, status=OUT_OF_MEMORY)
    noisy = result(measurement("fp16", 5000.0, noise=2.0), best=False)
    found = advice(FP32, result(unsupported, best=False), result(too_large, best=False), noisy)
    assert {r.precision: r.why for r in found.runners_up} == {
        "bf16": "emulated on this device",
        "tf32": "out-of-memory",
        "fp16": "too few of its steps were timed to rank it",
    }


def test_what_may_have_spoilt_it_is_reported_once() -> None:
    conditions = Conditions(throttle_reasons=("power cap",), foreign_memory_bytes=3 * GIB)
    spoilt = Measurement(
        precision="fp32",
        batch_size=8,
        step_seconds=(1.0, 1.2, 1.4, 1.0),
        samples_per_step=8,
        conditions=conditions,
        warnings=("throttled: power cap", "the clock changed"),
    )
    assert advice(result(spoilt)).warnings == (
        "throttled: power cap",
        "the clock changed",
        "another process uses 3.0 GiB",
        "step times vary by 23 % of the median",
    )


def test_a_loss_that_is_never_finite_is_a_warning() -> None:
    verdict = replace(passed("fp32")[0], not_compared=(NO_FINITE_LOSS,))
    for given, expected in ((verdict, True), (passed("fp32")[0], False)):
        found = recommend(None, [FP32], [given])
        assert found is not None
        assert any(warning.startswith("the loss is NaN") for warning in found.warnings) is expected


def test_the_two_best_are_measured_again_in_turns_and_that_decides() -> None:
    device = Device(bf16=3000.0, fp16=2900.0)
    seen: list[Measurement] = []
    results = [FP32, result(measurement("bf16", 3000.0)), result(measurement("fp16", 3100.0))]
    found = recommend(device, results, passed("fp32", "bf16", "fp16"), observe=seen.append)
    assert device.asked == ["fp16", "bf16"] * 2
    assert len(seen) == 4
    assert found is not None
    assert found.precision == "bf16"


@pytest.mark.parametrize("after", [0, 1, 2, 3])
def test_a_turn_that_the_budget_ends_is_no_failure_of_a_precision(after: int) -> None:
    class Ending(Device):
        def measure(self, trial: Trial, effort: Effort) -> Measurement:
            if len(self.asked) < after:
                return super().measure(trial, effort)
            return Measurement(
                precision=trial.precision, batch_size=trial.batch_size, status=UNSUPPORTED, detail=BUDGET_ENDED
            )

    device = Ending(bf16=3000.0, fp16=3100.0)
    results = [result(measurement("bf16", 3000.0)), result(measurement("fp16", 3100.0))]
    found = recommend(device, results, passed("bf16", "fp16"))
    assert found is not None
    assert (found.precision, len(device.asked)) == ("fp16", after)
    assert [other.throughput is None for other in found.runners_up] == [False]


def test_a_gain_at_the_edge_is_measured_longer() -> None:
    device = Device(bf16=3000.0, fp16=3060.0)
    results = [result(measurement("bf16", 3000.0)), result(measurement("fp16", 3060.0))]
    recommend(device, results, passed("bf16", "fp16"))
    assert len(device.asked) == 12


def test_what_is_far_apart_is_not_measured_again() -> None:
    device = Device()
    recommend(device, [FP32, result(measurement("bf16", 3000.0))], passed("fp32", "bf16"))
    assert device.asked == []


def test_without_time_the_first_measurements_decide() -> None:
    device = Device()
    results = [result(measurement("bf16", 3000.0)), result(measurement("fp16", 3100.0))]
    found = recommend(device, results, passed("bf16", "fp16"), Limits(deadline=0.0))
    assert device.asked == []
    assert found is not None
    assert found.precision == "fp16"


def steady(precision: str, throughput: float, batch_size: int, steps: int = 4) -> Measurement:
    found = measurement(precision, throughput, batch_size, noise=0.0)
    return replace(found, step_seconds=found.step_seconds[:steps], peak_memory_bytes=None)


ONE = Limits(largest_batch=1)
HIGH = "Confidence: high. 4 timed steps give the throughput to within 0.0 %."
NO_GAIN = "which is within the noise of 0.0 % and does not justify"
FASTEST = "It is the fastest of the 2 batch sizes measured."


@pytest.mark.parametrize(
    ("measured", "limits", "why"),
    [
        pytest.param(
            [steady("fp32", 128.0, 2), steady("fp32", 128.0, 1)],
            NO_LIMITS,
            (
                "fp32 at batch size 1 runs 128 images/s.",
                f"Batch size 2 is 0.0 % faster, {NO_GAIN} a larger batch.",
                HIGH,
            ),
            id="as fast as a larger batch",
        ),
        pytest.param(
            [steady("fp32", 128.0, 3), steady("fp32", 128.0, 4)],
            NO_LIMITS,
            (
                "fp32 at batch size 4 runs 128 images/s.",
                f"Batch size 3 is 0.0 % faster, {NO_GAIN} a size that is not a power of two.",
                HIGH,
            ),
            id="as fast as a size between powers of two",
        ),
        pytest.param(
            [steady("fp32", 64.0, 1), steady("fp32", 100.0, 100)],
            NO_LIMITS,
            ("fp32 at batch size 100 runs 100 images/s.", FASTEST, HIGH),
            id="a hundred",
        ),
        pytest.param(
            [steady("fp32", 64.0, 1), steady("fp32", 99.5, 2)],
            NO_LIMITS,
            ("fp32 at batch size 2 runs 99.50 images/s.", FASTEST, HIGH),
            id="less than a hundred",
        ),
        pytest.param(
            [steady("fp32", 64.0, 1)],
            ONE,
            ("fp32 at batch size 1 runs 64.00 images/s.", "Only batch size 1 was measured.", HIGH),
            id="no other batch size is allowed",
        ),
        pytest.param(
            [steady("fp32", 64.0, 2)],
            replace(ONE, largest_batch=2),
            (
                "fp32 at batch size 2 runs 64.00 images/s.",
                "Only batch size 2 was measured.",
                "Confidence: low. No other batch size was measured; 4 timed steps give the throughput to within 0.0 %.",
            ),
            id="another batch size is allowed",
        ),
        pytest.param(
            [steady("fp32", 64.0, 2)],
            Limits(largest_batch=2, smallest_batch=2, effective_batch=2),
            (
                "fp32 at batch size 2 runs 64.00 images/s.",
                "Only batch size 2 was measured.",
                "Step the optimiser after each batch: 1 x 2 = 2 samples.",
                HIGH,
            ),
            id="one batch makes the effective one",
        ),
        pytest.param(
            [steady("fp32", 64.0, 1, steps=1)],
            replace(ONE, effective_batch=3),
            (
                "fp32 at batch size 1 runs 64.00 images/s.",
                "Only batch size 1 was measured.",
                "Step the optimiser after every 3 batches: 3 x 1 = 3 samples.",
                "Confidence: low. Only one step was timed.",
            ),
            id="one step",
        ),
        pytest.param(
            [steady("fp32", 64.0, 2, steps=3)],
            Limits(effective_batch=3),
            (
                "fp32 at batch size 2 runs 64.00 images/s.",
                "Only batch size 2 was measured.",
                "No measured batch size divides the effective batch of 3.",
                "Confidence: low. Only 3 steps were timed.",
            ),
            id="three steps, and batches that do not divide",
        ),
        pytest.param(
            [replace(steady("fp32", 96.0, 2), status=OUT_OF_MEMORY), steady("fp32", 96.0, 2), steady("fp32", 64.0, 1)],
            NO_LIMITS,
            (
                "fp32 at batch size 1 runs 64.00 images/s.",
                "Batch size 2 was faster and failed when it was measured again.",
                HIGH,
            ),
            id="a larger batch failed later",
        ),
    ],
)
def test_all_that_speaks_for_a_choice(measured: list[Measurement], limits: Limits, why: tuple[str, ...]) -> None:
    found = advice(
        result(*measured), numerics=[Numerics(precision="fp32", reference="fp64", passed=True)], limits=limits
    )
    assert found.why == why
    effective = limits.effective_batch or 0
    assert found.accumulation_steps == (
        effective // found.batch_size or None if effective % found.batch_size == 0 else None
    )


def test_a_search_that_was_cut_short_is_less_sure() -> None:
    cut = replace(result(steady("fp32", 64.0, 1), steady("fp32", 96.0, 2)), cut_short=True)
    assert advice(cut).why[-1] == (
        "Confidence: medium. The budget ended the search; 4 timed steps give the throughput to within 0.0 %."
    )


def test_a_search_that_was_cut_short_is_compared_at_the_same_batch_size_only() -> None:
    """Else one at batch 2 would be "98.5 % slower" than another at 2,048."""
    whole = result(steady("bf16", 100.0, 1), steady("bf16", 1000.0, 8))
    short = replace(result(steady("fp32", 90.0, 1)), cut_short=True)
    apart = advice(whole, short)
    assert (apart.baseline, apart.speedup) == (None, None)
    assert apart.runners_up[0].why == "not compared: the budget ended its search at batch size 1"
    common = advice(whole, replace(result(steady("fp32", 90.0, 1), steady("fp32", 500.0, 8)), cut_short=True))
    assert common.speedup == pytest.approx(2.0)
    assert (common.runners_up[0].batch_size, common.runners_up[0].why) == (8, "50.0 % slower")


@pytest.mark.parametrize(
    ("faster", "limits", "reason"),
    [
        pytest.param(
            {"allocation_retries": 2},
            NO_LIMITS,
            "the allocator had to empty its cache for it: memory is nearly full there.",
            id="memory",
        ),
        pytest.param({}, Limits(effective_batch=4), "it does not divide the effective batch.", id="accumulation"),
        pytest.param(
            {}, NO_LIMITS, "the step times of all batch sizes together do not confirm it.", id="a line through all"
        ),
    ],
)
def test_why_a_much_faster_batch_was_not_chosen(faster: dict[str, Any], limits: Limits, reason: str) -> None:
    chosen = steady("fp32", 100.0, 2)
    measured = [chosen, replace(steady("fp32", 187.4, 3), **faster)]
    assert why_this_size(chosen, measured, limits) == f"Batch size 3 is 87.4 % faster, but {reason}"


def test_the_smallest_batch_within_five_percent_of_the_best() -> None:
    curve = [steady("fp32", rate, size) for size, rate in ((2, 900.0), (4, 950.0), (8, 960.0), (16, 1000.0))]
    assert near_best(curve[-1], curve) == 4
    assert near_best(curve[-1], curve[-1:]) == 16


@pytest.mark.parametrize(
    ("other", "drifts", "again"),
    [(900.0, False, True), (899.0, False, False), (500.0, True, True), (499.0, True, False)],
)
def test_how_close_two_precisions_are_measured_again(other: float, drifts: bool, again: bool) -> None:
    device = Device(bf16=1000.0, fp16=other)
    results = [result(steady("bf16", 1000.0, 1000)), result(steady("fp16", other, 1000))]
    limits = Limits(drifts=drifts, smallest_batch=1000, largest_batch=1000)  # one batch size: nothing else in turns
    recommend(device, results, passed("bf16", "fp16"), limits)
    assert device.asked == ["bf16", "fp16"] * 2 * again


def test_of_turns_the_last_shows_what_is_not_a_step() -> None:
    class Filling(Device):
        def measure(self, trial: Trial, effort: Effort) -> Measurement:
            found = super().measure(trial, effort)
            return replace(found, peak_memory_bytes=len(self.asked))

    results = [result(steady("bf16", 3000.0, 100)), result(steady("fp16", 3100.0, 100))]
    found = recommend(Filling(bf16=3000.0, fp16=3300.0), results, passed("bf16", "fp16"))
    assert found is not None
    assert (found.precision, found.peak_memory_bytes) == ("fp16", 3)
    assert found.why[-1].startswith("Confidence: low. No other batch size was measured; 40 timed steps")


@pytest.mark.parametrize(
    ("throughput", "why"),
    [
        (64.0, "0.0 % slower"),
        (32.0, "50.0 % slower"),
        (65.0, "1.6 % faster, which does not justify a less safe precision"),
    ],
)
def test_why_another_precision_lost(throughput: float, why: str) -> None:
    found = advice(result(steady("fp32", 64.0, 1)), result(steady("tf32", throughput, 1)))
    assert [(other.precision, other.why) for other in found.runners_up] == [("tf32", why)]
