"""Training in float32 without autocast."""

from collections.abc import Iterator

from gpudoctor.model import Finding, Fix, Run, measured
from gpudoctor.registry import check, counted_steps, known, skip_unless

TENSOR_CORES_FROM = (7, 0)
BF16_FROM = (8, 0)
LEAST_ELEMENTS = 2**20
"""Weights in large matrices. Autocast costs a small model more than it gains."""


@check(family="run")
def amp_not_used(run: Run) -> Iterator[Finding]:
    """A large float32 model trains without autocast, so the tensor cores are idle.

    Why: in bf16 or fp16 tensor cores multiply matrices several times faster, and activations take half the memory.
    Exception: models with fewer than a million weights in large matrices pass. So do models that already use TF32,
    models with half-precision weights, and compiled models, whose precision cannot be seen. The time in matrix products
    is not measured, so no gain is given: `gpudoctor tune` measures it.
    Reference: https://docs.pytorch.org/docs/stable/amp.html
    """
    steps = counted_steps(run)
    large = known(steps.large_elements, "run.steps.large_elements")
    memory = known(run.memory, "run.memory")
    skip_unless(memory.capability >= TENSOR_CORES_FROM, "this GPU has no tensor cores")
    skip_unless(not steps.is_compiled, "the precision of a compiled model cannot be seen")
    if large < LEAST_ELEMENTS or steps.precisions != ("float32",) or steps.autocast or steps.tf32:
        return
    dtype = "torch.bfloat16" if memory.capability >= BF16_FROM else "torch.float16"
    also = "" if memory.capability >= BF16_FROM else ', and scale the loss with torch.amp.GradScaler("cuda")'
    share = steps.forward_share + steps.backward_share
    summary = f"The model multiplies float32 matrices of {large / 1e6:.1f} million weights without autocast"
    facts = ("run.steps.large_elements", "run.steps.precisions", "run.steps.autocasts", "run.memory.capability")
    details = measured(share, steps.products_place)
    yield Finding.warning("precision", summary, facts, Fix("autocast", dtype=dtype, also=also), details=details)
