"""What is said of a fact beside its value."""

from __future__ import annotations

import dataclasses

from gpudoctor import model
from gpudoctor.model import SECTIONS, Device, Finding, System
from gpudoctor.model.fact import Fact, fact_of


def test_the_unit_and_the_source_of_a_field() -> None:
    assert fact_of(System, "memory_total_bytes") == Fact("main memory", unit="bytes", source="/proc/meminfo")


def test_what_is_no_field_or_has_no_words() -> None:
    assert fact_of(Device, "other") is None
    assert fact_of(tuple, "length") is None
    assert fact_of(Finding, "summary") is None


def test_every_section_of_one_part_can_be_read() -> None:
    for name in SECTIONS:
        kind = getattr(model, name.title().replace("_", ""), None)
        for item in dataclasses.fields(kind) if kind is not None else ():
            fact = fact_of(kind, item.name)
            assert fact is None or fact.meaning
