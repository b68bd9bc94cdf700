"""What a measurement and a recommendation say beside their fields."""

from dataclasses import replace

from gpudoctor.model.tuning import OUT_OF_MEMORY, Measurement, Recommendation, RunnerUp, Settings

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


def test_the_baseline_is_not_compared_with_itself() -> None:
    assert ADVICE.speedup == 3.0
    assert replace(ADVICE, precision="fp32").speedup is None
    assert replace(ADVICE, precision="fp32", batch_size=8).speedup == 3.0
    assert replace(ADVICE, baseline=None).speedup is None


def test_rates_are_those_of_the_median_step() -> None:
    measured = Measurement(
        precision="bf16",
        batch_size=8,
        samples_per_step=8,
        step_seconds=(0.5, 0.1, 0.2),
        flops_per_step=1e12,
        peak_tflops=10.0,
    )
    assert (measured.throughput, measured.tflops, measured.fraction_of_peak) == (40.0, 5.0, 0.5)
    failed = replace(measured, status=OUT_OF_MEMORY)
    assert (failed.throughput, failed.tflops, failed.fraction_of_peak) == (None, None, None)
    assert replace(measured, step_seconds=()).throughput is None
