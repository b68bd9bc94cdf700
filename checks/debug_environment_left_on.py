"""Environment variables for finding errors that cost speed when they stay set."""

from collections.abc import Iterator

from gpudoctor.data.environment_variables import DebugVariable, debug_variables
from gpudoctor.model import Environment, Finding, Fix, Severity, System, Torch
from gpudoctor.registry import check
from gpudoctor.symptoms import Symptoms


@check(family="cuda")
def debug_environment_left_on(
    environment: Environment, torch: Torch = Torch(), system: System = System(), symptoms: Symptoms = None
) -> Iterator[Finding]:
    """A debugging variable is still set in the environment and slows every program down.

    Why: with CUDA_LAUNCH_BLOCKING=1 Python waits for the GPU after every kernel, and no message says so.
    Exception: a value of 0 is off. In the report of a failed program this is advice, because the variable was probably
    set to find the error. OMP_NUM_THREADS=1 is advice only, because launchers set it on purpose.
    Reference: https://docs.nvidia.com/cuda/cuda-programming-guide/05-appendices/environment-variables.html
    """
    for variable in debug_variables():
        value = environment.get(variable.name)
        if value and variable.is_on(value):
            yield _finding(variable, value, torch, searching=bool(symptoms))
    threads, processors = environment.get("OMP_NUM_THREADS"), system.cpu_count
    if threads == "1" and processors is not None and processors > 1:
        summary = f"OMP_NUM_THREADS is 1 on a machine with {processors} processors, so work on the CPU runs on one"
        facts = ("environment.OMP_NUM_THREADS", "system.cpu_count")
        yield Finding.advice("OMP_NUM_THREADS", summary, facts, Fix("unset-variable", name="OMP_NUM_THREADS"))


def _finding(variable: DebugVariable, value: str, torch: Torch, *, searching: bool) -> Finding:
    """Return the finding. searching: somebody looks for an error."""
    facts: tuple[str, ...] = (f"environment.{variable.name}",)
    severity = Severity.WARNING if variable.slows and not searching else Severity.INFO
    cost = variable.cost
    if variable.name == "CUDA_FORCE_PTX_JIT" and _has_no_ptx(torch):
        severity, cost = Severity.ERROR, "machine code is ignored, and this PyTorch has no PTX to compile instead"
        facts += ("torch.architectures",)
    summary = f"{variable.name} is {value}: {cost}"
    return Finding.of(
        severity, variable.name, summary, facts, Fix("unset-variable", name=variable.name, reference=variable.source)
    )


def _has_no_ptx(torch: Torch) -> bool:
    architectures = torch.architectures if torch.build == "cuda" else None
    return bool(architectures) and not any(name.startswith("compute_") for name in architectures or ())
