"""Variables and quotes in the words of a Dockerfile."""

import pytest

from gpudoctor.containers.builds import expansion
from gpudoctor.containers.builds.expansion import expand

VARIABLES = {"NAME": "app", "EMPTY": "", "A1": "x"}


@pytest.mark.parametrize(
    ("word", "expanded"),
    [
        ("$NAME/b", "app/b"),
        ("${NAME}b", "appb"),
        ("$A1b$UNSET.", "."),
        ("${UNSET:-c}", "c"),
        ("${UNSET-c}", "c"),
        ("${EMPTY:-c}", "c"),
        ("${EMPTY-c}", ""),
        ("${NAME:+c}", "c"),
        ("${EMPTY:+c}", ""),
        ("${EMPTY+c}", "c"),
        ("${UNSET:-${NAME:-x}}", "app"),
        ("${NAME:?no}", "app"),
        (r"\$NAME", "$NAME"),
        ("'$NAME'", "$NAME"),
        ("''a", "a"),
        ("a'b'c''", "abc"),
        ('""a', "a"),
        ('"$NAME b"', "app b"),
        (r'"a\"b"', 'a"b'),
        (r'"a\b"', r"a\b"),
        (r'"a\\b"', r"a\b"),
        (r'"\$NAME"', "$NAME"),
        (r"a\b", "ab"),
        ("$", "$"),
        ("a$/b", "a$/b"),
        ("$1st", "st"),
    ],
)
def test_expand(word: str, expanded: str) -> None:
    assert expand(word, VARIABLES) == expanded


def test_another_escape_character() -> None:
    assert expand(r"C:\dir`$NAME", VARIABLES, "`") == r"C:\dir$NAME"


def test_quotes_of_a_here_document_stay() -> None:
    assert expand('echo "it\'s $NAME"', VARIABLES, keep_quotes=True) == 'echo "it\'s app"'


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("${NAME", "is not closed"),
        ("'abc", "' is not closed"),
        ('"abc', '" is not closed'),
        ("${UNSET:?set it}", "UNSET is required: set it"),
        ("${NAME/a/b}", "is not supported"),
        ("${A:-" * 30 + "}" * 30, "nested too deep"),
    ],
)
def test_what_cannot_be_expanded(word: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        expand(word, {"NAME": "app"})


def test_a_word_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expansion, "MAXIMUM_CHARACTERS", 6)
    assert expand("$NAME$NAME", VARIABLES) == "appapp"
    with pytest.raises(ValueError, match="more than 6 characters"):
        expand("$NAME$NAME$A1", VARIABLES)
