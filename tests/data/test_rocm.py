"""The ROCm builds of PyTorch, and the gfx targets of AMD GPUs."""

import pytest

from gpudoctor.data.rocm import gfx_target_of, rocm_builds
from gpudoctor.data.tables import load_table


def test_the_builds_of_a_release() -> None:
    found = rocm_builds("2.13")
    assert found is not None
    assert "rocm7.1" in (found.variants or ())
    assert {"gfx90a", "gfx1100"} <= set(found.gfx_targets or ())
    assert rocm_builds("0.4") is None


@pytest.mark.parametrize("row", load_table("rocm")["torch"], ids=lambda row: row["release"])
def test_unknown_is_no_empty_list(row: dict[str, object]) -> None:
    found = rocm_builds(str(row["release"]))
    assert found is not None
    assert found.variants != ()
    assert found.gfx_targets != ()


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("AMD Radeon RX 7900 XTX", "gfx1100"),
        ("Radeon RX 6600 XT", "gfx1032"),
        ("radeon rx 6800", "gfx1030"),
        ("AMD Radeon RX 6800M", "gfx1031"),
        ("AMD Radeon RX 6800S", "gfx1032"),
        ("AMD Radeon RX 7700S", "gfx1102"),
        ("AMD Radeon RX 7700 XT", "gfx1101"),
        ("AMD Instinct MI250X", "gfx90a"),
        ("AMD Instinct MI2500", None),
        ("RX 480", "gfx803"),
        ("NVIDIA GeForce RTX 4090", None),
    ],
)
def test_a_gfx_target_by_name(name: str, target: str | None) -> None:
    assert gfx_target_of(name) == target
