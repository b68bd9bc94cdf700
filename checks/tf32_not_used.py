"""Float32 matrix products of a run that do not use TF32."""

from collections.abc import Iterator

from gpudoctor.model import Finding, Fix, Run, measured
from gpudoctor.registry import check, counted_steps, known, skip_unless

TF32_FROM = (8, 0)
LEAST_ELEMENTS = 2**20


@check(family="run")
def tf32_not_used(run: Run) -> Iterator[Finding]:
    """Large float32 matrix products do not use TF32 on a GPU that has it.

    Why: one line lets tensor cores multiply float32 matrices. They round the factors to 10 bits, which training usually
    tolerates.
    Exception: with autocast or half-precision weights the products do not need it. Small models pass. The time in
    matrix products is not measured, so no gain is given: `gpudoctor tune` measures it.
    Reference: https://docs.pytorch.org/docs/stable/notes/cuda.html#tensorfloat-32-tf32-on-ampere-and-later-devices
    """
    steps = counted_steps(run)
    large = known(steps.large_elements, "run.steps.large_elements")
    memory = known(run.memory, "run.memory")
    skip_unless(memory.capability >= TF32_FROM, "this GPU has no TF32")
    if large < LEAST_ELEMENTS or steps.precisions != ("float32",) or steps.autocast:
        return
    if known(steps.tf32, "run.steps.tf32"):
        return
    share = steps.forward_share + steps.backward_share
    summary = f"Float32 matrix products of {large / 1e6:.1f} million weights do not use TF32"
    facts = ("run.steps.tf32", "run.steps.large_elements", "run.steps.autocasts", "run.memory.capability")
    fix = Fix("enable-tf32", switch='torch.set_float32_matmul_precision("high")')
    yield Finding.warning("precision", summary, facts, fix, details=measured(share, steps.products_place))
