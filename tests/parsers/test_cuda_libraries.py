"""Which file names are sonames of CUDA libraries."""

from __future__ import annotations

import pytest

from gpudoctor.parsers.cuda_libraries import is_cuda_soname

SONAMES = (
    "libcudart.so.12",
    "libcudart.so.11.0",
    "libcublas.so.12",
    "libcublasLt.so.12",
    "libcudnn.so.9",
    "libcudnn_ops_infer.so.8",
    "libnccl.so.2",
    "libnvrtc.so.12",
    "libnvrtc-builtins.so.12.4",
    "libnvJitLink.so.12",
    "libcufft.so.11",
    "libcusparse.so.12",
    "libcusolver.so.11",
    "libcurand.so.10",
    "libcupti.so.12",
    "libcufftw.so.11",
    "libcusparseLt.so.0",
    "libcusolverMg.so.11",
    "libcuda.so.1",
    "libcuda.so",
)
OTHERS = (
    "libcudart.so",
    "libcudart.so.12.4.127",
    "libcudnn.so.8.9.7",
    "libcublas.so.12.4.5.8",
    "libcuda.so.535.54",
    "libcurl.so.4",
    "libcups.so.2",
    "libnvidia-ml.so.1",
)


@pytest.mark.parametrize("name", SONAMES)
def test_soname(name: str) -> None:
    assert is_cuda_soname(name)


@pytest.mark.parametrize("name", OTHERS)
def test_other_file(name: str) -> None:
    assert not is_cuda_soname(name)
