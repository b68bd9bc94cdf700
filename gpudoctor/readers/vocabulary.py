"""The words of a report that distinguish causes: those in gpudoctor/data/word_weights.json."""

import re

from gpudoctor.data.tables import load_table

LONGEST = 4000
"""Characters of a text that are read: people describe their problem at its beginning."""

_NUMBER = re.compile(r"\d+")
_WORD = re.compile(r"[a-zà-ÿ_#]{2,30}|[\u0400-\u04ff]{3,30}|[\u3040-\u30ff\u4e00-\u9fff]{2}")


def words_in(lowered: str) -> frozenset[str]:
    """Return the words of a text in lower case. Numbers are "#": "cu118" is "cu#". Chinese has no spaces: pairs."""
    return frozenset(_WORD.findall(_NUMBER.sub("#", lowered[:LONGEST])))


def known_words(lowered: str) -> tuple[str, ...]:
    """Return those words of a text that are in the table, in alphabetical order."""
    return tuple(sorted(words_in(lowered) & load_table("word_weights")["words"].keys()))
