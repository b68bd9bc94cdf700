"""Findings in, the same findings out: root cause first, what it explains after it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from gpudoctor.model import Finding, Severity
from gpudoctor.registry import FAMILIES, Check


def diagnose(
    findings: Iterable[Finding], checks: Mapping[str, Check], severities: Mapping[str, Severity] | None = None
) -> tuple[Finding, ...]:
    """Return the findings in the order in which to fix them.

    A finding that another one explains gets `caused_by`, becomes `INFO` (one fault is one error) and comes right
    after its cause, which takes over the severity. An unmet requirement stays an error there. Causes are ordered by
    severity, then by the depth of their family: driver before torch.

    severities: check id → severity that its findings have by the user's choice, whatever follows from them.
    """
    ranked = sorted(findings, key=lambda finding: _rank(finding, checks))
    causes = _find_causes(ranked, checks)
    ordered: list[Finding] = []
    for group in sorted(_groups(ranked, causes, severities or {}), key=lambda group: _rank_of_worst(group, checks)):
        ordered.extend(group)
    return tuple(ordered)


def _rank(finding: Finding, checks: Mapping[str, Check]) -> tuple[int, int, str, str]:
    depth = FAMILIES.index(checks[finding.check_id].family)
    return -finding.severity, depth, finding.check_id, finding.summary


def _rank_of_worst(group: Sequence[Finding], checks: Mapping[str, Check]) -> tuple[int, int, str, str]:
    return _rank(replace(group[0], severity=max(finding.severity for finding in group)), checks)


def _find_causes(ranked: Sequence[Finding], checks: Mapping[str, Check]) -> list[int | None]:
    """Return for each finding the index of the one that explains it, a root cause if there is one."""
    explained_by = [[m for m, other in enumerate(ranked) if _explains(other, finding, checks)] for finding in ranked]
    causes: list[int | None] = [None] * len(ranked)
    for n, candidates in enumerate(explained_by):
        possible = [m for m in candidates if not _leads_to(n, m, causes)]
        causes[n] = min(
            possible, key=lambda m: (ranked[m].severity is Severity.INFO, bool(explained_by[m]), m), default=None
        )
    return causes


def _explains(cause: Finding, finding: Finding, checks: Mapping[str, Check]) -> bool:
    """Return whether `finding` disappears when `cause` is fixed. Advice explains only a requirement that it names."""
    is_advice = cause.severity is Severity.INFO and cause.check_id not in finding.same_fault_as
    other = cause.check_id != finding.check_id and not is_advice
    # What is found in a container seen from outside explains what is in the same one; the machine is everywhere.
    containers = _containers_of(cause)
    if not other or (containers and containers.isdisjoint(_containers_of(finding))):
        return False
    explains = checks[cause.check_id].explains
    return finding.check_id in explains or any(fault in (cause.check_id, *explains) for fault in finding.same_fault_as)


def _containers_of(finding: Finding) -> set[str]:
    """Return the containers that the finding is about: "containers.setups[0"."""
    return {fact.partition("]")[0] for fact in finding.facts if fact.startswith("containers.setups[")}


def _leads_to(start: int, end: int, causes: Sequence[int | None]) -> bool:
    """Return whether `start` is among the causes of `end`: two checks that explain each other make no circle."""
    cause: int | None = end
    while cause is not None:
        if cause == start:
            return True
        cause = causes[cause]
    return False


def _groups(
    ranked: Sequence[Finding], causes: Sequence[int | None], severities: Mapping[str, Severity]
) -> list[list[Finding]]:
    """Return each root cause, with its chosen severity or the highest of what it explains, followed by that."""
    chosen = [severities.get(finding.check_id, finding.severity) for finding in ranked]
    groups = []
    for n, cause in enumerate(causes):
        if cause is None:
            explained = _explained(n, ranked, causes)
            severity = severities.get(ranked[n].check_id, max(chosen[m] for m in (n, *explained)))
            groups.append([replace(ranked[n], severity=severity)])
            for m in explained:
                own = ranked[m].severity if ranked[m].same_fault_as else Severity.INFO
                groups[-1].append(replace(ranked[m], severity=own, caused_by=ranked[causes[m] or 0].check_id))
    return groups


def _explained(root: int, ranked: Sequence[Finding], causes: Sequence[int | None]) -> list[int]:
    """Return the findings that `root` explains, directly or not, each after its own cause."""
    found: list[int] = []
    for n, cause in enumerate(causes):
        if cause == root:
            found += [n, *_explained(n, ranked, causes)]
    return found
