import re
from dataclasses import replace

import pytest

from gpudoctor.model.tuning import (
    Latency,
    Measurement,
    Recommendation,
    RunnerUp,
    Scaling,
    ScalingPoint,
    Settings,
    TunedDevice,
    TunedWorkload,
    Tuning,
    Variation,
)
from gpudoctor.reporters.tuning_table import render
from tests.reporters import tunings

COLOR = re.compile("\x1b\\[[0-9]+m")


def table(tuning: Tuning, width: int = 80, *, encoding: str = "utf-8") -> str:
    return render(tuning, color=False, width=width, encoding=encoding)


def test_four_precisions_on_a_graphics_card() -> None:
    assert table(tunings.GPU).partition("out of memory: fp32 192; bf16 384   ◎ several in one place\n\n")[2] == (
        """\
        batch        step    images/s    memory     % of       error
                       ms                   GiB     peak
fp32      128  76.0 ± 0.4       1,684      18.7  71 / 50   < 0.001 %  ok
tf32      128  45.0 ± 0.2       2,843      18.7  89 / 85     0.033 %  ok
bf16      192  40.2 ± 0.2       4,779      14.3  74 / 71      0.26 %  best
fp16      192  41.0 ± 0.2       4,688      14.3   – / 70  not finite  unsafe
  tf32: bf16 is 1.8 times as fast
  fp16 unsafe: gradients are not finite in 7 of 20 steps
  with its switches bf16 reaches 5,203 images/s
  ±: half of the interquartile range
  % of peak: of a large matrix product measured here / of the datasheet
  error: of outputs and gradients against the reference
  –: not measured

switches tried
  channels_last: kept, +8.1 %
  compile: not kept, +1.2 %, not above 2.0 %

data
  the data set (28.0 GiB) does not fit on the device with the step
  host to device: pinned, non_blocking, 24.8 GB/s (pageable: 6.20)
  DataLoader: num_workers=8, 6,120 samples/s; a step waits 3.0 % of its time for
    data
  memory of the device: 911 GB/s, 90 % of the datasheet

profile written: /home/ann/my project/gpudoctor.env
  in a container:
    docker run --env-file '/home/ann/my project/gpudoctor.env' IMAGE
  in a shell:
    set -a; . '/home/ann/my project/gpudoctor.env'; set +a
  in Python:
    gpudoctor.load_profile('/home/ann/my project/gpudoctor.env').apply()

warning  another process held 512 MiB of the device's memory
warning  the clock fell from 2,730 to 2,520 MHz (software power cap)

recommended: bf16, batch 192: 5,203 images/s, 3.2x fp32
  bf16 is 1.8 times as fast as tf32, the next safe precision; the noise is 0.5 %
  batch 192 is the smallest within 1 % of the best throughput: 256 gains 0.8 %
  its outputs and gradients are within 0.26 % of float64
  memory: 14.3 GiB at the peak, 8.2 of 22.5 GiB left free (36 %); the largest
    safe batch is 288
  switch on: channels_last, cudnn.benchmark,
    PYTORCH_ALLOC_CONF=expandable_segments:True
  convergence: throughput is not time to accuracy. With another batch size,
    scale the learning rate with the batch (linearly for SGD, by the square root
    for Adam)
"""  # noqa: RUF001 - the en dash of what is not measured
    )


def test_what_was_tuned_and_the_picture_begin_the_report() -> None:
    lines = table(tunings.GPU).splitlines()
    assert lines[:2] == [
        "cnn training · cuda:0 NVIDIA GeForce RTX 4090 · driver 550.54.14 ·",
        "  torch 2.13.0+cu126 · CUDA 12.6 · 41 s",
    ]
    assert "● fp32   ▲ tf32   ■ bf16   ◆ fp16 (unsafe)   ★ recommended" in lines


def test_memory_that_is_not_measured_is_unknown_and_not_zero() -> None:
    lines = table(tunings.CPU).splitlines()
    assert "  memory: unknown; the largest safe batch is unknown" in lines
    assert "bf16      256  1.80 ± 0.01      142,444         –       –     0.31 %  best" in lines  # noqa: RUF001
    assert "  not supported: fp16: emulated" in lines
    assert not any("peak memory" in line for line in lines)


def test_an_interrupted_run_says_so_and_shows_what_it_has() -> None:
    lines = table(tunings.INTERRUPTED).splitlines()
    assert lines[-1] == "no recommendation: the run ended before enough was measured"
    needs = table(replace(tunings.INTERRUPTED, budget_needed_seconds=90.0)).split()
    assert needs[-3:] == ["needs", "--budget", "90"]
    assert "warning  the run was interrupted: only what was measured is ranked" in lines
    assert "fp32        4    8.45        473.4       1.3       –        –  ok" in lines  # noqa: RUF001


def test_the_smallest_batch_that_is_nearly_as_fast_is_named() -> None:
    assert tunings.CPU.recommendation is not None
    advice = replace(tunings.CPU.recommendation, near_best_batch_size=1)
    text = table(replace(tunings.CPU, recommendation=advice), 200)
    assert "convergence: batch 1 reaches 95 % of this speed; throughput is not time to accuracy." in text
    same = replace(advice, near_best_batch_size=advice.batch_size)
    assert "convergence: throughput is not time" in table(replace(tunings.CPU, recommendation=same), 200)
    inference = replace(tunings.CPU, workload=replace(tunings.CPU.workload, mode="inference"))
    assert "convergence" not in table(inference, 200)


def test_latency_stands_first_if_it_is_the_goal() -> None:
    assert tunings.CPU.recommendation is not None
    latency = Latency(median_seconds=0.00123, p95_seconds=0.002, p99_seconds=0.0031)
    text = table(replace(tunings.CPU, recommendation=replace(tunings.CPU.recommendation, latency=latency)), 200)
    assert ": 1.23 ms a step, " in text
    assert "  latency of a step: median 1.23 ms, p95 2.00 ms, p99 3.10 ms\n" in text
    assert "convergence" not in text


def test_what_each_value_of_a_parameter_gets() -> None:
    advice = tunings.CPU.recommendation
    shown = Variation(parameters="sequence=512", recommendation=advice, interrupted="budget")
    text = table(replace(tunings.CPU, variations=(Variation(parameters="sequence=128"), shown)), 200)
    assert advice is not None
    assert f"by parameter\n  sequence=128: no recommendation\n  sequence=512: {advice.precision}, batch " in text
    assert ", search cut short\n" in text


def test_several_devices() -> None:
    points = (
        ScalingPoint(batch_size=32, alone=100.0, together=150.0, efficiency=0.75),
        ScalingPoint(batch_size=64, alone=200.0, together=380.0, efficiency=0.95),
    )
    found = Scaling(processes=2, points=points, batch_size=64, problem="no answer in 9 s")
    lines = table(replace(tunings.CPU, scaling=found), 200).splitlines()
    start = lines.index("2 processes, one for each device")
    assert lines[start + 1 : start + 5] == [
        "  batch 32 per device: 150.0 samples/s (100.0 on one device), 75 % scaling efficiency",
        "  batch 64 per device: 380.0 samples/s (200.0 on one device), 95 % scaling efficiency",
        "  use batch 64 per device, 128 in all",
        "  not measured: no answer in 9 s",
    ]


def test_a_comparison_stands_before_the_recommendation() -> None:
    text = table(replace(tunings.CPU, comparison=("fp32 at batch 8: 3.0 % slower than before",)), 200)
    place = text.index("compared with the earlier tuning\n  fp32 at batch 8: 3.0 % slower than before\n")
    assert place < text.index("recommended: ")


def test_nothing_fits() -> None:
    text = table(tunings.OUT_OF_MEMORY_ALL)
    assert text.endswith("\nno recommendation: no configuration ran\n")
    assert "  fp32, bf16 too large: at batch 1, CUDA out of memory: tried to allocate 2.00\n    GiB\n" in text
    assert "throughput (" not in text


def test_nothing_was_measured() -> None:
    assert table(tunings.NOTHING) == (
        "mlp · cpu · 0 s\n\n"
        "warning  the run was interrupted: only what was measured is ranked\n\n"
        "no recommendation: the run ended before anything ran\n"
    )


def test_complex_numbers_without_a_reference() -> None:
    lines = table(tunings.SIGNAL).splitlines()
    assert "recommended: complex64, batch 256: 85,220 windows/s, 2.0x complex128" in lines
    assert "complex128      256  6.02 ± 0.03       42,525       3.2       –        –  ok" in lines  # noqa: RUF001
    assert "  switches: the defaults" in lines


def test_the_baseline_itself_is_not_compared_with_itself() -> None:
    advice = Recommendation(
        precision="fp32",
        batch_size=4,
        max_batch_size=4,
        settings=Settings(),
        throughput=473.4,
        unit="samples/s",
        why=(),
        baseline=RunnerUp(precision="fp32", batch_size=96, throughput=1634.6, why="the baseline"),
    )
    smaller = replace(tunings.INTERRUPTED, recommendation=advice)
    with_baseline = table(smaller, 100)
    assert "\nrecommended: fp32, batch 4: 473.4 samples/s, 0.29x fp32 at batch 96, search cut short\n" in with_baseline
    assert advice.baseline is not None
    same = replace(advice, baseline=replace(advice.baseline, batch_size=4))
    assert ": fp32, batch 4: 473.4 samples/s, search cut short\n" in table(replace(smaller, recommendation=same))


def test_what_spoilt_a_measurement_is_under_the_table() -> None:
    spoilt = replace(tunings.INTERRUPTED.measurements[0], warnings=("the clock fell by 12 %",))
    assert "\n  fp32: the clock fell by 12 %\n" in table(replace(tunings.INTERRUPTED, measurements=(spoilt,)))


def test_a_data_set_that_fits_belongs_on_the_device() -> None:
    workload = TunedWorkload(name="cnn", sample_bytes=2**20, dataset_size=1024)
    advice = tunings.GPU.recommendation
    assert advice is not None
    fits = replace(advice, settings=replace(advice.settings, data_on_device=True))
    text = table(replace(tunings.GPU, workload=workload, recommendation=fits))
    assert "  the whole data set (1.0 GiB) fits on the device with the step: keep it there\n" in text


def test_a_profile_in_the_working_directory_is_not_looked_up_in_the_path() -> None:
    text = table(replace(tunings.GPU, profile="gpudoctor.env"))
    assert "    docker run --env-file gpudoctor.env IMAGE\n" in text
    assert "    set -a; . ./gpudoctor.env; set +a\n" in text


def test_without_a_profile_nothing_is_said_of_one() -> None:
    assert "profile" not in table(replace(tunings.GPU, profile=None))


def test_colour_adds_nothing_but_colour() -> None:
    colored = render(tunings.GPU, color=True, width=80)
    assert COLOR.sub("", colored) == table(tunings.GPU)
    assert "\n\x1b[32mrecommended: bf16, batch 192\x1b[0m: 5,203 images/s" in colored
    assert "\x1b[31munsafe\x1b[0m\n" in colored
    assert "\x1b[33mno recommendation\x1b[0m: " in render(tunings.OUT_OF_MEMORY_ALL, color=True, width=80)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp437", "utf-8"])
def test_a_stream_of_any_encoding_can_show_it(encoding: str) -> None:
    text = table(tunings.GPU, encoding=encoding)
    assert text.encode(encoding).decode(encoding) == text
    assert ("●" in text) is (encoding == "utf-8")
    assert "\\u" not in text.partition("throughput (images/s)")[2].partition("fp32      128")[0]


@pytest.mark.parametrize("width", [50, 72, 80, 100])
@pytest.mark.parametrize("name", [name for name in tunings.ALL if name != "hostile"])
def test_only_commands_are_wider_than_the_screen(name: str, width: int) -> None:
    lines = table(tunings.ALL[name], width).splitlines()
    assert [line for line in lines if len(line) > width and not line.startswith("    ")] == []


@pytest.mark.parametrize("name", tunings.ALL)
def test_the_narrowest_screen_gets_its_text_too(name: str) -> None:
    assert len(table(tunings.ALL[name], 1).splitlines()) > 3


def test_a_table_is_shown_if_its_longest_line_fits() -> None:
    header = "\n        batch        step"
    narrowest = next(width for width in range(40, 120) if header in table(tunings.GPU, width))
    rows = table(tunings.GPU, narrowest).partition(header)[2].splitlines()[1:6]
    assert max(map(len, rows)) == narrowest


def test_a_narrow_screen_gets_a_line_for_each_precision() -> None:
    assert "fp16: unsafe, batch 192, step 41.0 ± 0.2 ms,\n  4,688 images/s, memory 14.3 GiB," in table(tunings.GPU, 50)


def test_text_from_outside_cannot_act_on_the_terminal() -> None:
    text = table(tunings.HOSTILE)
    assert all(line.isprintable() for line in text.splitlines())
    assert text.count("\\x1b[2J\\r\\n<script>") > 10
    assert text.isprintable() is False  # only for its line breaks
    assert set(text) - {"\n"} == {character for character in text if character.isprintable()}


def test_a_precision_that_was_only_compared_has_a_row() -> None:
    numerics = tunings.CPU.numerics[:1]
    only = Tuning(
        device=TunedDevice(kind="cpu"),
        workload=TunedWorkload(name="mlp"),
        elapsed_seconds=1.0,
        measurements=(Measurement(precision="tf32", batch_size=1, status="unsupported", detail="no tensor cores"),),
        recommendation=None,
        numerics=numerics,
    )
    text = table(only)
    assert "  tf32 unsupported: no tensor cores\n" in text
    assert "  fp32 not run: it was compared but not measured\n" in text
