"""What is said of a fact beside its value."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from gpudoctor.model import Device, Driver, Finding, System, Toolkit, Torch, TorchRuntime
from gpudoctor.model.fact import Fact, fact_of


def test_the_unit_and_the_source_of_a_field() -> None:
    assert fact_of(System, "shm_total_bytes") == Fact("size of /dev/shm", unit="bytes", source="statvfs /dev/shm")


def test_what_is_no_field_or_has_no_words() -> None:
    assert fact_of(Device, "other") is None
    assert fact_of(tuple, "length") is None
    assert fact_of(Finding, "summary") is None


@pytest.mark.parametrize("kind", [Device, Driver, System, Torch, TorchRuntime, Toolkit])
def test_every_field_of_a_section_can_be_read(kind: type[Any]) -> None:
    facts = [fact_of(kind, item.name) for item in dataclasses.fields(kind)]
    assert any(facts)
    assert all(fact is None or fact.meaning for fact in facts)
