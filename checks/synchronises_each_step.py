"""Calls that make the program wait for the GPU in every step."""

from collections.abc import Iterator

from gpudoctor.model import Finding, Fix, Run, Severity, Steps, measured, share_text
from gpudoctor.registry import check, counted_steps

LEAST_CALLS = 0.9
"""Calls in each step: a loss that is printed every tenth step is no fault."""

LEAST_SHARE = 0.05
"""PyTorch's profiler and TensorFlow's input analyzer ignore what takes less."""

SHOWN_FROM = 0.005
BRINGS_RESULTS = ("cpu", "to", "tolist")
MOST_IN_INFERENCE = 1.5
"""Calls for each batch that bring its results to the CPU, which is what inference is for."""

_NAMES = {"__bool__": "if tensor:", "__float__": "float()", "__int__": "int()", "__index__": "an index"}
_NAMES |= {
    "__repr__": "print()",
    "__format__": "a formatted text",
    "__getitem__": "a mask as an index",
    "__setitem__": "a mask as an index",
    "__contains__": "in",
}

SIZED_BY_VALUES = {
    *("__getitem__", "__setitem__", "nonzero", "torch.nonzero", "argwhere", "torch.argwhere"),
    *(
        "masked_select",
        "torch.masked_select",
        "unique",
        "torch.unique",
        "unique_consecutive",
        "torch.unique_consecutive",
    ),
}
"""Calls whose results have as many elements as the values on the GPU say."""

SETTINGS = {
    "transformers": "TrainingArguments(logging_steps=100)",
    "accelerate": 'if step % 100 == 0: accelerator.log({"loss": loss})',
    "lightning": "Trainer(log_every_n_steps=100, enable_progress_bar=False)",
    "pytorch_lightning": "Trainer(log_every_n_steps=100, enable_progress_bar=False)",
}
"""Package → its setting for how often it reads results."""


@check(family="run")
def synchronises_each_step(run: Run) -> Iterator[Finding]:
    """The program waits for a result of the GPU in every step.

    Why: item(), cpu(), print() and float() wait until the GPU has finished. It then has nothing to do until the program
    has sent new work. nonzero(), unique() and a mask as an index wait too, because only the GPU knows how many elements
    they return; torch.where() does not.
    Exception: less than one call in each step passes, and so does inference that copies each batch's result to the CPU
    once. If the calls wait for less than 5 % of the time, this is advice. PyTorch's own calls, such as those of
    GradScaler, do not count, nor do decisions inside an installed package. Not all of the wait is lost: the GPU
    computes meanwhile.
    Reference: https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html#avoid-unnecessary-cpu-gpu-synchronization
    """
    steps = counted_steps(run)
    if steps.synchronisations < LEAST_CALLS or _is_result_of_inference(steps):
        return
    share = steps.synchronising_share
    name = steps.synchronising_call
    call = _NAMES.get(name, f"{name}()" if name.startswith("torch.") else f".{name}()")
    package = steps.synchronising_package
    place = f" at {steps.synchronising_place}" if steps.synchronising_place else ""
    place += f", in {package}" if package else ""
    number = f"{steps.synchronisations:.0f} times " if steps.synchronisations >= 1.5 else ""
    time = f": {share_text(share)} of its time" if share >= SHOWN_FROM else ""
    summary = f"Each step waits {number}for the GPU with {call}{place}{time}"
    facts = ("run.steps.synchronisations", "run.steps.synchronising_share", "run.steps.synchronising_place")
    severity = Severity.WARNING if share >= LEAST_SHARE or steps.is_stand_in else Severity.INFO
    saved = min(share, steps.active_share - share)  # the GPU computes while the program waits
    details = measured(share, steps.synchronising_place, saved=max(saved, 0.0))
    fix = Fix("keep-sizes-fixed" if name in SIZED_BY_VALUES else "read-results-seldom")
    if package in SETTINGS:
        fix = Fix("log-seldom", package=package, setting=SETTINGS[package])
    yield Finding.of(severity, "synchronisation", summary, facts, fix, details=details)


def _is_result_of_inference(steps: Steps) -> bool:
    is_result = steps.synchronising_call in BRINGS_RESULTS and steps.synchronisations <= MOST_IN_INFERENCE
    return steps.kind == "loader" and is_result
