"""Mixed precision, on devices that gain from it."""

from collections.abc import Iterator

from gpudoctor.data.capabilities import features, is_minor_turing
from gpudoctor.model import Finding, Fix, PackageVersion, TorchDevice, TorchDevices, TorchRuntime, described
from gpudoctor.registry import Skip, check, skip_unless, usable_devices


@check(family="precision")
def amp_unused(torch_devices: TorchDevices, torch_runtime: TorchRuntime) -> Iterator[Finding]:
    """The device has tensor cores for half precision, which float32 programs do not use.

    Why: autocast runs matrix products and convolutions in bf16 or fp16, several times faster than float32, and halves
    the memory of their activations. The weights stay in float32. bf16 has the range of float32. fp16 needs a
    GradScaler.
    Exception: this is advice, because gpudoctor cannot see whether a program already uses autocast. Devices without
    tensor cores, such as the GeForce GTX 16 series, gain little or nothing and pass.
    Reference: https://docs.pytorch.org/docs/stable/amp.html
    """
    devices = usable_devices(torch_devices)
    version = torch_runtime.version
    skip_unless(version is None or version.release >= (1, 10), f"PyTorch {version} has no torch.autocast")
    best = {device.cuda_index: _best_precision(device) for device in devices}
    if all(precision is None for precision in best.values()):
        raise Skip(f"how much {described(devices)} gains is unknown")
    for precision in ("bf16", "fp16"):
        gaining = [device for device in devices if best[device.cuda_index] == precision]
        if gaining:
            summary = (
                f"Float32 programs without autocast leave the {precision} tensor cores of {described(gaining)} idle"
            )
            facts = (fact for device in gaining for fact in _facts(device, precision))
            yield Finding.advice("torch.autocast", summary, facts, _autocast(precision, version))


def _best_precision(device: TorchDevice) -> str | None:
    """Return the half precision that the device gains most from, "" for none, None if that is not known."""
    known_features = features(device.capability)
    if known_features is None:
        return None
    if known_features.bf16 == "native" and device.computes("bf16"):
        return "bf16"
    tensor_cores = known_features.tensor_cores and not is_minor_turing(device.name)
    return "fp16" if tensor_cores and known_features.fp16 == "native" and device.computes("fp16") else ""


def _facts(device: TorchDevice, precision: str) -> tuple[str, str]:
    return device.capability_fact, device.error_facts[precision]


def _autocast(precision: str, version: PackageVersion | None) -> Fix:
    # torch.amp.GradScaler came with PyTorch 2.3; torch.cuda.amp.GradScaler is deprecated from 2.4 on.
    scaler = "torch.cuda.amp.GradScaler()" if version and version.release < (2, 3) else 'torch.amp.GradScaler("cuda")'
    dtype, besides = (
        ("torch.bfloat16", "; it needs no GradScaler")
        if precision == "bf16"
        else ("torch.float16", f", and scale the loss with {scaler}")
    )
    return Fix("autocast", dtype=dtype, also=besides)
