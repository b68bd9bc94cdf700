"""The architectures that CuPy's NVRTC compiles for against the compute capability of each device."""

from collections.abc import Iterator

from gpudoctor.data.capabilities import runs_on, toolkit_span
from gpudoctor.model import Compiler, ComputeCapability, Cupy, CupyStatus, Devices, Finding, Fix, Gpu, Nvrtc, Severity
from gpudoctor.registry import check, known, skip_unless
from gpudoctor.symptoms import Symptoms, first, of_kind
from gpudoctor.symptoms.answers import answers


@check(family="cupy", explains=("cupy-unusable",))
def cupy_arch_unsupported(
    cupy_status: CupyStatus,
    nvrtc: Nvrtc,
    gpu: Gpu,
    cupy: Cupy = Cupy(),
    devices: Devices = None,
    symptoms: Symptoms = None,
) -> Iterator[Finding]:
    """The NVRTC version that CuPy uses cannot compile for this device.

    Why: CuPy compiles for the compute capability of the device, or for the newest one that its NVRTC supports: "invalid
    value for --gpu-architecture", or "no kernel image is available". NVRTC of CUDA 13 starts at 7.5, and only CUDA 12.8
    and newer create machine code for Blackwell.
    Exception: machine code for the same major and a lower minor version runs. A CuPy that runs its kernels passes.
    Reference: https://docs.cupy.dev/en/stable/install.html
    """
    if answered := answers(symptoms, "cupy-arch-unsupported"):
        yield answered[0]
        return
    skip_unless(known(cupy_status.installed, "cupy.distributions"), "CuPy is not installed")
    skip_unless(cupy.platform != "rocm", "CuPy is not built for CUDA")
    skip_unless(devices != (), "there is no NVIDIA GPU")
    if cupy_status.works:
        return
    said, compiler = first(of_kind(symptoms, "cupy-own-architecture-refused")), nvrtc.of_cupy
    gpus = gpu.known or (nvrtc.named_gpus if said else ())
    install = Fix("install-cupy", gpus=gpus)
    refused = [gpu for gpu in gpus if compiler is not None and not _compiles(compiler, gpu.capability)]
    if refused and compiler is not None:
        some = {gpu.capability for gpu in gpus} > {gpu.capability for gpu in refused} and not said
        yield Finding.of(
            Severity.WARNING if some else Severity.ERROR,
            "cupy",
            f"{compiler.name} compiles for {_described(compiler)}, which does not include {refused[0]}",
            (compiler.fact, refused[0].fact, said.fact if said else ""),
            install,
            details={"compute_capability": str(refused[0].capability), "architectures": list(compiler.architectures)},
        )
    elif said is not None:
        of = f" for {gpus[0]}{toolkit_span(gpus[0].capability)}" if gpus else ""
        other = Fix("toolkit-for-gpu", gpu=gpus[0]) if gpus else Fix("cupy-by-gpu-generation")
        summary = f"CuPy cannot compile{of}: {said.text}"
        yield Finding.error("cupy", summary, (said.fact, gpus[0].fact if gpus else ""), install, other)
    else:
        known(gpus or None, "devices[0].compute_capability")
        known(compiler, "cupy_runtime.nvrtc_architectures")


def _compiles(compiler: Compiler, capability: ComputeCapability) -> bool:
    """Return whether CuPy gets kernels for the device.

    CuPy asks for min(capability of the device, the newest that NVRTC knows).
    Source: cupy/cuda/compiler.py of CuPy 14.2, _get_arch.
    """
    if capability.sm in compiler.architectures:
        return True
    newest = max(ComputeCapability.parse(name) for name in compiler.architectures)
    return capability > newest and runs_on((newest.sm,), capability)


def _described(compiler: Compiler) -> str:
    names = compiler.architectures
    return f"{names[0]} to {names[-1]}" if len(names) > 2 else " and ".join(names)
