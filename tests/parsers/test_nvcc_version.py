"""What nvcc prints."""

from __future__ import annotations

import pytest

from gpudoctor.model import CudaVersion
from gpudoctor.parsers.nvcc_version import parse_nvcc_version

NVCC_12_4 = """nvcc: NVIDIA (R) Cuda compiler driver
Copyright (c) 2005-2024 NVIDIA Corporation
Built on Thu_Mar_28_02:18:24_PDT_2024
Cuda compilation tools, release 12.4, V12.4.131
Build cuda_12.4.r12.4/compiler.34097967_0
"""


def test_release() -> None:
    assert parse_nvcc_version(NVCC_12_4) == CudaVersion(12, 4)
    assert parse_nvcc_version(NVCC_12_4.replace("12.4", "10.0")) == CudaVersion(10, 0)


@pytest.mark.parametrize("text", ["", "pyenv: nvcc: command not found\n", "release 12.4"])
def test_another_text(text: str) -> None:
    with pytest.raises(ValueError, match="no release of nvcc"):
        parse_nvcc_version(text)
