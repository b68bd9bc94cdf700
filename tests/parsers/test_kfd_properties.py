"""Targets of AMD GPUs."""

from __future__ import annotations

import pytest

from gpudoctor.parsers.kfd_properties import parse_gfx_target


@pytest.mark.parametrize(
    ("number", "target"),
    [("110000", "gfx1100"), ("90010", "gfx90a"), ("90402", "gfx942"), ("100302", "gfx1032"), ("0", "")],
)
def test_target(number: str, target: str) -> None:
    assert parse_gfx_target(f"cpu_cores_count 0\ngfx_target_version {number}\nvendor_id 4098\n") == target


def test_another_text() -> None:
    with pytest.raises(ValueError, match="no gfx_target_version"):
        parse_gfx_target("cpu_cores_count 16\n")
