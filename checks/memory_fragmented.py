"""GPU memory that PyTorch has reserved and cannot use."""

from collections.abc import Iterator

from gpudoctor.model import Finding, Fix, Run, measured, share_text, size_text
from gpudoctor.registry import check, known

LEAST_SHARE = 0.3
LEAST_RESERVED = 0.1
"""Of the GPU's memory: what a small job wastes matters to nobody."""


@check(family="run")
def memory_fragmented(run: Run) -> Iterator[Finding]:
    """PyTorch's reserved GPU memory is fragmented: the free pieces are too small to use.

    Why: tensors of ever-changing sizes leave gaps. PyTorch then empties its cache again and again, which takes time, or
    fails with an out-of-memory error although memory is free.
    Exception: gaps of up to 30 % of the reserved memory pass, and so does a program that reserves less than a tenth of
    the GPU's memory.
    Reference: https://docs.pytorch.org/docs/stable/notes/cuda.html#optimizing-memory-usage-with-pytorch-alloc-conf
    """
    memory = known(run.memory, "run.memory")
    reserved = known(memory.reserved_bytes, "run.memory.reserved_bytes")
    split = known(memory.split_bytes, "run.memory.split_bytes")
    share = split / reserved if reserved else 0.0
    if share <= LEAST_SHARE or reserved < LEAST_RESERVED * memory.total_bytes:
        return
    sizes = f"{size_text(split)} of the {size_text(reserved)} that PyTorch reserved"
    retries = f"; it emptied its cache {memory.retries} times" if memory.retries else ""
    failed = f"; {memory.out_of_memory} allocations failed" if memory.out_of_memory else ""
    summary = f"Gaps take {share_text(share)} of PyTorch's memory, {sizes}{retries}{failed}"
    facts = ("run.memory.split_bytes", "run.memory.reserved_bytes", "run.memory.retries", "run.memory.out_of_memory")
    yield Finding.warning("GPU memory", summary, facts, Fix("grow-segments"), details=measured(share))
