"""bf16 on devices that have none."""

from collections.abc import Iterable, Iterator

from gpudoctor.conclusions.error_codes import text_with
from gpudoctor.conclusions.messages import reported
from gpudoctor.data import device_capability, features, is_minor_turing
from gpudoctor.model import (
    ComputeCapability,
    Device,
    Finding,
    Python,
    Remedy,
    Severity,
    Symptom,
    TorchRuntime,
    described,
)
from gpudoctor.registry import Skip, check, skip_unless
from gpudoctor.remedies import python_command

# Source: torch/amp/autocast_mode.py of torch 2.14; vllm/platforms/cuda.py; transformers/training_args.py.
REFUSALS = (
    "does not support bfloat16",
    "bfloat16 is only supported on gpus",
    "bf16 is only supported on",
    "your setup doesn't support bf16",
)


@check(family="precision")
def bf16_unsupported(
    torch_runtime: TorchRuntime | None = None,
    devices: tuple[Device, ...] | None = None,
    python: Python | None = None,
    symptoms: tuple[Symptom, ...] | None = None,
) -> Iterator[Finding]:
    """The device has no bf16 arithmetic.

    Why: a program that asks for bf16 is refused, or computes it by way of float32, without any gain in speed;
    torch.cuda.is_bf16_supported() counts that emulation as support.
    Exception: it is advice as long as no program was refused. Devices from compute capability 8.0 on pass; where one of
    them is refused all the same, PyTorch sees no GPU, or is too old.
    Reference: https://docs.nvidia.com/cuda/cuda-programming-guide/05-appendices/compute-capabilities.html
    """
    found = _capabilities(torch_runtime, devices)
    refusal = _refusal(torch_runtime, symptoms)
    emulating = {fact: value for fact, value in found.items() if _bf16(value[1]) == "emulated"}
    if refusal and found and all(_bf16(capability) == "native" for _, capability in found.values()):
        yield _refused_although_native(refusal, found, python)
        return
    if refusal:
        yield Finding(
            severity=Severity.ERROR,
            summary=f"bf16 was asked of a device that has none: {refusal[1]}",
            subject="bf16",
            facts=(refusal[0], *emulating),
            remedies=_remedies(tuple(emulating.values())),
        )
        return
    kernel = next(iter(reported(symptoms, "bf16-kernel-missing")), None)
    if kernel:
        yield _without_kernel(*kernel)
        return
    if torch_runtime is None and devices is None:
        raise Skip("torch_runtime.device_capabilities is unknown")
    skip_unless(torch_runtime is None or torch_runtime.available is not False, "PyTorch can use no GPU here")
    skip_unless(found or devices != (), "no NVIDIA GPU is there")
    if all(_bf16(capability) is None for _, capability in found.values()):
        raise Skip("whether the device has bf16 is not known")
    if emulating:
        yield Finding(
            severity=Severity.INFO,
            summary=f"{_text(emulating.values())} computes bf16 by way of float32, native bf16 starts at "
            "compute capability 8.0",
            subject="bf16",
            facts=tuple(emulating),
            remedies=_remedies(tuple(emulating.values())),
        )


def _refusal(torch_runtime: TorchRuntime | None, symptoms: tuple[Symptom, ...] | None) -> tuple[str, str] | None:
    """Return the fact and the text by which a program refuses bf16."""
    kinds = ("bf16-device-refused", "bf16-autocast-refused", "bf16-setup-refused", "bf16-instruction-missing")
    for kind in kinds:
        for fact, message in reported(symptoms, kind):
            return fact, message.text
    return text_with(*REFUSALS, torch_runtime=torch_runtime)


def _refused_although_native(
    refusal: tuple[str, str], found: dict[str, tuple[str, ComputeCapability]], python: Python | None
) -> Finding:
    show = "import torch; print(torch.__version__, torch.version.cuda, torch.cuda.is_available())"
    return Finding(
        severity=Severity.WARNING,
        summary=f"bf16 is refused although {_text(found.values())} has it: {refusal[1]}",
        subject="bf16",
        facts=(refusal[0], *found),
        remedies=(
            Remedy(
                summary="Look whether PyTorch sees the GPU, and is 1.10 or newer with CUDA 11 or newer: the program "
                "refuses bf16 where either is missing; until then use float16 (fp16=True, --dtype half)",
                commands=(python_command(python, "-c", show),),
            ),
        ),
    )


def _without_kernel(fact: str, message: Symptom) -> Finding:
    operator = message.names.get("operator", "an operator")
    return Finding(
        severity=Severity.ERROR,
        summary=f"This PyTorch has no bf16 kernel of {operator}",
        subject=operator,
        facts=(fact,),
        remedies=(
            Remedy(
                summary="Update PyTorch, which gets bf16 kernels with each release, or use float16 (half, fp16) or "
                "float32 for this operator"
            ),
        ),
    )


def _capabilities(
    torch_runtime: TorchRuntime | None, devices: tuple[Device, ...] | None
) -> dict[str, tuple[str, ComputeCapability]]:
    """Return the name and compute capability of each device, by the fact that gives the latter."""
    capabilities = torch_runtime.device_capabilities or () if torch_runtime is not None else ()
    names = torch_runtime.device_names or () if torch_runtime is not None else ()
    if capabilities:
        return {
            f"torch_runtime.device_capabilities[{n}]": (names[n] if n < len(names) else f"cuda:{n}", capability)
            for n, capability in enumerate(capabilities)
        }
    return {
        f"devices[{n}].{'name' if device.compute_capability is None else 'compute_capability'}": (
            device.name or f"device {n}",
            number,
        )
        for n, device in enumerate(devices or ())
        if (number := device_capability(device)) is not None
    }


def _bf16(capability: ComputeCapability) -> str | None:
    """Return "native" or "emulated", None where that is not known. Every device from 8.0 on has it natively."""
    if capability >= ComputeCapability(8, 0):
        return "native"
    known_features = features(capability)
    return known_features.bf16 if known_features is not None else None


def _text(devices: Iterable[tuple[str, ComputeCapability]]) -> str:
    return described(f"{name} (compute capability {capability})" for name, capability in devices)


def _remedies(devices: tuple[tuple[str, ComputeCapability], ...]) -> tuple[Remedy, ...]:
    """Return what to use instead: fp16 where it is fast and sound on every device, float32 elsewhere."""
    fp16 = Remedy(
        summary="Use float16 (fp16=True, dtype=torch.float16, --dtype half), with a GradScaler in training",
        reference="https://docs.pytorch.org/docs/stable/notes/amp_examples.html",
    )
    fp32 = Remedy(summary="Use float32: leave out bf16 and autocast, or set both to False")
    slow = any(is_minor_turing(name) or _fp16(capability) != "native" for name, capability in devices)
    save = Remedy(summary="float16 (--dtype half) saves memory there and brings no speed; look for NaN in its results")
    return (fp32, save) if slow else (fp16, fp32)


def _fp16(capability: ComputeCapability) -> str | None:
    known_features = features(capability)
    return known_features.fp16 if known_features is not None else None
