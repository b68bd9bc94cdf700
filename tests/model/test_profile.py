"""When two machines count as the same one for an env profile."""

from __future__ import annotations

import pytest

from gpudoctor.model import same_device, same_memory


@pytest.mark.parametrize(
    ("was", "now", "same"),
    [
        ("24GiB", "24GiB", True),
        ("24GiB", "23.7GiB", True),
        ("24GiB", "12GiB", False),
        ("unknown", "unknown", True),
        ("unknown", "other", False),
        ("24GiB", "unknown", False),
        ("unknown", "24GiB", False),
    ],
)
def test_the_same_memory_but_for_what_a_driver_reserves(was: str, now: str, same: bool) -> None:
    assert same_memory(was, now) is same


@pytest.mark.parametrize(
    ("was", "now", "same"),
    [
        ("NVIDIA A100-SXM4-40GB", "NVIDIA A100-SXM4-40GB", True),
        ("NVIDIA_A100-SXM4-40GB_MIG_1g.5gb", "NVIDIA_A100-SXM4-40GB", True),
        ("NVIDIA A100-SXM4-40GB", "NVIDIA H100", False),
    ],
)
def test_a_mig_instance_is_of_its_device(was: str, now: str, same: bool) -> None:
    assert same_device(was, now) is same
