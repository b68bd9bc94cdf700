"""Sections torch_runtime for tests: what the worker answers where everything works, to be changed in one place."""

from dataclasses import replace
from typing import Any

from gpudoctor.model import ComputeCapability, CudaVersion, PackageVersion, PrecisionResult, TorchRuntime

# As computed by PyTorch 2.13.0 on a CPU, TF32 by rounding the factors to 10 bits.
TYPICAL_ERRORS = {"fp32": 3e-7, "tf32": 3e-4, "fp16": 5e-4, "bf16": 4e-3}

L4 = ("NVIDIA L4", "8.9")
T4 = ("Tesla T4", "7.5")
GTX_1660 = ("NVIDIA GeForce GTX 1660 Ti", "7.5")
GTX_1080 = ("NVIDIA GeForce GTX 1080", "6.1")


def working(*devices: tuple[str, str], **changes: Any) -> TorchRuntime:
    """Return the section of a CUDA build that computes rightly on `devices`, an L4 where none is given."""
    devices = devices or (L4,)
    capabilities = tuple(ComputeCapability.parse(capability) for _, capability in devices)
    runtime = TorchRuntime(
        import_error="",
        version=PackageVersion("2.13.0+cu130"),
        cuda_version=CudaVersion(13, 0),
        hip_version="",
        available=True,
        availability_error="",
        device_count=len(devices),
        device_names=tuple(name for name, _ in devices),
        device_capabilities=capabilities,
        cudnn_version=91002,
        cudnn_error="",
        matmul_tf32=False,
        cudnn_benchmark=False,
        warnings=(),
        precision_results=tuple(
            PrecisionResult(device=f"cuda:{index}", precision=precision, relative_error=error)
            for index, capability in enumerate(capabilities)
            for precision, error in TYPICAL_ERRORS.items()
            if precision != "tf32" or capability >= ComputeCapability(8, 0)
        ),
    )
    return replace(runtime, **changes)


def with_result(runtime: TorchRuntime, precision: str, device: str = "cuda:0", **changes: Any) -> TorchRuntime:
    """Return `runtime` with one of its products changed."""
    results = tuple(
        replace(result, **changes) if (result.device, result.precision) == (device, precision) else result
        for result in runtime.precision_results or ()
    )
    return replace(runtime, precision_results=results)
