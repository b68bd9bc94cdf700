"""The tables of the HTML page."""

from collections.abc import Iterable, Iterator, Sequence
from xml.etree.ElementTree import Element

from gpudoctor.model.tuning import OK, Measurement, Numerics, Tuning
from gpudoctor.reporters import quantities, tuning_words
from gpudoctor.reporters.html_tree import element
from gpudoctor.reporters.tuning_words import name
from gpudoctor.tuning import figures
from gpudoctor.untrusted import clean

_MEASUREMENTS_SHOWN = 400
_VERDICT_CLASSES = {"best": "good", "ok": "", "not run": ""}


Column = tuple[str, str]
"""Its header, and the class of its cells: "number" to the right, "wide" for sentences."""


def numbers(*titles: str) -> tuple[Column, ...]:
    """Return columns of numbers."""
    return tuple((title, "number") for title in titles)


def table(caption: str, columns: Sequence[Column], rows: Iterable[Sequence[str | Element]]) -> Element | None:
    """Return a table whose first column names its rows; None without rows."""
    lines = [_line(columns, row) for row in rows]
    if not lines:
        return None
    head = element("tr", [element("th", title, scope="col", class_=kind) for title, kind in columns])
    return element(
        "div",
        element("table", element("caption", element("span", caption)), element("thead", head), element("tbody", lines)),
        class_="scroll",
        tabindex="0",
        role="region",
        aria_label=caption,
    )


def _line(columns: Sequence[Column], row: Sequence[str | Element]) -> Element:
    first, *others = row
    cells = [element("td", cell, class_=kind) for (_, kind), cell in zip(columns[1:], others, strict=True)]
    return element("tr", element("th", first, scope="row", class_=columns[0][1]), cells)


def precision_table(tuning: Tuning) -> Element | None:
    """Return a table of each precision at its best batch size."""
    reached = numbers("batch size", "step, ms", name(tuning.workload.unit), "peak memory, GiB", "TFLOP/s")
    shares = numbers("% of ceiling", "% of datasheet", "error")
    caption = (
        "Step: median ± half of the interquartile range. Ceiling: a large matrix product measured on this device. "
        "Error: of outputs and gradients against the reference."
    )
    return table(caption, (("precision", ""), ("verdict", ""), *reached, *shares), _precision_rows(tuning))


def _precision_rows(tuning: Tuning) -> Iterator[Sequence[str | Element]]:
    for row in tuning_words.precision_rows(tuning):
        verdict = element("span", row.verdict, class_=_VERDICT_CLASSES.get(row.verdict, "bad"))
        shares = (quantities.UNKNOWN,) * 3
        if row.best is not None:
            of_ceiling = quantities.percent(figures.fraction_of_ceiling(tuning, row.best))
            shares = (
                quantities.significant(row.best.tflops),
                of_ceiling,
                quantities.percent(row.best.fraction_of_peak),
            )
        yield row.name, verdict, *row.measured, *shares, quantities.relative_error(row.error)


def runner_up_table(tuning: Tuning) -> Element | None:
    """Return a table of the runners-up, with the reasons."""
    advice = tuning.recommendation
    if advice is None:
        return None
    columns = (("precision", ""), *numbers("batch size", name(advice.unit)), ("why it lost", "wide"))
    rows = (
        (name(r.precision), f"{r.batch_size:,}", quantities.rate(r.throughput), clean(r.why)) for r in advice.runners_up
    )
    return table("What was measured but not recommended.", columns, rows)


def switch_table(tuning: Tuning) -> Element | None:
    """Return a table of the settings tried at the chosen point."""
    columns = (("switch", ""), *numbers("step, ms", "gain, %"), ("verdict", ""), ("why", "wide"))
    rows = (
        (
            name(switch.name),
            quantities.milliseconds(switch.measurement.step_median_seconds),
            quantities.percent(switch.gain),
            "kept" if switch.kept else "not kept",
            clean(switch.why),
        )
        for switch in tuning.switches
    )
    return table("Each tried at the chosen precision and batch size.", columns, rows)


def numerics_table(tuning: Tuning) -> Element | None:
    """Return a table of the numerical errors of each precision."""
    errors = numbers("outputs", "gradients", "loss", "steps compared", "matrix product")
    columns = (("precision", ""), ("reference", ""), *errors, ("verdict", "wide"))
    rows = (
        (
            name(found.precision),
            name(found.reference),
            quantities.relative_error(found.output_error),
            quantities.relative_error(found.gradient_error),
            quantities.relative_error(found.loss_error),
            str(found.steps_compared or quantities.UNKNOWN),
            quantities.relative_error(found.product_error),
            _numerics_verdict(found),
        )
        for found in tuning.numerics
    )
    return table(
        "Relative errors against the reference, by norm; for the loss the largest of all steps.", columns, rows
    )


def _numerics_verdict(found: Numerics) -> str:
    verdict = "safe" if found.passed else f"unsafe: {clean(found.reason)}"
    return f"{verdict} ({clean('; '.join(found.not_compared))})" if found.not_compared else verdict


def transfer_tables(tuning: Tuning) -> Iterator[Element]:
    """Yield the ways from host to device, and the numbers of workers that were tried."""
    ways = ((tuning_words.transfer_name(way), quantities.significant(way.gb_s)) for way in tuning.transfers)
    loads = (
        (str(load.workers), quantities.rate(load.samples_per_second), quantities.percent(load.wait_fraction))
        for load in tuning.loading
    )
    found = (
        table("Host to device.", (("memory of the host", ""), *numbers("GB/s")), ways),
        table("DataLoader.", (("workers", ""), *numbers("samples/s", "% of a step waiting")), loads),
    )
    yield from (one for one in found if one is not None)


def measurement_table(tuning: Tuning) -> Element | None:
    """Return a table of all measurements, in order."""
    timed = numbers("batch size", "step, ms", "steps timed", "per second")
    used = numbers("peak memory, GiB", "predicted, GiB", "clock, MHz")
    columns = (("precision", ""), *timed, *used, ("remarks", "wide"))
    shown = tuning.measurements[:_MEASUREMENTS_SHOWN]
    left_out = len(tuning.measurements) - len(shown)
    more = f" {left_out:,} more are in the JSON." if left_out else ""
    return table(f"In the order of measurement.{more}", columns, map(_measurement, shown))


def _measurement(measured: Measurement) -> Sequence[str]:
    clock = measured.conditions.clock_mhz
    return (
        name(measured.precision),
        f"{measured.batch_size:,}",
        quantities.step_time(measured.step_median_seconds, figures.spread_seconds(measured)),
        str(len(measured.step_seconds) or quantities.UNKNOWN),
        quantities.rate(measured.throughput),
        quantities.gibibytes(measured.peak_memory_bytes),
        quantities.gibibytes(measured.predicted_memory_bytes),
        quantities.UNKNOWN if clock is None else f"{clock:,}",
        "; ".join(_remarks(measured)),
    )


def _remarks(measured: Measurement) -> Iterator[str]:
    if measured.status != OK:
        yield f"{name(measured.status)}: {clean(measured.detail)}" if measured.detail else name(measured.status)
    yield from tuning_words.settings(measured.settings)
    yield from (clean(warning) for warning in measured.warnings)
    if measured.conditions.throttle_reasons:
        yield f"throttled: {', '.join(name(reason) for reason in measured.conditions.throttle_reasons)}"
    if measured.allocation_retries:
        yield f"{measured.allocation_retries} allocation retries"
