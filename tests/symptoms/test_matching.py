"""The matcher searches in lower case, and shows what was written."""

import re

import pytest

from gpudoctor.symptoms.matching import _ASKED, CASED, MOST_PRUNED, _compiled, _lowered, _patterns, left_of, recognise
from gpudoctor.symptoms.pruning import LONG_TEXT
from gpudoctor.symptoms.tables import failure_messages, in_any_order


def test_names_of_groups_and_classes_of_characters_stay() -> None:
    for row in failure_messages():
        pattern = _compiled(left_of(row.pattern, lambda words: True))
        assert pattern.groupindex == row.expression().groupindex, row.id
        assert re.findall(r"\\(.)", pattern.pattern) == re.findall(r"\\(.)", row.pattern), row.id


@pytest.mark.parametrize("gpu", ["rtx 3060", "RTX 3060", "Rtx 3060"])
def test_what_is_found_is_shown_as_it_was_written(gpu: str) -> None:
    shown = [found.symptom.text for found in recognise(f"My {gpu} is fine") if found.row.id == "nvidia-gpu-named"]
    assert shown == [gpu]


def test_a_name_keeps_its_capitals() -> None:
    names = [found.symptom.names for found in recognise("ModuleNotFoundError: No module named 'PIL'")]
    assert any("PIL" in found.values() for found in names)


def test_if_capitals_count_they_do() -> None:
    cased = [row for row in failure_messages() if CASED in row.pattern]
    assert cased
    assert all(left_of(row.pattern, lambda words: False) == row.pattern for row in cased)


def test_a_row_that_is_known_is_not_looked_for_again() -> None:
    text = "RuntimeError: CUDA error: out of memory"
    rows = [found.row.id for found in recognise(text)]
    assert rows
    assert {found.row.id for found in recognise(text, known=rows[:1])} == {*rows[1:]} - {rows[0]}


def test_a_pattern_that_several_texts_asked_for_is_compiled_whole() -> None:
    pattern = "gpu is|card is"
    _ASKED.pop(pattern, None)
    asked = [left_of(pattern, "card is".__eq__) for _ in range(MOST_PRUNED + 1)]
    assert asked == ["card is"] * MOST_PRUNED + [pattern]
    assert asked[-1] is _lowered(pattern)


def test_a_part_of_a_text_has_the_same_patterns() -> None:
    whole = _patterns("my gpu is not used", bool)
    assert _patterns("gpu is", bool) is whole
    assert _patterns("gpu was", bool) is not whole


def test_for_a_long_text_a_pattern_is_pruned_however_often_it_was_asked_for() -> None:
    _ASKED["gpu|card"] = MOST_PRUNED
    assert _patterns("card" + "x" * LONG_TEXT, "card".__eq__)("gpu|card") == "card"
    assert _patterns("a card", "card".__eq__)("gpu|card") == "gpu|card"


def test_expressions_that_are_near_each_other_are_found_in_every_order() -> None:
    row = next(row for row in failure_messages() if len(row.near) == 3)
    assert _compiled(in_any_order(row.near, row.within)).pattern == row.pattern
