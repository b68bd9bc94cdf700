"""Whether the author of a pasted report has a fault now."""

from gpudoctor.data.word_networks import answers, telling
from gpudoctor.model import Concern, Resemblance

NETWORK = "concern_weights"
NO_FAULT = ""
OF_CAUSES = 1.0
"""Weight of what the words say that distinguish causes, beside the phrases that distinguish concerns."""

PROBABLE = 0.8
"""From this probability on an author probably has no fault now."""

LEAST_WORDS = 10
"""Known words without which words do not tell a concern: a few lines of a log."""

LEAST = 1e-3
WORDS_SHOWN = 4


def concern(words: tuple[str, ...] | None, resemblance: Resemblance) -> Concern:
    """Return how probable it is, by words and phrases, that a report tells of no fault that its author has now."""
    shares = answers(NETWORK, words or ())
    if not shares or resemblance.known < LEAST_WORDS:
        return Concern()
    odds = _odds(shares[NO_FAULT]) * _odds(resemblance.shares.get(NO_FAULT, 0.5)) ** OF_CAUSES
    shown = (word for word in telling(NETWORK, words or (), NO_FAULT) if len(word) > 1)
    share = odds / (1 + odds)
    phrases = tuple(word.replace("+", " ") for word in shown)
    return Concern(no_fault=share > PROBABLE, share=share, words=phrases[:WORDS_SHOWN])


def _odds(share: float) -> float:
    return (share + LEAST) / (1 - share + LEAST)
