"""bf16 on devices that have none."""

from collections.abc import Iterable, Iterator

from gpudoctor.data.capabilities import bf16_support, features, is_minor_turing
from gpudoctor.model import Devices, Finding, Fix, KnownGpu, Severity, Symptom, TorchRuntime, described
from gpudoctor.registry import Skip, check, skip_unless
from gpudoctor.symptoms import Symptoms, of_kind
from gpudoctor.symptoms.answers import answers

REFUSED = ("bf16-device-refused", "bf16-autocast-refused", "bf16-setup-refused", "bf16-instruction-missing")


@check(family="precision")
def bf16_unsupported(
    known_gpus: tuple[KnownGpu, ...],
    torch_runtime: TorchRuntime | None = None,
    devices: Devices = None,
    symptoms: Symptoms = None,
) -> Iterator[Finding]:
    """The device has no bf16 arithmetic.

    Why: a program that asks for bf16 fails, or runs in emulation without any gain in speed.
    torch.cuda.is_bf16_supported() counts that emulation as support.
    Exception: if no program failed, this is advice. Devices of compute capability 8.0 or newer pass. If a program
    refuses one of them anyway, PyTorch sees no GPU or is too old.
    Reference: https://docs.nvidia.com/cuda/cuda-programming-guide/05-appendices/compute-capabilities.html
    """
    support = {gpu: bf16_support(gpu.capability) for gpu in known_gpus}
    emulating = tuple(gpu for gpu in known_gpus if support[gpu] == "emulated")
    refusals = of_kind(symptoms, *REFUSED)
    if refusals:
        yield _refused(refusals[0], known_gpus, emulating, native=set(support.values()) == {"native"})
        return
    without_kernel = answers(symptoms, "bf16-unsupported")
    if without_kernel:
        yield from without_kernel
        return
    if torch_runtime is None and devices is None:
        raise Skip("torch_runtime.device_capabilities is unknown")
    skip_unless(torch_runtime is None or torch_runtime.available is not False, "PyTorch can use no GPU here")
    skip_unless(known_gpus or devices != (), "there is no NVIDIA GPU")
    if not any(support.values()):
        raise Skip("whether the device supports bf16 is unknown")
    if emulating:
        summary = f"{_described(emulating)} computes bf16 in float32; native bf16 starts at compute capability 8.0"
        yield Finding.advice("bf16", summary, (gpu.fact for gpu in emulating), *_instead(emulating))


def _refused(refusal: Symptom, gpus: tuple[KnownGpu, ...], emulating: tuple[KnownGpu, ...], *, native: bool) -> Finding:
    """Return the finding for a program that refuses bf16.

    native: every GPU has bf16, so that the program refuses it for another reason.
    """
    shown = gpus if native else emulating
    severity = Severity.WARNING if native else Severity.ERROR
    if native:
        summary = f"A program refuses bf16, although {_described(gpus)} supports it"
    elif emulating:
        summary = f"A program uses bf16, but {_described(emulating)} has no native bf16"
    else:
        summary = "A program uses bf16 on a device that does not support it"
    facts = (refusal.fact, *(gpu.fact for gpu in shown))
    return Finding.of(
        severity, "bf16", summary, facts, *((Fix("check-torch-for-bf16"),) if native else _instead(emulating))
    )


def _described(gpus: Iterable[KnownGpu]) -> str:
    return described(f"{gpu.name} (compute capability {gpu.capability})" for gpu in gpus)


def _instead(gpus: Iterable[KnownGpu]) -> tuple[Fix, ...]:
    """Return what to use instead: fp16 if it is fast and sound on every device, otherwise float32."""
    tables = [(gpu, features(gpu.capability)) for gpu in gpus]
    slow = any(is_minor_turing(gpu.name) or table is None or table.fp16 != "native" for gpu, table in tables)
    fp32 = Fix("use-float32")
    return (fp32, Fix("save-memory-with-float16")) if slow else (Fix("use-float16"), fp32)
