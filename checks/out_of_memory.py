"""A job that got no memory."""

from collections.abc import Iterator

from gpudoctor.model import Finding, Fix, Severity, Shortage
from gpudoctor.registry import check, skip_unless

LONGEST_QUOTE = 120  # characters of a message without numbers
# By the kind of message if that is here, else by the cause.
SUMMARIES = {
    "cublas-no-handle": "cuBLAS could not be set up, probably because no device memory is left for it",
    "memory-short-in-words": "The device probably has too little memory for the job, according to the report",
    "torch-nvml-assert": "PyTorch ran out of device memory, and NVML has no numbers for its message, as on a MIG "
    "instance",
    "memory-holder-listed": "The device memory probably belongs to another process, or to one that has not ended",
    "others": "Other processes use the device memory",
    "fragmented": "The device memory is fragmented",
    "refused": "The job got no device memory, although enough is free",
    "too-large": "The job is too large for the device memory",
    "unknown": "The job gets no more device memory",
    "host": "The main memory is full, not the GPU memory",
    "killed": "The process was killed, probably because the main memory is full, not the GPU memory",
}
DEVICE = ("make-job-smaller", "use-larger-mig-instance", "configure-allocator", "find-who-holds-memory")
FIXES = {
    "others": ("find-who-holds-memory", "make-job-smaller", "use-larger-mig-instance", "configure-allocator"),
    "fragmented": ("configure-allocator", "make-job-smaller", "use-larger-mig-instance", "find-who-holds-memory"),
    "refused": ("find-memory-limit", "find-who-holds-memory", "configure-allocator", "make-job-smaller"),
    "host": ("use-less-main-memory", "add-main-memory"),
    "killed": ("find-what-killed-process", "use-less-main-memory", "add-main-memory"),
}


@check(
    family="memory",
    explains=("cudnn-missing-or-mismatch", "torch-import-failed", "torch-library-missing", "cupy-unusable"),
)
def out_of_memory(shortage: Shortage) -> Iterator[Finding]:
    """The job ran out of memory: it is too large, another process uses the memory, or the memory is fragmented.

    Why: the numbers in the message show which of the three it is. Memory that other processes use is not available to
    the job. If the request fits in the free memory and what the allocator reserved but did not allocate, that memory is
    in pieces that are too small. Otherwise the job itself is too large for the device. If the free memory alone is
    enough, a limit applies, or another process used the memory at that moment. A process that is killed ran out of main
    memory, not of device memory.
    Exception: this check finds only messages in a report. `gpu-memory-held-by-others` checks a live machine.
    Reference: https://docs.pytorch.org/docs/stable/notes/faq.html#my-model-reports-cuda-runtime-error-2-out-of-memory
    """
    skip_unless(shortage.cause, "no message reports this problem")
    start = SUMMARIES.get(shortage.kind) or SUMMARIES[shortage.cause]
    yield Finding.of(
        Severity.ERROR if shortage.certain else Severity.WARNING,
        "main memory" if shortage.cause in ("host", "killed") else "device memory",
        f"{start}: {shortage.numbers or shortage.text[:LONGEST_QUOTE].strip()}",
        (shortage.fact,),
        *map(Fix, FIXES.get(shortage.cause, DEVICE)),
        certain=shortage.certain,
        details={"cause": shortage.cause},
    )
