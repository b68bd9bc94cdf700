"""Sections that several answers tell."""

from __future__ import annotations

from gpudoctor.model import Toolkit
from gpudoctor.probes.parts import first_known


def test_each_fact_is_that_of_the_first_part_that_knows_it() -> None:
    first = Toolkit(host_compiler="gcc")
    second = Toolkit(system_libraries=())
    assert first_known(first, second) == Toolkit(host_compiler="gcc", system_libraries=())


def test_one_part_is_the_section() -> None:
    devices = ("a", "b")
    assert first_known(devices) is devices
