"""What an exception means for the trial that raised it: too large, not supported here, or the user's own bug.

Pure functions on the names of the exception's types and its message, so that every wording has a test without the
library that writes it. The wordings are those of PyTorch 1.13 to 2.13, CuPy 13 and 14, and of CUDA's own libraries;
gpudoctor/symptoms/tables has them with their sources.
"""

import re
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path

from gpudoctor.model.record import record
from gpudoctor.model.tuning import OUT_OF_MEMORY, UNSUPPORTED

WORKLOAD = "workload"
"""The user's own code failed: never taken for "too large"."""

USAGE = "usage"
"""Device or workload are not there."""

LIBRARY = "library"
"""The library that the workload needs, or the device, does not work."""

MAXIMUM_CAUSES = 10
MAXIMUM_CHARACTERS = 400
TRACEBACK_CHARACTERS = 8000
_OWN_FOLDER = str(Path(__file__).parent)

_NO_MEMORY = re.compile(
    r"(?:CUDA|HIP|XPU|MPS backend|GPU|device|cudaErrorMemoryAllocation|hipErrorOutOfMemory)\b[^\n]{0,80}\bout of memory"
    r"|^out of memory"
    r"|would exceed allowed memory"
    r"|\b(?:CUBLAS|CUDNN|CUSOLVER|CUSPARSE|CUDSS|CUTENSOR|HIPBLAS)_STATUS_ALLOC_FAILED"
    r"|\bCURAND_STATUS_ALLOCATION_FAILED|\bCUFFT_ALLOC_FAILED|\brocblas_status_memory_error"
    r"|CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation"
    r"|DefaultCPUAllocator: (?:can't allocate memory|not enough memory)"
    r"|\bstd::bad_alloc|\bbad allocation\b|\[Errno 12\]|Error code 12 \(|paging file is too small"
    r"|\bInvalid buffer size\b",  # MPS, for more than one buffer may hold
    re.IGNORECASE | re.MULTILINE,
)
_NO_MEMORY_IF_FULL = re.compile(
    r"\bCUDNN_STATUS_(?:NOT_SUPPORTED|INTERNAL_ERROR|EXECUTION_FAILED|NOT_INITIALIZED)"
    r"|unable to find an engine to execute this computation"
    r"|\bCUBLAS_STATUS_(?:NOT_INITIALIZED|INTERNAL_ERROR|EXECUTION_FAILED)|\bCUFFT_INTERNAL_ERROR",
    re.IGNORECASE,
)
"""Libraries of CUDA that get no workspace say these too: https://github.com/pytorch/pytorch/issues/49207"""

_UNSUPPORTED = re.compile(
    r"invalid configuration argument"  # more than 65535 blocks: https://github.com/pytorch/pytorch/issues/142228
    r"|not (?:implemented|supported) for '?(?:Half|BFloat16|Float|Double|Complex\w*|torch\.\w+)'?"
    r"|no kernel image is available"
    r"|(?:bfloat16|float16|half|bf16|fp16)[^\n]{0,60} (?:is|are) not supported|does not support (?:bfloat16|bf16|half)"
    r"|only supports dimensions whose sizes are powers of two"  # cuFFT in half precision
    r"|canUse32BitIndexMath|32-bit index|more than INT_MAX elements|tensor is too large"
    r"|\bCUDNN_STATUS_(?:NOT_SUPPORTED|ARCH_MISMATCH|INTERNAL_ERROR|EXECUTION_FAILED)"
    r"|unable to find an engine to execute this computation"
    r"|\bCUBLAS_STATUS_(?:NOT_SUPPORTED|ARCH_MISMATCH|INTERNAL_ERROR|EXECUTION_FAILED|NOT_INITIALIZED)",
    re.IGNORECASE,
)
_COMPILER_TYPES = ("torch._dynamo.", "torch._inductor.", "triton.")

_POISON = re.compile(
    r"illegal memory access|unspecified launch failure|misaligned address|illegal instruction|illegal address"
    r"|invalid program counter|hardware stack error|invalid address space|uncorrectable (?:NVLink|ECC) error"
    r"|the launch timed out|fallen off the bus|CUDA error: unknown error|cudaErrorContained",
    re.IGNORECASE,
)
_ASSERTION = re.compile(r"device-side assert", re.IGNORECASE)


@record
class Failure:
    """What an exception means.

    kind: OUT_OF_MEMORY, UNSUPPORTED or WORKLOAD; of a request, USAGE or LIBRARY too.
    detail: one line: the exception's type and the first line of its message.
    traceback: of the user's code, the tuner's own frames left out; empty unless `kind` is WORKLOAD.
    poisons: the process cannot use the device any longer.
    """

    kind: str
    detail: str
    traceback: str = ""
    poisons: bool = False


def failure_of(error: BaseException, *, memory_full: bool = False) -> Failure:
    """Return what `error` means, or the first of its causes that says more than "the user's own bug".

    memory_full: next to nothing of the device's memory is left, which some libraries report in other words.
    """
    for cause in _causes(error):
        types = [f"{kind.__module__}.{kind.__qualname__}" for kind in type(cause).__mro__]
        kind, poisons = classify(types, str(cause), memory_full=memory_full)
        if kind != WORKLOAD or poisons:
            shown = _traceback(error) if kind == WORKLOAD else ""
            return Failure(kind=kind, detail=one_line(cause), traceback=shown, poisons=poisons)
    return Failure(kind=WORKLOAD, detail=one_line(error), traceback=_traceback(error))


def classify(types: Sequence[str], message: str, *, memory_full: bool = False) -> tuple[str, bool]:
    """Return the kind of an exception, and whether it poisons the process for good.

    types: of the exception and its bases, with their modules: ("torch.OutOfMemoryError", "builtins.RuntimeError", ...).
    """
    if _ASSERTION.search(message):
        return WORKLOAD, True
    if _POISON.search(message):
        return UNSUPPORTED, True
    if is_out_of_memory(types, message, memory_full=memory_full):
        return OUT_OF_MEMORY, False
    if _UNSUPPORTED.search(message) or any(name.startswith(_COMPILER_TYPES) for name in types):
        return UNSUPPORTED, False
    return WORKLOAD, False


def is_out_of_memory(types: Sequence[str], message: str, *, memory_full: bool = False) -> bool:
    """Return whether an exception says that memory is full, of the device or of the machine."""
    if any(name == "builtins.MemoryError" or name.endswith(".OutOfMemoryError") for name in types):
        return True
    return bool(_NO_MEMORY.search(message) or (memory_full and _NO_MEMORY_IF_FULL.search(message)))


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield `error`, what it was raised from or while handling, and so on."""
    current: BaseException | None = error
    for _ in range(MAXIMUM_CAUSES):
        if current is None:
            return
        yield current
        current = current.__cause__ or (None if current.__suppress_context__ else current.__context__)


def one_line(error: BaseException) -> str:
    """Return the type of an exception, and the first line of its message; the second too if the first announces it.

    "backend='inductor' raised:" says nothing without the line below it.
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = " ".join(lines[:2] if lines and lines[0].endswith(":") else lines[:1])
    return (f"{type(error).__name__}: {text}" if text else type(error).__name__)[:MAXIMUM_CHARACTERS]


def _traceback(error: BaseException) -> str:
    """Return the traceback from the first frame outside this folder on; whole if there is none."""
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename.startswith(_OWN_FOLDER):
        frames = frames.tb_next
    text = "".join(traceback.format_exception(type(error), error, frames or error.__traceback__))
    return text[-TRACEBACK_CHARACTERS:]
