"""Fields that the environment reports of several programs share."""

import pytest

from gpudoctor.model import Device
from gpudoctor.readers.environment_fields import repeated

ONE = (Device(nvml_index=0, name="NVIDIA L4"),)
TWO = (*ONE, Device(nvml_index=1, name="NVIDIA A10"))


@pytest.mark.parametrize(
    ("devices", "count", "indexes"),
    [
        pytest.param(ONE, "3", [0, 1, 2], id="one name for three"),
        pytest.param(ONE, "1", [0], id="one"),
        pytest.param(ONE, "many", [0], id="no number"),
        pytest.param(TWO, "3", [0, 1], id="each has a name of its own"),
        pytest.param((), "3", [], id="no name"),
    ],
)
def test_one_device_stands_for_as_many_as_are_counted(
    devices: tuple[Device, ...], count: str, indexes: list[int]
) -> None:
    assert [device.nvml_index for device in repeated(devices, count)] == indexes
