"""PyTorch's older and newer switches for TF32."""

from collections.abc import Iterator

from gpudoctor.conclusions.messages import reported
from gpudoctor.model import Finding, Remedy, Severity, Symptom, Torch
from gpudoctor.registry import check, skip_unless

REFERENCE = "https://docs.pytorch.org/docs/stable/notes/cuda.html#tensorfloat-32-tf32-on-ampere-and-later-devices"


@check(family="precision")
def tf32_api_mixed(symptoms: tuple[Symptom, ...], torch: Torch | None = None) -> Iterator[Finding]:
    """A program sets TF32 by PyTorch's newer switch and reads it by the older one.

    Why: from PyTorch 2.9 on, reading allow_tf32 after fp32_precision was set raises "mix of the legacy and new APIs".
    Exception: the warning that the older switch is deprecated is harmless, and is advice.
    Reference: https://github.com/pytorch/pytorch/issues/173731
    """
    mixed = reported(symptoms, "tf32-mixed-api")[:1]
    deprecated = reported(symptoms, "tf32-api-deprecated")[:1]
    skip_unless(mixed or deprecated, "no such message in the report")
    fact, message = (mixed or deprecated)[0]
    version = torch is not None and torch.version is not None
    yield Finding(
        severity=Severity.ERROR if mixed else Severity.INFO,
        summary="Both switches for TF32 are used in one program"
        if mixed
        else f"The older switch for TF32 is deprecated: {message.text}",
        subject="TF32",
        facts=(fact, *(("torch.version",) if version else ())),
        remedies=(
            Remedy(
                summary="Use one of the two in the whole process, libraries included: allow_tf32 with "
                "set_float32_matmul_precision('high'), which work in every release, or fp32_precision (from 2.9 on)",
                needs=("restart",),
                reference=REFERENCE,
            ),
        ),
    )
