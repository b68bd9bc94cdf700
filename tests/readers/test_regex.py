"""Expressions of the readers: compiled when they are first used."""

import importlib
import pkgutil
import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpudoctor import readers
from gpudoctor.readers.text import _Lazy, regex

MODULES = sorted(module.name for module in pkgutil.iter_modules(readers.__path__))


def test_an_expression_is_compiled_when_it_is_first_used() -> None:
    expression = regex(r"(?i)gpu(\d)")
    assert "search" not in vars(expression)
    match = expression.search("GPU0")
    assert match is not None
    assert match[1] == "0"
    assert "search" in vars(expression)
    assert [expression.sub("x", "gpu1"), expression.pattern, expression.groups] == ["x", r"(?i)gpu(\d)", 1]


EXPRESSIONS = {
    f"{module}.{name}": value
    for module in MODULES
    for name, value in vars(importlib.import_module(f"gpudoctor.readers.{module}")).items()
    if isinstance(value, _Lazy)
}


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_every_expression_can_be_compiled(name: str) -> None:
    assert re.compile(EXPRESSIONS[name].pattern)


@pytest.mark.parametrize("name", [name for name, expression in EXPRESSIONS.items() if expression._words != [""]])
@settings(max_examples=15, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_what_an_expression_finds_has_one_of_its_words(name: str, data: st.DataObject) -> None:
    expression = EXPRESSIONS[name]
    text = data.draw(st.from_regex(expression.pattern))
    found = [match.span() for match in re.finditer(expression.pattern, text)]
    assert [match.span() for match in regex(expression.pattern, "|".join(expression._words)).finditer(text)] == found


@pytest.mark.parametrize(("text", "found"), [("GPU 1, GPU 2", ["1", "2"]), ("1, 2", [])])
def test_an_expression_with_words_is_looked_for_where_one_of_them_is(text: str, found: list[str]) -> None:
    expression = regex(r"(?i)(?:gpu |card )?(\d)", "gpu|card")
    assert expression.findall(text) == [match[1] for match in expression.finditer(text)] == found
    assert [bool(expression.search(text)), bool(expression.match(text))] == [bool(found)] * 2
