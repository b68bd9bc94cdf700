"""Steps of many small kernels."""

from collections.abc import Iterator

from gpudoctor.model import Finding, Fix, Run, Steps, measured, share_text
from gpudoctor.registry import check, counted_steps, known, skip_unless

FEWEST_OPERATIONS = 150
MOST_LARGE = 0.2
"""Share of operations whose kernels take longer than their launch."""

FEWEST_KERNELS = 300
"""A forward and a backward one for each of the fewest operations."""

LAUNCH_MS = 0.01
"""CUDA needs 5 to 20 µs to launch a kernel: https://pytorch.org/blog/accelerating-pytorch-with-cuda-graphs/"""

MOST_BUSY = 0.6
"""Share of the time in which the GPU computes, from which on launches are not what it waits for."""


@check(family="run")
def launch_bound(run: Run) -> Iterator[Finding]:
    """The steps consist of many small kernels, and launching them takes longer than computing.

    Why: every operation starts at least one kernel, which costs the CPU 5 to 20 µs, however small it is. The GPU
    finishes it before the next one arrives.
    Exception: on a real GPU, the kernels of one step are counted after a minute of training. Fewer than 300 pass. So do
    kernels that take longer than 10 µs each, or keep the GPU busy for 60 % of the step. Without that count, the
    operations between parameters and loss are counted; each starts at least one kernel forward and one backward. Fewer
    than 150 small operations pass. So do operations of which more than a fifth are large: 262,144 elements, which keep
    a GPU busy for as long as a launch takes. No gain is given then, because none is measured. Compiled models and CUDA
    graphs are not judged.
    Reference: https://pytorch.org/blog/accelerating-pytorch-with-cuda-graphs/
    """
    steps = counted_steps(run)
    skip_unless(not steps.is_compiled, "torch.compile joins the operations of the model")
    skip_unless(not steps.cuda_graphs, "CUDA graphs launch many kernels at once")
    found = _of_operations(steps) if steps.kernels is None or steps.gpu_busy_ms is None else _of_kernels(steps)
    if found is not None:
        yield found


def _of_kernels(steps: Steps) -> Finding | None:
    kernels, busy = known(steps.kernels, "run.steps.kernels"), known(steps.gpu_busy_share, "run.steps.gpu_busy_ms")
    each_ms = known(steps.gpu_busy_ms, "run.steps.gpu_busy_ms") / max(kernels, 1)
    if kernels < FEWEST_KERNELS or each_ms > LAUNCH_MS or busy >= MOST_BUSY:
        return None
    share = steps.forward_share + steps.backward_share + steps.optimizer_share
    each = f"{each_ms * 1000:.1f} µs"
    summary = f"Each step launches {kernels:,} kernels of {each}, which keep the GPU busy for {share_text(busy)} of it"
    facts = ("run.steps.kernels", "run.steps.gpu_busy_ms", "run.steps.operators")
    details = measured(share, steps.operators_place, saved=max(share - busy, 0.0))
    return Finding.warning("kernels", summary, facts, Fix("launch-fewer-kernels"), details=details)


def _of_operations(steps: Steps) -> Finding | None:
    operations = known(steps.operations, "run.steps.operations")
    small = known(steps.small_operations, "run.steps.small_operations")
    if small < FEWEST_OPERATIONS or small < (1 - MOST_LARGE) * operations:
        return None
    share = steps.forward_share + steps.backward_share
    whole = f"the whole step dispatches {steps.operators:,} operators; " if steps.operators else ""
    summary = (
        f"The loss of each step takes {operations} operations, {small} of them small; "
        f"{whole}forward and backward pass take {share_text(share)} of its time"
    )
    passes = ("run.steps.forward_share", "run.steps.backward_share")
    facts = ("run.steps.operations", "run.steps.small_operations", "run.steps.operators", *passes)
    return Finding.warning(
        "kernels", summary, facts, Fix("launch-fewer-kernels"), details=measured(share, steps.operators_place)
    )
