"""What people's words add to what the checks found in a report."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from gpudoctor.conclusions import Facts
from gpudoctor.engine.verdict import is_of_program
from gpudoctor.model import Finding, Resemblance, Severity, Symptom
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

MOST_HEALTHY, ENOUGH_WORDS = 0.8, 24
"""How probable known words may make it that nothing is wrong, so that a row of people's words names a cause.

Of 223 reports that nobody had seen, rows named a cause in four healthy ones with 0.88 or more, and in no sick one with
more than 0.3 (2026-11-29).
"""

HARDLY_HEALTHY = 0.15
"""The same, if the words alone name a cause, and for a guess to be a warning.

Of 288 reports that were not learned from, words alone named the right cause of seven, and a cause of two healthy
machines; with 0.3, of two more. Three of the five guesses that became warnings were right; one was of a healthy machine
(2026-11-29).
"""

MENTIONED = "Mentioned, but probably not present now"

SAYING = ("messages in ", "words in ", "words on containers in ", "kernel log in ", "commands in ", "concluded")
"""How the source of a fact begins that a text says, and that no tool printed as a table of its facts."""


def suggested(facts: Facts, findings: Sequence[Finding], checks: Sequence[Check]) -> Finding | None:
    """Return the cause that words suggest: instead of a finding, or behind the first one. None if they add nothing."""
    counting = [finding for finding in findings if finding.severity or is_guess(finding)]
    first = next((finding for finding in counting if finding.check_id not in EFFECTS), None)
    found = _without_finding(facts, counting, findings) if first is None else _behind(facts, first, checks)
    if found is None or found.check_id in {finding.check_id for finding in counting}:
        return None
    return None if _sounds_healthy(facts) and _by_person(found, facts.get("symptoms")) else found


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


def confirmed_by_words(
    facts: Facts, findings: Sequence[Finding], chosen: Mapping[str, Severity]
) -> tuple[Finding, ...]:
    """Return the findings; guesses are warnings if the words of the report are those of sick machines.

    chosen: check id → severity that the user wants.
    """
    if not _shares(facts) or not _sounds_sick(facts):
        return tuple(findings)
    return tuple(
        replace(f, severity=Severity.WARNING) if is_guess(f) and f.check_id not in chosen else f for f in findings
    )


def is_guess(finding: Finding) -> bool:
    """Return whether a finding is advice only because people's words alone lead to it."""
    return finding.severity is Severity.INFO and not finding.certain and rests_on_words(finding)


def is_mentioned(finding: Finding) -> bool:
    """Return whether a finding is advice only because its author probably has no fault now."""
    return finding.severity is Severity.INFO and finding.summary.startswith(MENTIONED)


def _mentioned(finding: Finding) -> Finding:
    return replace(finding, severity=Severity.INFO, summary=f"{MENTIONED}: {finding.summary}")


def rests_on_words(finding: Finding) -> bool:
    """Return whether a finding rests on nothing but what a text says."""
    return all(item.fact.startswith("symptoms") or item.source.startswith(SAYING) for item in finding.evidence)


def _sounds_healthy(facts: Facts) -> bool:
    """Return whether the words of a report are rather those of a machine on which nothing is wrong."""
    enough = facts.get("resemblance").known >= ENOUGH_WORDS
    return enough and _shares(facts).get("", 0.0) > MOST_HEALTHY


def _sounds_sick(facts: Facts) -> bool:
    """Return whether the words of a report are hardly those of a machine on which nothing is wrong."""
    return _shares(facts).get("", 0.0) <= HARDLY_HEALTHY


def _by_person(finding: Finding, symptoms: Sequence[Symptom] | None) -> bool:
    """Return whether no message of a program is behind a finding."""
    messages = {symptom.fact for symptom in symptoms or () if symptom.library != "user"}
    return messages.isdisjoint(finding.facts)


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
    named = (
        asked and _sounds_sick(facts) and share >= facts.call(least_named) and facts.get("concern").share <= MOST_WELL
    )
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
