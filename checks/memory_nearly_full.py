"""GPU memory that leaves no room for a larger input."""

from collections.abc import Iterator

from gpudoctor.model import Finding, Fix, Run, measured, share_text, size_text
from gpudoctor.registry import check, known, skip_unless

LEAST_SHARE = 0.8


@check(family="run")
def memory_nearly_full(run: Run) -> Iterator[Finding]:
    """The program used nearly all memory of the GPU.

    Why: the next larger input may fail with an out-of-memory error, and other programs have no room.
    Exception: up to 80 % passes. Tensor memory counts if PyTorch reports it, otherwise the memory of all programs,
    including allocator caches. Without PyTorch nothing is judged: JAX and TensorFlow reserve most memory in advance.
    Reference: https://docs.pytorch.org/docs/stable/notes/cuda.html#memory-management
    """
    memory = run.memory
    if memory is not None and memory.allocated_peak_bytes is not None:
        used, total, whose = memory.allocated_peak_bytes, memory.total_bytes, "Tensors"
        facts = ("run.memory.allocated_peak_bytes", "run.memory.total_bytes")
    else:
        skip_unless(run.imports_torch is not False, "JAX and TensorFlow reserve most of the memory in advance")
        found = [
            gpu for gpu in run.gpus if gpu.is_used and gpu.memory_total_bytes and gpu.memory_peak_bytes is not None
        ]
        skip_unless(found, "the program used no GPU whose memory is known")
        gpu = max(found, key=lambda gpu: (gpu.memory_peak_bytes or 0) / (gpu.memory_total_bytes or 1))
        path, whose = f"run.gpus[{run.gpus.index(gpu)}]", "Programs"
        used, total = known(gpu.memory_peak_bytes, path), known(gpu.memory_total_bytes, path)
        facts = (f"{path}.memory_peak_bytes", f"{path}.memory_total_bytes")
    share = used / total
    if share > LEAST_SHARE:
        summary = (
            f"{whose} took up to {size_text(used)} of {size_text(total)} ({share_text(share)}) of the GPU's memory"
        )
        yield Finding.warning("GPU memory", summary, facts, Fix("leave-memory-free"), details=measured(share))
