"""Variables in the values of a compose file."""

import pytest

from gpudoctor.containers.compose import interpolation
from gpudoctor.containers.compose.interpolation import Interpolation

VARIABLES = {"A": "a", "EMPTY": "", "NAME_2": "n"}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("plain", "plain", id="no variable"),
        pytest.param("$A-${A}", "a-a", id="plain and in braces"),
        pytest.param("$NAME_2.x", "n.x", id="a name ends at the dot"),
        pytest.param("x${NOPE}y$NOPE", "xy", id="unset is empty"),
        pytest.param("$$A $${A} $$$A", "$A ${A} $a", id="two dollars are one"),
        pytest.param("${NOPE:-d}${EMPTY:-d}${A:-d}", "dda", id="default for unset or empty"),
        pytest.param("${NOPE-d}${EMPTY-d}${A-d}", "da", id="default for unset"),
        pytest.param("${NOPE:+o}${EMPTY:+o}${A:+o}", "o", id="other where set and not empty"),
        pytest.param("${NOPE+o}${EMPTY+o}${A+o}", "oo", id="other where set"),
        pytest.param("${A:?text}${EMPTY?text}", "a", id="required and set"),
        pytest.param("${NOPE:-${EMPTY:-${A}}}.", "a.", id="default in a default"),
        pytest.param("${NOPE:-http://x:80/a-b?c}", "http://x:80/a-b?c", id="operators in a default are text"),
        pytest.param("${NOPE:-$$x}", "$x", id="a dollar in a default"),
        pytest.param(r"\$A", r"\a", id="a backslash is no escape"),
        pytest.param("'$A'", "'a'", id="quotes are text"),
    ],
)
def test_value(text: str, value: str) -> None:
    assert Interpolation(VARIABLES).apply(text) == value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("${NOPE:?set it}", "NOPE is required: set it", id="required"),
        pytest.param("${EMPTY:?set it}", "EMPTY is required: set it", id="required and empty"),
        pytest.param("cost: 5$", "is no variable", id="a dollar at the end"),
        pytest.param("$1", "is no variable", id="a digit"),
        pytest.param("${}", "is no variable", id="no name"),
        pytest.param("${A/b/c}", "is no variable", id="an operator of a shell"),
        pytest.param("${A", "is no variable", id="no closing brace"),
        pytest.param("${A:-b", "not closed", id="no closing brace after a default"),
        pytest.param("${A:+" * 30 + "}" * 30, "too deep", id="nested too deep"),
    ],
)
def test_error(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Interpolation(VARIABLES).apply(text)


def test_results_are_bounded_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interpolation, "MAXIMUM_CHARACTERS", 100)
    replaces = Interpolation({"LONG": "x" * 60})
    assert len(replaces.apply("$LONG")) == 60
    with pytest.raises(ValueError, match="more than 100 characters"):
        replaces.apply("$LONG")
