"""fp16 that gives NaN or infinity."""

from collections.abc import Iterator

from gpudoctor.conclusions.messages import reported
from gpudoctor.data import device_capability, features, is_minor_turing
from gpudoctor.data.numerics import NOT_FINITE, within
from gpudoctor.model import Device, Finding, Remedy, Severity, Symptom, TorchRuntime, described
from gpudoctor.registry import Skip, check, skip_unless

# What says that fp16 overflowed, whatever the device is; and what says so only beside a device that is known for it, or
# beside the words that half precision was used.
CONCLUSIVE = (
    "fp16-nan-tensor",
    "fp16-no-half-hint",
    "fp16-overflow-constant",
    "fp16-loss-scale-exhausted",
    "fp16-image-cast",
    "fp16-nan-told",
)
SYMPTOMS = ("loss-nan", "nan-in-tensor", "probability-tensor-nan", "black-image")
ON_A_DEVICE = (
    "no-detections",
    "exclamation-marks",
)  # symptoms of NaN on a device that is known for it, and of much else elsewhere
HALF_PRECISION = ("half-precision-in-use", "fp16-gradient-overflow", "amp-by-default", "amp-check-failed")
GTX_16 = ("gpu-named-gtx-16", "gpu-named-turing-minor")


@check(family="precision")
def fp16_nan(
    torch_runtime: TorchRuntime | None = None,
    devices: tuple[Device, ...] | None = None,
    symptoms: tuple[Symptom, ...] | None = None,
) -> Iterator[Finding]:
    """Results in fp16 are NaN or infinity.

    Why: with autocast or half() the loss turns NaN, or images turn black, while float32 is right. The GeForce GTX 16
    series and its workstation siblings are known for it: their fp16 convolutions in cuDNN go wrong. On every device a
    value above 65504 overflows in fp16.
    Exception: a loss that is NaN, without half precision and without such a device, has other causes and passes. So
    does a gradient that overflows, without a NaN: by that the loss scaler finds its scale.
    Reference: https://github.com/pytorch/pytorch/issues/58123
    """
    told = _told(torch_runtime, devices, symptoms)
    if told is not None:
        yield told
        return
    skip_unless(torch_runtime is None or torch_runtime.available is not False, "PyTorch can use no GPU here")
    results = (torch_runtime.precision_results if torch_runtime is not None else None) or ()
    right = {result.device for result in results if result.precision == "fp32" and within(result, "tf32")}
    measured = False
    for number, result in enumerate(results):
        if result.precision == "fp16" and result.error.startswith(NOT_FINITE) and result.device in right:
            measured = True
            yield Finding(
                severity=Severity.WARNING,
                summary=f"The fp16 product on {result.device} is {result.error}, the float32 one is right",
                subject=result.device,
                facts=(f"torch_runtime.precision_results[{number}].error",),
                remedies=_remedies(),
            )
    known_for_it = _known_for_it(torch_runtime, devices)
    if known_for_it and not measured:
        yield Finding(
            severity=Severity.INFO,
            summary=f"fp16 convolutions are known to give NaN on {described(known_for_it.values())}",
            subject="fp16",
            facts=tuple(known_for_it),
            remedies=_remedies(),
        )
    elif torch_runtime is None or torch_runtime.precision_results is None:
        raise Skip("torch_runtime.precision_results is unknown")
    elif not results:
        raise Skip("PyTorch has no GPU to compute on")


def _told(
    torch_runtime: TorchRuntime | None, devices: tuple[Device, ...] | None, symptoms: tuple[Symptom, ...] | None
) -> Finding | None:
    """Return what a report tells of NaN: a message that is enough, or a symptom with its cause beside it."""
    known_for_it = _known_for_it(torch_runtime, devices)
    named = reported(symptoms, *GTX_16)[:1]
    conclusive = reported(symptoms, *CONCLUSIVE)[:1]
    on_device = ON_A_DEVICE if known_for_it or named else ()
    symptom = conclusive or reported(symptoms, *SYMPTOMS, *on_device)[:1]
    half = reported(symptoms, *HALF_PRECISION)[:1]
    if not symptom or not (conclusive or known_for_it or named or half):
        return None
    fact, message = symptom[0]
    device = described(known_for_it.values()) or (named[0][1].text if named else "")
    because = f" on {device}, whose fp16 convolutions are known for it" if device else " in fp16"
    return Finding(
        severity=Severity.ERROR if conclusive or device else Severity.WARNING,
        summary=f"Results are NaN or infinite{because}: {message.text}",
        subject="fp16",
        facts=(fact, *known_for_it, *(path for path, _ in (*named, *half))),
        remedies=_remedies() if device else (*_remedies_against_overflow(message.kind, devices), *_remedies()[:1]),
    )


def _remedies_against_overflow(kind: str, devices: tuple[Device, ...] | None) -> Iterator[Remedy]:
    """Yield how to keep the values of a program in range on a device whose fp16 is sound."""
    numbers = [number for device in devices or () if (number := device_capability(device)) is not None]
    tables = [features(number) for number in numbers]
    if all(table is not None and table.bf16 == "native" for table in tables):
        yield Remedy(
            summary="Use bf16, which has the range of float32 (bf16=True, dtype=torch.bfloat16), on a GPU of compute "
            "capability 8.0 or newer",
            reference="https://docs.pytorch.org/docs/stable/amp.html",
        )
    if kind in ("fp16-nan-tensor", "fp16-no-half-hint", "fp16-image-cast", "black-image"):
        yield Remedy(
            summary="Run the part that overflows in float32: --no-half-vae or --upcast-sampling, then --no-half "
            "(float32 throughout); in diffusers pipe.vae.to(torch.float32)",
            reference="https://github.com/AUTOMATIC1111/stable-diffusion-webui/wiki/Command-Line-Arguments-and-Settings",
        )
    else:
        yield Remedy(
            summary="Keep the weights in float32 and train under torch.autocast with a GradScaler, constants of masks "
            "within 65504 (torch.finfo(x.dtype).min), a lower learning rate and clipped gradients",
            reference="https://docs.pytorch.org/docs/stable/notes/amp_examples.html",
        )


def _known_for_it(torch_runtime: TorchRuntime | None, devices: tuple[Device, ...] | None) -> dict[str, str]:
    """Return the names of the devices with that fault, by the facts that give them."""
    names = torch_runtime.device_names or () if torch_runtime is not None else ()
    named = {f"torch_runtime.device_names[{n}]": name for n, name in enumerate(names)} or {
        f"devices[{n}].name": device.name or "" for n, device in enumerate(devices or ())
    }
    return {fact: name for fact, name in named.items() if is_minor_turing(name)}


def _remedies() -> tuple[Remedy, ...]:
    return (
        Remedy(
            summary="Switch mixed precision off and use float32: amp=False, fp16=False, --no-half",
            reference="https://github.com/ultralytics/ultralytics/pull/17977",
        ),
        Remedy(
            summary="Where float32 does not fit into memory, try torch.backends.cudnn.benchmark = True, by which cuDNN "
            "chooses other algorithms, and check the results",
            reference="https://github.com/AUTOMATIC1111/stable-diffusion-webui/pull/4407",
        ),
    )
