"""Findings on a program that was watched: the largest gain first, and never more than there is to gain."""

from collections.abc import Iterable
from dataclasses import replace

from gpudoctor.conclusions import Facts
from gpudoctor.engine.catalog import load_checks
from gpudoctor.engine.runner import run_with
from gpudoctor.model import Finding, Outcome, Run, Snapshot
from gpudoctor.registry import OF_RUNS

MOST_SAVED = 0.95
"""Of the time, by all findings together: something is always left to compute."""


def findings_of(run: Run) -> tuple[tuple[Finding, ...], tuple[str, ...]]:
    """Return the findings on a run, and the reasons of crashed checks."""
    facts = Facts(Snapshot(run=run))
    results = [run_with(check, facts) for check in load_checks(plugins=False) if check.family == OF_RUNS]
    found = [finding for result in results for finding in result.findings]
    crashed = tuple(f"{r.check_id}: {r.reason}" for r in results if r.outcome is Outcome.CRASHED)
    unused = [finding for finding in found if finding.check_id == UNUSED]
    return tuple(_with_speedups(unused or found)), crashed


SMALL_GAIN = 0.05
"""A smaller saving is not named. It counts as little as one that nothing measured."""

UNUSED = "gpu-never-used"
"""What else is found in a program that leaves the GPU alone is about the CPU."""


def _with_speedups(found: Iterable[Finding]) -> Iterable[Finding]:
    """Yield the findings with the speedup of each. What one saves, none after it saves again."""
    left = MOST_SAVED
    for finding in sorted(found, key=_importance):
        saved, share = finding.details["saved"], finding.details["share"]
        saved = None if saved is None else min(saved, left)
        left -= saved or 0.0
        details = {
            "share": None if share is None else round(share, 3),
            "speedup": None if saved is None else round(1 / (1 - saved), 2),
            "place": finding.details["place"],
        }
        yield replace(finding, details=details)


def _importance(finding: Finding) -> tuple[float, int, float]:
    """Return what sorts the largest measured gain first, then the more severe, then the larger share of the time."""
    saved = finding.details["saved"] or 0.0
    return -(saved if saved >= SMALL_GAIN else 0.0), -finding.severity, -(finding.details["share"] or 0.0)
