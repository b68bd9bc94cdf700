"""PyTorch's build against the GPU."""

from collections.abc import Iterator

from gpudoctor.data import features, runs_on, torch_builds, torch_releases
from gpudoctor.data.capabilities import is_tegra
from gpudoctor.model import Device, Driver, Finding, PackageVersion, Python, Severity, System, Torch, TorchRuntime
from gpudoctor.reasoning.installed import Machine, known_gpus, torch_fact, whole_torch
from gpudoctor.registry import applies, check, known


@check(family="torch", explains=("torch-cuda-unavailable", "torchvision-mismatch"))
def torch_cpu_build(
    torch: Torch | None = None,
    torch_runtime: TorchRuntime | None = None,
    devices: tuple[Device, ...] | None = None,
    driver: Driver | None = None,
    system: System | None = None,
    python: Python | None = None,
) -> Iterator[Finding]:
    """PyTorch is built without CUDA, on a machine with an NVIDIA GPU.

    Why: everything runs on the CPU, and .to("cuda") ends with "Torch not compiled with CUDA enabled". The index
    whl/cpu has such builds, and for Windows, and for Linux on aarch64 before PyTorch 2.11, so has PyPI. To install
    torch again changes nothing, because pip takes torch==2.13.0 for satisfied by 2.13.0+cpu.
    Exception: without a GPU a CPU build is right, and so it is where no build of PyTorch runs on the GPU. GPUs that
    are handed on to a virtual machine, or that a container did not get, do not count.
    Reference: https://pytorch.org/get-started/locally/
    """
    whole = whole_torch(torch, torch_runtime)
    applies(known(whole.installed, "torch.installed"), "PyTorch is not installed")
    if known(whole.build, "torch.build") != "cpu":
        return
    machine = Machine(python=python, system=system, driver=driver, devices=devices)
    gpu = known(machine.gpu(), "devices")
    if not gpu or not _can_be_used(devices):
        return
    default = _is_default(whole.version, system)
    yield Finding(
        severity=Severity.ERROR,
        summary=f"PyTorch{f' {whole.version}' if whole.version else ''} is built without CUDA"
        f"{', as the default wheel for Linux on aarch64 is' if default else ''}, and the machine has {gpu}",
        subject=f"torch {whole.version}" if whole.version else "torch",
        facts=(
            torch_fact("build", torch, torch_runtime),
            *((torch_fact("version", torch, torch_runtime),) if whole.version else ()),
            machine.gpu_fact(),
        ),
        remedies=(machine.install_torch(whole),),
    )


def _can_be_used(devices: tuple[Device, ...] | None) -> bool:
    """Return whether a build of PyTorch runs on a GPU here, as far as is known."""
    gpus = known_gpus(devices)
    if not gpus or len(gpus) < len(devices or ()):
        return True
    built_for = {name for build in torch_builds() for name in build.architectures}
    # Builds for Jetson come from NVIDIA, and what is newer than the tables may have builds by now.
    return any(
        runs_on(built_for, gpu.capability) or is_tegra(gpu.capability) or features(gpu.capability) is None
        for gpu in gpus
    )


def _is_default(version: PackageVersion | None, system: System | None) -> bool:
    """Return whether the default index has this build for Linux on aarch64."""
    if version is None or system is None or (system.os, system.machine) != ("linux", "aarch64"):
        return False
    defaults = {release.release: release.default.get("linux_aarch64") for release in torch_releases()}
    return defaults.get(version.minor_release) == "cpu"
