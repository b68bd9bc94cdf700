"""Findings → root cause first, what it explains after it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from gpudoctor.model import Finding, Severity
from gpudoctor.registry import FAMILIES, Check


def diagnose(findings: Iterable[Finding], checks: Mapping[str, Check]) -> tuple[Finding, ...]:
    """Return the findings in the order in which to fix them.

    A finding that another one explains gets `caused_by`, becomes `INFO` (one fault is one error) and stands right
    after its cause. Causes are ordered by severity, then by how deep their family lies: driver before torch.
    """
    ranked = sorted(findings, key=lambda finding: _rank(finding, checks))
    causes = {id(finding): _cause(finding, ranked, checks) for finding in ranked}
    ordered: list[Finding] = []
    for finding in ranked:
        if causes[id(finding)] is None:
            _place(finding, ranked, causes, ordered)
    return tuple(ordered)


def _rank(finding: Finding, checks: Mapping[str, Check]) -> tuple[int, int]:
    return -finding.severity, FAMILIES.index(checks[finding.check_id].family)


def _cause(finding: Finding, ranked: Sequence[Finding], checks: Mapping[str, Check]) -> Finding | None:
    """Return the first finding that explains `finding`; advice explains nothing, and nothing explains its own cause."""
    for other in ranked:
        if other.severity is Severity.INFO or other.check_id == finding.check_id:
            continue
        if finding.check_id in checks[other.check_id].explains:
            return other
    return None


def _place(
    finding: Finding, ranked: Sequence[Finding], causes: Mapping[int, Finding | None], ordered: list[Finding]
) -> None:
    cause = causes[id(finding)]
    ordered.append(finding if cause is None else replace(finding, severity=Severity.INFO, caused_by=cause.check_id))
    for other in ranked:
        if causes[id(other)] is finding:
            _place(other, ranked, causes, ordered)
