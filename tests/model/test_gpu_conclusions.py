"""What an image requires of its host's driver."""

from typing import Any

import pytest

from gpudoctor.model import CudaVersion, DriverCondition, DriverVersion, Shortage, condition_of_cuda_version

R535 = DriverVersion((535, 129, 3))


@pytest.mark.parametrize(
    ("text", "met"),
    [
        ("cuda>=12.2", True),
        ("cuda>=12.3", False),
        ("cuda>12.2", False),
        ("cuda<=12.2", True),
        ("cuda<12.2", False),
        ("cuda=12.2", True),
        ("cuda!=12.2", False),
        ("cuda>=13.0 driver>=535,driver<536", True),
        ("cuda>=13.0 driver>=536,driver<537", False),
        ("driver>=535.129.3", True),
        ("driver>=535.129.4", False),
        ("brand=tesla", True),
        ("brand=tesla,driver>=550", False),
    ],
)
def test_is_met(text: str, met: bool) -> None:
    assert DriverCondition(text=text).is_met(CudaVersion(12, 2), R535) is met


def test_a_driver_that_is_unknown_is_not_compared() -> None:
    assert DriverCondition(text="driver>=600").is_met(CudaVersion(12, 2), None)


def test_what_it_asks_for() -> None:
    condition = DriverCondition(text="cuda>=12.6 brand=tesla,driver>=470,driver<471")
    assert (condition.cuda, condition.driver) == (CudaVersion(12, 6), DriverVersion((470,)))
    assert condition.label == "cuda>=12.6 (or one of 1 alternatives)"
    assert (DriverCondition(text="brand=tesla").cuda, DriverCondition(text="cuda>=12.6").driver) == (None, None)


@pytest.mark.parametrize(("version", "text"), [("12.8.1", "cuda>=12.0"), ("13.0", "cuda>=13.0"), ("x", ""), (None, "")])
def test_an_image_that_names_its_cuda_version(version: str | None, text: str) -> None:
    assert condition_of_cuda_version(version) == text


@pytest.mark.parametrize(
    ("sizes", "numbers"),
    [
        ({}, ""),
        ({"tried": 3 << 29}, "the job asked for 1.50 GiB"),
        ({"total": 16 << 30}, "the device has 16.00 GiB"),
        ({"free": 20 << 20}, "20 MiB are free"),
        ({"free": 20 << 20, "total": 16 << 30}, "20 MiB of 16.00 GiB are free"),
        ({"mine": (1 << 30) - (1 << 20)}, "the job uses 1023 MiB"),
        ({"cause": "fragmented", "reserved": 2 << 30}, "2.00 GiB are reserved but unallocated"),
        ({"cause": "others", "others": 2 << 30}, "other processes use 2.00 GiB"),
        ({"cause": "others", "reserved": 2 << 30}, ""),
        ({"cause": "fragmented", "others": 2 << 30, "reserved": 0}, ""),
    ],
)
def test_the_sizes_of_a_shortage(sizes: dict[str, Any], numbers: str) -> None:
    assert Shortage(**{"cause": "too-large", **sizes}).numbers == numbers
