"""Expressions of the readers: compiled when they are first used."""

import importlib
import pkgutil
import re

import pytest

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


@pytest.mark.parametrize("module", MODULES)
def test_every_expression_can_be_compiled(module: str) -> None:
    values = vars(importlib.import_module(f"gpudoctor.readers.{module}")).values()
    for value in values:
        if isinstance(value, _Lazy):
            assert re.compile(value.pattern).groups == value.groups
