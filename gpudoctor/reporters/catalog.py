"""The catalog of checks: a list, the page of one, and the table in the README."""

import re
from collections.abc import Iterable, Sequence

from gpudoctor.registry import Check
from gpudoctor.reporters.terminal import NARROWEST
from gpudoctor.reporters.text import wrap

_TABLE_WIDTH = 72
_NEW_PARAGRAPH = re.compile(r"[A-Z][A-Za-z ]{0,20}:( |$)|[-*] |\d+\. ")


def render_list(checks: Sequence[Check], *, width: int) -> str:
    """Return a table of all checks: id, family and problem."""
    from tabulate import tabulate

    if width < _TABLE_WIDTH:
        lines = [line for check in checks for line in _entry(check, max(width, NARROWEST))]
        return "\n".join(lines) + "\n"
    widths = [max(len(check.id) for check in checks), max(len(check.family) for check in checks)] if checks else [0, 0]
    rest = max(width - sum(widths) - 4, NARROWEST)
    rows = [(check.id, check.family, "\n".join(wrap(check.title, rest))) for check in checks]
    return tabulate(rows, headers=("id", "family", "problem"), tablefmt="plain", disable_numparse=True) + "\n"


def _entry(check: Check, width: int) -> list[str]:
    return [f"{check.id} ({check.family})", *wrap(check.title, width, "  ")]


def render_page(check: Check, *, width: int) -> str:
    """Return the page of one check: its id, family and sections, and its docstring."""
    width = max(width, NARROWEST)
    reads = [*check.sections, *(f"{section} (where known)" for section in check.optional)]
    lines = [check.id, *wrap(f"family: {check.family}; reads: {', '.join(reads)}", width, "", "  ")]
    if check.explains:
        lines += wrap(f"explains: {', '.join(check.explains)}", width, "", "  ")
    for paragraph in _paragraphs(check.page):
        lines += wrap(paragraph, width, "", "  ") if paragraph else [""]
    return "\n".join(lines) + "\n"


def _paragraphs(page: str) -> Iterable[str]:
    """Return the docstring's paragraphs, each in one line; an empty one where a line was blank."""
    paragraphs = [""]
    for line in page.splitlines():
        if not line.strip():
            paragraphs.append("")
        elif paragraphs[-1] and not _NEW_PARAGRAPH.match(line.strip()):
            paragraphs[-1] += f" {line.strip()}"
        else:
            paragraphs.append(line.strip())
    return paragraphs


def readme_table(checks: Sequence[Check]) -> str:
    """Return the table of checks in the README: Markdown, one row for each check."""
    rows = [f"| `{check.id}` | {check.family} | {_cell(check.title)} |" for check in checks]
    return "\n".join(["| id | family | problem |", "| --- | --- | --- |", *rows]) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", r"\|")
