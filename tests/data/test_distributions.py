"""The rows of Linux distributions."""

import pytest

from gpudoctor.data.distributions import distribution_of
from gpudoctor.model import System


@pytest.mark.parametrize(
    ("distribution", "version", "row"),
    [
        ("ubuntu", "24.04", "ubuntu"),
        ("debian", None, "debian"),
        ("linuxmint", "22.1", "linuxmint"),
        ("linuxmint", "10", "linuxmint"),
        ("linuxmint", "9", "debian"),
        ("linuxmint", "7", "debian"),
        ("linuxmint", None, "linuxmint"),
        ("linuxmint", "faye", "linuxmint"),
    ],
)
def test_row(distribution: str, version: str | None, row: str) -> None:
    """Linux Mint Debian Edition has the packages of Debian; its releases are numbered apart."""
    assert distribution_of(System(distribution=distribution, distribution_version=version))["id"] == row


def test_a_distribution_has_what_its_family_has() -> None:
    own, family = (distribution_of(System(distribution=name)) for name in ("pop", "ubuntu"))
    assert own["headers"] == family["headers"], "of the family"
    assert own["driver"] != family["driver"], "its own"


@pytest.mark.parametrize("system", [None, System(), System(distribution="plan9")])
def test_unknown(system: System | None) -> None:
    assert distribution_of(system) == {}
