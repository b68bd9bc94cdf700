"""PyTorch's older and newer switches for TF32."""

from collections.abc import Iterator

from gpudoctor.model import Finding, Fix, Severity, Symptom, Torch
from gpudoctor.registry import check, skip_unless
from gpudoctor.symptoms import first, of_kind


@check(family="precision")
def tf32_api_mixed(symptoms: tuple[Symptom, ...], torch: Torch | None = None) -> Iterator[Finding]:
    """A program sets TF32 by PyTorch's newer switch and reads it by the older one.

    Why: from PyTorch 2.9 on, reading allow_tf32 after fp32_precision was set raises "mix of the legacy and new APIs".
    Exception: the warning that the older switch is deprecated is harmless, and is advice.
    Reference: https://github.com/pytorch/pytorch/issues/173731
    """
    mixed, deprecated = of_kind(symptoms, "tf32-mixed-api"), of_kind(symptoms, "tf32-api-deprecated")
    said = first(mixed, deprecated)
    skip_unless(said, "no such message in the report")
    if said is not None:
        yield Finding(
            severity=Severity.ERROR if mixed else Severity.INFO,
            summary="Both switches for TF32 are used in one program"
            if mixed
            else f"The older switch for TF32 is deprecated: {said.text}",
            subject="TF32",
            facts=(said.fact, *(("torch.version",) if torch is not None and torch.version is not None else ())),
            fixes=(Fix("use-one-tf32-switch"),),
        )
