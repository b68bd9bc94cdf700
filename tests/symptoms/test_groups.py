"""The groups of kinds of messages: each is used, and names rows of the tables."""

from fnmatch import fnmatch
from pathlib import Path

import pytest

from gpudoctor import symptoms
from gpudoctor.model import Symptom
from gpudoctor.model.codec import json_next_to
from gpudoctor.symptoms import first, group, most_telling, of_kind
from gpudoctor.symptoms.tables import failure_messages

ROOT = Path(__file__).parents[2]
GROUPS = json_next_to(symptoms.__file__, "groups")["groups"]


@pytest.mark.parametrize("name", GROUPS)
def test_every_kind_is_a_row(name: str) -> None:
    rows = {row.id for row in failure_messages()}
    assert not [kind for kind in group(name) if not any(fnmatch(row, kind) for row in rows)]


def test_every_group_is_used() -> None:
    paths = [*(ROOT / "checks").glob("*.py"), *(ROOT / "gpudoctor" / "conclusions").glob("*.py")]
    code = "".join(path.read_text(encoding="utf-8") for path in paths)
    assert not [name for name in GROUPS if f'"@{name}"' not in code and f'"{name}"' not in code]


def test_the_symptoms_of_a_group_are_in_the_order_of_the_report_and_the_most_specific_in_its_own() -> None:
    symptoms = tuple(Symptom(kind=kind, text="x") for kind in ("bnb-broken", "loss-nan", "bnb-binary-missing"))
    assert [symptom.kind for symptom in of_kind(symptoms, "@bitsandbytes-fails")] == [
        "bnb-broken",
        "bnb-binary-missing",
    ]
    assert of_kind(symptoms, "@bitsandbytes-fails", "loss-*") == symptoms
    assert most_telling(symptoms, "bitsandbytes-fails") == symptoms[2]
    assert first(of_kind(symptoms, "@gpu-fault")) is most_telling(symptoms, "gpu-fault") is None
    assert most_telling(None, "gpu-fault") is None
