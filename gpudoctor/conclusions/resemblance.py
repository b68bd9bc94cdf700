"""Which confirmed reports the words of a pasted report resemble."""

import math
from array import array
from binascii import a2b_base64
from collections.abc import Mapping, Sequence
from typing import Any

from gpudoctor.data.tables import load_table
from gpudoctor.model import Resemblance

WORDS_SHOWN = 4


def resemblance(words: tuple[str, ...] | None) -> Resemblance:
    """Return how probable each cause is by the words (a neural network with one hidden layer).

    Of 238 new sick reports of which neither words nor rules were made, the words alone name the cause first for 84 %,
    and among three for 94 % (2026-11-29).
    """
    table = load_table("word_weights")
    known = {word: _weights(table["words"][word]) for word in words or () if word in table["words"]}
    if not known:
        return Resemblance()
    unit = table["word_unit"]
    summed = [start + unit * sum(column) for start, *column in zip(table["hidden_start"], *known.values(), strict=True)]
    causes = {cause: _weights(row) for cause, row in table["causes"].items()}
    scores = {
        cause: start + _score(summed, row, table)
        for (cause, row), start in zip(causes.items(), table["start"], strict=True)
    }
    shares = _shares(scores)
    first = next((cause for cause in shares if cause), "")
    without = {
        word: _score([total - unit * weight for total, weight in zip(summed, row, strict=True)], causes[first], table)
        for word, row in known.items()
    }
    least = _score(summed, causes[first], table)
    telling = sorted((word for word in known if without[word] < least), key=lambda word: without[word])
    return Resemblance(shares=shares, words=tuple(telling[:WORDS_SHOWN]))


def _weights(encoded: str) -> Sequence[int]:
    return array("b", a2b_base64(encoded))


def _score(summed: Sequence[float], row: Sequence[int], table: Mapping[str, Any]) -> float:
    """Return what the hidden units say for a cause. summed: their inputs; a negative one counts as zero."""
    unit: float = table["cause_unit"]
    return unit * sum(total * weight for total, weight in zip(summed, row, strict=True) if total > 0)


def _shares(scores: Mapping[str, float]) -> dict[str, float]:
    """Return the probability of each cause, the most probable first (softmax)."""
    highest = max(scores.values())
    total = sum(math.exp(score - highest) for score in scores.values())
    ranked = sorted(scores, key=lambda cause: -scores[cause])
    return {cause: math.exp(scores[cause] - highest) / total for cause in ranked}
