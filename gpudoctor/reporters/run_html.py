"""A watched run as one HTML page that needs nothing else: no network, no font, no script."""

import shlex
from collections.abc import Iterator, Sequence
from xml.etree.ElementTree import Element

from gpudoctor import __version__
from gpudoctor.reporters import run_words as words
from gpudoctor.reporters.html_report import finding_section
from gpudoctor.reporters.html_tree import element, page
from gpudoctor.reporters.quantities import duration, significant
from gpudoctor.untrusted import clean
from gpudoctor.watching.watched import WatchedRun

_WIDTH, _HEIGHT, _MOST_POINTS = 720, 70, 240


def render(run: WatchedRun) -> str:
    """Return the page, in ASCII."""
    _, sentence = words.verdict(run)
    return page(f"gpudoctor run: {clean(sentence)}", "report.css", _body(run, clean(sentence)))


def _body(run: WatchedRun, sentence: str) -> Iterator[Element]:
    kind, _ = words.verdict(run)
    yield element(
        "header",
        element("p", clean(shlex.join(run.command)), " ", words.ended(run)),
        element("h1", sentence, class_=kind),
    )
    yield element("main", _sections(run))
    yield element("footer", f"gpudoctor {__version__}, {duration(run.elapsed_seconds)}.")


def _sections(run: WatchedRun) -> Iterator[Element]:
    for finding in run.findings:
        gain = ", ".join(part for part in (words.speedup(finding), words.line(finding)) if part)
        yield finding_section(finding, element("p", gain, class_="note") if gain else None)
    notes = [element("li", note) for note in words.notes(run)]
    if notes:
        yield element("ul", notes, class_="warnings")
    charts = [chart(name, unit, values) for name, unit, values in words.timelines(run) if len(values) > 1]
    if charts:
        yield element("section", element("h2", "Over time"), charts)
    lines = list(words.process_lines(run))
    if run.run.steps is not None:
        lines.append(" · ".join(words.step_parts(run.run.steps)))
    lines += [" · ".join(words.device_parts(run, device)) for device in run.watch.devices]
    lines += [" · ".join(words.machine_parts(run.watch))] if run.watch.samples else []
    if lines:
        yield element("section", element("h2", "Seen"), element("ul", [element("li", line) for line in lines if line]))


def chart(name: str, unit: str, values: Sequence[float]) -> Element:
    """Return values over time as a figure. Its caption, with the scale, is outside of the picture that scales."""
    means = words.binned(values, _MOST_POINTS)
    highest = words.top_of(means, unit)
    title = f"{name}: 0 to {significant(highest)} {unit}"
    points = " ".join(
        f"{_WIDTH * place / (len(means) - 1):.1f},{_HEIGHT - (_HEIGHT - 1) * value / highest:.1f}"
        for place, value in enumerate(means)
    )
    picture = element(
        "svg",
        element("title", title),
        element("line", x1=0, x2=_WIDTH, y1=_HEIGHT, y2=_HEIGHT, class_="base", stroke="currentColor"),
        element("polyline", points=points, fill="none", stroke="currentColor", stroke_width=1.5),
        viewBox=f"0 0 {_WIDTH} {_HEIGHT + 1}",
        preserveAspectRatio="none",
        role="img",
    )
    return element("figure", element("figcaption", title), picture)
