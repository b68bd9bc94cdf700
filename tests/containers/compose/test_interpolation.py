"""Variables in the values of a compose file."""

from pathlib import Path

import pytest

from gpudoctor.containers.compose import interpolation
from gpudoctor.containers.compose.interpolation import Interpolation, read_env_file

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
        pytest.param("cost: 5$", "is not a variable", id="a dollar at the end"),
        pytest.param("$1", "is not a variable", id="a digit"),
        pytest.param("${}", "is not a variable", id="no name"),
        pytest.param("${A/b/c}", "is not supported", id="an operator of a shell"),
        pytest.param("${A", "is not closed", id="no closing brace"),
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


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / ".env"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("A=b", "b", id="plain, without a line's end"),
        pytest.param("\ufeffA=b\r\n", "b", id="byte-order mark and CRLF"),
        pytest.param("# comment\n\n  export A = b \n", "b", id="export, blanks and a comment line"),
        pytest.param("A: b\n", "b", id="as in YAML"),
        pytest.param("A=\n", "", id="empty"),
        pytest.param("A=b c # comment\n", "b c", id="comment behind a value"),
        pytest.param("A=b#c\n", "b#c", id="a hash inside a word"),
        pytest.param("A= #c\n", "#c", id="a hash that begins the value"),
        pytest.param("A='b # $X' # comment\n", "b # $X", id="single quotes keep all"),
        pytest.param(r"A='it\'s'", "it's", id="an escaped single quote"),
        pytest.param('A="b\\n\\"$HOME_IS\\" \\$x"', 'b\n"here" $x', id="double quotes have escapes and variables"),
        pytest.param(r'A="\n\r\t\"\\\$\q"', '\n\r\t"\\$\\q', id="each escape, and what is none"),
        pytest.param('A="b\nc"\n', "b\nc", id="several lines in quotes"),
        pytest.param("B=b\nA=${B}/${C:-c}$HOME_IS\n", "b/chere", id="variables of the file and of the environment"),
        pytest.param("A=1\nA=2\n", "2", id="the last one counts"),
        pytest.param("A=b=c\n", "b=c", id="an equals sign in the value"),
    ],
)
def test_value_in_a_file(text: str, value: str, path: Path) -> None:
    path.write_text(text, encoding="utf-8", newline="")
    assert read_env_file(path, {"HOME_IS": "here"})["A"] == value


def test_a_name_alone_takes_over_what_is_set(path: Path) -> None:
    path.write_text("SET\nUNSET\n")
    assert read_env_file(path, {"SET": "x"}) == {"SET": "x"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("A=1\n=2\n", r"\.env: line 2: NAME=value is expected", id="no name"),
        pytest.param("A=1\n\nB='x\n", r"\.env: line 3: .* a quote is not closed", id="open quote"),
        pytest.param("A='x'y\n", r"\.env: line 1: .* text follows it", id="text behind a quote"),
        pytest.param("A=5$\n", r"\.env: line 1: '\$' is not a variable", id="a plain dollar"),
        pytest.param("A B=1\n", r"\.env: line 1: NAME=value is expected", id="a blank in the name"),
    ],
)
def test_error_names_file_and_line(text: str, message: str, path: Path) -> None:
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        read_env_file(path, {})


def test_values_that_double_are_bounded(path: Path) -> None:
    path.write_text("A=xxxxxxxxxx\n" + "\n".join(["A=$A$A"] * 40))
    with pytest.raises(ValueError, match="characters"):
        read_env_file(path, {})


def test_a_large_file_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interpolation, "MAXIMUM_BYTES", 10)
    path.write_text("A=12345678")
    assert read_env_file(path, {}) == {"A": "12345678"}
    path.write_text("A=123456789")
    with pytest.raises(ValueError, match="larger than 10 bytes"):
        read_env_file(path, {})
