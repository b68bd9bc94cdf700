"""Every table is complete in itself: a date, and a source for each row."""

import datetime
import json
import re
from pathlib import Path
from typing import Any

import pytest

import gpudoctor.data
from gpudoctor.data.tables import load_table

FOLDER = Path(gpudoctor.data.__file__).parent
LEARNED = ("word_weights", "concern_weights")  # without rows that somebody looked up: see tests/learn_words.py
NAMES = sorted(path.stem for path in FOLDER.glob("*.json") if path.stem not in LEARNED)


def rows_of(name: str) -> list[dict[str, Any]]:
    return [row for value in load_table(name).values() if isinstance(value, list) for row in value]


@pytest.mark.parametrize("name", NAMES)
def test_a_table_says_what_it_holds_and_when_it_was_checked(name: str) -> None:
    table = load_table(name)
    assert table["about"]
    assert datetime.date.fromisoformat(table["as_of"]) <= datetime.date.today()


@pytest.mark.parametrize("name", NAMES)
def test_every_row_carries_its_source(name: str) -> None:
    sources = load_table(name)["sources"]
    rows = rows_of(name)
    assert rows
    for row in rows:
        keys = [key for key in row if key == "source" or key.endswith("_source")]
        assert "source" in keys, row
        assert all(sources[row[key]] for key in keys), row


@pytest.mark.parametrize("name", NAMES)
def test_every_source_is_used(name: str) -> None:
    used = {row[key] for row in rows_of(name) for key in row if key == "source" or key.endswith("_source")}
    assert used == set(load_table(name)["sources"])


@pytest.mark.parametrize("name", NAMES)
def test_a_row_stands_on_one_line_so_that_a_change_is_readable(name: str) -> None:
    lines = (FOLDER / f"{name}.json").read_text(encoding="utf-8").splitlines()
    assert sum(line.startswith("  {") for line in lines) == len(rows_of(name))
    for line in lines:
        if line.startswith("  {"):
            json.loads(line.rstrip(","))


def test_a_table_is_read_once() -> None:
    assert load_table("drivers") is load_table("drivers")


@pytest.mark.parametrize("name", NAMES)
def test_every_column_is_read(name: str) -> None:
    """Sources and notes say where a row is from; all else is there for a program."""
    code = "".join(path.read_text(encoding="utf-8") for path in FOLDER.parent.rglob("*.py"))
    fields = set(
        re.findall(r"(?m)^    (\w+): ", "".join(path.read_text(encoding="utf-8") for path in FOLDER.glob("*.py")))
    )
    lists = [key for key, value in load_table(name).items() if isinstance(value, list)]
    columns = {key for row in rows_of(name) for key in row if key != "note" and not key.endswith("source")}
    assert [word for word in (*lists, *columns) if word not in fields and f'"{word}"' not in code] == []
