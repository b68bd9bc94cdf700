"""fp16 that gives NaN or infinity."""

from collections.abc import Iterator

from gpudoctor.data.capabilities import bf16_support
from gpudoctor.data.numerics import NOT_FINITE, within
from gpudoctor.model import Finding, Fix, HalfPrecision, PrecisionResult, Severity, Symptom, TorchRuntime, described
from gpudoctor.model.gpu_conclusions import KnownGpu
from gpudoctor.registry import Skip, check, skip_unless

OF_IMAGES = ("fp16-nan-tensor", "fp16-no-half-hint", "fp16-image-cast", "black-image")
WITHOUT_FP16 = (Fix("switch-mixed-precision-off"), Fix("try-cudnn-benchmark-against-nan"))


@check(family="precision")
def fp16_nan(
    half_precision: HalfPrecision, known_gpus: tuple[KnownGpu, ...], torch_runtime: TorchRuntime = TorchRuntime()
) -> Iterator[Finding]:
    """Results in fp16 are NaN or infinity.

    Why: with autocast or half() the loss becomes NaN, or images become black, while float32 is right. The GeForce GTX
    16 series and related workstation GPUs are known for this: their fp16 convolutions in cuDNN give wrong results. On
    every device a value above 65504 overflows in fp16.
    Exception: a NaN loss without half precision and without such a device has other causes and passes. So does a
    gradient overflow without a NaN, because the loss scaler uses it to find its scale.
    Reference: https://github.com/pytorch/pytorch/issues/58123
    """
    if half_precision.nan is not None:
        yield _said(half_precision.nan, half_precision, known_gpus)
        return
    skip_unless(torch_runtime.available is not False, "PyTorch can use no GPU here")
    results = torch_runtime.precision_results
    measured = tuple(_measured(results or ()))
    yield from measured
    faulty = half_precision.faulty
    if faulty and not measured:
        summary = f"fp16 convolutions are known to give NaN on {described(faulty.values())}"
        yield Finding.advice("fp16", summary, faulty, *WITHOUT_FP16)
    elif results is None:
        raise Skip("torch_runtime.precision_results is unknown")
    elif not results:
        raise Skip("PyTorch has no GPU to compute on")


def _measured(results: tuple[PrecisionResult, ...]) -> Iterator[Finding]:
    """Yield a finding for each device whose fp16 product is not finite while its float32 product is right."""
    right = {result.device for result in results if result.precision == "fp32" and within(result, "tf32")}
    for number, result in enumerate(results):
        if result.precision == "fp16" and result.error.startswith(NOT_FINITE) and result.device in right:
            summary = f"The fp16 product on {result.device} is {result.error}, but the float32 product is right"
            facts = (f"torch_runtime.precision_results[{number}].error",)
            yield Finding.warning(result.device, summary, facts, *WITHOUT_FP16)


def _said(nan: Symptom, half: HalfPrecision, gpus: tuple[KnownGpu, ...]) -> Finding:
    device = described(half.faulty.values()) or (half.named.text if half.named is not None else "")
    certain = half.certain or bool(device)
    because = " in fp16" if half.certain else ", probably because of fp16"
    if device:
        because = f" on {device}, a known problem of its fp16 convolutions"
    also = (symptom.fact for symptom in (half.named, half.in_use) if symptom is not None)
    in_range = (
        *((Fix("use-bf16"),) if all(bf16_support(gpu.capability) == "native" for gpu in gpus) else ()),
        Fix("decode-images-in-float32" if nan.kind in OF_IMAGES else "keep-weights-in-float32"),
        WITHOUT_FP16[0],
    )
    severity = Severity.ERROR if certain else Severity.WARNING
    summary = f'Results are NaN or infinite{because}: "{nan.text}"'
    facts = (nan.fact, *half.faulty, *also)
    return Finding.of(severity, "fp16", summary, facts, *(WITHOUT_FP16 if device else in_range), certain=certain)
