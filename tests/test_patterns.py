"""Every expression that is looked for in a whole text takes time in proportion to the text, whatever the text is."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

import pytest

from gpudoctor import privacy, untrusted
from gpudoctor.symptoms.tables import failure_messages

SHORT, LONG = 1_000, 4_000  # characters: a line of 4,000 is the longest that is read
SECONDS, RATIO = 0.01, 8.0  # four times the text: 4 is in proportion, 16 quadratic
COLUMNS = ("a", " ", "0.", "| ", "a/", "-")


def patterns_in(value: Any, depth: int = 3) -> Iterator[str]:
    """Yield compiled expressions, and texts that are written as one: most modules compile a text when it is needed."""
    if isinstance(value, re.Pattern):
        yield value.pattern if isinstance(value.pattern, str) else value.pattern.decode("latin-1")
    elif isinstance(value, str):
        if re.search(r"\\[wdsSbWD]|\(\?|\]\{\d|\][*+]|\.\*", value):
            yield value
    elif depth and isinstance(value, dict):
        for key, item in value.items():
            yield from (*patterns_in(key, depth - 1), *patterns_in(item, depth - 1))
    elif depth and isinstance(value, (list, tuple, set, frozenset)):
        for item in value:
            yield from patterns_in(item, depth - 1)


@cache
def every_pattern() -> tuple[str, ...]:
    """Return what is looked for anywhere in a whole text: messages, keys and names, and what is taken off lines.

    Among them are parts of patterns and sentences, which cannot be compiled.
    """
    rows = failure_messages()
    found = {pattern: None for row in rows for pattern in (row.pattern, row.unless, *row.near) if pattern}
    for module in (privacy, untrusted):
        for name, value in vars(module).items():
            if not name.startswith("__"):
                found |= dict.fromkeys(patterns_in(value))
    for row in privacy._table()["keys"]:
        found |= {f"(?<![A-Za-z0-9]){re.escape(mark)}{row['rest']}": None for mark in row["marks"]}
    found |= dict.fromkeys((*privacy._table()["parts"].values(), *privacy._POSITIONS.values()))
    return tuple(found)


def hostile_texts(pattern: str) -> Iterator[str]:
    """Yield texts to repeat: the pattern's own literals, and what columns, paths and numbers are made of."""
    plain = re.sub(r"\\[bBAZ]|\(\?[a-zA-Z]*[:=!<)]?|\[[^\]]*\]|\{[\d,]*\}|\\[wdsWDS]|[()|?*+^$.]", "\0", pattern)
    literals = [part for part in plain.replace("\\", "").split("\0") if part.strip()]
    literals = literals or ["x"]
    first = literals[0]
    yield from dict.fromkeys((first, f"{first}{' ' * 20}", " ".join(literals[:2]) + " ", *COLUMNS))


def seconds(compiled: re.Pattern[str], text: str) -> float:
    began = time.process_time()
    for number, _ in enumerate(compiled.finditer(text)):
        if number > len(text):
            break
    return time.process_time() - began


def is_slow(compiled: re.Pattern[str], unit: str) -> bool:
    """Return whether the time grows faster than the text, by the least of three times: other programs run too."""
    short, long = ((unit * (size // len(unit) + 1))[:size] + "!" for size in (SHORT, LONG))
    least_long = seconds(compiled, long)
    if least_long <= SECONDS:
        return False
    least_short = min(seconds(compiled, short) for _ in range(3))
    for _ in range(2):  # a single long time is too long if others run, never too short
        if least_long <= max(SECONDS, RATIO * least_short):
            return False
        least_long = min(least_long, seconds(compiled, long))
    return least_long > max(SECONDS, RATIO * least_short)


def slow(patterns: Iterable[str]) -> dict[str, str]:
    found = {}
    for pattern in patterns:
        try:
            compiled = re.compile(pattern)
        except (re.error, OverflowError):
            continue
        unit = next((unit for unit in hostile_texts(pattern) if is_slow(compiled, unit)), None)
        if unit is not None:
            found[pattern] = unit
    return found


def test_the_test_finds_what_is_quadratic() -> None:
    quadratic = {r"(\w+)\s+=", r"(?:a|b)+?c"}
    assert set(slow([*quadratic, r"a{1,20}b"])) == quadratic
    assert slow([r"a{1,20}b", r"(?<!\w)\w{1,60}=", r"CUDA error: \w+"]) == {}


PARTS = 4


@pytest.mark.parametrize("part", range(PARTS))
def test_every_pattern_is_linear_or_bounded(part: int) -> None:
    assert slow(every_pattern()[part::PARTS]) == {}


def test_the_patterns_are_found() -> None:
    assert len(every_pattern()) > 600
