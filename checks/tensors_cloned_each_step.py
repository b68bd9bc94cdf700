"""Copies of tensors on the GPU that every step makes again."""

from collections.abc import Iterator

from gpudoctor.model import Finding, Fix, Run, measured, share_text, size_text
from gpudoctor.registry import check, counted_steps

LEAST_CLONES = 0.9
MANY_CLONES = 4
LEAST_SHARE = 0.05
LEAST_OF_MODEL = 0.5
"""Bytes cloned in each step, of the bytes of all parameters: the model is copied, not a small result."""


@check(family="run")
def tensors_cloned_each_step(run: Run) -> Iterator[Finding]:
    """Every step clones tensors.

    Why: each clone reads and writes the whole tensor, takes memory for both, and starts a kernel. The best weights need
    a copy only when they have improved.
    Exception: clones in less than nine of ten steps pass, and so do a few small ones: less than half of the model's
    parameters and less than 5 % of the time.
    Reference: https://docs.pytorch.org/docs/stable/generated/torch.clone.html
    """
    steps = counted_steps(run)
    of_model = steps.clone_bytes / steps.parameter_bytes if steps.parameter_bytes else 0.0
    is_much = steps.cloning_share >= LEAST_SHARE or (steps.clones >= MANY_CLONES and of_model >= LEAST_OF_MODEL)
    if steps.clones < LEAST_CLONES or not is_much:
        return
    share, place = steps.cloning_share, steps.cloning_place
    size = size_text(steps.clone_bytes)
    cloned = f"{steps.clones:.0f} tensors, {size}{f' at {place}' if place else ''}"
    summary = f"Each step clones {cloned}: {share_text(share)} of its time"
    facts = ("run.steps.clones", "run.steps.clone_bytes", "run.steps.cloning_share", "run.steps.parameter_bytes")
    details = measured(share, place, saved=share)
    yield Finding.warning("clones", summary, facts, Fix("clone-only-to-keep"), details=details)
