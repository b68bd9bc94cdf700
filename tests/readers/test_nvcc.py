"""The reader of what nvcc printed."""

import pytest

from gpudoctor.model import CudaVersion, Toolkit
from gpudoctor.readers.system_commands import read_nvcc as read
from gpudoctor.readers.text import clean_text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Cuda compilation tools, release 10.1, V10.1.243\n", Toolkit(nvcc_version=CudaVersion(10, 1))),
        ("Cuda compilation tools,\nrelease 12.3, V12.3.107\n", Toolkit(nvcc_version=CudaVersion(12, 3))),
        ("Build cuda_11.8.r11.8/compiler.31833905_0\n", Toolkit(nvcc_version=CudaVersion(11, 8))),
        ("$ which nvcc\n/usr/local/cuda-11.8/bin/nvcc\n", Toolkit(nvcc_path="/usr/local/cuda-11.8/bin/nvcc")),
        ("bash: nvcc: command not found\n", Toolkit(nvcc_path="")),
        ("'nvcc' is not recognized as an internal or external command\n", Toolkit(nvcc_path="")),
        ("Command 'nvcc' not found, but can be installed with:\n", Toolkit(nvcc_path="")),
    ],
)
def test_toolkit(text: str, expected: Toolkit) -> None:
    assert read(clean_text(text, "r")) == {"toolkit": expected}


@pytest.mark.parametrize(
    "text", ["PATH=/usr/local/cuda-11.8/bin", "nvcc fatal : Unsupported gpu architecture", "CUDA 12.1"]
)
def test_nothing_of_nvcc(text: str) -> None:
    assert read(clean_text(text, "r")) == {}
