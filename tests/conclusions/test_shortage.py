"""Sizes as programs write them."""

import pytest

from gpudoctor.conclusions.shortage import parse_bytes
from gpudoctor.model import shown_bytes


@pytest.mark.parametrize(
    ("text", "size"),
    [
        pytest.param("2.00 GiB", 2 * 2**30, id="GiB"),
        pytest.param("512.00 MiB", 512 * 2**20, id="MiB"),
        pytest.param("1018.00 KiB", 1018 * 2**10, id="KiB"),
        pytest.param("1.5 TiB", 3 * 2**39, id="TiB"),
        pytest.param("9.07 GB", int(9.07 * 2**30), id="MPS writes GB"),
        pytest.param("1,024 bytes", 1024, id="CuPy writes commas"),
        pytest.param("4187881472", 4187881472, id="bytes without a unit"),
        pytest.param("1.13GiB", int(1.13 * 2**30), id="TensorFlow writes no space"),
        pytest.param("much", None, id="no size"),
        pytest.param("", None, id="nothing"),
    ],
)
def test_parse(text: str, size: int | None) -> None:
    assert parse_bytes(text) == size


def test_shown() -> None:
    assert shown_bytes(3 * 2**29) == "1.50 GiB"
    assert shown_bytes(20 * 2**20) == "20 MiB"
