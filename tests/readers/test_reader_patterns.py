"""The table of what the readers look for: its rows are expressions, and each is used."""

import importlib.util
import re
from pathlib import Path

import pytest

from gpudoctor.readers.text import Patterns, _table

ROWS = _table("patterns")
READERS = [name for name in ROWS if name != "about"]


@pytest.mark.parametrize("reader", READERS)
def test_a_reader_uses_its_rows_and_no_others(reader: str) -> None:
    spec = importlib.util.find_spec(f"gpudoctor.readers.{reader}")
    assert spec is not None
    assert spec.origin is not None
    used = re.findall(r"\b_SAYS\.(\w+)", Path(spec.origin).read_text(encoding="utf-8"))
    assert set(used) == ROWS[reader].keys()


@pytest.mark.parametrize("reader", READERS)
def test_each_row_is_an_expression(reader: str) -> None:
    for name in ROWS[reader]:
        assert isinstance(getattr(Patterns(reader), name), re.Pattern)


def test_an_expression_is_compiled_once() -> None:
    patterns = Patterns("prose")
    assert patterns.driver is patterns.driver
