"""TF32 for float32 matrix products, on devices that have it."""

from collections.abc import Iterator

from gpudoctor.model import Environment, Finding, Fix, TorchDevices, TorchRuntime, described
from gpudoctor.model.versions import PackageVersion
from gpudoctor.registry import check, known, skip_unless, usable_devices


@check(family="precision")
def tf32_off(
    torch_devices: TorchDevices, torch_runtime: TorchRuntime, environment: Environment = Environment()
) -> Iterator[Finding]:
    """Float32 matrix products do not use TF32 on a device that has it.

    Why: tensor cores multiply float32 matrices several times faster in TF32, which keeps the range of float32 and
    rounds the factors to 10 bits after the point instead of 23. Since 1.12, PyTorch does not use it by default.
    Training usually tolerates the rounding. Solvers and comparisons with CPU results may not.
    Exception: this is advice and never changes the verdict. Devices below compute capability 8.0 have no TF32.
    Reference: https://docs.pytorch.org/docs/stable/notes/cuda.html#tensorfloat-32-tf32-on-ampere-and-later-devices
    """
    usable = usable_devices(torch_devices)
    devices = [device for device in usable if device.computes("tf32")]
    skip_unless(devices, f"{described(usable)}: no TF32")
    if known(torch_runtime.matmul_tf32, "torch_runtime.matmul_tf32"):
        return
    error = devices[0].errors["tf32"]
    measured = "" if error is None else f" (numerical error here: {100 * error:.2g} %)"
    summary = f"Float32 matrix products do not use TF32, which {described(devices)} supports{measured}"
    facts = (
        "torch_runtime.matmul_tf32",
        *(device.capability_fact for device in devices),
        *(devices[0].error_facts[precision] for precision in ("tf32", "fp32")),
    )
    yield Finding.advice("torch.backends.cuda.matmul", summary, facts, *_fixes(torch_runtime.version, environment))


def _fixes(version: PackageVersion | None, environment: Environment) -> Iterator[Fix]:
    if environment.get("NVIDIA_TF32_OVERRIDE") == "0":
        text = "Remove NVIDIA_TF32_OVERRIDE=0 first: it forbids TF32 whatever the program sets"
        yield Fix("unset-variable", name="NVIDIA_TF32_OVERRIDE", summary=text)
    # This switch keeps the older and the newer API in step; setting fp32_precision alone makes reading the older one
    # fail. Source: https://github.com/pytorch/pytorch/issues/173731
    older = version is not None and version.release < (1, 12)
    switch = "torch.backends.cuda.matmul.allow_tf32 = True" if older else 'torch.set_float32_matmul_precision("high")'
    yield Fix("enable-tf32", switch=switch)
