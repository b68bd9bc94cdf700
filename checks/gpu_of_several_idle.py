"""GPUs of a job that nothing runs on."""

from collections.abc import Iterator

from gpudoctor.model import Finding, Fix, Run, measured
from gpudoctor.registry import check, skip_unless

FEWEST_SAMPLES = 5
IN_USE_BYTES = 512 * 2**20


@check(family="run")
def gpu_of_several_idle(run: Run) -> Iterator[Finding]:
    """The program uses some GPUs of the job and leaves others idle.

    Why: a program uses one GPU unless it starts a process for each.
    Exception: GPUs that CUDA_VISIBLE_DEVICES leaves out, that other programs use, or that MIG divides, do not count.
    Reference: https://docs.pytorch.org/tutorials/beginner/ddp_series_multigpu.html
    """
    seen = [gpu for gpu in run.gpus if gpu.samples >= FEWEST_SAMPLES and not gpu.is_mig]
    used = [gpu for gpu in seen if gpu.is_used]
    skip_unless(len(seen) > 1 and used, "the program has one GPU, or none was watched for long enough")
    idle = [
        gpu for gpu in seen if gpu.is_used is False and not gpu.utilization_percent and not _is_taken(gpu.other_bytes)
    ]
    if idle:
        names = ", ".join(str(gpu.nvml_index) for gpu in idle)
        share = len(idle) / len(seen)
        summary = f"The program used {len(used)} of {len(seen)} GPUs; idle: GPU {names}"
        facts = tuple(f"run.gpus[{run.gpus.index(gpu)}].utilization_percent" for gpu in idle)
        yield Finding.advice(
            f"GPU {names}", summary, facts, Fix("use-every-gpu", count=len(seen)), details=measured(share)
        )


def _is_taken(other_bytes: int | None) -> bool:
    return other_bytes is not None and other_bytes > IN_USE_BYTES
