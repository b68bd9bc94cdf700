"""The AMD GPU and its gfx target."""

from dataclasses import replace

import pytest

from gpudoctor.conclusions.amd_gpu import amd_gpu
from gpudoctor.model import AmdGpu, Symptom, System

RX_6800 = Symptom(
    kind="amd-gpu-named", text="Radeon RX 6800", names={"device": "Radeon RX 6800"}, fact="symptoms[0].text"
)
GRAPHICS = Symptom(kind="amd-gpu-named", text="Radeon Graphics", fact="symptoms[0].text")
TOLD = Symptom(kind="amd-gpu-reported", text="I have an AMD GPU", fact="symptoms[1].text")


def test_rocm_names_the_target() -> None:
    assert amd_gpu(System(amd_gfx_targets=("gfx1100",)), None) == AmdGpu(
        targets=("gfx1100",), fact="system.amd_gfx_targets"
    )


def test_a_product_has_a_target() -> None:
    found = amd_gpu(System(), (RX_6800,))
    assert (found.targets, found.fact) == (("gfx1030",), "symptoms[0].text")
    assert (found.product, found.product_target) == ("Radeon RX 6800", "gfx1030")


def test_what_rocm_says_counts_before_the_product() -> None:
    found = amd_gpu(System(amd_gfx_targets=("gfx90c",)), (RX_6800,))
    assert (found.targets, found.product_target) == (("gfx90c",), "gfx1030")


def test_words_count_if_no_product_is_named() -> None:
    assert amd_gpu(System(), (GRAPHICS, TOLD)).said == "symptoms[1].text"
    assert amd_gpu(System(), (RX_6800, TOLD)).said == ""


def test_nothing_is_known() -> None:
    assert amd_gpu(System(), None) == AmdGpu()


@pytest.mark.parametrize(
    ("symptom", "product", "target"),
    [
        (RX_6800, "Radeon RX 6800", "gfx1030"),
        (replace(RX_6800, text="6800", names={}), "6800", "gfx1030"),
        (replace(RX_6800, names={"pci": "Navi 21", "device": "Radeon RX 6800"}), "Navi 21", "gfx1030"),
        (replace(RX_6800, names={}), "Radeon RX 6800", "gfx1030"),
        (GRAPHICS, "", ""),
    ],
)
def test_how_a_product_is_named(symptom: Symptom, product: str, target: str) -> None:
    found = amd_gpu(System(), (symptom,))
    assert (found.product or "", found.product_target or "") == (product, target)


@pytest.mark.parametrize(("targets", "fact"), [(None, ""), ((), ""), (("gfx90c",), "system.amd_gfx_targets")])
def test_the_targets_of_the_system(targets: tuple[str, ...] | None, fact: str) -> None:
    assert amd_gpu(System(amd_gfx_targets=targets), None) == AmdGpu(targets=targets, fact=fact)
