import re
from dataclasses import replace
from itertools import pairwise

import pytest

from gpudoctor.model.tuning import Measurement, Tuning
from gpudoctor.reporters import chart
from gpudoctor.reporters.tuning_picture import BatchAxis, tick_labels, value_ticks
from tests.reporters import tunings

COLOR = re.compile("\x1b\\[[0-9]+m")


def lines(tuning: Tuning, encoding: str | None = "utf-8", width: int = 80) -> list[str]:
    return chart.render(tuning, color=False, width=width, encoding=encoding)


def test_two_precisions_in_unicode() -> None:
    assert "\n".join(lines(tunings.CPU)) == (
        """\
throughput (samples/s)
 200,000┤
        │
 150,000┤                                                 ⣀⣀★⣀⠤⠤⠤⠤⠤⠤⠔⠒⠒⠒⠒⠒⠒■
        │                                      ⢀⣀⣀⠤⠤⠔⠒⠒⠊⠉⠉
 100,000┤                              ⢀⣀⡠⠤⠒■⠉⠉⠁        ⢀⣀⣀⣀●⣀⣀⣀⣀⣀⠤⠤⠤⠤⠤⠤⠤⠤⠤●
        │                       ⣀⣀⠤⠔⠒⠊⢉⣁⣀⡠⠤⠤●⠒⠒⠒⠒⠒⠊⠉⠉⠉⠉⠉⠁
  50,000┤             ⢀⣀⣀⡠⣤⣤◎⠶⠭⠭⠔⠒⠒⠊⠉⠉⠁
        │    ◎⣤⠤⠤⠶⠖⠒⠛⠛⠋⠉⠉⠉
       0┤
        └────┴──────────────┴───────────────┴───────────────┴──────────────┴────
   batch     4             16              64              256           1,024

● fp32   ■ bf16   ★ recommended   ◎ several in one place"""
    )


def test_two_precisions_in_ascii() -> None:
    drawn = lines(tunings.CPU, "ascii")
    assert "".join(drawn).isascii()
    assert drawn[-1] == "o fp32   # bf16   @ recommended   & several in one place"
    assert drawn[3] == " 150,000+                                                 ..@..............#"


@pytest.mark.parametrize(
    ("encoding", "pen"),
    [
        ("utf-8", chart.UNICODE),
        ("cp437", chart.ASCII),
        ("latin-1", chart.ASCII),
        (None, chart.ASCII),
        ("?", chart.ASCII),
    ],
)
def test_an_encoding_without_the_characters_gets_ascii(encoding: str | None, pen: chart.Pen) -> None:
    assert chart.pen_for(encoding) is pen


def test_points_that_did_not_fit_are_marked_at_the_limit_of_memory_and_named() -> None:
    drawn = lines(tunings.GPU)
    title = drawn.index("peak memory (GiB); ╌╌ what the trials may use: 22.5")
    limit = next(line for line in drawn[title + 1 :] if "╌" in line)
    assert limit.count("\u00d7") == 2
    assert "out of memory: fp32 192; bf16 384" in "\n".join(drawn)
    assert "◆ fp16 (unsafe)" in drawn[-2]


def test_a_limit_far_above_the_curves_is_left_out() -> None:
    assert "peak memory (GiB)" in lines(tunings.SIGNAL)


def test_each_precision_has_a_marker_and_a_colour_of_its_own() -> None:
    colored = chart.render(tunings.GPU, color=True, width=80)
    assert (
        "\x1b[34m●\x1b[0m fp32   \x1b[33m▲\x1b[0m tf32   \x1b[32m■\x1b[0m bf16   \x1b[35m◆\x1b[0m fp16" in colored[-2]
    )
    assert [COLOR.sub("", line) for line in colored] == lines(tunings.GPU)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_only_three_points_are_a_picture(count: int) -> None:
    points = tuple(tunings.measured("fp32", 2**n, 8.4, 1.3) for n in range(count))
    drawn = lines(replace(tunings.INTERRUPTED, measurements=points))
    assert sum(line.count("●") for line in drawn) == (7 if count == 3 else 0)  # throughput, memory, legend


@pytest.mark.parametrize("tuning", [tunings.OUT_OF_MEMORY_ALL, tunings.NOTHING])
def test_nothing_that_ran_is_no_picture(tuning: Tuning) -> None:
    assert lines(tuning) == []


def test_a_narrow_screen_gets_no_picture() -> None:
    assert lines(tunings.GPU, width=39) == []


@pytest.mark.parametrize("width", [40, 60, 80, 100])
@pytest.mark.parametrize("name", tunings.ALL)
def test_no_line_is_wider_than_the_screen(name: str, width: int) -> None:
    if name != "hostile":  # its name alone is wider than the narrowest
        assert max(map(len, lines(tunings.ALL[name], width=width)), default=0) <= width


def test_text_from_outside_cannot_act_on_the_terminal() -> None:
    assert all(line.isprintable() for line in lines(tunings.HOSTILE))


def test_values_that_are_not_finite_or_zero_do_not_end_the_report() -> None:
    odd = (
        Measurement(precision="fp32", batch_size=1, step_seconds=(float("nan"),), samples_per_step=1),
        *(
            Measurement(precision="fp32", batch_size=n, step_seconds=(float("inf"),), samples_per_step=2)
            for n in (2, 3, 4)
        ),
        Measurement(precision="fp32", batch_size=0, step_seconds=(0.1,)),
        Measurement(precision="fp32", batch_size=-4, step_seconds=(0.1,), samples_per_step=1),
    )
    drawn = lines(replace(tunings.INTERRUPTED, measurements=odd))
    assert drawn[0] == "throughput (samples/s)"


@pytest.mark.parametrize(
    ("highest", "labels"),
    [
        (0.0, ["0.00", "0.25"]),
        (5203.0, ["0", "2,000", "4,000", "6,000"]),
        (1.3, ["0.0", "0.5", "1.0", "1.5"]),
        (0.9, ["0.00", "0.25", "0.50", "0.75", "1.00"]),
        (4.0, ["0", "1", "2", "3", "4"]),
        (0.0004, ["0.0000", "0.0001", "0.0002", "0.0003", "0.0004"]),
    ],
)
def test_ticks_are_round_numbers_that_reach_the_highest_value(highest: float, labels: list[str]) -> None:
    ticks = value_ticks(highest, 4)
    assert tick_labels(ticks) == labels
    assert ticks[-1] >= highest * 0.999999


def test_batch_sizes_lie_on_an_axis_of_base_two() -> None:
    axis = BatchAxis([4, 192, 64])
    positions = [axis.position(size) for size in (4, 8, 16, 32)]
    steps = {round(b - a, 9) for a, b in pairwise(positions)}
    assert len(steps) == 1
    assert axis.ticks(20) == [4, 8, 16, 32, 64, 128, 256]
    assert axis.ticks(4) == [4, 16, 64, 256]


@pytest.mark.parametrize("width", [40, 80])
@pytest.mark.parametrize("exponents", [(0, 1, 2), (2, 6, 9), (14, 18, 22)])
def test_each_label_of_the_axis_is_at_its_tick(exponents: tuple[int, ...], width: int) -> None:
    points = tuple(tunings.measured("fp32", 2**n, 8.4, 1.3) for n in exponents)
    drawn = lines(replace(tunings.INTERRUPTED, measurements=points), width=width)
    ticks, labels = next(pair for pair in pairwise(drawn) if "\u2534" in pair[0])
    columns = [column for column, character in enumerate(ticks) if character == "\u2534"]
    spans = [match.span() for match in re.finditer(r"\d[\d,]*", labels)]
    assert len(spans) == len(columns)
    for column, (start, end) in zip(columns, spans, strict=True):
        assert start <= column < end
        assert abs(start + end - 1 - 2 * column) <= 1 or start == 9, "in the middle, but for what would begin too early"
