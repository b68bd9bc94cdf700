"""The tuning as one HTML page that needs nothing else: no network, no font, no script."""

from collections.abc import Iterable, Iterator
from xml.etree.ElementTree import Element

from gpudoctor import __version__
from gpudoctor.model.tuning import Tuning
from gpudoctor.reporters import html_tables, tuning_svg, tuning_words
from gpudoctor.reporters.html_tree import element, page
from gpudoctor.reporters.quantities import UNKNOWN, duration
from gpudoctor.reporters.tuning_picture import Picture, picture
from gpudoctor.untrusted import clean


def render(tuning: Tuning) -> str:
    """Return the page, in ASCII."""
    what, result = tuning_words.headline(tuning)
    return page(f"gpudoctor tune: {what}: {result}", "tuning.css", _body(tuning, what, result))


def _body(tuning: Tuning, what: str, result: str) -> Iterator[Element | None]:
    yield element(
        "header",
        element("p", " · ".join(tuning_words.device(tuning))),
        element("h1", what, element("small", result), class_="none" if tuning.recommendation is None else ""),
    )
    yield element("main", _sections(tuning))
    yield element("footer", f"gpudoctor {__version__}, {duration(tuning.elapsed_seconds)}. {UNKNOWN} is not measured.")


def _sections(tuning: Tuning) -> Iterator[Element | None]:
    yield _list([f"Memory: {tuning_words.memory(tuning)}."] if tuning.recommendation else [])
    yield _switches(tuning)
    yield _list(tuning_words.warnings(tuning), class_="warnings")
    why = () if tuning.recommendation is None else tuning.recommendation.why
    yield _section(
        "Why", _list(filter(None, (*why, tuning_words.step_latency(tuning), tuning_words.convergence(tuning))))
    )
    yield _section("By parameter", _list(tuning_words.variations(tuning)))
    yield _section("Several devices", _list(tuning_words.scaling(tuning)))
    yield _section("Compared with the earlier tuning", _list(tuning.comparison))
    yield _section("Throughput and memory", _pictures(picture(tuning)))
    notes = tuning_words.notes(tuning, list(tuning_words.precision_rows(tuning)))
    yield _section("Precisions", html_tables.precision_table(tuning), _list(notes))
    yield _section("Runners-up", html_tables.runner_up_table(tuning))
    yield _section("Switches tried", html_tables.switch_table(tuning))
    yield _section("Numerics", html_tables.numerics_table(tuning))
    yield _section(
        "Moving data to the device", _list(tuning_words.transfers(tuning)), html_tables.transfer_tables(tuning)
    )
    yield _section("The profile", _profile(tuning))
    yield _section("Every measurement", html_tables.measurement_table(tuning))


def _section(title: str, *content: Element | Iterable[Element] | None) -> Element | None:
    body = [
        item for part in content if part is not None for item in ([part] if isinstance(part, Element) else list(part))
    ]
    return element("section", element("h2", title), body) if body else None


def _list(sentences: Iterable[str], class_: str = "") -> Element | None:
    items = [element("li", clean(sentence)) for sentence in sentences]
    return element("ul", items, class_=class_) if items else None


def _switches(tuning: Tuning) -> Element | None:
    if tuning.recommendation is None:
        return None
    switches = tuning_words.settings(tuning.recommendation.settings)
    parts: list[Element | str] = [part for switch in switches for part in (", ", element("code", switch))][1:]
    return element("p", "Switch on: " if parts else "Switches: the defaults", parts, ".")


def _pictures(shown: Picture | None) -> Iterator[Element]:
    if shown is None:
        return
    yield _legend(shown)
    yield element(
        "div",
        [
            element("figure", tuning_svg.chart(panel, shown, f"picture-{number}"))
            for number, panel in enumerate(shown.panels)
        ],
        class_="pictures",
    )


def _legend(shown: Picture) -> Element:
    entries = [
        (f"c{curve.style.number}", tuning_svg.sample(curve.style), curve.name + ("" if curve.safe else " (unsafe)"))
        for curve in shown.curves
    ]
    if shown.chosen is not None:
        entries.append(("", tuning_svg.chosen_sample(), "recommended"))
    if any(curve.out_of_memory for curve in shown.curves):
        entries.append(("", tuning_svg.failed_sample(), "out of memory"))
    items = [element("li", sample, element("span", text), class_=kind) for kind, sample, text in entries]
    return element("ul", items, class_="legend")


def _profile(tuning: Tuning) -> Iterator[Element]:
    if tuning.profile is None:
        return
    yield element("p", "Written to ", element("code", tuning.profile), ".")
    for purpose, command in tuning_words.profile_uses(tuning.profile):
        yield element("p", f"{purpose[0].upper()}{purpose[1:]}:")
        yield element("pre", element("code", command))
