"""Apple's MPS backend."""

from collections.abc import Iterator

from gpudoctor.model import Environment, Finding, Python, Remedy, Severity, System, Torch, TorchRuntime
from gpudoctor.reasoning.symptoms import text_with
from gpudoctor.registry import applies, check, known
from gpudoctor.remedies import python_command, set_variable, unset_variable

REFERENCE = "https://docs.pytorch.org/docs/stable/notes/mps.html"
FALLBACK = "PYTORCH_ENABLE_MPS_FALLBACK"
WATERMARK = "PYTORCH_MPS_HIGH_WATERMARK_RATIO"
# PyTorch's text for an operator without an implementation for MPS, in both its spellings (lower case).
NOT_IMPLEMENTED = ("implemented for the mps device",)


@check(family="vendor")
def mps_issues(
    torch_runtime: TorchRuntime,
    torch: Torch | None = None,
    system: System | None = None,
    environment: Environment | None = None,
    python: Python | None = None,
) -> Iterator[Finding]:
    """The GPU of this Mac is not available to PyTorch, or an operator is not.

    Why: MPS needs an arm64 Python on Apple silicon and a macOS that is new enough for the PyTorch release; an operator
    that MPS does not have fails unless it may fall back to the CPU.
    Exception: Macs with an Intel processor run PyTorch on the CPU and pass.
    Reference: https://docs.pytorch.org/docs/stable/notes/mps.html
    """
    missing = text_with(*NOT_IMPLEMENTED, torch_runtime=torch_runtime)
    if missing:
        yield _not_implemented(missing, system)
        return
    applies(known(system.os if system is not None else None, "system.os") == "darwin", "this is not a Mac")
    applies(torch is None or torch.installed is not False, "PyTorch is not installed")
    yield from _memory_limit(environment, system)
    available = known(torch_runtime.mps_available, "torch_runtime.mps_available")
    built = torch_runtime.mps_built
    machine = system.machine if system is not None else None
    if available or machine != "arm64":
        return
    if built is False:
        summary = "PyTorch is built without MPS on a Mac of Apple silicon"
        remedy = Remedy(
            summary="Install PyTorch's wheel for macOS on arm64, which has MPS",
            commands=(
                python_command(python, "-m", "pip", "install", "--force-reinstall", "torch"),
                python_command(python, "-c", "import torch; print(torch.backends.mps.is_available())"),
            ),
            reference=REFERENCE,
        )
    else:
        summary = "PyTorch is built with MPS, but macOS does not offer the device"
        remedy = Remedy(
            summary="Update macOS (PyTorch 2.9 and newer need macOS 14), and run outside a virtual machine",
            commands=("sw_vers", python_command(python, "-c", "import torch; print(torch.ones(1, device='mps'))")),
            needs=("reboot",),
            reference=REFERENCE,
        )
    yield Finding(
        severity=Severity.ERROR,
        summary=summary,
        subject="MPS",
        facts=("torch_runtime.mps_available", *(("torch_runtime.mps_built",) if built is not None else ())),
        remedies=(remedy,),
    )


def _not_implemented(missing: tuple[str, str], system: System | None) -> Finding:
    fact, text = missing
    operator = text.partition("The operator '")[2].partition("'")[0]
    return Finding(
        severity=Severity.ERROR,
        summary=f"MPS has no implementation of {operator or 'an operator'}",
        subject=operator or "MPS",
        facts=(fact,),
        remedies=(
            set_variable(
                system=system,
                name=FALLBACK,
                value="1",
                summary="Let such operators run on the CPU, or update PyTorch, which implements more with each release",
            ),
        ),
    )


def _memory_limit(environment: Environment | None, system: System | None) -> Iterator[Finding]:
    value = environment.get(WATERMARK) if environment is not None else None
    if value is not None and value.strip() in ("0", "0.0"):
        yield Finding(
            severity=Severity.INFO,
            summary=f"{WATERMARK}={value} takes MPS's memory limit away: a job that is too large can stop the system",
            subject=WATERMARK,
            facts=(f"environment.{WATERMARK}",),
            remedies=(unset_variable(system=system, name=WATERMARK),),
        )
