"""Neural networks of words: the tables `word_weights` and `concern_weights`, learned by `python -m tests.learn_words`.

A network has one hidden layer. Its inputs are the words that a text has, its outputs how probable each answer is.
"""

import math
from array import array
from binascii import a2b_base64
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gpudoctor.data.tables import load_table


def answers(name: str, words: Iterable[str]) -> dict[str, float]:
    """Return how probable each answer of the network `name` is, the most probable first; {} without known words."""
    table = load_table(name)
    known = _known(table, words)
    if not known:
        return {}
    summed = _summed(table, known)
    scores = {
        answer: start + _score(summed, _weights(row), table)
        for (answer, row), start in zip(table["answers"].items(), table["start"], strict=True)
    }
    return _shares(scores)


def telling(name: str, words: Iterable[str], answer: str) -> tuple[str, ...]:
    """Return the words that speak for an answer, those that speak most for it first."""
    table = load_table(name)
    known, row = _known(table, words), _weights(table["answers"][answer])
    if not known:
        return ()
    summed = _summed(table, known)
    unit = table["word_unit"]
    without = {
        word: _score([total - unit * weight for total, weight in zip(summed, weights, strict=True)], row, table)
        for word, weights in known.items()
    }
    least = _score(summed, row, table)
    return tuple(sorted((word for word in known if without[word] < least), key=lambda word: without[word]))


def _known(table: Mapping[str, Any], words: Iterable[str]) -> dict[str, Sequence[int]]:
    return {word: _weights(table["words"][word]) for word in words if word in table["words"]}


def _weights(encoded: str) -> Sequence[int]:
    return array("b", a2b_base64(encoded))


def _summed(table: Mapping[str, Any], known: Mapping[str, Sequence[int]]) -> list[float]:
    """Return the inputs of the hidden units."""
    unit = table["word_unit"]
    return [start + unit * sum(column) for start, *column in zip(table["hidden_start"], *known.values(), strict=True)]


def _score(summed: Sequence[float], row: Sequence[int], table: Mapping[str, Any]) -> float:
    """Return what the hidden units say for an answer. summed: their inputs; a negative one counts as zero."""
    unit: float = table["answer_unit"]
    return unit * sum(total * weight for total, weight in zip(summed, row, strict=True) if total > 0)


def _shares(scores: Mapping[str, float]) -> dict[str, float]:
    """Return the probability of each answer, the most probable first (softmax)."""
    highest = max(scores.values())
    total = sum(math.exp(score - highest) for score in scores.values())
    ranked = sorted(scores, key=lambda answer: -scores[answer])
    return {answer: math.exp(scores[answer] - highest) / total for answer in ranked}
