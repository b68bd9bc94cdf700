"""The picture in a terminal: throughput and memory over the batch size, in braille dots or in ASCII.

Drawn here and not by a library: plotext takes 97 ms to import (6.1.0, November 2026), twice the time of the program
itself, and the picture needs an axis of base 2, a marker for each curve, and ASCII as well as braille.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from gpudoctor.model.tuning import Measurement, Tuning
from gpudoctor.reporters.quantities import significant
from gpudoctor.reporters.terminal import paint
from gpudoctor.reporters.text import wrap, wrap_parts
from gpudoctor.reporters.tuning_picture import Curve, Panel, Picture, Style, picture, tick_labels, value_ticks

_NARROWEST = 40  # columns; a narrower screen has no room for a picture
_LABEL = 8  # columns of the numbers at the left
_HEIGHT = 8  # rows, about: each number at the left gets a row of its own, evenly spaced
_TICK_COLUMNS = 8
_BRAILLE = 0x2800
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))  # of a cell: four rows of two


class Pen(NamedTuple):
    """The characters to draw with."""

    axis: str
    tick: str
    base: str
    base_tick: str
    limit: str
    failed: str
    chosen: str
    several: str
    corner: str
    braille: bool

    def marker(self, style: Style) -> str:
        """Return the character of a point."""
        return style.marker if self.braille else style.ascii_marker


UNICODE = Pen("│", "┤", "─", "┴", "╌", "\u00d7", "★", "◎", "└", braille=True)
ASCII = Pen("|", "+", "-", "+", "=", "x", "@", "&", "+", braille=False)


def pen_for(encoding: str | None) -> Pen:
    """Return the characters that a stream of this encoding can show."""
    try:
        "⣿●▲■◆★◎╌┤".encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return ASCII
    return UNICODE


def render(tuning: Tuning, *, color: bool, width: int, encoding: str | None = "utf-8") -> list[str]:
    """Return the lines of the picture; none if nothing ran or the screen is too narrow."""
    shown = picture(tuning)
    if shown is None or width < _NARROWEST:
        return []
    pen = pen_for(encoding)
    lines: list[str] = []
    for panel in shown.panels:
        lines += [*_panel(panel, shown, pen, color, width), ""]
    several = any(pen.several in line for line in lines)
    return [*lines, *_legend(shown, pen, several, color, width)]


class _Grid:
    """Characters in rows and columns; a marker hides a dot, and a dot the line of a limit."""

    def __init__(self, rows: int, columns: int, highest: float) -> None:
        self.rows, self.columns, self.highest = rows, columns, highest
        self.dots: dict[tuple[int, int], tuple[int, str]] = {}
        self.markers: dict[tuple[int, int], tuple[str, str]] = {}
        self.limit_row: int | None = None

    def place(self, across: float, value: float) -> tuple[float, float]:
        """Return the row from the top and the column of a value, with fractions."""
        return (1 - value / self.highest) * (self.rows - 1), across * (self.columns - 1)

    def dot(self, row: float, column: float, color: str) -> None:
        """Set the braille dot nearest to a place."""
        down, right = round((row + 0.5) * 4 - 0.5), round((column + 0.5) * 2 - 0.5)
        cell = down // 4, right // 2
        bits, _ = self.dots.get(cell, (0, color))
        self.dots[cell] = (bits | _DOTS[down % 4][right % 2], color)

    def character(self, row: int, column: int, pen: Pen) -> tuple[str, str]:
        """Return the text of a cell, and its colour."""
        if (row, column) in self.markers:
            return self.markers[row, column]
        if (row, column) in self.dots:
            bits, color = self.dots[row, column]
            return (chr(_BRAILLE + bits) if pen.braille else "."), color
        return (pen.limit, "error") if row == self.limit_row else (" ", "")


def _panel(panel: Panel, shown: Picture, pen: Pen, color: bool, width: int) -> Iterator[str]:
    values = [value for curve in shown.curves for _, value in panel.points(curve)]
    ticks = value_ticks(max([*values, panel.limit or 0.0]), 4)
    intervals = len(ticks) - 1
    grid = _Grid(intervals * round(_HEIGHT / intervals) + 1, width - _LABEL - 1, ticks[-1])
    if panel.limit is not None:
        grid.limit_row = round(grid.place(0.0, panel.limit)[0])
    for curve in shown.curves:
        _draw_line(grid, panel, curve, shown)
    _draw_markers(grid, panel, shown, pen)
    limit = "" if panel.limit is None else f"; {pen.limit * 2} what the trials may use: {significant(panel.limit)}"
    yield from wrap(f"{panel.title} ({panel.unit}){limit}", width, "", "  ")
    labels = {round(grid.place(0.0, tick)[0]): text for tick, text in zip(ticks, tick_labels(ticks), strict=True)}
    for row in range(grid.rows):
        label = labels.get(row, "")
        cells = "".join(paint(*grid.character(row, column, pen), color=color) for column in range(grid.columns))
        yield f"{label:>{_LABEL}}{pen.tick if label else pen.axis}{cells}".rstrip()
    yield from _batch_axis(grid, shown, pen)


def _draw_line(grid: _Grid, panel: Panel, curve: Curve, shown: Picture) -> None:
    places = [grid.place(shown.batches.position(m.batch_size), value) for m, value in panel.points(curve)]
    for start, end in pairwise(places):
        amount = round(max(abs(end[0] - start[0]) * 4, abs(end[1] - start[1]) * 2)) + 1
        for number in range(amount + 1):
            share = number / amount
            row, column = (a + (b - a) * share for a, b in zip(start, end, strict=True))
            grid.dot(row, column, curve.style.terminal_color)


def _draw_markers(grid: _Grid, panel: Panel, shown: Picture, pen: Pen) -> None:
    """Draw the points; then, over them, those that did not fit and the one that is recommended."""
    chosen: list[tuple[int, int]] = []
    for curve in shown.curves:
        for measured, value in panel.points(curve):
            cell = _cell(grid, shown, measured, value)
            taken = cell in grid.markers
            grid.markers[cell] = (pen.several, "") if taken else (pen.marker(curve.style), curve.style.terminal_color)
            if shown.chosen == (curve.name, measured.batch_size):
                chosen.append(cell)
    for curve in shown.curves:
        for measured in curve.out_of_memory:
            grid.markers[_cell(grid, shown, measured, panel.failed_at(grid.highest))] = (pen.failed, "error")
    grid.markers.update((cell, (pen.chosen, "bold")) for cell in chosen)


def _cell(grid: _Grid, shown: Picture, measured: Measurement, value: float) -> tuple[int, int]:
    row, column = grid.place(shown.batches.position(measured.batch_size), value)
    return round(row), round(column)


def _batch_axis(grid: _Grid, shown: Picture, pen: Pen) -> Iterator[str]:
    line, labels = [pen.base] * grid.columns, [" "] * (grid.columns + _LABEL)
    for size in shown.batches.ticks(grid.columns // _TICK_COLUMNS):
        column = round(grid.place(shown.batches.position(size), 0.0)[1])
        line[column] = pen.base_tick
        text = f"{size:,}"
        start = max(column - len(text) // 2, 0)
        labels[start : start + len(text)] = text
    yield f"{'':>{_LABEL}}{pen.corner}{''.join(line)}"
    yield f"{'batch':>{_LABEL}} {''.join(labels)}".rstrip()


def _legend(shown: Picture, pen: Pen, several: bool, color: bool, width: int) -> list[str]:
    entries = [
        (pen.marker(c.style), c.style.terminal_color, c.name if c.safe else f"{c.name} (unsafe)") for c in shown.curves
    ]
    if shown.chosen is not None:
        entries.append((pen.chosen, "bold", "recommended"))
    failed = [
        f"{c.name} {', '.join(f'{m.batch_size:,}' for m in c.out_of_memory)}" for c in shown.curves if c.out_of_memory
    ]
    if failed:
        entries.append((pen.failed, "error", f"out of memory: {'; '.join(failed)}"))
    if several:
        entries.append((pen.several, "", "several in one place"))
    lines = wrap_parts((f"{marker} {meaning}" for marker, _, meaning in entries), "   ", width)
    for marker, kind, meaning in entries:
        lines = [line.replace(f"{marker} {meaning}", f"{paint(marker, kind, color=color)} {meaning}") for line in lines]
    return lines
