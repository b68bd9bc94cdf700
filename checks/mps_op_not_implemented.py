"""Operators that Apple's MPS backend does not have."""

from collections.abc import Iterator

from gpudoctor.model import Finding, Fix, Symptom
from gpudoctor.registry import check, skip_unless
from gpudoctor.symptoms import of_kind

FALLBACK = "PYTORCH_ENABLE_MPS_FALLBACK"


@check(family="vendor", explains=("mps-issues",))
def mps_op_not_implemented(symptoms: tuple[Symptom, ...]) -> Iterator[Finding]:
    """An operator has no implementation for Apple's MPS device.

    Why: MPS does not support every PyTorch operator. A missing one raises NotImplementedError, unless the program was
    started with permission to run it on the CPU.
    Exception: this check runs no operator: it finds only messages in a report.
    Reference: https://docs.pytorch.org/docs/stable/notes/mps.html
    """
    found: dict[str, str] = {}
    for symptom in of_kind(symptoms, "mps-operator-missing"):
        found.setdefault(symptom.names.get("operator") or symptom.names.get("kernel", ""), symptom.fact)
    skip_unless(found, "no operator was missing")
    for operator, fact in found.items():
        yield Finding.error(
            operator or "MPS",
            f"MPS has no implementation of {operator or 'an operator'}",
            (fact,),
            Fix(
                "set-variable",
                name=FALLBACK,
                value="1",
                summary=f"Set {FALLBACK}=1 before PyTorch is imported. Such operators then run on the CPU, which is "
                "slower",
            ),
            Fix("upgrade-torch", summary="Update PyTorch, which implements more operators with each release"),
        )
