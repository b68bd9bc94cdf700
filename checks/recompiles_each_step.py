"""Models that torch.compile compiles again and again."""

from collections.abc import Iterator

from gpudoctor.model import Finding, Fix, Run, measured
from gpudoctor.registry import check, counted_steps, skip_unless

FEWEST_GRAPHS = 3
"""Two are usual: the first with fixed shapes, the second with those that change left open."""


@check(family="run")
def recompiles_each_step(run: Run) -> Iterator[Finding]:
    """torch.compile compiles the model again while it trains.

    Why: each new shape or value that a graph depends on takes seconds to compile. After eight compilations of the same
    code PyTorch gives up and runs that code uncompiled.
    Exception: up to two graphs after the first steps pass.
    Reference: https://docs.pytorch.org/docs/stable/torch.compiler_troubleshooting.html
    """
    steps = counted_steps(run)
    skip_unless(steps.is_compiled, "torch.compile was not used")
    if steps.graphs < FEWEST_GRAPHS:
        return
    total = steps.counted * steps.step_ms / 1000
    share = min(steps.compile_seconds / total, 0.9) if total else 0.0
    shapes = f", for {steps.shapes} shapes of its input" if steps.shapes > 1 else ""
    summary = f"torch.compile compiled {steps.graphs} more graphs in {steps.counted} steps{shapes}"
    facts = ("run.steps.graphs", "run.steps.shapes", "run.steps.compile_seconds")
    saved = min(share, steps.forward_share + steps.backward_share)
    details = measured(share, steps.compiling_place, saved=saved)
    yield Finding.warning("torch.compile", summary, facts, Fix("compile-once"), details=details)
