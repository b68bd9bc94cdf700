"""The architectures that CuPy's NVRTC compiles for against the compute capability of each device."""

import re
from collections.abc import Iterator

from gpudoctor.conclusions.cupy_errors import cupy_works, error_with
from gpudoctor.conclusions.installed import Machine, cupy_installed, known_gpus
from gpudoctor.conclusions.runtime_compilers import gpu_named_beside, toolkit_span
from gpudoctor.data import runs_on, toolkit_architectures
from gpudoctor.model import (
    ComputeCapability,
    CudaVersion,
    Cupy,
    CupyRuntime,
    Device,
    Driver,
    Finding,
    KnownGpu,
    Python,
    Remedy,
    Severity,
    Symptom,
    System,
)
from gpudoctor.model.record import record
from gpudoctor.registry import check, known, skip_unless
from gpudoctor.remedies import install_cupy

# What NVRTC and CUDA say. Source: NVRTC 11.7 to 13.5; cudaGetErrorString of CUDA 13.5.
REFUSED = (
    r"invalid value for --gpu-architecture|no kernel image is available|cudaErrorNoKernelImageForDevice"
    r"|device kernel image is invalid|NVRTC_ERROR_INVALID_OPTION(?!.{0,100}--gpu-architecture)"
)


@record
class _Compiler:
    """What NVRTC compiles for, and the fact that tells it."""

    architectures: tuple[str, ...]
    name: str
    fact: str


@check(family="cupy", explains=("cupy-unusable",))
def cupy_arch_unsupported(
    cupy: Cupy | None = None,
    cupy_runtime: CupyRuntime | None = None,
    devices: tuple[Device, ...] | None = None,
    driver: Driver | None = None,
    python: Python | None = None,
    system: System | None = None,
    symptoms: tuple[Symptom, ...] | None = None,
) -> Iterator[Finding]:
    """The NVRTC that CuPy uses does not compile for the device's compute capability.

    Why: CuPy compiles for the capability of the device, or for the newest that its NVRTC knows: "invalid value for
    --gpu-architecture", or "no kernel image is available". NVRTC of CUDA 13 starts at 7.5, and only from 12.8 on there
    is machine code for Blackwell.
    Exception: machine code for the same major and a lower minor version runs. A CuPy that runs its kernels passes.
    Reference: https://docs.cupy.dev/en/stable/install.html
    """
    skip_unless(known(cupy_installed(cupy, cupy_runtime), "cupy.distributions"), "CuPy is not installed")
    skip_unless(cupy is None or cupy.platform != "rocm", "CuPy is not built for CUDA")
    skip_unless(devices != (), "there is no NVIDIA GPU")
    if cupy_works(cupy_runtime):
        return
    reported = error_with(cupy_runtime, REFUSED)
    compiler = _compiler(cupy, cupy_runtime, python)
    gpus = known_gpus(devices) or (gpu_named_beside(symptoms) if reported else ())
    machine = Machine(python=python, system=system, driver=driver, devices=devices or _devices(gpus))
    refused = [gpu for gpu in gpus if compiler is not None and not _compiles(compiler, gpu.capability)]
    if refused and compiler is not None:
        gpu = refused[0]
        some = len({gpu.capability for gpu in gpus} - {gpu.capability for gpu in refused}) > 0 and not reported
        yield Finding(
            severity=Severity.WARNING if some else Severity.ERROR,
            summary=f"{compiler.name} compiles for {_described(compiler)}, which does not include {gpu}",
            subject="cupy",
            facts=(compiler.fact, gpu.fact, *((reported[0],) if reported else ())),
            remedies=(machine.install_cupy(cupy),),
            details={"compute_capability": str(gpu.capability), "architectures": list(compiler.architectures)},
        )
    elif reported is not None:
        of = f" for {gpus[0]}" if gpus else ""
        of += toolkit_span(gpus[0].capability) if gpus else ""
        yield Finding(
            severity=Severity.ERROR,
            summary=f"CuPy cannot compile{of}: {reported[1][0]}",
            subject="cupy",
            facts=(reported[0], *((gpus[0].fact,) if gpus else ())),
            remedies=tuple(_remedies(gpus, cupy, machine)),
        )
    else:
        known(gpus or None, "devices[0].compute_capability")
        known(compiler, "cupy_runtime.nvrtc_architectures")


def _devices(gpus: tuple[KnownGpu, ...]) -> tuple[Device, ...] | None:
    """Return the GPUs as devices, for remedies; None for unknown."""
    return (
        tuple(
            Device(nvml_index=number, name=gpu.name, compute_capability=gpu.capability)
            for number, gpu in enumerate(gpus)
        )
        or None
    )


def _remedies(gpus: tuple[KnownGpu, ...], cupy: Cupy | None, machine: Machine) -> Iterator[Remedy]:
    yield machine.install_cupy(cupy)
    if gpus:
        yield Remedy(
            summary=f"Or bring the CUDA toolkit, or the container's image, to a version that compiles for {gpus[0]}"
            f"{toolkit_span(gpus[0].capability)}, and take the CuPy for it",
            commands=("nvidia-smi --query-gpu=name,compute_cap --format=csv", "nvcc --list-gpu-arch"),
        )
        return
    older = install_cupy(
        python=machine.python, system=machine.system, driver=machine.driver, devices=None, cupy=cupy, cuda_major=12
    )
    yield Remedy(
        summary="For a GPU before Turing (compute capability below 7.5: Maxwell, Pascal, Volta), for which CUDA 13 no "
        f"longer compiles: {older.summary}",
        commands=older.commands,
    )
    yield Remedy(
        summary="For a GPU of Blackwell (RTX 50, compute capability 10.0 and newer) CUDA 12.8 or newer is needed; for "
        "one of Ada or Hopper 11.8, of Ampere 11.1: look up which it is, then update toolkit or image",
        commands=("nvidia-smi --query-gpu=name,compute_cap --format=csv",),
        reference="https://developer.nvidia.com/cuda-gpus",
    )


def _compiler(cupy: Cupy | None, cupy_runtime: CupyRuntime | None, python: Python | None) -> _Compiler | None:
    """Return what compiles: as NVRTC said, else by its version, else what every NVRTC of the major version has."""
    if cupy_runtime is not None and cupy_runtime.nvrtc_architectures:
        version = f" {cupy_runtime.nvrtc_version}" if cupy_runtime.nvrtc_version else ""
        return _Compiler(
            architectures=cupy_runtime.nvrtc_architectures,
            name=f"NVRTC{version}",
            fact="cupy_runtime.nvrtc_architectures",
        )
    runtime = cupy_runtime or CupyRuntime()
    versions: tuple[tuple[CudaVersion | None, str], ...] = (
        (runtime.nvrtc_version, "cupy_runtime.nvrtc_version"),
        (runtime.runtime_cuda_version, "cupy_runtime.runtime_cuda_version"),
        _wheel_version(cupy, python),
    )
    for cuda, fact in versions:
        listed = toolkit_architectures(cuda) if cuda is not None else None
        if listed is not None:
            return _Compiler(architectures=listed, name=f"NVRTC {cuda}", fact=fact)
    if cupy is None or cupy.cuda_major is None:
        return None
    return _of_major(cupy.cuda_major)


def _wheel_version(cupy: Cupy | None, python: Python | None) -> tuple[CudaVersion | None, str]:
    """Return the version of NVIDIA's wheel of NVRTC for CuPy's CUDA major version, and the fact that tells it."""
    major = cupy.cuda_major if cupy is not None else None
    for number, package in enumerate((python.packages if python is not None else None) or ()):
        if re.fullmatch(r"nvidia-cuda-nvrtc(-cu\d+)?", package.name) and package.version.release[:1] == (major,):
            return CudaVersion.parse(package.version.minor_release), f"python.packages[{number}].version"
    return None, ""


def _of_major(major: int) -> _Compiler | None:
    """Return what the toolkits of a major version compile for together: beyond that, none of them does."""
    listed = [toolkit_architectures(CudaVersion(major, minor)) for minor in range(20)]
    found = {name for architectures in listed for name in architectures or ()}
    if not found:
        return None
    architectures = tuple(sorted(found, key=lambda name: int(re.sub(r"\D", "", name))))
    return _Compiler(architectures=architectures, name=f"NVRTC of CUDA {major}", fact="cupy.cuda_major")


def _compiles(compiler: _Compiler, capability: ComputeCapability) -> bool:
    """Return whether kernels for the device come out.

    CuPy asks for min(capability of the device, the newest that NVRTC knows).
    Source: cupy/cuda/compiler.py of CuPy 14.2, _get_arch.
    """
    if capability.sm in compiler.architectures:
        return True
    newest = max(ComputeCapability.parse(name) for name in compiler.architectures)
    return capability > newest and runs_on((newest.sm,), capability)


def _described(compiler: _Compiler) -> str:
    names = compiler.architectures
    return f"{names[0]} to {names[-1]}" if len(names) > 2 else " and ".join(names)
