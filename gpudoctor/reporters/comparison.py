"""What differs between two snapshots, for a screen and as JSON."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from gpudoctor.model import Finding
from gpudoctor.model.codec import to_json
from gpudoctor.privacy import mask_document, mask_uuids
from gpudoctor.reporters.labels import label
from gpudoctor.reporters.report_words import severity_word
from gpudoctor.reporters.terminal import NARROWEST, paint
from gpudoctor.reporters.text import readable, wrap
from gpudoctor.snapshots.comparison import SCHEMA, Change, Comparison
from gpudoctor.untrusted import clean

_ONE_SIDED_SHOWN = 12
_MESSAGE = re.compile(r"symptoms\[(.*?)\]\.(.+)")
_NAMED = re.compile(r"-(?:named|mentioned)\b")  # kinds of words that a report contains, which no program printed
_PACKAGE = re.compile(r"(?:python\.packages|cupy\.distributions)\[([^\]]*)\]\.(\w+)")


def render_json(comparison: Comparison) -> str:
    """Return the comparison as one JSON object: schema gpudoctor/diff/1."""
    document = {
        "schema": SCHEMA,
        "differs": comparison.differs,
        "changes": [_change(change) for change in comparison.changes],
        "one_sided": [_change(change) for change in comparison.one_sided],
        **{name: [_short(finding) for finding in getattr(comparison, name)] for name in ("gone", "come", "stayed")},
    }
    return json.dumps(mask_uuids(mask_document(document)), indent=2, allow_nan=False) + "\n"


def _change(change: Change) -> dict[str, Any]:
    return {"fact": change.fact, "before": change.before, "after": change.after}


def _short(finding: Finding) -> dict[str, Any]:
    severity = to_json(finding.severity)
    return {"check": finding.check_id, "severity": severity, "subject": finding.subject, "summary": finding.summary}


def render_table(comparison: Comparison, *, color: bool, width: int) -> str:
    """Return the comparison as text for a screen of `width` columns."""
    width = max(width, NARROWEST)
    blocks = [
        [] if comparison.differs else [paint("no differences", "healthy", color=color)],
        _findings("new", comparison.come, "error", color, width),
        _findings("fixed", comparison.gone, "healthy", color, width),
        _findings("still there", comparison.stayed, "", color, width),
        list(_changes(comparison.changes, width)),
        list(_one_sided(comparison.one_sided, width)),
    ]
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _findings(title: str, findings: Sequence[Finding], kind: str, color: bool, width: int) -> list[str]:
    roots = [finding for finding in findings if finding.caused_by is None]
    lines = [paint(title, kind, color=color)] if roots else []
    for finding in roots:
        subject, summary = clean(finding.subject), clean(finding.summary)
        said = summary if summary.startswith(subject) else f"{subject}: {summary}"
        text = f"{severity_word(finding.severity)}  {finding.check_id}  {said}"
        lines += wrap(text, width, "  ", "    ")
    return lines


def _changes(changes: Sequence[Change], width: int) -> Iterator[str]:
    shown = list(_named([change for change in changes if not _is_derived(change, changes)]))
    if shown:
        yield "changed"
    for name, change in shown:
        text = f"{name}: {_value(change, 'before')} → {_value(change, 'after')}"
        yield from wrap(text, width, "  ", "    ")


def _is_derived(change: Change, changes: Sequence[Change]) -> bool:
    """Return whether another line says the same: a symptom is shown by its text, and only if a program printed it."""
    match = _MESSAGE.fullmatch(change.fact)
    if match is None:
        return False
    if _NAMED.search(match[1]):
        return True
    of = {other.fact: other.after or other.before for other in changes}
    fact, library = (str(of.get(f"symptoms[{match[1]}].{field}") or "") for field in ("fact", "library"))
    return match[2] != "text" or not library or not fact.startswith("symptoms[")


def _named(changes: Sequence[Change]) -> Iterator[tuple[str, Change]]:
    """Yield each change with what a user calls the fact. A package is one line: its version if that differs."""
    packages = [(change, _PACKAGE.fullmatch(change.fact)) for change in changes]
    versions = {match[1] for _, match in packages if match is not None and match[2] == "version"}
    seen = set()
    for change, match in packages:
        name = _name(change.fact)
        if match is not None:
            if match[1] in versions and match[2] != "version":
                continue
            name = clean(match[1]) + ("" if match[2] == "version" else f" {clean(match[2])}")
        if name not in seen or match is None:
            yield name, change
        seen.add(name)


def _name(fact: str) -> str:
    """Return the label of a fact, with the names of the members of lists in its path."""
    variable = fact.removeprefix("environment.variables[")
    if variable != fact:
        return clean(variable.removesuffix("]"))
    if _MESSAGE.fullmatch(fact):
        return label(fact)
    members = [clean(name) for name in re.findall(r"\[([^\]]*)\]", fact)]
    shown = label(fact)
    return f"{shown} ({', '.join(members)})" if members and members[0] not in shown else shown


def _value(change: Change, side: str) -> str:
    value = getattr(change, side)
    missing = "not installed" if _PACKAGE.fullmatch(change.fact) else "none"
    is_missing = value is None or (value == "" and not change.fact.startswith("environment."))
    return missing if is_missing else " / ".join(readable(change.fact, value))


def _one_sided(changes: Sequence[Change], width: int) -> Iterator[str]:
    for title, side, other in (("only in the first", "before", "after"), ("only in the second", "after", "before")):
        known = [change for change in changes if getattr(change, other) is None]
        if known:
            yield title
        lines = list(dict.fromkeys(f"{_name(change.fact)}: {_value(change, side)}" for change in known))
        for line in lines[:_ONE_SIDED_SHOWN]:
            yield from wrap(line, width, "  ", "    ")
        if len(lines) > _ONE_SIDED_SHOWN:
            yield f"  and {len(lines) - _ONE_SIDED_SHOWN} more (--format json has all)"
