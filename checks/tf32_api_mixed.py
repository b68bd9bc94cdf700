"""PyTorch's older and newer switches for TF32."""

from collections.abc import Iterator

from gpudoctor.model import Finding, Fix, Pytorch, Severity, Symptom
from gpudoctor.registry import NotApplicable, check
from gpudoctor.symptoms import first, of_kind


@check(family="precision")
def tf32_api_mixed(pytorch: Pytorch, symptoms: tuple[Symptom, ...]) -> Iterator[Finding]:
    """A program sets TF32 with PyTorch's newer API and reads it with the older one.

    Why: since PyTorch 2.9, reading allow_tf32 after fp32_precision was set raises "mix of the legacy and new APIs".
    Exception: the warning that the older API is deprecated is harmless, so it is advice.
    Reference: https://github.com/pytorch/pytorch/issues/173731
    """
    mixed = of_kind(symptoms, "tf32-mixed-api")
    said = first(mixed, of_kind(symptoms, "tf32-api-deprecated"))
    if said is None:
        raise NotApplicable("no message reports this problem")
    deprecated = f"The older switch for TF32 is deprecated: {said.text}"
    summary = "Both switches for TF32 are used in one program" if mixed else deprecated
    facts = (said.fact, *pytorch.paths("version"))
    yield Finding.of(Severity.ERROR if mixed else Severity.INFO, "TF32", summary, facts, Fix("use-one-tf32-switch"))
