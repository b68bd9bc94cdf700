"""Operators that Apple's MPS backend does not have."""

from collections.abc import Iterator

from gpudoctor.conclusions.error_codes import text_with
from gpudoctor.conclusions.messages import reported
from gpudoctor.model import Finding, Python, Remedy, Severity, Symptom, System, TorchRuntime
from gpudoctor.registry import check, skip_unless
from gpudoctor.remedies import python_command, set_variable

FALLBACK = "PYTORCH_ENABLE_MPS_FALLBACK"
# PyTorch's text for an operator without an implementation for MPS, in both its spellings (lower case).
NOT_IMPLEMENTED = ("implemented for the mps device",)


@check(family="vendor", explains=("mps-issues",))
def mps_op_not_implemented(
    torch_runtime: TorchRuntime | None = None,
    system: System | None = None,
    python: Python | None = None,
    symptoms: tuple[Symptom, ...] | None = None,
) -> Iterator[Finding]:
    """An operator has no implementation for Apple's MPS device.

    Why: MPS does not have every operator of PyTorch; one that it lacks raises NotImplementedError, unless the program
    was started with permission to run it on the CPU.
    Exception: a program that never used that operator passes; nothing is tried here.
    Reference: https://docs.pytorch.org/docs/stable/notes/mps.html
    """
    told = _told(torch_runtime, symptoms)
    skip_unless(told, "no operator was missing")
    for fact, operator in told:
        yield Finding(
            severity=Severity.ERROR,
            summary=f"MPS has no implementation of {operator or 'an operator'}",
            subject=operator or "MPS",
            facts=(fact,),
            remedies=(
                set_variable(
                    system=system,
                    name=FALLBACK,
                    value="1",
                    summary=f"Set {FALLBACK}=1 before PyTorch is imported: such operators then run on the CPU, slower",
                ),
                Remedy(
                    summary="Update PyTorch, which implements more operators with each release",
                    commands=(
                        python_command(
                            python, "-m", "pip", "install", "--upgrade", "torch", "torchvision", "torchaudio"
                        ),
                        python_command(python, "-c", "import torch; print(torch.__version__)"),
                    ),
                ),
            ),
        )


def _told(torch_runtime: TorchRuntime | None, symptoms: tuple[Symptom, ...] | None) -> list[tuple[str, str]]:
    """Return the facts that name a missing operator, each with the operator."""
    found: dict[str, str] = {}
    for fact, message in reported(symptoms, "mps-operator-missing"):
        names = message.names
        operator = names.get("operator") or names.get("operator2") or names.get("kernel", "")
        found.setdefault(operator, fact)
    if not found:
        said = text_with(*NOT_IMPLEMENTED, torch_runtime=torch_runtime)
        if said:
            found[said[1].partition("The operator '")[2].partition("'")[0]] = said[0]
    return [(fact, operator) for operator, fact in found.items()]
