"""Batches that leave most of the GPU without work."""

from collections.abc import Iterator

from gpudoctor.model import Finding, Fix, Run, measured, share_text
from gpudoctor.registry import check, counted_steps, known, skip_unless

MOST_UTILIZATION = 50
MOST_MEMORY = 0.4
MOST_WAITING = 0.2


@check(family="run")
def batch_could_grow(run: Run) -> Iterator[Finding]:
    """The batch is small for this GPU, which is idle most of the time and has memory left.

    Why: a small batch costs nearly as much as a large one if the GPU is not full. Twice the batch then takes little
    more time.
    Exception: the batch is not the cause if the steps wait for data, copies or results. A busy GPU passes, and so does
    one with 40 % or more of its memory in use. A larger batch may need another learning rate.
    Reference: https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html
    """
    steps = counted_steps(run)
    used = [gpu for gpu in run.gpus if gpu.is_used]
    skip_unless(used, "the driver lists the program on no GPU")
    utilization = known(used[0].utilization_percent, "run.gpus[0].utilization_percent")
    inside = run.memory.allocated_peak_bytes if run.memory else None
    peak = known(inside or used[0].memory_peak_bytes, "run.gpus[0].memory_peak_bytes")
    total = known(used[0].memory_total_bytes, "run.gpus[0].memory_total_bytes")
    waiting = max(steps.input_share, steps.copies_share, steps.synchronising_share)
    if not 0 < utilization < MOST_UTILIZATION or peak > MOST_MEMORY * total or waiting > MOST_WAITING:
        return
    batch = steps.loader.batch_size if steps.loader else None
    of = f"The batch of {batch}" if batch else "The batch"
    share = 1 - utilization / 100
    summary = f"{of} uses {share_text(peak / total)} of the GPU's memory and {utilization:.0f} % of its time"
    batch_fact = "run.steps.loader.batch_size" if batch else ""
    facts = ("run.gpus[0].utilization_percent", "run.gpus[0].memory_total_bytes", batch_fact)
    place = steps.loader.made if steps.loader else ""
    details = measured(share, place, saved=share * steps.active_share)
    yield Finding.warning("batch size", summary, facts, Fix("grow-batch"), details=details)
