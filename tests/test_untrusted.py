"""Texts of other programs are shown in one line, without a character that acts on a terminal, and bounded."""

import pytest

from gpudoctor.untrusted import LONGEST_LINE, MAXIMUM_CHARACTERS, MAXIMUM_ITEMS, clean, cleaned, readable_lines


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("NVIDIA GeForce RTX 4090 °C", "NVIDIA GeForce RTX 4090 °C", id="plain text stays"),
        pytest.param("\x1b[2Jcleared", r"\x1b[2Jcleared", id="terminal escape"),
        pytest.param("a\nb\tc\rd\0", r"a\nb\tc\rd\x00", id="control characters"),
        pytest.param("\x9b31m", r"\x9b31m", id="8-bit escape"),
        pytest.param("user\u202egnp.exe", r"user\u202egnp.exe", id="text direction override"),
        pytest.param("zero\u200bwidth", r"zero\u200bwidth", id="invisible character"),
        pytest.param("\udc80", r"\udc80", id="undecodable byte"),
    ],
)
def test_clean_shows_what_would_act_on_the_terminal(text: str, shown: str) -> None:
    assert clean(text) == shown


def test_clean_cuts_a_long_text_and_says_so() -> None:
    assert clean("x" * 1000, 10) == "xxxxxxxxxx... (1000 characters)"
    assert clean("\x1b" * 10, 10) == r"\x1b" * 10
    assert clean("x" * 1000, None) == "x" * 1000


def test_cleaned_reaches_every_text_of_an_answer() -> None:
    answer = {"name": " NVIDIA\n\tH200\x1b[2J ", "sizes": [1, None, True], "nested": [{"uuid": "\u200bGPU-1"}]}
    assert cleaned(answer) == {"name": "NVIDIA H200[2J", "sizes": [1, None, True], "nested": [{"uuid": "GPU-1"}]}


def test_cleaned_bounds_texts_and_lists() -> None:
    longest = "x" * MAXIMUM_CHARACTERS
    assert cleaned(longest) == longest
    assert cleaned(longest + "x") == longest[:-3] + "..."
    assert cleaned(list(range(MAXIMUM_ITEMS + 1))) == list(range(MAXIMUM_ITEMS))
    assert cleaned(" " * (4 * MAXIMUM_CHARACTERS - 1) + "x") == "x"
    assert cleaned(" " * (4 * MAXIMUM_CHARACTERS) + "x") == ""


@pytest.mark.parametrize(
    ("raw", "lines"),
    [
        pytest.param("\x1b[31mred\x1b[0m\x07", ("red",), id="colours and control characters"),
        pytest.param("one\r\ntwo\rthree#012four", ("one", "two", "three", "four"), id="ends of lines"),
        pytest.param("> quoted\n│ framed", ("quoted", "framed"), id="quote marks and frames"),
        pytest.param(">>> import torch\n  indented", ("import torch", "  indented"), id="a prompt; indentation stays"),
        pytest.param("user@host:~$ nvidia-smi", ("nvidia-smi",), id="prompt of a shell"),
        pytest.param("```\ncode\n```", ("code",), id="fences"),
        pytest.param("``` python\ncode\n~", ("code", "~"), id="a fence with a language"),
        pytest.param(
            "```RuntimeError: out of memory\nx\n", ("RuntimeError: out of memory", "x", ""), id="text on a fence"
        ),
        pytest.param("x" * (LONGEST_LINE + 1), ("x" * LONGEST_LINE,), id="a long line is cut"),
    ],
)
def test_readable_lines(raw: str, lines: tuple[str, ...]) -> None:
    assert readable_lines(raw) == lines
