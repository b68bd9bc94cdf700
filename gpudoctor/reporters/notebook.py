"""Reports and tunings in a notebook: a page of HTML in a frame."""

from html import escape

from gpudoctor.model.report import Report
from gpudoctor.model.tuning import Tuning

_HEIGHT_PIXELS = 480
_AS_HIGH_AS_ITS_PAGE = "this.style.height = this.contentDocument.documentElement.scrollHeight + 'px'"


def frame(page: str) -> str:
    """Return `page` in a frame of its own: its style does not reach the notebook's, nor the notebook's it.

    If the notebook runs no scripts, the frame keeps its height and scrolls.
    """
    style = f"width: 100%; height: {_HEIGHT_PIXELS}px; border: 0"
    return f'<iframe srcdoc="{escape(page)}" style="{style}" onload="{_AS_HIGH_AS_ITS_PAGE}"></iframe>'


def enable() -> None:
    """Let notebooks show reports and tunings as pages."""
    Report._repr_html_ = _report  # type: ignore[attr-defined]
    Tuning._repr_html_ = _tuning  # type: ignore[attr-defined]


def _report(report: Report) -> str:
    """Return the report, UUIDs numbered: notebooks get published."""
    from gpudoctor.privacy import mask_uuids
    from gpudoctor.reporters import html_report

    return frame(mask_uuids(html_report.render(report)))


def _tuning(tuning: Tuning) -> str:
    from gpudoctor.reporters import tuning_html

    return frame(tuning_html.render(tuning))
