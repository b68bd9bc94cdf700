"""Check whether the matcher can have produced a saved symptom: a snapshot file is untrusted input."""

import functools
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from gpudoctor.model import ComputeCapability, CudaVersion, DriverVersion, Symptom
from gpudoctor.symptoms.matching import LONGEST_NAME
from gpudoctor.symptoms.tables import row_of

_OPENING = re.compile(r"\((?:\?(?:P<(?P<name>\w+)>|P=\w+|[:=!>]|<[=!]|[aiLmsux-]+:?))?")
_CLASS = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*\]")
_MAY_BE_ABSENT = re.compile(r"[?*]|\{(?:0?,|0\})")
_CALLED = {"sm": "capability", "cuda_number": "cuda", "wddm": "driver"}
"""Group → the matcher's name for it: it decodes the number into a version."""
_READ: Mapping[str, Callable[[str], object]] = {
    "capability": ComputeCapability.parse,
    "cuda": CudaVersion.parse,
    "driver": DriverVersion.parse,
}


class _Part(NamedTuple):
    """A part of a pattern: the names that it always sets, and its end."""

    always: frozenset[str]
    end: int


def why_invalid(symptom: Symptom) -> str:
    """Return which name the symptom lacks or cannot have, by its row; "" if it is valid."""
    row = row_of(symptom.kind)
    if row is None:
        return ""
    always, groups = _names_of(row.pattern)
    lacking = sorted(always - symptom.names.keys())
    if lacking:
        return f"names no {lacking[0]}"
    wrong = sorted(name for name, value in symptom.names.items() if not _can_be(name, value, groups))
    return f"names an impossible {wrong[0]}" if wrong else ""


def _can_be(name: str, value: str, groups: Mapping[str, tuple[str, ...]]) -> bool:
    """Return whether the matcher can have given the name this value; a group that never stands alone is not checked."""
    if name not in groups:
        return False
    if name in _READ and not groups[name]:
        try:
            _READ[name](value)
        except ValueError:
            return False
        return True
    # The matcher strips and shortens the text of a group.
    spaced = (value, f"{value} ", f" {value}", f" {value} ")
    return len(value) >= LONGEST_NAME or any(_matches(pattern, text) for pattern in groups[name] for text in spaced)


def _matches(pattern: str, text: str) -> bool:
    try:
        return re.fullmatch(pattern, text, re.IGNORECASE | re.ASCII) is not None
    except re.error:
        return True


@functools.cache
def _names_of(pattern: str) -> tuple[frozenset[str], Mapping[str, tuple[str, ...]]]:
    """Return the names that every match of the pattern gives, and name → patterns of its groups.

    A name whose value the matcher rewrites has no patterns.
    """
    groups: dict[str, tuple[str, ...]] = {}
    return _alternatives(pattern, 0, groups).always, groups


def _alternatives(pattern: str, start: int, groups: dict[str, tuple[str, ...]]) -> _Part:
    """Read "a|b|c" up to the bracket that closes it, or the end."""
    branches: list[frozenset[str]] = []
    always: frozenset[str] = frozenset()
    at = start
    while at < len(pattern) and pattern[at] != ")":
        if pattern[at] == "|":
            branches, always, at = [*branches, always], frozenset(), at + 1
        elif pattern[at] == "(":
            part = _group(pattern, at, groups)
            always, at = always | part.always, part.end
        elif pattern[at] == "[" and (found := _CLASS.match(pattern, at)):
            at = found.end()
        else:
            at += 2 if pattern[at] == "\\" else 1
    return _Part(frozenset.intersection(always, *branches), at)


def _group(pattern: str, start: int, groups: dict[str, tuple[str, ...]]) -> _Part:
    opening = _OPENING.match(pattern, start)
    assert opening is not None
    inner = _alternatives(pattern, opening.end(), groups)
    end, always = inner.end + 1, inner.always
    if opening["name"]:
        name, source = opening["name"].rstrip("0123456789"), pattern[opening.end() : inner.end]
        called = _CALLED.get(name, name)
        groups[called] = () if name in _CALLED else (*groups.get(called, ()), source)
        always |= frozenset() if _matches(source, "") else {called}
    absent = _MAY_BE_ABSENT.match(pattern, end) is not None or opening[0] in ("(?!", "(?<!")
    return _Part(frozenset() if absent else always, end)
