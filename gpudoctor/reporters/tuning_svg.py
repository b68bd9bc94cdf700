"""The pictures of a tuning as SVG: throughput and memory over the batch size. Colours come from the page's style."""

from collections.abc import Iterator
from xml.etree.ElementTree import Element

from gpudoctor.model.record import record
from gpudoctor.model.tuning import Measurement
from gpudoctor.reporters.html_tree import element
from gpudoctor.reporters.quantities import rate, significant
from gpudoctor.reporters.tuning_picture import Curve, Panel, Picture, Style, tick_labels, value_ticks

_WIDTH, _HEIGHT = 560, 360
_LEFT, _RIGHT, _TOP, _BOTTOM = 78, 14, 32, 54
_RADIUS = 5.0
_BATCH_TICKS = 9
_VALUE_TICKS = 5


@record
class _Frame:
    """Positions of values in a panel."""

    panel: Panel
    shown: Picture
    highest: float

    def across(self, batch_size: int) -> float:
        return _LEFT + self.shown.batches.position(batch_size) * (_WIDTH - _LEFT - _RIGHT)

    def down(self, value: float) -> float:
        return _TOP + (1 - value / self.highest) * (_HEIGHT - _TOP - _BOTTOM)

    def holds_chosen(self, curve: Curve) -> bool:
        """Return whether the recommended point is on this curve, which is drawn over the others."""
        return self.shown.chosen is not None and self.shown.chosen[0] == curve.name

    def is_chosen(self, curve: Curve, measured: Measurement) -> bool:
        return self.shown.chosen == (curve.name, measured.batch_size)


def chart(panel: Panel, shown: Picture, identity: str) -> Element:
    """Return one panel as an svg element. identity: unique on the page, for the references to title and description."""
    values = [value for curve in shown.curves for _, value in panel.points(curve)]
    upper = [high for curve in shown.curves for point, _ in panel.points(curve) for high in (panel.spread(point) or ())]
    ticks = value_ticks(max([*values, *upper, panel.limit or 0.0]), _VALUE_TICKS)
    frame = _Frame(panel=panel, shown=shown, highest=ticks[-1])
    return element(
        "svg",
        element("title", f"{panel.title} in {panel.unit} against batch size", id=f"{identity}-title"),
        element("desc", " ".join(_description(panel, shown)), id=f"{identity}-desc"),
        _value_axis(frame, ticks),
        _batch_axis(frame),
        _limit(frame),
        [_curve(frame, curve) for curve in sorted(shown.curves, key=frame.holds_chosen)],
        [_failures(frame, curve) for curve in shown.curves],
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}",
        role="img",
        aria_labelledby=f"{identity}-title {identity}-desc",
    )


def _description(panel: Panel, shown: Picture) -> Iterator[str]:
    for curve in shown.curves:
        points = panel.points(curve)
        if points:
            measured, value = max(points, key=lambda pair: pair[1])
            yield f"{curve.name}: highest {rate(value)} {panel.unit} at batch {measured.batch_size:,}."
        for failed in curve.out_of_memory:
            yield f"{curve.name}: out of memory at batch {failed.batch_size:,}."
    if panel.limit is not None:
        yield f"The trials may use {significant(panel.limit)} {panel.unit}."


def _value_axis(frame: _Frame, ticks: list[float]) -> Element:
    lines = []
    for tick, label in zip(ticks, tick_labels(ticks), strict=True):
        y = frame.down(tick)
        lines.append(element("line", x1=_LEFT, x2=_WIDTH - _RIGHT, y1=y, y2=y, class_="base" if tick == 0 else "grid"))
        lines.append(element("text", label, x=_LEFT - 8, y=y + 5, text_anchor="end"))
    name = element("text", f"{frame.panel.title}, {frame.panel.unit}", x=0, y=14, class_="axis")
    return element("g", lines, name)


def _batch_axis(frame: _Frame) -> Element:
    y = _HEIGHT - _BOTTOM
    labels = []
    for size in frame.shown.batches.ticks(_BATCH_TICKS):
        x = frame.across(size)
        labels.append(element("line", x1=x, x2=x, y1=y, y2=y + 5, class_="base"))
        labels.append(element("text", f"{size:,}", x=x, y=y + 20, text_anchor="middle"))
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    name = element("text", "batch size, logarithmic", x=middle, y=_HEIGHT - 8, text_anchor="middle", class_="axis")
    return element("g", labels, name)


def _limit(frame: _Frame) -> Element | None:
    limit = frame.panel.limit
    if limit is None:
        return None
    y = frame.down(limit)
    label = f"limit of the trials: {significant(limit)} {frame.panel.unit}"
    return element(
        "g",
        element("line", x1=_LEFT, x2=_WIDTH - _RIGHT, y1=y, y2=y, class_="limit"),
        element("text", label, x=_LEFT + 6, y=y - 7, class_="limit-label"),
    )


def _curve(frame: _Frame, curve: Curve) -> Element:
    points = frame.panel.points(curve)
    places = [(frame.across(point.batch_size), frame.down(value)) for point, value in points]
    path = "M" + " L".join(f"{x:.1f},{y:.1f}" for x, y in places) if places else ""
    bars = [_error_bar(frame, point) for point, _ in points]
    marks = [_point(frame, curve, point, value) for point, value in points]
    return element(
        "g",
        element("path", d=path, class_="line") if path else None,
        bars,
        marks,
        class_=f"curve c{curve.style.number}",
    )


def _error_bar(frame: _Frame, point: Measurement) -> Element | None:
    """Return the span from the slower to the faster quartile of the steps."""
    spread = frame.panel.spread(point)
    if spread is None:
        return None
    x, low, high = frame.across(point.batch_size), frame.down(spread[0]), frame.down(spread[1])
    ends = "".join(f"M{x - 4:.1f},{y:.1f}h8" for y in (low, high))
    return element("path", d=f"M{x:.1f},{low:.1f}V{high:.1f}{ends}", class_="bar")


def _point(frame: _Frame, curve: Curve, point: Measurement, value: float) -> Element:
    x, y = frame.across(point.batch_size), frame.down(value)
    chosen = frame.is_chosen(curve, point)
    words = f"{curve.name}, batch {point.batch_size:,}: {rate(value)} {frame.panel.unit}"
    ring = element("circle", cx=x, cy=y, r=_RADIUS + 5, class_="chosen") if chosen else None
    tooltip = element("title", f"{words}, recommended" if chosen else words)
    return element("g", tooltip, ring, marker(curve.style, x, y))


def marker(style: Style, x: float, y: float) -> Element:
    """Return the mark of a point in the shape of its precision."""
    r = _RADIUS
    if style.shape == "circle":
        return element("circle", cx=x, cy=y, r=r, class_="mark")
    if style.shape == "square":
        return element("rect", x=x - r * 0.9, y=y - r * 0.9, width=r * 1.8, height=r * 1.8, class_="mark")
    corners = {
        "triangle": ((0, -1.25), (1.15, 0.85), (-1.15, 0.85)),
        "diamond": ((0, -1.35), (1.35, 0), (0, 1.35), (-1.35, 0)),
    }[style.shape]
    return element("polygon", points=" ".join(f"{x + r * a:.1f},{y + r * b:.1f}" for a, b in corners), class_="mark")


def cross(x: float, y: float) -> Element:
    """Return the mark of a point that did not fit in memory."""
    return element("path", d=f"M{x - 5:.1f},{y - 5:.1f}l10,10m0,-10l-10,10", class_="failed")


def _failures(frame: _Frame, curve: Curve) -> Element | None:
    failed = [
        element(
            "g",
            element("title", f"{curve.name}, batch {point.batch_size:,}: out of memory"),
            cross(frame.across(point.batch_size), frame.down(frame.panel.failed_at(frame.highest))),
        )
        for point in curve.out_of_memory
    ]
    return element("g", failed, class_=f"curve c{curve.style.number}") if failed else None


def sample(style: Style) -> Element:
    """Return a piece of a curve, for the legend."""
    return _sample(element("path", d="M0,11h22", class_="line"), marker(style, 11, 11))


def chosen_sample() -> Element:
    """Return the ring around the recommended point, for the legend."""
    return _sample(element("circle", cx=11, cy=11, r=8, class_="chosen"))


def failed_sample() -> Element:
    """Return the cross of a point that did not fit, for the legend."""
    return _sample(cross(11, 11))


def _sample(*content: Element) -> Element:
    return element("svg", content, viewBox="0 0 22 22", aria_hidden="true")
