"""PyTorch's build against the GPU."""

import shlex
from collections.abc import Iterator

from gpudoctor.conclusions.container_setups import (
    each,
    each_image_once,
    engine_of,
    gpu_way,
    gpu_wish,
    host_has_gpu,
    named,
)
from gpudoctor.conclusions.installed import Machine
from gpudoctor.data import features, runs_on, torch_builds, torch_releases
from gpudoctor.data.capabilities import is_tegra
from gpudoctor.model import (
    Containers,
    ContainerSetup,
    CudaIntent,
    Device,
    Driver,
    Finding,
    Fix,
    Gpu,
    Place,
    Pytorch,
    Remedy,
    Severity,
    System,
    Torch,
)
from gpudoctor.registry import check, known, skip_unless
from gpudoctor.remedies import install_torch


@check(family="torch", explains=("torch-cuda-unavailable", "torchvision-mismatch", "extension-abi-mismatch"))
def torch_cpu_build(
    pytorch: Pytorch,
    gpu: Gpu,
    cuda_intent: CudaIntent,
    place: Place,
    devices: tuple[Device, ...] | None = None,
    system: System | None = None,
    driver: Driver | None = None,
    containers: Containers | None = None,
) -> Iterator[Finding]:
    """PyTorch is built without CUDA, on a machine with an NVIDIA GPU.

    Why: everything runs on the CPU, and .to("cuda") ends with "Torch not compiled with CUDA enabled". The index
    whl/cpu has such builds, and for Windows, and for Linux on aarch64 before PyTorch 2.11, so has PyPI. Reinstalling
    does not help: pip considers 2.13.0+cpu to satisfy torch==2.13.0.
    Exception: without a GPU a CPU build is right, and also if no build of PyTorch runs on the GPU. GPUs that are passed
    to a virtual machine, or that a container did not get, do not count. If a report does not name the GPU, a program
    that asks for CUDA, or an installed CUDA toolkit, is enough. The PyTorch in an image counts
    where a container of it gets the GPU, or where the image is one for CUDA.
    Reference: https://pytorch.org/get-started/locally/
    """
    yield from each_image_once(_of_setups(containers, Machine(system=system, driver=driver, devices=devices)))
    skip_unless(known(pytorch.installed, "torch.installed"), "PyTorch is not installed")
    if known(pytorch.build, "torch.build") != "cpu":
        return
    skip_unless(not place.is_mac, "macOS has no CUDA")
    if not cuda_intent.fact:
        known(gpu.name, "devices")
    likely = pytorch.likely.get("build")
    if cuda_intent.rocm_index and not likely:
        yield Finding(
            severity=Severity.ERROR,
            summary=f"{pytorch.label} is built for the CPU, and {cuda_intent.rocm_index} was asked for",
            subject=pytorch.subject,
            facts=(cuda_intent.rocm_fact,),
            fixes=(Fix("check-index-order", variant=cuda_intent.rocm_index),),
        )
        return
    if gpu.name == "" or not _has_builds(gpu, devices or ()):
        return
    built = f"is probably built without CUDA ({likely})" if likely else "is built without CUDA"
    default = ", as the default wheel for Linux on aarch64 is" if _is_default(pytorch, system) else ""
    yield Finding(
        severity=Severity.ERROR,
        summary=f"{pytorch.label} {built}{default}, and "
        + (f"the machine has {gpu.name}" if gpu.name else cuda_intent.reason),
        subject=pytorch.subject,
        facts=(*pytorch.paths("build", "version"), gpu.fact or cuda_intent.fact),
        certain=not likely,
        fixes=(
            Fix("install-torch"),
            *((Fix("check-index-order", variant=cuda_intent.index),) if cuda_intent.index else ()),
        ),
    )


def _has_builds(gpu: Gpu, devices: tuple[Device, ...]) -> bool:
    """Return whether a build of PyTorch runs on a GPU here, as far as is known."""
    if not gpu.known or len(gpu.known) < len(devices):
        return True
    built_for = {name for build in torch_builds() for name in build.architectures}
    # Builds for Jetson come from NVIDIA, and what is newer than the tables may have builds by now.
    return any(
        runs_on(built_for, known_gpu.capability)
        or is_tegra(known_gpu.capability)
        or features(known_gpu.capability) is None
        for known_gpu in gpu.known
    )


def _is_default(pytorch: Pytorch, system: System | None) -> bool:
    """Return whether the default index has this build for Linux on aarch64."""
    if pytorch.version is None or system is None or (system.os, system.machine) != ("linux", "aarch64"):
        return False
    defaults = {release.release: release.default.get("linux_aarch64") for release in torch_releases()}
    return defaults.get(pytorch.version.minor_release) == "cpu"


def _of_setups(containers: Containers | None, machine: Machine) -> Iterator[tuple[ContainerSetup, Finding]]:
    """Yield the containers, services and images seen from outside that are for the GPU and have a CPU build."""
    engine = engine_of(containers)
    for path, setup in each(containers):
        torch = setup.torch
        way, wish = gpu_way(setup, engine), gpu_wish(setup)
        if torch is None or torch.build != "cpu" or not (way or wish):
            continue
        why, fact = ("it asks for the GPU", "gpu_requests") if way or wish is None else (wish[1], wish[0])
        if way == "runtime":
            fact = "environment"
        gpu_here = host_has_gpu(machine.devices, machine.system, engine)
        yield (
            setup,
            Finding(
                severity=Severity.ERROR if way or gpu_here else Severity.WARNING,
                summary=f"PyTorch {torch.version} in the {named(setup)} is built without CUDA, and {why}",
                subject=named(setup),
                facts=(f"{path}.torch", f"{path}.{fact}"),
                remedies=(_in_the_dockerfile(setup, torch, machine),),
            ),
        )


def _in_the_dockerfile(setup: ContainerSetup, torch: Torch, machine: Machine) -> Remedy:
    """Return the line of the Dockerfile that installs the CUDA build, and how the image is built with it."""
    linux = System(os="linux", machine=machine.system.machine if machine.system is not None else None)
    install = install_torch(python=None, system=linux, driver=machine.driver, devices=machine.devices, pytorch=torch)
    lines = [command for command in install.commands if " install " in command]
    service = f" {shlex.quote(setup.service)}" if setup.service else ""
    build = f"docker compose build --no-cache{service}" if setup.service else "docker build --no-cache --tag IMAGE ."
    start = f"docker compose up --detach --force-recreate{service}" if setup.service else ""
    line = f": RUN {lines[0]}" if lines else ""
    return Remedy(
        summary=f"In the Dockerfile install a build for CUDA{line}; let requirements.txt name no other, and build the "
        f"image anew. {install.summary}",
        commands=(build, *((start,) if start else ())),
        needs=("restart",),
        reference=install.reference,
    )
