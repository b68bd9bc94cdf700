"""Whether the author of a pasted report has a fault now."""

from gpudoctor.data.word_networks import answers
from gpudoctor.model import Concern, Resemblance
from gpudoctor.symptoms import Symptoms, of_kind

NETWORK = "concern_weights"
NO_FAULT = ""
PROBABLE = 0.5
"""From this probability on an author probably has no fault now.

Chosen with 180 reports that were not learned from: of 134 causes that come first, 0.35 loses three and 0.5 none
(2026-11-29).
"""

LEAST_WORDS = 15
"""Known words without which words show no concern: a few lines of a log."""

LEAST = 1e-3


def concern(words: tuple[str, ...] | None, resemblance: Resemblance, symptoms: Symptoms = None) -> Concern:
    """Return how probable it is that the author of a report has no fault now.

    The words that distinguish causes and the phrases that distinguish concerns count alike. They are English, so they
    say nothing about a remark in another language. An author who asks what is wrong has a fault. One who computes on
    the CPU on purpose has none.
    """
    in_other_language = any("language" in remark.names for remark in of_kind(symptoms, "asks-remark"))
    if in_other_language or of_kind(symptoms, "fault-now-reported"):
        return Concern()
    if of_kind(symptoms, "topic-cpu-on-purpose"):
        return Concern(no_fault=True, share=1.0)
    shares = answers(NETWORK, words or ())
    if not shares or resemblance.known < LEAST_WORDS or not resemblance.by_person:
        return Concern()
    odds = _odds(shares[NO_FAULT]) * _odds(resemblance.shares.get(NO_FAULT, 0.5))
    share = odds / (1 + odds)
    return Concern(no_fault=share > PROBABLE, share=share)


def _odds(share: float) -> float:
    return (share + LEAST) / (1 - share + LEAST)
