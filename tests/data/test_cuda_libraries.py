"""Of which CUDA version a library is, and the wheel that has it."""

import pytest

from gpudoctor.data.cuda_libraries import cuda_major_of, library_stem, wheel_of


@pytest.mark.parametrize(
    ("name", "stem", "major"),
    [
        ("libcublas.so.12", "cublas", 12),
        ("cublas64_12.dll", "cublas", 12),
        ("libcublasLt.so.11", "cublaslt", 11),
        ("libcudart.so.11.0", "cudart", 11),
        ("libcudart.so.9.2", "cudart", 9),
        ("libcudart.so.8.0", "cudart", None),
        ("libcudart.so.19", "cudart", 19),
        ("libcudart.so.20", "cudart", None),
        ("libcufft.so.10", "cufft", 11),
        ("libcufft.so.11", "cufft", 12),
        ("libcufft.so.12", "cufft", 13),
        ("libcurand.so.10", "curand", None),
        ("libcusolver.so.11", "cusolver", None),
        ("libnccl.so.2", "nccl", None),
        ("libcufile.so.0", "cufile", None),
        ("libcusparseLt.so.0", "cusparselt", None),
        ("libnvToolsExt.so.1", "nvtoolsext", None),
        ("libcudnn.so.9", "cudnn", None),
        ("libnvshmem_host.so.3", "nvshmem_host", None),
        ("libcurl.so.4", None, None),
        ("libcublas.so", "cublas", None),
    ],
)
def test_a_library(name: str, stem: str | None, major: int | None) -> None:
    assert (library_stem(name), cuda_major_of(name)) == (stem, major)


@pytest.mark.parametrize(
    ("stem", "major", "wheel"),
    [
        ("cublas", 12, "nvidia-cublas-cu12"),
        ("cublas", 13, "nvidia-cublas"),
        ("cudart", 11, "nvidia-cuda-runtime-cu11"),
        ("cudart", 10, None),
        ("cufile", 11, None),
        ("cusparselt", 11, None),
        ("nvjitlink", 11, None),
        ("nvjitlink", 12, "nvidia-nvjitlink-cu12"),
        ("nvshmem_host", 11, "nvidia-nvshmem-cu11"),
        ("cublas", 14, None),
        ("nccl", 14, None),
        ("cudnn", 13, "nvidia-cudnn-cu13"),
        ("nccl", 13, "nvidia-nccl-cu13"),
        ("cusparselt", 13, "nvidia-cusparselt-cu13"),
        ("nvshmem_host", 13, "nvidia-nvshmem-cu13"),
    ],
)
def test_a_wheel(stem: str, major: int, wheel: str | None) -> None:
    assert wheel_of(stem, major) == wheel
