"""Other programs on the GPU that a program uses."""

from collections.abc import Iterator

from gpudoctor.model import Finding, Fix, Run, measured, size_text
from gpudoctor.registry import check, known, skip_unless

LEAST_BYTES = 512 * 2**20
"""A desktop takes less."""


@check(family="run")
def shared_gpu(run: Run) -> Iterator[Finding]:
    """Other programs used the same GPU.

    Why: programs on one GPU take turns, so each gets a part of its time, and their memory is missing.
    Exception: up to 512 MiB pass, because a desktop uses as much. In a container the driver lists no processes, so
    the check finds nothing.
    Reference: https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html
    """
    used = [gpu for gpu in run.gpus if gpu.is_used]
    skip_unless(used, "the driver lists the program on no GPU")
    for gpu in used:
        path = f"run.gpus[{run.gpus.index(gpu)}]"
        others = known(gpu.other_bytes, f"{path}.other_bytes")
        if others > LEAST_BYTES:
            summary = f"Other programs took {size_text(others)} of GPU {gpu.nvml_index} while the program ran"
            facts = (f"{path}.other_bytes", f"{path}.memory_total_bytes")
            yield Finding.warning(
                f"GPU {gpu.nvml_index}", summary, facts, Fix("find-who-shares-gpu"), details=measured(None)
            )
