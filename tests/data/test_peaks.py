"""Peak rates of devices."""

import pytest

from gpudoctor.data.capabilities import features
from gpudoctor.data.gpu_names import capability_of
from gpudoctor.data.peaks import device_peak
from gpudoctor.data.tables import load_table

NAMES = [name for row in load_table("peaks")["devices"] for name in row["names"]]


def test_a_peak() -> None:
    peak = device_peak("NVIDIA H200")
    assert peak is not None
    assert peak.tflops == {"fp32": 67.0, "tf32": 494.5, "bf16": 989.0, "fp16": 989.0}
    assert peak.bandwidth_gb_s == 4800


def test_names_without_the_vendor_are_the_same_device() -> None:
    assert device_peak("GeForce RTX 4090") == device_peak("NVIDIA GeForce RTX 4090")


@pytest.mark.parametrize("name", ["NVIDIA H200 NVL", "NVIDIA H100 80GB HBM3 MIG 1g.10gb", "NVIDIA GeForce RTX 9090"])
def test_another_device_has_no_known_peak(name: str) -> None:
    assert device_peak(name) is None


def test_a_rate_that_is_not_verified_is_left_out() -> None:
    peak = device_peak("NVIDIA A10")
    assert peak is not None
    assert set(peak.tflops) == {"bf16"}


@pytest.mark.parametrize("name", NAMES)
def test_a_precision_with_a_peak_is_native(name: str) -> None:
    peak, capability = device_peak(name), capability_of(name)
    assert peak is not None
    assert capability is not None
    found = features(capability)
    assert found is not None
    for precision in set(peak.tflops) - {"fp32"}:
        assert getattr(found, precision) == "native", precision
