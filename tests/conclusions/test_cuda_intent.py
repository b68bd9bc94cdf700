"""What shows that CUDA or ROCm was asked for."""

from __future__ import annotations

import pytest

from gpudoctor.conclusions.cuda_intent import cuda_intent
from gpudoctor.model import CudaIntent, CudaVersion, Gpu, Origin, Package, PackageVersion, Python, Symptom, Toolkit

REPORT, LIVE = Origin(is_report=True), Origin(is_report=False)
NVCC = Toolkit(nvcc_version=CudaVersion(12, 4))


def said(kind: str, fact: str = "symptoms[0].text", **names: str) -> Symptom:
    return Symptom(kind=kind, text="...", fact=fact, names=names)


def intent(*symptoms: Symptom, gpu: str = "", toolkit: Toolkit | None = None, origin: Origin = REPORT) -> CudaIntent:
    return cuda_intent(origin, Gpu(name=gpu), toolkit or Toolkit(), Python(), symptoms)


@pytest.mark.parametrize(
    "symptom",
    [
        said("torch-not-compiled-with-cuda"),
        said("nvidia-gpu-named"),
        said("pip-index", variant="cu121"),
        said("xformers-built-for", built="2.9.1+cu130"),
        said("asks-gpu-unused"),
    ],
)
def test_words_of_a_report_ask_for_cuda(symptom: Symptom) -> None:
    found = intent(symptom)
    assert found.fact == "symptoms[0].text"
    assert found.reason


@pytest.mark.parametrize(
    "symptom",
    [
        pytest.param(said("torch-not-compiled-with-cuda", "torch_runtime.availability_error"), id="a probe asked"),
        pytest.param(said("xformers-built-for", built="2.9.1+cpu"), id="an extension for the CPU"),
        pytest.param(said("pip-index", variant="cpu"), id="the index for the CPU"),
        pytest.param(said("torch-on-cpu"), id="a program on the CPU, no GPU"),
    ],
)
def test_what_asks_for_nothing(symptom: Symptom) -> None:
    assert intent(symptom) == CudaIntent()


@pytest.mark.parametrize("other", ["amd-gpu-named", "intel-gpu-named", "apple-mac-named"])
def test_who_misses_a_gpu_of_another_vendor_does_not_ask_for_cuda(other: str) -> None:
    assert intent(said("asks-gpu-unused"), said(other)) == CudaIntent()


def test_a_program_on_the_cpu_misses_a_gpu_that_is_there() -> None:
    assert intent(said("torch-on-cpu"), gpu="NVIDIA L4").program == "symptoms[0].text"


def test_a_toolkit_counts_in_a_report_only() -> None:
    assert intent(toolkit=NVCC).fact == "toolkit.nvcc_version"
    assert intent(toolkit=NVCC, origin=LIVE).fact == ""


def test_the_indexes_of_cuda_and_rocm_are_distinguished() -> None:
    found = intent(said("pip-index", variant="nightly/rocm6.1"), said("pip-index", "symptoms[1].text", variant="cu121"))
    assert (found.rocm_index, found.rocm_fact, found.index, found.fact) == (
        *("rocm6.1", "symptoms[0].text"),
        *("cu121", "symptoms[1].text"),
    )


def test_conda_was_asked_by_a_message_or_a_package() -> None:
    assert intent(said("conda-driver-seen")).conda == "symptoms[0].text"
    python = Python(packages=(Package(name="pytorch-cuda", version=PackageVersion("12.1")),))
    found = cuda_intent(REPORT, Gpu(), Toolkit(), python, None)
    assert (found.conda, found.fact) == ("python.packages[0].version", "")
