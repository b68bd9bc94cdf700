"""Answers that are on their way."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gpudoctor.probes.host import Answer
from gpudoctor.probes.local_host import Arriving

FIRST, SECOND = Answer(state="ok", facts={"a": 1}), Answer(state="failed")


def test_a_lookup_waits_for_no_more_than_it_needs() -> None:
    came: list[str] = []

    def coming() -> Iterator[tuple[str, Answer]]:
        for name, answer in (("first", FIRST), ("second", SECOND)):
            came.append(name)
            yield name, answer

    answers = Arriving(["first", "second"], coming())
    assert answers["first"] == FIRST
    assert came == ["first"]
    assert answers["second"] == SECOND
    assert answers["first"] == FIRST


def test_what_was_not_asked_is_not_there() -> None:
    answers = Arriving(["first"], iter([("first", FIRST)]))
    assert answers.get("other") is None
    with pytest.raises(KeyError):
        answers["other"]
    assert dict(answers) == {"first": FIRST}


def test_all_of_them() -> None:
    answers = Arriving(["first", "second"], iter([("second", SECOND), ("first", FIRST)]))
    assert len(answers) == 2
    assert dict(answers) == {"first": FIRST, "second": SECOND}
