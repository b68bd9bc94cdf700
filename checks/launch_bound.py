"""Steps of many small kernels."""

from collections.abc import Iterator

from gpudoctor.model import Finding, Fix, Run, measured
from gpudoctor.registry import check, counted_steps, known, skip_unless

FEWEST_OPERATIONS = 150
KERNELS_PER_OPERATION = 2.5
"""One forward, one or two backward."""

MOST_MICROSECONDS = 20
"""Launching a kernel from Python takes 5 to 20 µs: below that the CPU, not the GPU, sets the pace."""

ASSUMED_SAVING = 0.5
"""Of the time of launches, by CUDA graphs: an assumption, no measurement."""

BUSY_PERCENT = 90


@check(family="run")
def launch_bound(run: Run) -> Iterator[Finding]:
    """The steps consist of many small kernels, and launching them takes longer than computing.

    Why: every operation starts at least one kernel, which costs the CPU 5 to 20 µs, however small it is. The GPU is
    done before the next one comes.
    Exception: a model of fewer than 150 operations passes, and so does one whose operations take longer on average. The
    number of kernels is estimated from the operations between parameters and loss. A compiled model is not judged.
    Reference: https://pytorch.org/blog/accelerating-pytorch-with-cuda-graphs/
    """
    steps = counted_steps(run)
    operations = known(steps.operations, "run.steps.operations")
    skip_unless(not steps.is_compiled, "torch.compile joins the operations of the model")
    kernels = operations * KERNELS_PER_OPERATION
    active = (steps.forward_share + steps.backward_share) * steps.step_ms * 1000
    each = active / kernels if kernels else 0.0
    if operations < FEWEST_OPERATIONS or each > MOST_MICROSECONDS:
        return
    share = steps.forward_share + steps.backward_share
    summary = (
        f"Each step launches about {kernels:.0f} small kernels, one every {each:.0f} µs, as fast as the CPU can: "
        f"{share:.0%} of its time"
    )
    facts = ("run.steps.operations", "run.steps.forward_share", "run.steps.backward_share", "run.steps.step_ms")
    details = measured(share, saved=share * ASSUMED_SAVING)
    yield Finding.warning("kernels", summary, facts, Fix("launch-fewer-kernels"), details=details)
