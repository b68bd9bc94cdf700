"""Findings in, the same findings out: root cause first, what it explains after it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from gpudoctor.model import Finding, Severity
from gpudoctor.registry import FAMILIES, Check


def diagnose(findings: Iterable[Finding], checks: Mapping[str, Check]) -> tuple[Finding, ...]:
    """Return the findings in the order in which to fix them.

    A finding that another one explains gets `caused_by`, becomes `INFO` (one fault is one error) and stands right
    after its cause, which takes over the severity. Causes are ordered by severity, then by how deep their family lies:
    driver before torch.
    """
    ranked = sorted(findings, key=lambda finding: _rank(finding, checks))
    causes = _find_causes(ranked, checks)
    ordered: list[Finding] = []
    for root in sorted(_roots(ranked, causes), key=lambda pair: _rank(pair[0], checks)):
        ordered.extend(root)
    return tuple(ordered)


def _rank(finding: Finding, checks: Mapping[str, Check]) -> tuple[int, int, str, str]:
    depth = FAMILIES.index(checks[finding.check_id].family)
    return -finding.severity, depth, finding.check_id, finding.summary


def _find_causes(ranked: Sequence[Finding], checks: Mapping[str, Check]) -> list[int | None]:
    """Return for each finding the index of the one that explains it, a root cause if there is one."""
    explained_by = [[m for m, other in enumerate(ranked) if _explains(other, finding, checks)] for finding in ranked]
    causes: list[int | None] = [None] * len(ranked)
    for n, candidates in enumerate(explained_by):
        possible = [m for m in candidates if not _leads_to(n, m, causes)]
        causes[n] = min(possible, key=lambda m: (bool(explained_by[m]), m), default=None)
    return causes


def _explains(cause: Finding, finding: Finding, checks: Mapping[str, Check]) -> bool:
    """Tell whether `finding` goes when `cause` is mended. Advice explains nothing."""
    other = cause.check_id != finding.check_id and cause.severity is not Severity.INFO
    return other and finding.check_id in checks[cause.check_id].explains


def _leads_to(start: int, end: int, causes: Sequence[int | None]) -> bool:
    """Tell whether `start` is among the causes of `end`, so that two checks that explain each other make no circle."""
    cause: int | None = end
    while cause is not None:
        if cause == start:
            return True
        cause = causes[cause]
    return False


def _roots(ranked: Sequence[Finding], causes: Sequence[int | None]) -> list[list[Finding]]:
    """Return each root cause, with the highest severity of what it explains, followed by that."""
    groups = []
    for n, cause in enumerate(causes):
        if cause is None:
            explained = _explained(n, ranked, causes)
            severity = max(finding.severity for finding in (ranked[n], *(ranked[m] for m in explained)))
            consequences = [
                replace(ranked[m], severity=Severity.INFO, caused_by=ranked[causes[m] or 0].check_id) for m in explained
            ]
            groups.append([replace(ranked[n], severity=severity), *consequences])
    return groups


def _explained(root: int, ranked: Sequence[Finding], causes: Sequence[int | None]) -> list[int]:
    """Return the findings that `root` explains, directly or not, each after its own cause."""
    found: list[int] = []
    for n, cause in enumerate(causes):
        if cause == root:
            found += [n, *_explained(n, ranked, causes)]
    return found
