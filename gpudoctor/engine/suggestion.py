"""What people's words add to what the checks found in a report."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from gpudoctor.conclusions import Facts
from gpudoctor.engine.verdict import is_of_program
from gpudoctor.model import Finding, Severity
from gpudoctor.registry import Check
from gpudoctor.triage.features import features
from gpudoctor.triage.likely_cause import (
    CERTAIN,
    GUESSED,
    UNCERTAIN,
    Needed,
    by_words,
    guess_of,
    likeliest,
    needed,
    probable,
)

EFFECTS = {"torch-cuda-unavailable", "cuda-no-device"}
"""Checks whose findings say that the GPU is not used, and leave open why."""

DOUBTFUL = 0.95
"""If nothing is wrong with this probability and no message is an error, what is not certain does not count."""


def suggested(facts: Facts, findings: Sequence[Finding], checks: Sequence[Check]) -> Finding | None:
    """Return the cause that words suggest: instead of a finding, or behind the first one. None if they add nothing."""
    counting = [finding for finding in findings if finding.severity]
    first = next((finding for finding in counting if finding.check_id not in EFFECTS), None)
    found = _without_finding(facts, counting) if first is None else _behind(facts, first, checks)
    return found if found is not None and found.check_id not in {finding.check_id for finding in counting} else None


def without_doubtful(facts: Facts, findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Return the findings, those as advice that are not certain although the words are of a machine that works."""
    known: frozenset[str] = facts.call(features)
    if "error" in known or _shares(facts).get("", 0.0) <= DOUBTFUL:
        return tuple(findings)
    return tuple(finding if finding.certain else replace(finding, severity=Severity.INFO) for finding in findings)


def _shares(facts: Facts) -> Mapping[str, float]:
    shares: Mapping[str, float] = facts.call(by_words)
    return shares


def _without_finding(facts: Facts, effects: Sequence[Finding]) -> Finding | None:
    """Return the likely cause if no check found one. effects: findings that leave the cause open."""
    known: frozenset[str] = facts.call(features)
    guess = guess_of(facts.get("symptoms"))
    if guess is None and facts.call(is_of_program, findings=effects):
        return None
    shares = _shares(facts)
    demand: Needed | None = facts.call(needed, features=known, effect=bool(effects), guessed=guess is not None)
    if demand is None or shares.get("", 0.0) > demand.well:
        return None
    cause, share = likeliest(shares, known, {guess.check_id: GUESSED} if guess else {})
    named = share >= demand.share and (guess is None or cause != guess.check_id)
    return probable(cause) if named else guess


def _behind(facts: Facts, first: Finding, checks: Sequence[Check]) -> Finding | None:
    """Return the likely cause if it is another one than the first finding. What is certain it has to explain."""
    times = CERTAIN if first.certain else UNCERTAIN
    cause, _ = likeliest(_shares(facts), facts.call(features), {first.check_id: times})
    explains = {check.id: check.explains for check in checks}
    mutual = cause in explains.get(first.check_id, ())
    if cause == first.check_id or mutual or (first.certain and first.check_id not in explains.get(cause, ())):
        return None
    likely = probable(cause)
    return replace(likely, facts=(*first.facts, *likely.facts))
