"""Sections and conclusions by name."""

import pytest

from gpudoctor.conclusions import Facts, conclude, parameters, sections_of
from gpudoctor.model import CONCLUSIONS, SECTIONS, Driver, Snapshot, System


def test_a_function_gets_the_sections_that_its_parameters_name() -> None:
    facts = Facts(Snapshot(driver=Driver(installed=True), system=System(os="linux")))

    def asks(driver: Driver | None, system: System | None, *, torch: object = 1) -> tuple[object, ...]:
        return driver, system, torch

    assert facts.call(asks) == (Driver(installed=True), System(os="linux"), None)
    assert facts.call(asks, torch=2)[2] == 2


def test_a_conclusion_is_made_once() -> None:
    facts = Facts(Snapshot(system=System(container="docker")))
    assert facts.get("place").in_container
    assert facts.get("place") is facts.get("place")


@pytest.mark.parametrize("name", CONCLUSIONS)
def test_every_conclusion_has_its_function_and_is_never_unknown(name: str) -> None:
    known = {*SECTIONS, *CONCLUSIONS, "reports", "taken_at", "snapshot", "requirements"}
    assert set(parameters(conclude(name))) <= known
    assert Facts(Snapshot()).get(name) is not None


def test_the_sections_behind_a_conclusion_are_asked_for() -> None:
    assert sections_of(["pytorch", "toolkit"]) >= {"torch", "torch_runtime", "toolkit"}
