"""What people's words add to what the checks found in a report."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from gpudoctor.conclusions import Facts
from gpudoctor.engine.verdict import is_of_program
from gpudoctor.model import Finding, Resemblance, Severity
from gpudoctor.registry import Check
from gpudoctor.triage.features import features
from gpudoctor.triage.likely_cause import (
    CERTAIN,
    GUESSED,
    MOST_WELL,
    UNCERTAIN,
    by_words,
    complains,
    guess_of,
    least_named,
    likeliest,
    probable,
    uses_gpu,
)

EFFECTS = {"torch-cuda-unavailable", "cuda-no-device"}
"""Checks whose findings say that the GPU is not used, and leave open why."""

AGREED = 0.9
"""How probable words make the cause that was found, so that it is more than mentioned."""

MENTIONED = "Mentioned, but probably not present now"

SAYING = ("messages in ", "words in ", "words on containers in ", "kernel log in ", "commands in ", "concluded")
"""How the source of a fact begins that a text says, and that no tool printed as a table of its facts."""


def suggested(facts: Facts, findings: Sequence[Finding], checks: Sequence[Check]) -> Finding | None:
    """Return the cause that words suggest: instead of a finding, or behind the first one. None if they add nothing."""
    counting = [finding for finding in findings if finding.severity or is_guess(finding)]
    first = next((finding for finding in counting if finding.check_id not in EFFECTS), None)
    found = _without_finding(facts, counting, findings) if first is None else _behind(facts, first, checks)
    return found if found is not None and found.check_id not in {finding.check_id for finding in counting} else None


def agreed(findings: Sequence[Finding], resemblance: Resemblance) -> bool:
    """Return whether the words of a report resemble those with the cause that was found: then it is a fault now.

    Of the reports in which something is found, but that sound like no fault, this holds for 3 of 8 sick ones and for
    none of 47 healthy ones, most of which the words were learned from (2026-11-29).
    """
    first = next((finding.check_id for finding in findings if finding.severity is not Severity.INFO), None)
    return first is not None and resemblance.shares.get(first, 0) >= AGREED


def as_advice(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Return the findings, those as advice that rest on nothing but what a text says."""
    return tuple(_mentioned(f) if f.severity and rests_on_words(f) else f for f in findings)


def is_guess(finding: Finding) -> bool:
    """Return whether a finding is advice only because people's words alone lead to it."""
    return finding.severity is Severity.INFO and not finding.certain and rests_on_words(finding)


def _mentioned(finding: Finding) -> Finding:
    return replace(finding, severity=Severity.INFO, summary=f"{MENTIONED}: {finding.summary}")


def rests_on_words(finding: Finding) -> bool:
    """Return whether a finding rests on nothing but what a text says."""
    return all(item.fact.startswith("symptoms") or item.source.startswith(SAYING) for item in finding.evidence)


def _shares(facts: Facts) -> Mapping[str, float]:
    shares: Mapping[str, float] = facts.call(by_words)
    return shares


def _without_finding(facts: Facts, effects: Sequence[Finding], findings: Sequence[Finding]) -> Finding | None:
    """Return the likely cause if no check found one. effects: those of the findings that leave the cause open."""
    known: frozenset[str] = facts.call(features)
    guess = guess_of(facts.get("symptoms"))
    no_sign = not effects and (uses_gpu(known) or not facts.call(complains, features=known))
    if guess is None and (no_sign or facts.call(is_of_program, findings=findings)):
        return None
    cause, share = likeliest(_shares(facts), known, {guess.check_id: GUESSED} if guess else {})
    # A log with a message that nobody knows is no complaint about the GPU.
    asked = bool(effects) or guess is not None or facts.get("resemblance").by_person
    named = asked and share >= facts.call(least_named) and facts.get("concern").share <= MOST_WELL
    return probable(cause) if named and (guess is None or cause != guess.check_id) else guess


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
