"""The names that can be required."""

import pytest

from gpudoctor.configuration.requirement_names import names
from gpudoctor.model.snapshot import SECTIONS

# CONTRACT: the names are a promise to scripts.
PROMISED = {
    "gpu", "vram", "compute_capability", "driver", "cuda", "python", "torch", "torch.cuda", "cupy", "bf16", "fp16",
    "tf32", "fp8", "shm", "profile",
}  # fmt: skip


NAMES = names()


def test_every_promised_name_is_there() -> None:
    assert set(NAMES) == PROMISED


@pytest.mark.parametrize("name", sorted(NAMES))
def test_its_facts_are_of_sections(name: str) -> None:
    assert NAMES[name].sections <= set(SECTIONS)
    assert NAMES[name].value in ("count", "size", "version", "")


@pytest.mark.parametrize("name", ["vram", "compute_capability", "python", "shm"])
def test_what_is_on_every_machine_needs_a_value(name: str) -> None:
    assert not NAMES[name].bare
