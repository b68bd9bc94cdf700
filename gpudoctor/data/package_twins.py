"""Modules that several distributions install."""

from __future__ import annotations

from gpudoctor.model.record import record


@record
class SharedModule:
    """A module, the distributions that install it, and the one to keep with and without an NVIDIA GPU."""

    name: str
    distributions: tuple[str, ...]
    with_gpu: str
    without_gpu: str


# Source: the top-level packages in the wheels of these distributions on PyPI.
SHARED_MODULES = (
    SharedModule(
        name="onnxruntime",
        distributions=(
            "onnxruntime",
            "onnxruntime-gpu",
            "onnxruntime-directml",
            "onnxruntime-openvino",
            "onnxruntime-training",
        ),
        with_gpu="onnxruntime-gpu",
        without_gpu="onnxruntime",
    ),
    SharedModule(
        name="tensorflow",
        distributions=("tensorflow", "tensorflow-cpu", "tensorflow-gpu", "tensorflow-rocm", "tf-nightly"),
        with_gpu="tensorflow",
        without_gpu="tensorflow-cpu",
    ),
    SharedModule(
        name="triton",
        distributions=("triton", "pytorch-triton", "pytorch-triton-rocm", "triton-windows"),
        with_gpu="triton",
        without_gpu="triton",
    ),
    SharedModule(
        name="faiss",
        distributions=("faiss-cpu", "faiss-gpu", "faiss-gpu-cu11", "faiss-gpu-cu12"),
        with_gpu="faiss-gpu-cu12",
        without_gpu="faiss-cpu",
    ),
)

FIRST_TORCH_WITH_NUMPY_2 = (2, 3)  # Source: release notes of PyTorch 2.3
