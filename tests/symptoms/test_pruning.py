"""A pruned pattern finds in its text what the whole pattern finds there."""

import re

import pytest

from gpudoctor.readers.text import clean_text
from gpudoctor.symptoms.matching import CAPITALS, CASED, LOWER, REFERENCE
from gpudoctor.symptoms.pruning import pruned, words_of
from gpudoctor.symptoms.tables import failure_messages
from tests.readers import pasted

WRITTEN = {pattern for row in failure_messages() for pattern in (row.pattern, row.unless, *row.near) if pattern}
PATTERNS = sorted(
    CAPITALS.sub(lambda match: match[1] or match[0].lower(), pattern)
    for pattern in WRITTEN
    if CASED not in pattern and REFERENCE not in pattern
)


@pytest.mark.parametrize(
    ("pattern", "text", "left"),
    [
        pytest.param("gpu|card", "my card", "card", id="an alternative"),
        pytest.param("my (?:gpu|card|cpu)s?", "my card", "my (?:card)s?", id="in a group, and an optional letter"),
        pytest.param("no (?:gpu|tpu)|card", "no card", "card", id="the alternative whose group has nothing left"),
        pytest.param("card(?: gpu)?(?:s|z){0,2}", "card", "card", id="optional groups"),
        pytest.param("card(?: gpu)+|my", "my card", "my", id="a group that is repeated"),
        pytest.param("(?:my|the){1,2} card", "the card", "(?:the){1,2} card", id="how often stays"),
        pytest.param("(?!no|not) card", " card", " card", id="what must not follow"),
        pytest.param("(?!nope) card", " card", " card", id="what must not follow and cannot"),
        pytest.param("(?<!gpu )card", "card", "card", id="what must not stand before and cannot"),
        pytest.param("card(?: gpu)*", "card", "card", id="as often as there is one"),
        pytest.param("card(?= gpu)|my", "my card", "my", id="what must follow and cannot"),
        pytest.param("card(?= gpu| here)", "card here", "card(?= here)", id="what must follow"),
        pytest.param("(?<!gpu )(?<!the )card", "the card", "(?<!the )card", id="what must not stand before"),
        pytest.param(r"v\.1|v\.2", "v.2", r"v\.2", id="a sign that is written with a backslash"),
        pytest.param(r"[(|)]a\d+|\|b", "(a1", r"[(|)]a\d+", id="signs in a class"),
        pytest.param("(?P<one>a)b|(?P<two>c)", "ab", "(?P<one>a)b", id="groups with names"),
        pytest.param(r"d\\d", r"d\d", r"d\\d", id="a backslash"),
        pytest.param("gpu", "card", "(?!)", id="nothing"),
    ],
)
def test_what_is_left(pattern: str, text: str, left: str) -> None:
    assert pruned(pattern, words_of(text)[1]) == left


@pytest.mark.parametrize("text", ["no gpu", "gpu", "a", "", "a\\no"])
@pytest.mark.parametrize("words", ["no", "gpu", "o gpu", "no gpu", "no gpus", "ngpu", "GPU", "\\n"])
def test_words_of_a_text(text: str, words: str) -> None:
    assert words_of(text)[1](words) == (words.lower() in text)


def test_a_pattern_whose_words_are_all_there_stays_whole() -> None:
    assert [pattern for pattern in PATTERNS if pruned(pattern, lambda words: True) != pattern] == []


@pytest.mark.parametrize("number", range(len(pasted.ALL)))
def test_the_same_is_found(number: int) -> None:
    lowered = clean_text([*pasted.ALL.values()][number], "text").flat.translate(LOWER)
    for pattern in PATTERNS[number % 5 :: 5]:
        left = pruned(pattern, words_of(lowered)[1])
        assert shown(left, lowered) == shown(pattern, lowered)


def shown(pattern: str, text: str) -> list[tuple[object, ...]]:
    found = re.compile(pattern, re.ASCII).finditer(text)
    return [(match.span(), {name: value for name, value in match.groupdict().items() if value}) for match in found]
