"""Files of environment variables."""

from pathlib import Path

import pytest

from gpudoctor.containers.compose import env_file
from gpudoctor.containers.compose.env_file import read_env_file


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
        pytest.param('A="b\nc"\n', "b\nc", id="several lines in quotes"),
        pytest.param("B=b\nA=${B}/${C:-c}$HOME_IS\n", "b/chere", id="variables of the file and of the environment"),
        pytest.param("A=1\nA=2\n", "2", id="the last one counts"),
        pytest.param("A=b=c\n", "b=c", id="an equals sign in the value"),
    ],
)
def test_value(text: str, value: str, path: Path) -> None:
    path.write_text(text, encoding="utf-8", newline="")
    assert read_env_file(path, {"HOME_IS": "here"})["A"] == value


def test_a_name_alone_takes_over_what_is_set(path: Path) -> None:
    path.write_text("SET\nUNSET\n")
    assert read_env_file(path, {"SET": "x"}) == {"SET": "x"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("A=1\n=2\n", r"\.env: line 2: NAME=value is expected", id="no name"),
        pytest.param("A=1\n\nB='x\n", r"\.env: line 3: a quote is not closed", id="open quote"),
        pytest.param("A='x'y\n", r"\.env: line 1: a quote is not closed, or text follows it", id="text behind a quote"),
        pytest.param("A=5$\n", r"\.env: line 1: '\$' is no variable", id="a plain dollar"),
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
    monkeypatch.setattr(env_file, "MAXIMUM_BYTES", 10)
    path.write_text("A=12345678")
    assert read_env_file(path, {}) == {"A": "12345678"}
    path.write_text("A=123456789")
    with pytest.raises(ValueError, match="larger than 10 bytes"):
        read_env_file(path, {})
