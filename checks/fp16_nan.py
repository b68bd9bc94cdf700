"""fp16 that gives NaN or infinity."""

from collections.abc import Iterator

from gpudoctor.model import Device, Finding, Remedy, Severity, TorchRuntime
from gpudoctor.reasoning.numerics import NOT_FINITE, within
from gpudoctor.reasoning.usable_devices import described, is_minor_turing
from gpudoctor.registry import Skip, applies, check


@check(family="precision")
def fp16_nan(torch_runtime: TorchRuntime | None = None, devices: tuple[Device, ...] | None = None) -> Iterator[Finding]:
    """The device gives NaN in fp16.

    Why: with autocast or half() the loss turns NaN, or images turn black, while float32 is right. The GeForce GTX 16
    series and its workstation siblings are known for it: their fp16 convolutions in cuDNN go wrong.
    Exception: fp16 that a model overflows by itself, above 65504, is no fault of the device and is not seen here.
    Reference: https://github.com/pytorch/pytorch/issues/58123
    """
    applies(torch_runtime is None or torch_runtime.available is not False, "PyTorch can use no GPU here")
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
