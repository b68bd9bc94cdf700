"""The tuning as a person reads it in a terminal: what was measured, and last what to run with and why."""

from collections.abc import Iterable, Sequence

from gpudoctor.model.tuning import Tuning
from gpudoctor.reporters import chart, tuning_words
from gpudoctor.reporters.quantities import UNKNOWN, duration, percent, relative_error
from gpudoctor.reporters.terminal import NARROWEST, encodable, paint
from gpudoctor.reporters.text import wrap, wrap_painted, wrap_parts
from gpudoctor.reporters.tuning_words import PrecisionRow, name
from gpudoctor.tuning import figures
from gpudoctor.untrusted import clean

_HEADERS = ("", "batch\n", "step\nms", "{unit}\n", "memory\nGiB", "% of\npeak", "error\n", "")
_ALIGNMENT = ("left", "right", "right", "right", "right", "right", "right", "left")
_VERDICT_KINDS = {"best": "healthy", "unsafe": "error", "too large": "error", "unsupported": "warning"}


def render(tuning: Tuning, *, color: bool, width: int, encoding: str | None = "utf-8") -> str:
    """Return the tuning as text for a screen of `width` columns. Commands are never wrapped.

    encoding: of the stream; what it cannot show is drawn in ASCII.
    """
    width = max(width, NARROWEST)
    blocks = [
        wrap_parts([*tuning_words.device(tuning), duration(tuning.elapsed_seconds)], " · ", width),
        chart.render(tuning, color=color, width=width, encoding=encoding),
        _precisions(tuning, color, width),
        _switches(tuning, width),
        _listed("data", tuning_words.transfers(tuning), width),
        _listed("by parameter", tuning_words.variations(tuning), width),
        _listed(_processes(tuning), tuning_words.scaling(tuning), width),
        _listed("compared with the earlier tuning", list(map(clean, tuning.comparison)), width),
        _profile(tuning, width),
        _warnings(tuning, color, width),
        _headline(tuning, color, width),
    ]
    return encodable("\n\n".join("\n".join(block) for block in blocks if block) + "\n", encoding)


def _headline(tuning: Tuning, color: bool, width: int) -> list[str]:
    advice = tuning.recommendation
    what, result = tuning_words.headline(tuning)
    if advice is None:
        return wrap_painted(what, f": {result}", "warning", color, width)
    lines = wrap_painted(f"recommended: {what}", f": {result}", "healthy", color, width)
    switches = ", ".join(tuning_words.settings(advice.settings))
    facts = (
        f"memory: {tuning_words.memory(tuning)}",
        f"switch on: {switches}" if switches else "switches: the defaults",
    )
    further = filter(None, (tuning_words.step_latency(tuning), tuning_words.convergence(tuning)))
    return [*lines, *_items((*map(clean, advice.why), *facts, *further), width)]


def _items(sentences: Iterable[str], width: int) -> list[str]:
    return [line for sentence in sentences for line in wrap(sentence, width, "  ", "    ")]


def _listed(title: str, sentences: Sequence[str], width: int) -> list[str]:
    return [*wrap(title, width), *_items(sentences, width)] if sentences else []


def _processes(tuning: Tuning) -> str:
    return "" if tuning.scaling is None else f"{tuning.scaling.processes} processes, one for each device"


def _warnings(tuning: Tuning, color: bool, width: int) -> list[str]:
    painted = (wrap_painted("warning", f"  {text}", "warning", color, width) for text in tuning_words.warnings(tuning))
    return [line for lines in painted for line in lines]


def _precisions(tuning: Tuning, color: bool, width: int) -> list[str]:
    """Return the table of precisions and its legend; a line for each precision if the table does not fit."""
    rows = list(tuning_words.precision_rows(tuning))
    if not rows:
        return []
    cells = [_cells(tuning, row) for row in rows]
    lines = _table(cells, name(tuning.workload.unit))
    if max(len(line) for line in lines) > width:
        lines = [line for row in cells for line in _line(row, name(tuning.workload.unit), width)]
    else:
        lines = [*lines[:2], *_painted(lines[2:], rows, color)]
    ran = {row.name for row in rows if row.verdict == "ok"}
    others = tuning.recommendation.runners_up if tuning.recommendation else ()
    lost = [f"{name(other.precision)}: {clean(other.why)}" for other in others if name(other.precision) in ran]
    return [*lines, *_items([*lost, *tuning_words.notes(tuning, rows)], width), *_legend(cells, width)]


def _cells(tuning: Tuning, row: PrecisionRow) -> tuple[str, ...]:
    ceiling = None if row.best is None else figures.fraction_of_ceiling(tuning, row.best)
    datasheet = None if row.best is None else row.best.fraction_of_peak
    of_peak = UNKNOWN if ceiling is None and datasheet is None else f"{percent(ceiling)} / {percent(datasheet)}"
    return row.name, *row.measured, of_peak, relative_error(row.error), row.verdict


def _table(cells: Sequence[tuple[str, ...]], unit: str) -> list[str]:
    from tabulate import tabulate

    headers = [header.replace("{unit}", unit) for header in _HEADERS]
    text = tabulate(cells, headers=headers, tablefmt="plain", disable_numparse=True, colalign=_ALIGNMENT)
    return [line.rstrip() for line in text.splitlines()]


def _painted(lines: Sequence[str], rows: Sequence[PrecisionRow], color: bool) -> list[str]:
    return [
        line[: -len(row.verdict)] + paint(row.verdict, _VERDICT_KINDS.get(row.verdict, ""), color=color)
        for line, row in zip(lines, rows, strict=True)
    ]


def _line(cells: tuple[str, ...], unit: str, width: int) -> list[str]:
    precision, batch, step, throughput, memory, peak, error, verdict = cells
    run = {f"batch {batch}": batch, f"step {step} ms": step, f"{throughput} {unit}": throughput}
    rest = {f"memory {memory} GiB": memory, f"% of peak {peak}": peak, f"error {error}": error}
    known = (part for part, value in {**run, **rest}.items() if value != UNKNOWN)
    return wrap_parts([f"{precision}: {verdict}", *known], ", ", width)


def _legend(cells: Sequence[tuple[str, ...]], width: int) -> list[str]:
    flat = [cell for row in cells for cell in row]
    meanings = [
        ("±", "±: half of the interquartile range"),
        (" / ", "% of peak: of a large matrix product measured here / of the datasheet"),
        (" %", "error: of outputs and gradients against the reference"),
        (UNKNOWN, f"{UNKNOWN}: not measured"),
    ]
    return _items((text for sign, text in meanings if any(sign in cell for cell in flat)), width)


def _switches(tuning: Tuning, width: int) -> list[str]:
    tried = [f"{name(s.name)}: {'kept' if s.kept else 'not kept'}, {clean(s.why)}" for s in tuning.switches]
    return _listed("switches tried", tried, width)


def _profile(tuning: Tuning, width: int) -> list[str]:
    if tuning.profile is None:
        return []
    lines = wrap(f"profile written: {clean(tuning.profile)}", width, "", "  ")
    for purpose, command in tuning_words.profile_uses(tuning.profile):
        lines += [f"  {purpose}:", f"    {command}"]
    return lines
