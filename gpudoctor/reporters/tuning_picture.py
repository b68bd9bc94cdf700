"""What the pictures of a tuning show, in a terminal and in HTML alike: curves over the batch size, and their axes."""

import math
from collections.abc import Callable, Iterator

from gpudoctor.model.record import record
from gpudoctor.model.tuning import OK, OUT_OF_MEMORY, Measurement, Tuning
from gpudoctor.tuning import figures
from gpudoctor.untrusted import clean

_NAME_LIMIT = 24
_FEWEST_POINTS = 3  # a line through fewer shows no shape
_LIMIT_SHOWN = 0.4  # curves that reach less of the limit would be flat at the bottom of a picture that shows it


@record
class Style:
    """How the curve of one precision looks: its shape distinguishes it without colour."""

    number: int
    shape: str
    marker: str
    ascii_marker: str
    terminal_color: str


STYLES = (
    Style(number=1, shape="circle", marker="●", ascii_marker="o", terminal_color="blue"),
    Style(number=2, shape="triangle", marker="▲", ascii_marker="^", terminal_color="yellow"),
    Style(number=3, shape="square", marker="■", ascii_marker="#", terminal_color="green"),
    Style(number=4, shape="diamond", marker="◆", ascii_marker="%", terminal_color="magenta"),
)

_STYLE_OF = {"fp32": 0, "tf32": 1, "bf16": 2, "fp16": 3, "complex128": 0, "complex64": 2}


@record
class Curve:
    """The measurements of one precision, one for each batch size, in rising order."""

    name: str
    style: Style
    points: tuple[Measurement, ...]
    safe: bool

    @property
    def out_of_memory(self) -> tuple[Measurement, ...]:
        """Return the points that did not fit."""
        return tuple(point for point in self.points if point.status == OUT_OF_MEMORY)


@record
class Panel:
    """One picture: a quantity over the batch size. A limit is a line across it."""

    title: str
    unit: str
    value: Callable[[Measurement], float | None]
    spread: Callable[[Measurement], tuple[float, float] | None]
    limit: float | None = None

    def points(self, curve: Curve) -> list[tuple[Measurement, float]]:
        """Return the points that ran, with their value."""
        pairs = ((point, self.value(point)) for point in curve.points if point.status == OK)
        return [(point, value) for point, value in pairs if value is not None and 0 <= value < math.inf]

    def failed_at(self, highest: float) -> float:
        """Return the value at which a point that did not fit is drawn: at no throughput, at the limit of memory."""
        return 0.0 if self.title == "throughput" else self.limit or highest


@record
class Picture:
    """Everything that the pictures of one tuning need."""

    curves: tuple[Curve, ...]
    panels: tuple[Panel, ...]
    batches: "BatchAxis"
    chosen: tuple[str, int] | None


class BatchAxis:
    """Batch sizes on a logarithmic axis of base 2, with half an octave of room at both ends."""

    def __init__(self, sizes: list[int]) -> None:
        self.low, self.high = math.log2(min(sizes)) - 0.5, math.log2(max(sizes)) + 0.5

    def position(self, batch_size: int) -> float:
        """Return the position of a batch size: 0 at the left end, 1 at the right."""
        return (math.log2(batch_size) - self.low) / (self.high - self.low)

    def ticks(self, most: int) -> list[int]:
        """Return at most so many powers of two, evenly spaced."""
        exponents = range(max(math.ceil(self.low), 0), math.floor(self.high) + 1)
        step = math.ceil(len(exponents) / most)
        return [2**exponent for exponent in exponents[::step]]


def picture(tuning: Tuning) -> Picture | None:
    """Return what to draw; None if no precision has enough points."""
    curves = tuple(_curves(tuning))
    sizes = [point.batch_size for curve in curves for point in curve.points if point.status in (OK, OUT_OF_MEMORY)]
    panels = tuple(p for p in _panels(tuning) if any(len(p.points(curve)) >= _FEWEST_POINTS for curve in curves))
    if not panels:
        return None
    advice = tuning.recommendation
    chosen = None if advice is None else (clean(advice.precision, _NAME_LIMIT), advice.batch_size)
    return Picture(curves=curves, panels=panels, batches=BatchAxis(sizes), chosen=chosen)


def _curves(tuning: Tuning) -> Iterator[Curve]:
    for number, precision in enumerate(figures.precisions(tuning)):
        points = figures.curve(tuning, precision)
        if any(point.status in (OK, OUT_OF_MEMORY) for point in points):
            numerics = figures.numerics_of(tuning, precision)
            style = STYLES[_STYLE_OF.get(precision, number % len(STYLES))]
            safe = numerics is None or numerics.passed
            yield Curve(name=clean(precision, _NAME_LIMIT), style=style, points=points, safe=safe)


def _panels(tuning: Tuning) -> Iterator[Panel]:
    yield Panel(
        title="throughput",
        unit=clean(tuning.workload.unit, _NAME_LIMIT),
        value=lambda measured: measured.throughput,
        spread=figures.throughput_quartiles,
    )
    memory = figures.memory_limit_bytes(tuning)
    limit = None if memory is None else memory / 2**30
    peaks = [m.peak_memory_bytes for m in tuning.measurements if m.peak_memory_bytes is not None and m.status == OK]
    near = limit is not None and bool(peaks) and max(peaks) / 2**30 >= _LIMIT_SHOWN * limit
    yield Panel(title="peak memory", unit="GiB", value=_gibibytes, spread=lambda _: None, limit=limit if near else None)


def _gibibytes(measured: Measurement) -> float | None:
    return None if measured.peak_memory_bytes is None else measured.peak_memory_bytes / 2**30


def value_ticks(highest: float, most: int) -> list[float]:
    """Return round numbers from 0 to at least `highest`, at most `most` + 1 of them."""
    rough = (highest or 1.0) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough * 0.999999)
    return [step * number for number in range(max(math.ceil(highest / step * 0.999999), 1) + 1)]


def tick_labels(ticks: list[float]) -> list[str]:
    """Return the numbers of an axis, all with the decimals that its step needs: "0.0", "0.5", "1.0"."""
    decimals = next(digits for digits in range(13) if abs(ticks[1] - round(ticks[1], digits)) < ticks[1] * 1e-6)
    return [f"{tick:,.{decimals}f}" for tick in ticks]
