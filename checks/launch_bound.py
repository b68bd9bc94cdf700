"""Steps of many small kernels."""

from collections.abc import Iterator

from gpudoctor.model import Finding, Fix, Run, measured
from gpudoctor.registry import check, counted_steps, known, skip_unless

FEWEST_OPERATIONS = 150
KERNELS_PER_OPERATION = 2.5
"""One forward, one or two backward."""

MOST_LARGE = 0.2
"""Share of operations whose kernels take longer than their launch."""

ASSUMED_SAVING = 0.5
"""Of the time of launches, by CUDA graphs: an assumption, no measurement."""


@check(family="run")
def launch_bound(run: Run) -> Iterator[Finding]:
    """The steps consist of many small kernels, and launching them takes longer than computing.

    Why: every operation starts at least one kernel, which costs the CPU 5 to 20 µs, however small it is. The GPU
    finishes it before the next one arrives.
    Exception: a model of fewer than 150 small operations passes, and so does one in which more than a fifth of them are
    large: 262,144 elements, which take a GPU as long as a launch. The number of kernels is estimated from the
    operations between parameters and loss. A compiled model is not judged.
    Reference: https://pytorch.org/blog/accelerating-pytorch-with-cuda-graphs/
    """
    steps = counted_steps(run)
    operations = known(steps.operations, "run.steps.operations")
    small = known(steps.small_operations, "run.steps.small_operations")
    skip_unless(not steps.is_compiled, "torch.compile joins the operations of the model")
    if small < FEWEST_OPERATIONS or small < (1 - MOST_LARGE) * operations:
        return
    share = steps.forward_share + steps.backward_share
    kernels = operations * KERNELS_PER_OPERATION
    summary = f"Each step launches about {kernels:.0f} kernels, most of them small: {share:.0%} of its time"
    facts = (
        "run.steps.operations",
        "run.steps.small_operations",
        "run.steps.forward_share",
        "run.steps.backward_share",
    )
    details = measured(share, saved=share * ASSUMED_SAVING)
    yield Finding.warning("kernels", summary, facts, Fix("launch-fewer-kernels"), details=details)
