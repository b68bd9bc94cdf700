"""Repair a PyTorch that cannot be imported or cannot use the GPU: another build, or its libraries' dependencies."""

from collections.abc import Sequence
from dataclasses import replace

from gpudoctor.data.torch_builds import torch_builds
from gpudoctor.model import Device, Environment, Fix, KnownGpu, Origin, Python, Pytorch, Remedy, System, TorchKernels
from gpudoctor.model.versions import ComputeCapability
from gpudoctor.remedies.commands import environment_of, python_command
from gpudoctor.remedies.fixes import Machine, fix
from gpudoctor.remedies.torch_choice import Choice
from gpudoctor.remedies.torch_install import PREVIOUS, companions_of, install_torch, pip_commands

INITIALISE = (
    "import os, torch; print(torch.__version__, torch.version.cuda, os.environ.get('CUDA_VISIBLE_DEVICES')); "
    "torch.cuda.init(); print(torch.cuda.get_device_name(0))"
)
# The channel pytorch ended with 2.5. Source: pytorch/pytorch#138506.
FIRST_WITHOUT_CHANNEL = (2, 6)


@fix
def ask_driver_and_pytorch(*, python: Python, pytorch: Pytorch) -> Remedy:
    """Return how to see whether the driver answers, and PyTorch's message."""
    hint = "; None as its CUDA version means a build without CUDA" if pytorch.build_read is None else ""
    return Remedy(
        summary=f"Check whether the driver answers, then what PyTorch says when it initialises CUDA{hint}",
        commands=("nvidia-smi", python_command(python, "-c", INITIALISE)),
    )


@fix
def load_own_libraries(*, environment: Environment | None) -> tuple[Fix, ...]:
    """Return how to make PyTorch load its own libraries."""
    if environment is None or not environment.get("LD_LIBRARY_PATH"):
        return (Fix("reinstall-torch"),)
    summary = "Remove LD_LIBRARY_PATH, whose folders are searched before PyTorch's own libraries"
    return (Fix("unset-variable", name="LD_LIBRARY_PATH", summary=summary), Fix("reinstall-torch"))


@fix
def get_newer_c_library(*, python: Python, version: str) -> Fix:
    """Return how to get a newer glibc, which is part of the system, or libstdc++, which conda also provides.

    version: the version that the build needs: "GLIBCXX_3.4.30".
    """
    in_conda = python.environment == "conda" and python.prefix
    if in_conda and not version.startswith("GLIBC_"):
        return Fix("update-conda-cpp-library")
    return Fix("use-newer-system", version=version)


@fix
def install_torch_or_choose_gpus(
    *, machine: Machine, devices: Sequence[Device] | None, torch_kernels: TorchKernels
) -> tuple[Fix | Remedy, ...]:
    """Return how to install a build for all GPUs, and how to hide those that the present build does not support."""
    gpus = torch_kernels.gpus
    install: Remedy = machine.call(install_torch, gpus=gpus)
    works = {gpu.capability for gpu, runs in zip(gpus, torch_kernels.runs, strict=True) if runs}
    devices = devices or [
        Device(nvml_index=n, name=gpu.name, compute_capability=gpu.capability) for n, gpu in enumerate(gpus)
    ]
    working = [device.nvml_index for device in devices if device.compute_capability in works]
    show = Fix("show-devices", nvml_indices=working, summary="Let PyTorch see only the GPUs that it runs on")
    return (*((install,) if install.commands or not works else ()), *((show,) if working else ()))


@fix
def install_torch_with_conda(*, pytorch: Pytorch) -> Fix:
    """Return how to install conda's CUDA build. The present one is from conda in any case."""
    return Fix("install-torch", pytorch=replace(pytorch, conda_build=pytorch.conda_build or "cpu"))


@fix
def install_torch_for_new_gpu(*, machine: Machine) -> Remedy:
    """Return how to install a build for Blackwell, if a report names such a GPU only in words."""
    made: Remedy = machine.call(
        install_torch, gpus=(KnownGpu(name="GPU", capability=ComputeCapability(12, 0), fact=""),)
    )
    return made


@fix
def keep_torch_release(
    *, python: Python, system: System, pytorch: Pytorch, origin: Origin | None = None
) -> tuple[Remedy, ...]:
    """Return the CUDA versions of the release's builds: for any other the solver finds only the CPU build."""
    version = pytorch.version
    builds = torch_builds(version.minor_release) if version is not None else ()
    if version is None or not builds or version.release >= FIRST_WITHOUT_CHANNEL:
        return ()
    named = ", ".join(dict.fromkeys(str(build.cuda) for build in builds))
    wheels = pip_commands(
        environment_of(python, system), Choice(build=builds[-1], version=version.public), companions_of(python, origin)
    )
    keep = Remedy(
        summary=f"Keep {version.public}, which has builds for CUDA {named}: run conda remove cpuonly, then request one "
        "of these versions (package cudatoolkit, or pytorch-cuda since 1.13, from the channels pytorch and nvidia), or "
        "install pip's wheel",
        commands=tuple(wheels),
        reference=PREVIOUS,
    )
    return (keep,)
