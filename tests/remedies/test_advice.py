"""The table of fixes that are the same on every machine, and the names by which fixes are called."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import gpudoctor
from gpudoctor.remedies.fixes import _advice, builder_of
from gpudoctor.symptoms.tables import failure_messages

PACKAGE = Path(gpudoctor.__file__).parent
CHECKS = next(folder for folder in (PACKAGE / "checks", PACKAGE.parent / "checks") if folder.is_dir())
NEEDS = {"root", "restart", "reboot"}


def _called() -> Iterator[str]:
    for file in (*CHECKS.glob("*.py"), *(PACKAGE / "remedies").glob("*.py"), *(PACKAGE / "conclusions").glob("*.py")):
        yield from re.findall(r'Fix\(\s*"([a-z0-9-]+)"', file.read_text(encoding="utf-8"))
    for row in failure_messages():
        yield from (fix["fix"] for answer in row.answers for fix in answer.get("fixes", ()))


@pytest.mark.parametrize("name", sorted(set(_called())))
def test_every_fix_that_is_called_exists(name: str) -> None:
    assert callable(builder_of(name))


def test_no_row_is_idle() -> None:
    texts = "".join(
        file.read_text(encoding="utf-8")
        for folder in (CHECKS, PACKAGE / "remedies", PACKAGE / "conclusions", PACKAGE / "symptoms" / "tables")
        for file in (*folder.glob("*.py"), *folder.glob("*.json"))
        if file.name != "advice.json"
    )
    assert [name for name in _advice() if f'"{name}"' not in texts] == []


@pytest.mark.parametrize(("name", "row"), _advice().items())
def test_a_row(name: str, row: dict[str, Any]) -> None:
    assert row["summary"]
    assert not row["summary"].endswith(".")
    assert set(row.get("needs", ())) <= NEEDS
    assert set(row) <= {"summary", "commands", "needs", "reference"}
