"""Exceptions by their wording: too large, not supported here, or the user's own bug."""

from __future__ import annotations

import pytest

from gpudoctor.model.tuning import OUT_OF_MEMORY, UNSUPPORTED
from gpudoctor.tuning.workers.failures import WORKLOAD, classify, failure_of

RUNTIME_ERROR = ("builtins.RuntimeError", "builtins.Exception")


class OutOfMemoryError(RuntimeError):
    """Named as torch's and CuPy's."""


@pytest.mark.parametrize(
    "message",
    [
        "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 15.77 GiB",
        "CUDA error: out of memory\nCUDA kernel errors might be asynchronously reported at some other API call",
        "HIP out of memory. Tried to allocate 20.00 MiB",
        "MPS backend out of memory (MPS allocated: 8.95 GB, other allocations: 1.2 GB, max allowed: 9.07 GB)",
        "Invalid buffer size: 18.25 GiB",
        "Allocation on device 0 would exceed allowed memory. (out of memory)",
        "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        "cuDNN error: CUDNN_STATUS_ALLOC_FAILED",
        "cudaErrorMemoryAllocation: out of memory",
        "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to get",
        "[enforce fail at CPUAllocator.cpp:68] . DefaultCPUAllocator: not enough memory: you tried to allocate 8 byte",
        "std::bad_alloc",
        "[Errno 12] Cannot allocate memory",
    ],
)
def test_wordings_of_full_memory(message: str) -> None:
    assert classify(RUNTIME_ERROR, message) == (OUT_OF_MEMORY, False)


@pytest.mark.parametrize(
    "type_name", ["torch.OutOfMemoryError", "torch.cuda.OutOfMemoryError", "cupy.cuda.memory.OutOfMemoryError"]
)
def test_types_of_full_memory(type_name: str) -> None:
    assert classify((type_name, *RUNTIME_ERROR), "no words that tell") == (OUT_OF_MEMORY, False)
    assert classify(("numpy._core._exceptions._ArrayMemoryError", "builtins.MemoryError"), "") == (OUT_OF_MEMORY, False)


@pytest.mark.parametrize(
    "message",
    [
        "cuDNN error: CUDNN_STATUS_NOT_SUPPORTED. This error may appear if you passed in a non-contiguous input.",
        "cuDNN error: CUDNN_STATUS_INTERNAL_ERROR",
        "GET was unable to find an engine to execute this computation",
        "CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`",
    ],
)
def test_libraries_without_a_workspace_mean_memory_only_if_it_is_full(message: str) -> None:
    assert classify(RUNTIME_ERROR, message, memory_full=True) == (OUT_OF_MEMORY, False)
    assert classify(RUNTIME_ERROR, message, memory_full=False) == (UNSUPPORTED, False)


@pytest.mark.parametrize(
    "message",
    [
        "CUDA error: invalid configuration argument",  # more than 65535 blocks
        "\"slow_conv2d_cpu\" not implemented for 'Half'",
        "CUDA error: no kernel image is available for execution on the device",
        "cuFFT only supports dimensions whose sizes are powers of two when computing in half precision, but got 100",
        "Expected canUse32BitIndexMath(input) && canUse32BitIndexMath(output) to be true, but got false.",
    ],
)
def test_what_is_not_supported(message: str) -> None:
    assert classify(RUNTIME_ERROR, message) == (UNSUPPORTED, False)


def test_a_failure_of_the_compiler_is_no_bug_of_the_user() -> None:
    types = ("torch._inductor.exc.InvalidCxxCompiler", *RUNTIME_ERROR)
    assert classify(types, "No working C++ compiler found") == (UNSUPPORTED, False)


@pytest.mark.parametrize(
    "message",
    [
        "CUDA error: an illegal memory access was encountered",
        "CUDA error: unspecified launch failure",
        "CUDA error: misaligned address",
        "cudaErrorIllegalAddress: an illegal memory access was encountered",
    ],
)
def test_errors_that_poison_the_process(message: str) -> None:
    assert classify(RUNTIME_ERROR, message) == (UNSUPPORTED, True)


def test_a_device_side_assert_is_a_bug_that_poisons_the_process() -> None:
    assert classify(RUNTIME_ERROR, "CUDA error: device-side assert triggered") == (WORKLOAD, True)


@pytest.mark.parametrize(
    "message",
    [
        "mat1 and mat2 shapes cannot be multiplied (64x100 and 128x10)",
        "the size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 1",
        "my reader ran out of records",
        "stream is out of memory range",
    ],
)
def test_anything_else_is_the_users_bug_even_with_memory_full(message: str) -> None:
    assert classify(RUNTIME_ERROR, message, memory_full=True) == (WORKLOAD, False)


def test_the_cause_counts_if_the_user_wraps_it() -> None:
    def wrapped() -> None:
        try:
            raise OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
        except OutOfMemoryError as error:
            raise ValueError("training failed") from error

    with pytest.raises(ValueError, match="training failed") as caught:
        wrapped()
    failure = failure_of(caught.value)
    assert failure.kind == OUT_OF_MEMORY
    assert failure.detail == "OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"
    assert failure.traceback == ""


def test_a_bug_keeps_its_traceback_and_its_first_line() -> None:
    def step() -> None:
        raise KeyError("labels\nand more")

    with pytest.raises(KeyError) as caught:
        step()
    failure = failure_of(caught.value)
    assert failure.kind == WORKLOAD
    assert failure.detail == r"KeyError: 'labels\nand more'"
    assert "in step\n    raise KeyError" in failure.traceback
    assert failure.traceback.splitlines()[0] == "Traceback (most recent call last):"


def test_a_message_without_words_is_named_by_its_type() -> None:
    assert failure_of(SystemExit()).detail == "SystemExit"


def test_causes_that_go_in_a_circle_come_to_an_end() -> None:
    first, second = ValueError("first"), ValueError("second")
    first.__cause__, second.__cause__ = second, first
    assert failure_of(first).kind == WORKLOAD


@pytest.mark.parametrize(
    ("message", "line"),
    [
        pytest.param(
            "backend='inductor' raised:\nTritonMissing: no Triton\nmore",
            "backend='inductor' raised: TritonMissing: no Triton",
            id="announced",
        ),
        pytest.param("first\nsecond", "first", id="a line that says it"),
        pytest.param("announced:", "announced:", id="nothing follows"),
    ],
)
def test_one_line_says_what_failed(message: str, line: str) -> None:
    assert failure_of(ValueError(message)).detail == f"ValueError: {line}"
