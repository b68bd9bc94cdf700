"""Steps of many small kernels."""

from collections.abc import Iterator

from gpudoctor.model import Finding, Fix, Run, measured
from gpudoctor.registry import check, counted_steps, known, skip_unless

FEWEST_OPERATIONS = 150
MOST_LARGE = 0.2
"""Share of operations whose kernels take longer than their launch."""


@check(family="run")
def launch_bound(run: Run) -> Iterator[Finding]:
    """The steps consist of many small kernels, and launching them takes longer than computing.

    Why: every operation starts at least one kernel, which costs the CPU 5 to 20 µs, however small it is. The GPU
    finishes it before the next one arrives.
    Exception: a model of fewer than 150 small operations passes, and so does one in which more than a fifth of them are
    large: 262,144 elements, which take a GPU as long as a launch. The operations are those between parameters and loss,
    and each is at least one kernel forward and one backward. A compiled model is not judged. Nothing measures how much
    fewer kernels gain, so no gain is given.
    Reference: https://pytorch.org/blog/accelerating-pytorch-with-cuda-graphs/
    """
    steps = counted_steps(run)
    operations = known(steps.operations, "run.steps.operations")
    small = known(steps.small_operations, "run.steps.small_operations")
    skip_unless(not steps.is_compiled, "torch.compile joins the operations of the model")
    if small < FEWEST_OPERATIONS or small < (1 - MOST_LARGE) * operations:
        return
    share = steps.forward_share + steps.backward_share
    summary = (
        f"The loss of each step takes {operations} operations, {small} of them small; "
        f"forward and backward pass take {share:.0%} of its time"
    )
    facts = (
        "run.steps.operations",
        "run.steps.small_operations",
        "run.steps.forward_share",
        "run.steps.backward_share",
    )
    yield Finding.warning("kernels", summary, facts, Fix("launch-fewer-kernels"), details=measured(share))
