"""The words and phrases of a report that distinguish causes and concerns: those in gpudoctor/data/*_weights.json."""

import re
from itertools import pairwise

from gpudoctor.data.tables import load_table

LONGEST = 4000
"""Characters of a text that are read: people describe their problem at its beginning."""

_NUMBER = re.compile(r"\d+")
_WORD = re.compile(r"[a-zà-ÿ_#]{2,30}|[\u0400-\u04ff]{3,30}|[\u3040-\u30ff\u4e00-\u9fff]{2}")
_NEIGHBOUR = re.compile(r"[a-zà-ÿ_#']{1,30}|[\u0400-\u04ff]{1,30}|[\u3040-\u30ff\u4e00-\u9fff]|[?!:]")


def words_in(lowered: str) -> frozenset[str]:
    """Return the words of a text in lower case. Numbers are "#": "cu118" is "cu#". Chinese has no spaces: pairs."""
    return frozenset(_WORD.findall(_read(lowered)))


def phrases_in(lowered: str) -> frozenset[str]:
    """Return the words of a text in lower case, short ones and marks too, and each with its neighbour: "works+now"."""
    words = _NEIGHBOUR.findall(_read(lowered))
    return frozenset((*words, *map("+".join, pairwise(words))))


def known_words(lowered: str) -> tuple[str, ...]:
    """Return those words and phrases of a text that are in the tables, in alphabetical order."""
    words = words_in(lowered) & load_table("word_weights")["words"].keys()
    phrases = phrases_in(lowered) & load_table("concern_weights")["words"].keys()
    return tuple(sorted(words | phrases))


def is_known(word: str) -> bool:
    """Return whether one of the reports that were learned from has this word, in lower case."""
    return any(word in load_table(name)["words"] for name in ("word_weights", "concern_weights"))


def _read(lowered: str) -> str:
    return _NUMBER.sub("#", lowered[:LONGEST])
