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
from gpudoctor.conclusions.installed import Machine, known_gpus, torch_fact, whole_torch
from gpudoctor.conclusions.messages import reported
from gpudoctor.conclusions.torch_requests import cuda_wanted, gpu_named, index_asked
from gpudoctor.data import features, runs_on, torch_builds, torch_releases
from gpudoctor.data.capabilities import is_tegra
from gpudoctor.model import (
    Containers,
    ContainerSetup,
    Device,
    Driver,
    Environment,
    Finding,
    Origin,
    PackageVersion,
    Python,
    Remedy,
    Severity,
    Symptom,
    System,
    Toolkit,
    Torch,
    TorchRuntime,
)
from gpudoctor.registry import check, known, skip_unless
from gpudoctor.remedies import install_torch, python_command

# torch.version.cuda is None in every build that is not for CUDA.
NO_CUDA_VERSION = "torch-version-cuda-none"


@check(family="torch", explains=("torch-cuda-unavailable", "torchvision-mismatch", "extension-abi-mismatch"))
def torch_cpu_build(
    origin: Origin,
    torch: Torch | None = None,
    torch_runtime: TorchRuntime | None = None,
    devices: tuple[Device, ...] | None = None,
    driver: Driver | None = None,
    system: System | None = None,
    python: Python | None = None,
    toolkit: Toolkit | None = None,
    environment: Environment | None = None,
    containers: Containers | None = None,
    symptoms: tuple[Symptom, ...] | None = None,
) -> Iterator[Finding]:
    """PyTorch is built without CUDA, on a machine with an NVIDIA GPU.

    Why: everything runs on the CPU, and .to("cuda") ends with "Torch not compiled with CUDA enabled". The index
    whl/cpu has such builds, and for Windows, and for Linux on aarch64 before PyTorch 2.11, so has PyPI. To install
    torch again changes nothing, because pip takes torch==2.13.0 for satisfied by 2.13.0+cpu.
    Exception: without a GPU a CPU build is right, and so it is where no build of PyTorch runs on the GPU. GPUs that
    are handed on to a virtual machine, or that a container did not get, do not count. Where a report does not name
    the GPU, a program that asks for CUDA, or an installed CUDA toolkit, stands for it. The PyTorch in an image counts
    where a container of it gets the GPU, or where the image is one for CUDA.
    Reference: https://pytorch.org/get-started/locally/
    """
    yield from each_image_once(_of_setups(containers, Machine(system=system, driver=driver, devices=devices)))
    whole = whole_torch(torch, torch_runtime)
    skip_unless(known(whole.installed, "torch.installed"), "PyTorch is not installed")
    machine = Machine(python=python, system=system, driver=driver, devices=devices)
    gpu = machine.gpu()
    index = index_asked(symptoms, "cu")
    wanted = cuda_wanted(symptoms, gpu) or gpu_named(symptoms) or _toolkit_fact(toolkit, origin)
    wanted = wanted or (index[0] if index else None) or _extension_for_cuda(symptoms)
    guessed = whole.build is None and _looks_like_cpu_build(whole, torch_runtime, machine, environment, symptoms)
    if not guessed and known(whole.build, "torch.build") != "cpu":
        return
    skip_unless(system is None or system.os != "darwin", "macOS has no CUDA")
    if gpu is None and not wanted:
        known(gpu, "devices")
    rocm = index_asked(symptoms, "rocm") if whole.build == "cpu" else None
    if rocm:
        yield _instead_of_rocm(rocm, whole, machine)
        return
    if gpu == "" or not _can_be_used(devices):
        return
    default = _is_default(whole.version, system)
    built = "finds no CUDA and names no error, as a build without CUDA does" if guessed else "is built without CUDA"
    none = reported(symptoms, NO_CUDA_VERSION)
    if guessed and none:
        built = "has no CUDA version, as a build without CUDA"
    yield Finding(
        severity=Severity.ERROR,
        summary=f"PyTorch{f' {whole.version}' if whole.version else ''} {built}"
        f"{', as the default wheel for Linux on aarch64 is' if default else ''}, and "
        f"{f'the machine has {gpu}' if gpu else _wish(str(wanted), toolkit, symptoms)}",
        subject=f"torch {whole.version}" if whole.version else "torch",
        facts=(
            (none[0][0] if none else "torch_runtime.available")
            if guessed
            else torch_fact("build", torch, torch_runtime),
            *((torch_fact("version", torch, torch_runtime),) if whole.version else ()),
            machine.gpu_fact() if gpu else str(wanted),
        ),
        remedies=(machine.install_torch(whole), *((_order_of_indexes(machine, index[1]),) if index else ())),
    )


def _instead_of_rocm(index: tuple[str, str], whole: Torch, machine: Machine) -> Finding:
    """Return the finding where an index of ROCm was asked for, and the build for the CPU came from another one."""
    return Finding(
        severity=Severity.ERROR,
        summary=f"PyTorch{f' {whole.version}' if whole.version else ''} is built for the CPU, and {index[1]} was asked "
        "for",
        subject=f"torch {whole.version}" if whole.version else "torch",
        facts=(index[0],),
        remedies=(_order_of_indexes(machine, index[1]),),
    )


def _order_of_indexes(machine: Machine, variant: str) -> Remedy:
    """Return how to see which index the build came from: pip takes the newest version of all that it is given."""
    return Remedy(
        summary=f"See whether pip asks another index too (PIP_INDEX_URL, PIP_EXTRA_INDEX_URL, pip.conf), such as "
        f"whl/cpu, and whether the index of {variant} exists and has wheels for this Python: pip silently falls back "
        "to the others; name the one index with --index-url, not --extra-index-url",
        commands=(
            python_command(machine.python, "-m", "pip", "config", "list"),
            python_command(
                machine.python,
                *("-m", "pip", "download", "--no-deps", "torch"),
                *("--index-url", f"https://download.pytorch.org/whl/{variant}"),
            ),
        ),
        reference="https://pip.pypa.io/en/stable/cli/pip_install/#finding-packages",
    )


def _extension_for_cuda(symptoms: tuple[Symptom, ...] | None) -> str | None:
    """Return the message of an extension that is built for CUDA, as it says of itself."""
    told = reported(symptoms, "xformers-built-for")
    return next((fact for fact, message in told if "+cu" in message.names.get("built", "")), None)


def _toolkit_fact(toolkit: Toolkit | None, origin: Origin) -> str | None:
    """Return the fact that a report shows a CUDA toolkit: nobody installs one where there is no GPU to use."""
    shown = origin.is_report and toolkit is not None and toolkit.nvcc_version is not None
    return "toolkit.nvcc_version" if shown else None


def _wish(wanted: str, toolkit: Toolkit | None, symptoms: tuple[Symptom, ...] | None) -> str:
    """Return in words what stands for the GPU."""
    if wanted.startswith("toolkit") and toolkit is not None:
        return f"the CUDA toolkit {toolkit.nvcc_version} is installed"
    return "the report names an NVIDIA GPU" if wanted == gpu_named(symptoms) else "a program asks for CUDA"


def _looks_like_cpu_build(
    whole: Torch,
    torch_runtime: TorchRuntime | None,
    machine: Machine,
    environment: Environment | None,
    symptoms: tuple[Symptom, ...] | None,
) -> bool:
    """Return whether a report of which the build is not known reads like one of a CPU build.

    A CUDA build that cannot use the GPU says why: an error or a warning. The default wheels of Linux have CUDA, and
    those of Windows have none.
    """
    if reported(symptoms, NO_CUDA_VERSION):
        return not reported(symptoms, "rocm-*", "hip-*", "amd-gpu-*") and not (whole.version and whole.version.local)
    kinds = ("torch-gpu-wanted", *(("torch-on-cpu",) if machine.gpu() else ()))
    if not reported(symptoms, *kinds) or torch_runtime is None or torch_runtime.available is not False:
        return False
    if torch_runtime.availability_error or torch_runtime.import_error or torch_runtime.hip_version:
        return False
    if _something_else_explains(torch_runtime, machine, environment):
        return False
    system, version = machine.system, whole.version
    if whole.conda_build:
        return True
    os = system.os if system is not None else None
    return os in (None, "windows") if version is None else not version.local and os == "windows"


def _something_else_explains(torch_runtime: TorchRuntime, machine: Machine, environment: Environment | None) -> bool:
    """Return whether a fact explains that PyTorch finds no GPU, whatever its build is."""
    driver = machine.driver
    if driver is not None and (driver.nvml_error or driver.cuda_init_error or driver.installed is False):
        return True
    visible = environment.get("CUDA_VISIBLE_DEVICES") if environment is not None else None
    hidden = visible is not None and not visible.startswith("0")
    return hidden or bool(torch_runtime.device_count) or any(gpu.mig_enabled for gpu in machine.devices or ())


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
