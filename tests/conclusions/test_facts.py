"""Sections and conclusions by name."""

import pytest

from gpudoctor.conclusions import Facts, conclude, parameters, sections_of
from gpudoctor.model import CONCLUSIONS, SECTIONS, Devices, Driver, Snapshot, System, Torch


def test_a_function_gets_the_sections_that_its_parameters_name() -> None:
    facts = Facts(Snapshot(driver=Driver(installed=True), system=System(os="linux")))

    def asks(driver: Driver | None, system: System | None, *, torch: object = 1) -> tuple[object, ...]:
        return driver, system, torch

    assert facts.call(asks) == (Driver(installed=True), System(os="linux"), None)
    assert facts.call(asks, torch=2)[2] == 2


def test_an_unknown_section_is_a_record_without_facts_if_the_parameter_asks_for_one() -> None:
    def asks(driver: Driver, devices: Devices, *, system: System, torch: Torch | None) -> tuple[object, ...]:
        return driver, devices, system, torch

    assert Facts(Snapshot()).call(asks) == (Driver(), None, System(), None)
    assert Facts(Snapshot(system=System(os="linux"))).call(asks)[2] == System(os="linux")


def test_a_conclusion_is_made_once() -> None:
    facts = Facts(Snapshot(system=System(container="docker")))
    assert facts.get("place").in_container
    assert facts.get("place") is facts.get("place")


@pytest.mark.parametrize("name", CONCLUSIONS)
def test_every_conclusion_has_its_function_and_is_never_unknown(name: str) -> None:
    known = {*SECTIONS, *CONCLUSIONS, "reports", "taken_at", "snapshot", "requirements", "gpu_policy"}
    assert set(parameters(conclude(name))) <= known
    assert Facts(Snapshot()).get(name) is not None


def test_the_sections_behind_a_conclusion_are_asked_for() -> None:
    assert sections_of(["pytorch", "toolkit"]) >= {"torch", "torch_runtime", "toolkit"}


def test_a_default_counts_for_an_unknown_section_even_if_annotations_are_text() -> None:
    def asks(driver: Driver = Driver(installed=False), devices: Devices = None) -> tuple[object, ...]:
        return driver, devices

    asks.__annotations__ = {"driver": "Driver", "devices": "Devices"}  # as after "from __future__ import annotations"
    assert Facts(Snapshot()).call(asks) == (Driver(installed=False), None)
    assert Facts(Snapshot(driver=Driver(installed=True))).call(asks)[0] == Driver(installed=True)
