"""TF32 where float32 was asked for."""

from collections.abc import Iterator

from gpudoctor.conclusions.messages import reported
from gpudoctor.data import device_capability
from gpudoctor.data.numerics import error_bound, has_tf32_error
from gpudoctor.model import (
    ComputeCapability,
    Device,
    Environment,
    Finding,
    PackageVersion,
    Remedy,
    Severity,
    Symptom,
    System,
    Torch,
    TorchRuntime,
)
from gpudoctor.registry import Skip, check, skip_unless
from gpudoctor.remedies import set_variable, unset_variable

FIRST_WITH_TF32 = ComputeCapability(8, 0)  # Source: NVIDIA A100 whitepaper

# Each allows or forces TF32 where it is 1. Source: aten/src/ATen/Context.cpp of PyTorch; CuPy's reference of its
# variables; NVIDIA_TF32_OVERRIDE is read by cuBLAS and cuDNN, and its 0 wins over everything else.
ALLOWING = {
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE": "PyTorch",
    "CUPY_TF32": "CuPy",
    "NVIDIA_TF32_OVERRIDE": "NVIDIA's libraries",
}

REFERENCE = "https://docs.pytorch.org/docs/stable/notes/cuda.html#tensorfloat-32-tf32-on-ampere-and-later-devices"


@check(family="precision")
def tf32_precision_surprise(
    torch_runtime: TorchRuntime | None = None,
    torch: Torch | None = None,
    devices: tuple[Device, ...] | None = None,
    environment: Environment | None = None,
    system: System | None = None,
    symptoms: tuple[Symptom, ...] | None = None,
) -> Iterator[Finding]:
    """Float32 products run in TF32 without the program having asked for it.

    Why: results differ from those of a CPU or an older GPU in the fourth digit, for TF32 rounds the factors to 10 bits.
    PyTorch 1.7 to 1.11 allow it by default from compute capability 8.0 on; later an environment variable can.
    Exception: a variable that someone set is advice. Convolutions use TF32 by default in every release; that is
    reported only where a report speaks of results that differ and of TF32, or of what it is compared with.
    Reference: https://docs.pytorch.org/docs/stable/notes/cuda.html#tensorfloat-32-tf32-on-ampere-and-later-devices
    """
    skip_unless(torch_runtime is None or torch_runtime.available is not False, "PyTorch can use no GPU here")
    capabilities = _capabilities(torch_runtime, devices)
    named = reported(symptoms, "gpu-named-ampere")
    if capabilities and not named and all(number < FIRST_WITH_TF32 for number in capabilities):
        return
    variables = [name for name in ALLOWING if environment is not None and environment.get(name) == "1"]
    measured = tuple(_measured(torch_runtime, variables, system))
    yield from measured
    if measured or (environment is not None and environment.get("NVIDIA_TF32_OVERRIDE") == "0"):
        return
    differs = reported(symptoms, "float32-error-like-tf32", "numerical-difference")[:1]
    by_default = tuple(_by_default(torch_runtime, torch, differs=bool(differs), system=system))
    yield from by_default
    if differs and not by_default:
        by_default = tuple(_told(differs[0][0], symptoms, known_devices=bool(capabilities), system=system))
        yield from by_default
    if variables:
        users = " and ".join(ALLOWING[name] for name in variables)
        yield Finding(
            severity=Severity.INFO,
            summary=f"{' and '.join(f'{name} is 1' for name in variables)}: {users} may run float32 products in TF32",
            subject="environment",
            facts=tuple(f"environment.{name}" for name in variables),
            remedies=tuple(unset_variable(system=system, name=name) for name in variables),
        )
    elif not by_default and (torch_runtime is None or torch_runtime.precision_results is None):
        raise Skip("torch_runtime.precision_results is unknown")


def _capabilities(
    torch_runtime: TorchRuntime | None, devices: tuple[Device, ...] | None
) -> tuple[ComputeCapability, ...]:
    seen = torch_runtime.device_capabilities if torch_runtime is not None else None
    listed = (device_capability(device) for device in devices or ())
    return seen or tuple(number for number in listed if number is not None)


def _measured(torch_runtime: TorchRuntime | None, variables: list[str], system: System | None) -> Iterator[Finding]:
    """Yield a finding for each device whose product, asked for in float32, has the error of TF32."""
    results = (torch_runtime.precision_results if torch_runtime is not None else None) or ()
    for number, result in enumerate(results):
        if not has_tf32_error(result):
            continue
        cause = f" ({' and '.join(f'{name} is 1' for name in variables)})" if variables else ""
        yield Finding(
            severity=Severity.INFO if variables else Severity.WARNING,
            summary=f"The float32 product on {result.device} has the error of TF32: {result.relative_error:.1e}, while "
            f"float32 gives at most {error_bound('fp32'):.1e}{cause}",
            subject=result.device,
            facts=(
                f"torch_runtime.precision_results[{number}].relative_error",
                *(f"environment.{name}" for name in variables),
            ),
            remedies=(*(unset_variable(system=system, name=name) for name in variables), _override(system)),
        )


def _by_default(
    torch_runtime: TorchRuntime | None, torch: Torch | None, *, differs: bool, system: System | None
) -> Iterator[Finding]:
    """Yield a finding for a PyTorch release that allows TF32 by default; advice where no results differ."""
    seen = torch_runtime.version if torch_runtime is not None else None
    version: PackageVersion | None = seen or (torch.version if torch is not None else None)
    allowed = torch_runtime.matmul_tf32 if torch_runtime is not None else None
    if version is None or not (1, 7) <= version.release[:2] < (1, 12) or allowed is False:
        return
    if not _built_for_cuda(torch_runtime, torch):
        return
    yield Finding(
        severity=Severity.WARNING if differs else Severity.INFO,
        summary=f"PyTorch {version} runs float32 products in TF32 by default, from compute capability 8.0 on",
        subject=f"torch {version}",
        facts=("torch_runtime.version" if seen else "torch.version",),
        remedies=(
            _switch_off(),
            _override(system),
        ),
    )


def _told(
    fact: str, symptoms: tuple[Symptom, ...] | None, *, known_devices: bool, system: System | None
) -> Iterator[Finding]:
    """Yield a finding for a report of results that differ on a GPU that has TF32.

    It must speak of TF32 itself, or of float32 products and of a device without TF32 that it compares with.
    """
    devices = reported(symptoms, "gpu-named-ampere")[:1]
    product = reported(symptoms, "float32-product-told")[:1]
    other = reported(symptoms, "compared-with-another-device")[:1]
    measured = reported(symptoms, "float32-error-like-tf32")[:1]
    spoken = reported(symptoms, "tf32-mentioned")[:1] or measured or (product + other if product and other else ())
    if not spoken or not (devices or known_devices):
        return
    yield Finding(
        severity=Severity.WARNING,
        summary="Float32 results differ on a GPU with TF32, in which convolutions run by default in every release"
        + (f": {devices[0][1].text}" if devices else ""),
        subject="TF32",
        facts=(fact, *(path for path, _ in (*devices, *spoken))),
        remedies=(_switch_off(), _override(system)),
    )


def _switch_off() -> Remedy:
    return Remedy(
        summary="Write torch.backends.cuda.matmul.allow_tf32 = False at the start of the program, and "
        "torch.backends.cudnn.allow_tf32 = False where convolutions must be exact too",
        needs=("restart",),
        reference=REFERENCE,
    )


def _built_for_cuda(torch_runtime: TorchRuntime | None, torch: Torch | None) -> bool:
    if torch_runtime is not None and torch_runtime.cuda_version is not None:
        return True
    return torch is not None and (torch.build == "cuda" or torch.cuda_version is not None)


def _override(system: System | None) -> Remedy:
    return set_variable(
        system=system,
        name="NVIDIA_TF32_OVERRIDE",
        value="0",
        summary="Forbid TF32 in all of NVIDIA's libraries, whatever the program sets (in TensorFlow alone: "
        "tf.config.experimental.enable_tensor_float_32_execution(False))",
    )
