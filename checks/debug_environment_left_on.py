"""Environment variables for finding errors that cost speed when they stay set."""

from collections.abc import Iterator

from gpudoctor.model import Environment, Finding, Remedy, Severity, Symptom, System, Torch
from gpudoctor.model.record import record
from gpudoctor.registry import check
from gpudoctor.remedies import unset_variable

CUDA_GUIDE = "https://docs.nvidia.com/cuda/cuda-programming-guide/05-appendices/environment-variables.html"
TORCH_GUIDE = "https://docs.pytorch.org/docs/stable/cuda_environment_variables.html"
CUPY_GUIDE = "https://docs.cupy.dev/en/stable/reference/environment.html"


@record
class _Switch:
    """A variable, the values with which it costs something ("*" for any but 0), and what it costs."""

    name: str
    values: tuple[str, ...]
    severity: Severity
    cost: str
    reference: str


SWITCHES = (
    _Switch(
        name="CUDA_LAUNCH_BLOCKING",
        values=("*",),
        severity=Severity.WARNING,
        cost="every kernel launch waits until the kernel has ended",
        reference=CUDA_GUIDE,
    ),
    _Switch(
        name="CUDA_FORCE_PTX_JIT",
        values=("*",),
        severity=Severity.WARNING,
        cost="machine code is passed over and PTX compiled instead, which libraries without PTX do not survive",
        reference=CUDA_GUIDE,
    ),
    _Switch(
        name="CUDA_DISABLE_PTX_JIT",
        values=("*",),
        severity=Severity.WARNING,
        cost="a kernel without machine code for the device fails instead of being compiled",
        reference=CUDA_GUIDE,
    ),
    _Switch(
        name="PYTORCH_NO_CUDA_MEMORY_CACHING",
        values=("*",),
        severity=Severity.WARNING,
        cost="PyTorch asks the driver for each tensor's memory anew",
        reference=TORCH_GUIDE,
    ),
    _Switch(
        name="CUDA_CACHE_DISABLE",
        values=("*",),
        severity=Severity.INFO,
        cost="compiled PTX is not kept, so that each start compiles it again",
        reference=CUDA_GUIDE,
    ),
    _Switch(
        name="CUDA_MODULE_LOADING",
        values=("EAGER",),
        severity=Severity.INFO,
        cost="all kernels are loaded at the start, which takes longer and more memory than when they are needed",
        reference=CUDA_GUIDE,
    ),
    _Switch(
        name="CUPY_CACHE_IN_MEMORY",
        values=("*",),
        severity=Severity.INFO,
        cost="CuPy keeps compiled kernels in memory only, so that each start compiles them again",
        reference=CUPY_GUIDE,
    ),
    _Switch(
        name="NCCL_DEBUG",
        values=("INFO", "TRACE"),
        severity=Severity.INFO,
        cost="NCCL writes each of its steps to the log",
        reference="https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html",
    ),
)


@check(family="cuda")
def debug_environment_left_on(
    environment: Environment,
    torch: Torch | None = None,
    system: System | None = None,
    symptoms: tuple[Symptom, ...] | None = None,
) -> Iterator[Finding]:
    """An environment variable for finding errors is still set and slows every program down.

    Why: with CUDA_LAUNCH_BLOCKING=1 the GPU waits for Python between any two kernels; nothing else tells of it.
    Exception: a value of 0 is off. In a report of a program that failed it is advice: who looks for an error sets it.
    OMP_NUM_THREADS=1 is advice only, for launchers set it on purpose.
    Reference: https://docs.nvidia.com/cuda/cuda-programming-guide/05-appendices/environment-variables.html
    """
    for switch in SWITCHES:
        value = environment.get(switch.name)
        if value and (value.upper() in switch.values or ("*" in switch.values and value != "0")):
            yield _finding(switch, value, torch, system, bool(symptoms))
    threads, processors = environment.get("OMP_NUM_THREADS"), system.cpu_count if system is not None else None
    if threads == "1" and processors is not None and processors > 1:
        yield Finding(
            severity=Severity.INFO,
            summary=f"OMP_NUM_THREADS is 1 on a machine with {processors} processors, so work on the CPU runs on one",
            subject="OMP_NUM_THREADS",
            facts=("environment.OMP_NUM_THREADS", "system.cpu_count"),
            remedies=(unset_variable(system=system, name="OMP_NUM_THREADS"),),
        )


def _finding(switch: _Switch, value: str, torch: Torch | None, system: System | None, searching: bool) -> Finding:
    facts = [f"environment.{switch.name}"]
    severity, cost = Severity.INFO if searching else switch.severity, switch.cost
    if switch.name == "CUDA_FORCE_PTX_JIT" and _has_no_ptx(torch):
        severity, cost = Severity.ERROR, "machine code is passed over, and this PyTorch has no PTX to compile instead"
        facts.append("torch.architectures")
    unset = unset_variable(system=system, name=switch.name)
    return Finding(
        severity=severity,
        summary=f"{switch.name} is {value}: {cost}",
        subject=switch.name,
        facts=tuple(facts),
        remedies=(
            Remedy(summary=unset.summary, commands=unset.commands, needs=unset.needs, reference=switch.reference),
        ),
    )


def _has_no_ptx(torch: Torch | None) -> bool:
    architectures = torch.architectures if torch is not None and torch.build == "cuda" else None
    return bool(architectures) and not any(name.startswith("compute_") for name in architectures or ())
