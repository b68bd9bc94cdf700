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
    Exception: a model with fewer than 150 small operations passes. So does one in which more than a fifth of the
    operations are large: 262,144 elements, which keep a GPU busy for as long as a launch takes. The operations between
    parameters and loss are counted; each starts at least one kernel forward and one backward. Compiled models are not
    judged. The gain from fewer kernels is not measured, so none is given.
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
