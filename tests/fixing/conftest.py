"""The machine of the tests of `gpudoctor fix`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.conftest import Install
from tests.fixing.beds import Bed, make_bed, unpack_pip
from tests.stand_ins import RTX_4090, Cuda, Nvml

DRIVER = "580.65.06"


@pytest.fixture(scope="session")
def bundled_pip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if os.name != "posix":
        pytest.skip("the environments of these tests are made on POSIX systems")
    return unpack_pip(tmp_path_factory.mktemp("pip"))


@pytest.fixture
def bed(tmp_path: Path, driver_stand_in: Install, bundled_pip: Path) -> Bed:
    """Return a machine with a GPU, a driver for CUDA 13 and an index of tiny wheels."""
    nvml = Nvml(devices=(RTX_4090,), cuda_version=13000, driver_version=DRIVER)
    cuda = Cuda(devices=(RTX_4090,), version=13000, driver_version=DRIVER)
    return make_bed(tmp_path, driver_stand_in(tmp_path / "driver", nvml=nvml, cuda=cuda), bundled_pip)
