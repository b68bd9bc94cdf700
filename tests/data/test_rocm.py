"""The ROCm builds of PyTorch, and the gfx targets of AMD GPUs."""

import pytest

from gpudoctor.data.rocm import first_rocm_release, gfx_target, gfx_target_of, rocm_builds, rocm_targets_after
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
        ("7800 XT", "gfx1101"),
        ("NVIDIA GeForce RTX 4090", None),
    ],
)
def test_a_gfx_target_by_name(name: str, target: str | None) -> None:
    assert gfx_target_of(name) == target


@pytest.mark.parametrize(
    ("target", "first"),
    [
        pytest.param("gfx900", ("2.0", "rocm5.4.2"), id="older builds have it too"),
        pytest.param("gfx1100", ("2.1", "rocm5.6"), id="not in the first release"),
        pytest.param("gfx9999", None, id="in none"),
    ],
)
def test_the_first_release_with_code_for_a_gpu(target: str, first: tuple[str, str] | None) -> None:
    assert first_rocm_release(target) == first


def test_the_targets_of_the_next_verified_release() -> None:
    assert rocm_targets_after((2, 2)) == rocm_targets_after((2, 3, 1)) == targets_of("2.4")
    assert rocm_targets_after((2, 1)) == targets_of("2.2")
    assert rocm_targets_after((2, 13)) is None


def targets_of(release: str) -> tuple[str, ...] | None:
    found = rocm_builds(release)
    return found.gfx_targets if found is not None else None


@pytest.mark.parametrize(
    ("override", "target"),
    [("10.3.0", "gfx1030"), ("9.0.10", "gfx90a"), ("11.0", ""), ("11.0.0.1", ""), ("11.0.x", ""), ("", ""), (None, "")],
)
def test_the_target_that_the_variable_names(override: str | None, target: str) -> None:
    assert gfx_target(override) == target
