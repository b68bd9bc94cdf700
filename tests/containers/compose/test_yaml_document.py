"""YAML as Docker Compose v2 reads it."""

from typing import Any

import pytest

from gpudoctor.containers.compose import yaml_document
from gpudoctor.containers.compose.yaml_document import parse_yaml, text_of


def parsed(text: str) -> Any:
    return parse_yaml(text.encode(), "f.yaml")


@pytest.mark.parametrize(
    ("text", "content"),
    [
        pytest.param("yes", "yes", id="yes is a text"),
        pytest.param("on", "on", id="on is a text"),
        pytest.param("True", True, id="true"),
        pytest.param("22:22", "22:22", id="no base of sixty"),
        pytest.param("0644", 0o644, id="octal as in C"),
        pytest.param("0o17", 15, id="octal"),
        pytest.param("0x1F", 31, id="hexadecimal"),
        pytest.param("089", 89.0, id="no octal: a number with a leading zero"),
        pytest.param("1_000", 1000, id="underscores"),
        pytest.param("3.10", 3.1, id="float"),
        pytest.param("1e3", 1000.0, id="exponent"),
        pytest.param("1.2.3", "1.2.3", id="a version is a text"),
        pytest.param("~", None, id="null"),
        pytest.param("2024-01-31", "2024-01-31", id="a date is a text"),
        pytest.param("'3.10'", "3.10", id="in quotes"),
        pytest.param("!!str 3.10", "3.10", id="told to be a text"),
        pytest.param("!!int 0x1F", 31, id="told to be a whole number"),
        pytest.param("!!float 3.5", 3.5, id="told to be a number"),
        pytest.param("!!bool true", True, id="told to be yes or no"),
        pytest.param("!!null ~", None, id="told to be nothing"),
        pytest.param("!!seq [a]", ["a"], id="told to be a list"),
        pytest.param("!!map {a: b}", {"a": "b"}, id="told to be a mapping"),
        pytest.param("", None, id="empty document"),
    ],
)
def test_scalar(text: str, content: object) -> None:
    found = parsed(text)
    assert (found, type(found)) == (content, type(content))


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("1e20", "100000000000000000000"),
        ("1e21", "1e+21"),
        ("true", "true"),
        ("3.10", "3.1"),
        ("1.0", "1"),
        ("0644", "420"),
        ("yes", "yes"),
        ("", ""),
        ("2.5e-7", "2.5e-07"),
    ],
)
def test_text_is_as_compose_v2_writes_it(text: str, written: str) -> None:
    assert text_of(parsed(text)) == written


def test_merge_keys() -> None:
    root = parsed("x: &x {a: 1, b: 1}\ny: &y {b: 2, c: 2}\nz: {<<: [*x, *y], a: 3}\n")
    assert root["z"] == {"a": 3, "b": 1, "c": 2}


def test_several_merge_keys() -> None:
    text = "a: &a {x: 1}\nb: &b {y: 2}\nc:\n  <<: *a\n  <<: *b\n  z: 3\n"
    assert parse_yaml(text.encode(), "x")["c"] == {"x": 1, "y": 2, "z": 3}


def test_a_deep_document() -> None:
    found = parsed("[" * 60 + "1" + "]" * 60)
    while isinstance(found, list):
        (found,) = found
    assert found == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("a: 1\nb: [\n", "f.yaml: line 3: ", id="open bracket"),
        pytest.param("a: 1\n\tb: 1\n", "f.yaml: line 2: ", id="tab"),
        pytest.param("a: 1\nb: 2\na: 3\n", "f.yaml: line 1: the key 'a' is duplicated", id="key twice"),
        pytest.param("a:\n  b: !!python/object:os.system x\n", "f.yaml: line 2: the tag", id="tag of Python"),
        pytest.param("a: !x 1\n", "f.yaml: line 1: the tag '!x' is not supported", id="unknown tag"),
        pytest.param("a: !!binary aGk=\n", "f.yaml: line 1: the tag 'binary'", id="tag of YAML"),
        pytest.param("a: *b\n", "f.yaml: line 1: found undefined alias", id="unknown alias"),
        pytest.param("a: 1\n---\nb: 1\n", "f.yaml: line 2: but found another document", id="two documents"),
        pytest.param("a: \x01\n", "f.yaml: unacceptable character", id="control character"),
        pytest.param("a: 1\nb: !reset []\n", "f.yaml: line 2: the tag '!reset'", id="tag of compose"),
        pytest.param("? {a: 1}\n: 1\n", "f.yaml: line 1: found unhashable key", id="a mapping as a key"),
        pytest.param("<<: 1\n", "f.yaml: line 1: expected a mapping", id="merge key of a number"),
    ],
)
def test_error_names_file_and_line(text: str, message: str) -> None:
    with pytest.raises(ValueError, match="(?s)^" + message.replace("[", r"\[")):
        parsed(text)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            "a: &a [x, x, x, x, x, x, x, x, x]\n"
            + "".join(f"{b}: &{b} [{', '.join(['*' + a] * 9)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)),
            id="aliases of aliases",
        ),
        pytest.param(
            "a: &a {k: v}\n" + "b: &b\n  <<: [" + "*a, " * 60 + "]\n" + "c: [" + "*b, " * 2000 + "]\n", id="merges"
        ),
        pytest.param("a: &a [*a]\n", id="an alias of itself"),
        pytest.param("[" * 5000 + "]" * 5000, id="deep"),
    ],
)
def test_bombs_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="too deep|values, with aliases|undefined alias"):
        parsed(text)


def test_a_large_file_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_document, "MAXIMUM_BYTES", 5)
    assert parsed("a: 12") == {"a": 12}
    with pytest.raises(ValueError, match="larger than 5 bytes"):
        parsed("a: 123")
