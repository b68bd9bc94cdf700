"""What follows from the raw values of a tuning."""

from dataclasses import replace

import pytest

from gpudoctor.model.tuning import (
    NUMERICS,
    OUT_OF_MEMORY,
    Ceiling,
    Conditions,
    Loading,
    Measurement,
    Numerics,
    Recommendation,
    RunnerUp,
    Settings,
    Transfer,
    TunedDevice,
    TunedWorkload,
    Tuning,
)
from gpudoctor.tuning import figures

FAST = Measurement(precision="bf16", batch_size=8, step_seconds=(0.01, 0.01, 0.02, 0.02), samples_per_step=8)
SLOW = replace(FAST, batch_size=4, samples_per_step=4)
BASELINE = RunnerUp(precision="fp32", batch_size=4, throughput=100.0, why="")
ADVICE = Recommendation(
    precision="bf16",
    batch_size=4,
    max_batch_size=None,
    settings=Settings(),
    throughput=300.0,
    unit="samples/s",
    why=(),
    peak_memory_bytes=700,
    baseline=BASELINE,
)


def tuning(*measurements: Measurement, **fields: object) -> Tuning:
    given = {
        "device": TunedDevice(kind="cuda", memory_total_bytes=2000, memory_usable_bytes=1000),
        "workload": TunedWorkload(name="mlp", sample_bytes=3, dataset_size=100),
        "elapsed_seconds": 1.0,
        "measurements": measurements,
        "recommendation": None,
    }
    return Tuning(**{**given, **fields})  # type: ignore[arg-type]


def test_quartiles_of_the_steps_are_quartiles_of_the_throughput() -> None:
    assert figures.spread_seconds(FAST) == pytest.approx(0.01)
    assert figures.throughput_quartiles(FAST) == (400.0, 800.0)
    assert figures.throughput_quartiles(replace(FAST, step_seconds=(0.01, 0.02))) is None
    assert figures.throughput_quartiles(replace(FAST, status=NUMERICS)) is None


def test_a_curve_rises_in_batch_size_and_keeps_to_one_precision_and_one_setting() -> None:
    others = (replace(FAST, precision="fp32"), replace(FAST, batch_size=16, settings=Settings(compile=True)))
    assert figures.curve(tuning(FAST, SLOW, *others), "bf16") == (SLOW, FAST)
    assert figures.curve(tuning(), "bf16") == ()


def test_of_several_at_one_batch_size_the_longest_stands_for_all() -> None:
    longer = replace(FAST, step_seconds=(0.03,) * 9)
    assert figures.curve(tuning(FAST, longer, FAST), "bf16") == (longer,)


def test_what_failed_once_stands_for_all_at_its_batch_size() -> None:
    failed = replace(FAST, step_seconds=(), status=OUT_OF_MEMORY)
    assert figures.curve(tuning(failed, FAST), "bf16") == figures.curve(tuning(FAST, failed), "bf16") == (failed,)


def test_the_best_of_a_precision_is_what_the_recommendation_names_else_the_fastest() -> None:
    assert figures.best(tuning(FAST, SLOW), "bf16") == FAST
    assert figures.best(tuning(FAST, SLOW, recommendation=ADVICE), "bf16") == SLOW
    assert figures.best(tuning(replace(FAST, status=OUT_OF_MEMORY)), "bf16") is None
    named = replace(ADVICE, precision="fp32", runners_up=(replace(BASELINE, precision="bf16"),))
    assert figures.best(tuning(FAST, SLOW, recommendation=named), "bf16") == SLOW


def test_the_recommended_ways_are_those_of_the_settings() -> None:
    advice = replace(ADVICE, settings=Settings(pin_memory=True, non_blocking=False, loader_workers=2))
    slow, fast = (Transfer(pinned=pinned, non_blocking=False, gb_s=8.0) for pinned in (False, True))
    few, many = (Loading(workers=workers, samples_per_second=9.0) for workers in (2, 8))
    told = tuning(recommendation=advice, transfers=(slow, fast), loading=(few, many))
    assert (figures.recommended_transfer(told), figures.recommended_loading(told)) == (fast, few)
    assert figures.recommended_transfer(tuning(transfers=(slow,), loading=(few,))) is None


def test_what_is_unknown_stays_unknown() -> None:
    assert (figures.recommended_transfer(tuning()), figures.recommended_loading(tuning())) == (None, None)
    assert figures.fraction_of_ceiling(tuning(FAST), FAST) is None


GIB = 2**30


@pytest.mark.parametrize(
    ("measurement", "before", "warnings"),
    [
        pytest.param(
            Measurement(
                precision="bf16",
                batch_size=8,
                step_seconds=(1.0, 1.0, 1.01, 1.0),
                conditions=Conditions(
                    clock_mhz=1980, throttle_reasons=(), foreign_memory_bytes=100 * 2**20, power_watts=300.0
                ),
            ),
            Conditions(clock_mhz=1965),
            (),
            id="nothing",
        ),
        pytest.param(
            Measurement(
                precision="bf16",
                batch_size=8,
                step_seconds=(1.0, 1.0, 1.3, 1.4),
                allocation_retries=3,
                conditions=Conditions(
                    clock_mhz=1635, throttle_reasons=("sw_thermal_slowdown",), foreign_memory_bytes=int(3.2 * GIB)
                ),
            ),
            Conditions(clock_mhz=1980),
            (
                "throttled: sw thermal slowdown",
                "the SM clock changed from 1980 to 1635 MHz",
                "another process uses 3.2 GiB",
                "step times vary by 28 % of the median",
                "the allocator emptied its cache 3 times: memory is nearly full",
            ),
            id="everything",
        ),
        pytest.param(
            Measurement(precision="bf16", batch_size=8, step_seconds=(1.0,)),
            Conditions(),
            ("only 1 step was timed",),
            id="one step",
        ),
    ],
)
def test_what_may_have_spoilt_a_measurement(
    measurement: Measurement, before: Conditions, warnings: tuple[str, ...]
) -> None:
    assert figures.spoilt_by(measurement, before) == warnings


@pytest.mark.parametrize(
    ("steps", "noise"),
    [
        pytest.param((1.0, 1.0, 1.0), None, id="three steps"),
        pytest.param((0.0, 0.0, 0.0, 0.0), None, id="a median of zero"),
        pytest.param((0.0, 0.0, 2.0, 2.0), 2.0, id="a lower quartile of zero"),
        pytest.param((1.0, 2.0, 3.0, 4.0), 0.6, id="quartiles 1.75, 2.5 and 3.25"),
    ],
)
def test_noise_is_the_spread_of_the_median(steps: tuple[float, ...], noise: float | None) -> None:
    measurement = Measurement(precision="bf16", batch_size=8, step_seconds=steps)
    assert figures.noise(measurement) == noise


def test_limits_of_what_spoils_a_measurement() -> None:
    """Nothing is told at the limit itself; a warning is, one step beyond."""
    foreign = Conditions(clock_mhz=1049, foreign_memory_bytes=256 * 2**20 - 1)
    quiet = Measurement(precision="bf16", batch_size=8, step_seconds=(9.5, 9.5, 10.0, 10.5, 10.5), conditions=foreign)
    assert figures.spoilt_by(quiet, Conditions(clock_mhz=1000)) == ()
    loud = replace(
        quiet,
        step_seconds=(0.94, 0.94, 1.0, 1.05),
        conditions=Conditions(clock_mhz=1051, foreign_memory_bytes=256 * 2**20),
    )
    assert figures.spoilt_by(loud, Conditions(clock_mhz=1000)) == (
        "the SM clock changed from 1000 to 1051 MHz",
        "another process uses 0.2 GiB",
    )
    assert figures.spoilt_by(replace(loud, step_seconds=(1.0, 1.0, 1.0))) == (
        "another process uses 0.2 GiB",
        "only 3 steps were timed",
    )
    assert figures.spoilt_by(replace(quiet, step_seconds=())) == ()
    assert figures.spoilt_by(replace(quiet, step_seconds=(0.94, 0.94, 1.0, 1.05, 1.05))) == (
        "step times vary by 11 % of the median",
    )


def test_percentiles_of_single_steps() -> None:
    found = figures.latency([float(number) for number in range(100)])
    assert found is not None
    assert (found.median_seconds, found.p95_seconds, found.p99_seconds) == (49.5, 95.0, 99.0)
    assert figures.latency([1.0, 2.0, 3.0]) is None


def test_nothing_exceeds_a_peak() -> None:
    ceiling = Ceiling(precision="bf16", measured_tflops=10.0)
    measured = replace(FAST, step_seconds=(1.0,) * 4, flops_per_step=11e12, peak_tflops=10.0)
    known = tuning(measured, ceilings=(ceiling,))
    assert (figures.fraction_of_ceiling(known, measured), measured.fraction_of_peak) == (None, None)
    at_most = replace(measured, flops_per_step=10e12)
    assert (figures.fraction_of_ceiling(known, at_most), at_most.fraction_of_peak) == (1.0, 1.0)


def test_every_figure_of_a_tuning() -> None:
    ceiling = Ceiling(precision="bf16", measured_tflops=10.0)
    measured = replace(FAST, flops_per_step=60_000_000_000)
    numerics = tuple(Numerics(precision=name, reference="fp64", passed=True) for name in ("tf32", "bf16"))
    skipped = replace(FAST, batch_size=0)
    told = tuning(measured, replace(SLOW, precision="fp32"), skipped, ceilings=(ceiling,), numerics=numerics)
    assert figures.fraction_of_ceiling(told, measured) == pytest.approx(0.4)
    assert figures.fraction_of_ceiling(told, FAST) is None
    assert figures.fraction_of_ceiling(told, replace(measured, precision="fp32")) is None
    assert figures.precisions(told) == ("bf16", "fp32", "tf32")
    assert (figures.numerics_of(told, "bf16"), figures.numerics_of(told, "fp32")) == (numerics[1], None)
    assert figures.curve(told, "bf16") == (measured,)
    one = replace(FAST, batch_size=1)
    assert figures.curve(tuning(one), "bf16") == (one,)
    assert figures.memory_limit_bytes(told) == 1000
    assert figures.memory_limit_bytes(replace(told, device=replace(told.device, memory_usable_bytes=None))) == 2000
    none = replace(FAST, step_seconds=(0.0, 0.0, 0.0, 1.0))
    assert (figures.throughput_quartiles(none), figures.spread_seconds(none)) == (None, 0.25)


@pytest.mark.parametrize(
    ("advised", "runners_up", "batch_size"),
    [
        pytest.param(("bf16", 4), (), 4, id="the recommendation"),
        pytest.param(("fp16", 8), (("bf16", 4),), 4, id="a runner-up; another precision names other sizes"),
        pytest.param(("bf16", 16), (), 8, id="a size that did not run, so the fastest"),
        pytest.param(("bf16", 16), (("bf16", 4),), 4, id="a size that did not run, so the next that is named"),
        pytest.param(("fp16", 4), (("fp32", 4),), 8, id="nobody names it"),
    ],
)
def test_what_represents_a_precision(
    advised: tuple[str, int], runners_up: tuple[tuple[str, int], ...], batch_size: int
) -> None:
    others = tuple(replace(BASELINE, precision=name, batch_size=size) for name, size in runners_up)
    advice = replace(ADVICE, precision=advised[0], batch_size=advised[1], runners_up=others)
    tuning = Tuning(
        device=TunedDevice(kind="cpu"),
        workload=TunedWorkload(name="mlp"),
        elapsed_seconds=1.0,
        measurements=(SLOW, FAST),
        recommendation=advice,
    )
    found = figures.best(tuning, "bf16")
    assert found is not None
    assert found.batch_size == batch_size
