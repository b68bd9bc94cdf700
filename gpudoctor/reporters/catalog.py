"""The catalog of checks: a list, and the page of one."""

import json
import re
from collections.abc import Iterable, Sequence

from gpudoctor.data.tables import load_table
from gpudoctor.registry import Check
from gpudoctor.reporters.terminal import NARROWEST
from gpudoctor.reporters.text import wrap

_NARROWEST_COLUMN = 40
_NEW_PARAGRAPH = re.compile(r"[A-Z][A-Za-z ]{0,20}:( |$)|[-*] |\d+\. ")


def render_json(checks: Sequence[Check]) -> str:
    """Return the list as one JSON object: schema gpudoctor/checks/1."""
    entries = [{"id": check.id, "family": check.family, "problem": check.title} for check in checks]
    return json.dumps({"schema": "gpudoctor/checks/1", "checks": entries}, indent=2) + "\n"


def render_list(checks: Sequence[Check], *, width: int | None) -> str:
    """Return a table of all checks: id, family and problem; without a width a line for each, and no header."""
    from tabulate import tabulate

    if width is None:
        whole = [(check.id, check.family, check.title) for check in checks]
        return tabulate(whole, tablefmt="plain", disable_numparse=True) + "\n" if whole else ""
    longest = max((c.id for c in checks), key=len, default="") + max((c.family for c in checks), key=len, default="")
    rest = width - len(longest) - 4
    if rest < _NARROWEST_COLUMN:
        entries = ([f"{c.id} ({c.family})", *wrap(c.title, max(width, NARROWEST), "  ")] for c in checks)
        return "\n".join(line for entry in entries for line in entry) + "\n"
    rows = [(check.id, check.family, "\n".join(wrap(check.title, rest))) for check in checks]
    return tabulate(rows, headers=("id", "family", "problem"), tablefmt="plain", disable_numparse=True) + "\n"


def page(check: Check) -> str:
    """Return the docstring of a check, with how to see the problem and how to fix it if the table has it."""
    row = next((row for row in load_table("check_pages")["pages"] if row["check"] == check.id), None)
    added = "\nSee it: " + row["see"] + "\nFix: " + row["fix"] if row else ""
    return check.page.replace("\nException: ", f"{added}\nException: ", 1)


def render_page(check: Check, *, width: int) -> str:
    """Return the page of one check, which begins with the problem, then its id and family."""
    width = max(width, NARROWEST)
    lines: list[str] = []
    for paragraph in _paragraphs(page(check)):
        lines += wrap(paragraph, width, "", "  " if _NEW_PARAGRAPH.match(paragraph) else "")
    lines += ["", *wrap(f"Check: {check.id} (family {check.family})", width, "", "  ")]
    if check.explains:
        lines += wrap(f"Also causes: {', '.join(check.explains)}", width, "", "  ")
    return "\n".join(lines) + "\n"


def _paragraphs(page: str) -> Iterable[str]:
    """Return the docstring's paragraphs, each in one line; an empty one for a blank line."""
    paragraphs = [""]
    for line in page.splitlines():
        if not line.strip():
            paragraphs.append("")
        elif paragraphs[-1] and not _NEW_PARAGRAPH.match(line.strip()):
            paragraphs[-1] += f" {line.strip()}"
        else:
            paragraphs.append(line.strip())
    return paragraphs[1:]
