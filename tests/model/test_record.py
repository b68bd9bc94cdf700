"""A record is a frozen, keyword-only dataclass; a fact says what a field of one means."""

from dataclasses import FrozenInstanceError, field, fields, is_dataclass, replace
from typing import Any

import pytest

import gpudoctor.model
from gpudoctor.model import Device, Driver, Finding, System, Toolkit, Torch, TorchRuntime
from gpudoctor.model.record import Fact, fact_of, record


@record
class Point:
    """A point."""

    x: int
    y: int = 0
    tags: dict[str, str] = field(default_factory=dict)


def test_values_and_defaults() -> None:
    assert (Point(x=1).x, Point(x=1).y, Point(x=1).tags) == (1, 0, {})
    assert Point(x=1).tags is not Point(x=1).tags


def test_it_compares_by_value() -> None:
    assert Point(x=1) == Point(x=1, y=0)
    assert Point(x=1) != Point(x=2)
    other: object = "Point"
    assert Point(x=1) != other


def test_equal_ones_have_one_hash_and_a_method_of_its_own_stays() -> None:
    @record
    class Shown:
        value: int

        def __repr__(self) -> str:
            return f"shown {self.value}"

    assert len({Shown(value=1), Shown(value=1), Shown(value=2)}) == 2
    assert repr(Shown(value=1)) == "shown 1"


def test_a_field_may_be_left_out_of_the_comparison() -> None:
    @record
    class Noted:
        x: int
        note: str = field(default="", compare=False)

    assert Noted(x=1, note="a") == Noted(x=1, note="b")


def test_it_is_a_dataclass_to_others() -> None:
    assert [item.name for item in fields(Point)] == ["x", "y", "tags"]
    assert replace(Point(x=1), y=3) == Point(x=1, y=3)
    assert repr(Point(x=1, y=2)) == "Point(x=1, y=2, tags={})"


def test_it_is_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        Point(x=1).x = 2  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        del Point(x=1).x


def test_a_missing_or_misspelt_field_is_refused() -> None:
    with pytest.raises(TypeError, match="'x'"):
        Point()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="'z'"):
        Point(x=1, z=2)  # type: ignore[call-arg]


def test_the_unit_and_the_source_of_a_field() -> None:
    assert fact_of(System, "shm_total_bytes") == Fact("size of /dev/shm", unit="bytes", source="statvfs /dev/shm")


def test_the_annotations_of_facts_stay_texts() -> None:
    """As types they would take 15 ms of every start: a module with facts begins with the import of the future."""
    records = [kind for kind in vars(gpudoctor.model).values() if isinstance(kind, type) and is_dataclass(kind)]
    with_facts = [kind for kind in records if any(fact_of(kind, item.name) for item in fields(kind))]
    assert {Device, Driver} <= set(with_facts)
    assert [kind for kind in with_facts if not all(isinstance(a, str) for a in kind.__annotations__.values())] == []


def test_what_is_no_field_or_has_no_words() -> None:
    assert fact_of(Device, "other") is None
    assert fact_of(tuple, "length") is None
    assert fact_of(Finding, "summary") is None


@pytest.mark.parametrize("kind", [Device, Driver, System, Torch, TorchRuntime, Toolkit])
def test_every_field_of_a_section_can_be_read(kind: type[Any]) -> None:
    facts = [fact_of(kind, item.name) for item in fields(kind)]
    assert any(facts)
    assert all(fact is None or fact.meaning for fact in facts)
