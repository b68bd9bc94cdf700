"""Programs that leave the GPU alone."""

from collections.abc import Iterator

from gpudoctor.model import Finding, Fix, Run, measured
from gpudoctor.registry import check, known, skip_unless

FEWEST_SAMPLES = 5
BY_SIGNAL = 128
"""Exit statuses from here on mean that a signal ended the program."""


@check(family="run")
def gpu_never_used(run: Run) -> Iterator[Finding]:
    """The program computes on the CPU and never used the GPU.

    Why: a model is on the CPU until the program moves it. Nothing fails, and everything is many times slower.
    Exception: a machine without a GPU passes, and fewer than five samples prove nothing. In a container the
    driver may not list the program; then growing memory and a load of 10 % count as use. A program that fails before
    its first step is not judged.
    Reference: https://docs.pytorch.org/docs/stable/notes/cuda.html
    """
    skip_unless(run.gpus, "no NVIDIA GPU was watched")
    steps = run.steps
    details = measured(1.0, steps.products_place or steps.operators_place if steps is not None else "")
    if steps is not None and steps.parameter_devices:
        if steps.parameter_devices == ("cpu",) and not steps.sent_to_gpu:
            summary = "The optimizer trains parameters on the CPU, and nothing was sent to the GPU"
            inner = ("run.steps.parameter_devices", "run.steps.sent_to_gpu")
            yield Finding.error("the model", summary, inner, Fix("move-training-to-gpu"), details=details)
        return
    if run.sent_to_gpu:
        return
    skip_unless(not _has_failed(run), f"the program failed with exit status {run.exit_status} before its first step")
    skip_unless(run.samples >= FEWEST_SAMPLES, f"{run.samples} samples of the GPU are too few")
    used = [gpu.is_used for gpu in run.gpus]
    if any(used):
        return
    known(None if None in used else False, "use of the GPU")
    busy = any(gpu.utilization_percent for gpu in run.gpus)
    detail = "other programs used it" if busy else "its utilisation was 0 % throughout"
    summary = f"The program never used the GPU in {run.samples} samples: {detail}"
    facts = ("run.gpus[0].is_used", "run.gpus[0].utilization_percent", "run.samples")
    yield Finding.error("the program", summary, facts, Fix("check-why-gpu-is-unused"), details=details)


def _has_failed(run: Run) -> bool:
    return run.steps is None and run.exit_status is not None and 0 < run.exit_status < BY_SIGNAL
