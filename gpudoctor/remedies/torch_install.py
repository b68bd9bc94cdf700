"""Install PyTorch: the build for driver and devices, with its companions."""

from collections.abc import Iterator, Mapping, Sequence

from gpudoctor.data.capabilities import is_tegra
from gpudoctor.data.drivers import first_driver, minimum_driver
from gpudoctor.data.torch_builds import INDEX, TorchBuild, torch_companions, torch_releases
from gpudoctor.model import Device, Driver, Fix, Origin, Package, Place, Python, Pytorch, Remedy, Symptom, System, Torch
from gpudoctor.model.gpu_conclusions import KnownGpu
from gpudoctor.model.versions import ComputeCapability, CudaVersion, DriverVersion, PackageVersion
from gpudoctor.remedies.commands import Environment, environment_of, index_name
from gpudoctor.remedies.fixes import Machine as Diagnosed
from gpudoctor.remedies.fixes import fix, remedy_of_row
from gpudoctor.remedies.torch_choice import Choice, Machine, choose, choose_for_older_driver, machine_of
from gpudoctor.remedies.torch_obstacles import explain_no_build

REFERENCE = "https://pytorch.org/get-started/locally/"
PREVIOUS = "https://pytorch.org/get-started/previous-versions/"
CONDA_FORGE = (
    "https://conda-forge.org/docs/user/tipsandtricks/#installing-cuda-enabled-packages-like-tensorflow-and-pytorch"
)
# Programs without PyTorch, and their fix if a report names no PyTorch.
OTHER_PROGRAMS = {
    "about-jax": "install-jax-for-cuda",
    "about-ollama": "use-gpu-ollama",
    "about-llama-cpp": "use-gpu-llama-cpp-itself",
    "about-tensorflow": "use-gpu-tensorflow",
}
# GPUs that CUDA does not run on, and the fix if a report names one and none of NVIDIA.
OTHER_VENDORS = {
    "intel-gpu-named": "install-torch-for-intel",
    "amd-gpu-named": "install-torch-of-other-vendor",
    "amd-gpu-reported": "install-torch-of-other-vendor",
}
OF_NVIDIA = ("nvidia-gpu-named", "nvidia-gpu-owned")
FIRST_OF_CUDA_12 = ComputeCapability(5, 0)
# Source: https://pytorch.org/get-started/previous-versions/, the commands for 1.8.0 and 1.8.1.
FIRST_WITH_NAMED_DEFAULT = (1, 8, 1)
# The oldest Python that still gets fixes. Source: https://devguide.python.org/versions/
OLD_PYTHON = (3, 10)
ROCM_TRITON = "pytorch-triton-rocm"
COMPANIONS = ("torchvision", "torchaudio")
VERIFY = "import torch; print(torch.__version__, torch.cuda.is_available())"

FIRST_OF_JETPACK_7 = CudaVersion(13, 0)


@fix
def install_torch(  # noqa: PLR0913
    *,
    python: Python,
    system: System,
    driver: Driver,
    devices: Sequence[Device] | None,
    origin: Origin | None = None,
    place: Place = Place(),
    symptoms: tuple[Symptom, ...] | None = None,
    pytorch: Pytorch | Torch | None = None,
    cuda: CudaVersion | None = None,
    release: PackageVersion | None = None,
    keep_release: bool = True,
    gpus: Sequence[KnownGpu] = (),
) -> Remedy:
    """Return how to install the CUDA build of PyTorch for driver and devices.

    The user's release is kept if it has such a build. If no build works, the remedy has no commands and says what
    would help.

    cuda: only builds with this CUDA version. release: the wanted release, instead of the installed one.
    keep_release: False if the installed release is not wanted. gpus: target GPUs if no device is known.
    """
    if release is not None or not keep_release:
        pytorch = Pytorch(version=release)
    if not devices:
        devices = [Device(nvml_index=n, name=g.name, compute_capability=g.capability) for n, g in enumerate(gpus)]
    machine = machine_of(python, system, driver, devices, cuda)
    kinds = {symptom.kind for symptom in symptoms or ()}
    others = [row for kind, row in OTHER_PROGRAMS.items() if kind in kinds and "about-torch-named" not in kinds]
    if len(others) == 1 and (pytorch is None or pytorch.version is None):
        return remedy_of_row(others[0], system, python)
    vendors = [row for kind, row in OTHER_VENDORS.items() if kind in kinds and kinds.isdisjoint(OF_NVIDIA)]
    if vendors and not system.nvidia_gpus and not devices:
        return remedy_of_row(vendors[0], system, python)
    on_jetson = any(map(is_tegra, machine.capabilities)) or (place.is_tegra and not machine.capabilities)
    on_jetson = on_jetson and machine.platform != ""
    offered = machine.offered_cuda()
    # PyTorch's own wheels need the driver of JetPack 7, which is the first for CUDA 13.
    is_older = (
        on_jetson
        and machine.platform != "linux_x86_64"
        and not (machine.capabilities and offered is not None and offered >= FIRST_OF_JETPACK_7)
    )
    choice = None if is_older else choose(machine, pytorch)
    if choice is None:
        wheel = remedy_of_row("install-torch-for-jetson", system, python)
        return wheel if on_jetson else explain_no_build(machine, system, pytorch)
    environment = environment_of(python, system)
    if pytorch is not None and (pytorch.conda_build or pytorch.conda_cpuonly):
        return _install_with_conda(environment, choice, machine, pytorch, companions_of(python, origin))
    return Remedy(
        summary=_summary(choice, machine, environment, pytorch),
        commands=(
            *environment.setup,
            *_removal_of_rocm_triton(environment, python),
            *pip_commands(environment, choice, companions_of(python, origin)),
            environment.run(VERIFY),
        ),
        reference=REFERENCE if choice.build.release.startswith("2.") else PREVIOUS,
    )


@fix
def use_gpu_without_cuda_torch(*, machine: Diagnosed, symptoms: tuple[Symptom, ...] | None) -> Remedy | Fix:
    """Return the PyTorch build for a GPU without CUDA."""
    of_intel = any(symptom.kind == "intel-gpu-named" for symptom in symptoms or ())
    return machine.call(install_torch) if of_intel else Fix("install-torch-of-other-vendor")


@fix
def reinstall_torch(*, python: Python, system: System, pytorch: Pytorch | Torch | None) -> Remedy:
    """Return how to reinstall the same PyTorch, for an installation with missing or broken files."""
    environment = environment_of(python, system)
    if pytorch is None or pytorch.version is None:
        return Remedy(
            summary="Reinstall PyTorch. Its version is unknown: choose the build on the linked page",
            reference=REFERENCE,
        )
    if environment.windows and not pytorch.version.local and not pytorch.conda_build:
        return Remedy(
            summary=f"Reinstall PyTorch {pytorch.version} in a build with CUDA, with the command on the linked page: "
            "for Windows, PyPI has the CPU build only",
            reference=REFERENCE,
        )
    summary = f"Install PyTorch {pytorch.version} again, with its dependencies"
    if environment.conda_prefix and pytorch.conda_build:
        command = environment.conda("install", ["--force-reinstall", f"pytorch={pytorch.version.public}"])
        return Remedy(summary=summary, commands=(command, environment.run(VERIFY)))
    arguments = [f"torch=={pytorch.version}"]
    if pytorch.version.local:
        arguments = [*index_options(pytorch.version.release[:2], pytorch.version.local), *arguments]
    commands = (environment.install(arguments, force=True), environment.run(VERIFY))
    return Remedy(summary=summary, commands=(*environment.setup, *commands), reference=REFERENCE)


def companions_of(python: Python, origin: Origin | None) -> dict[str, Package | None]:
    """Return the companions to install with PyTorch: the installed ones; both for a report, which may not list them."""
    packages = {package.name: package for package in python.packages or ()}
    needed = [name for name in COMPANIONS if name in packages]
    listed = bool(needed and python.project)  # for a project, its tool lists all packages
    if origin is not None and origin.is_report and not listed:
        needed = [*COMPANIONS]
    return {name: packages.get(name) for name in needed}


def _removal_of_rocm_triton(environment: Environment, python: Python) -> Iterator[str]:
    """Yield the command that removes what the ROCm build has left: the CUDA build's triton has the same files."""
    if any(p.name == ROCM_TRITON for p in python.packages or ()) and not (environment.project or environment.setup):
        yield environment.uninstall([ROCM_TRITON])


def pip_commands(environment: Environment, choice: Choice, companions: Mapping[str, Package | None]) -> Iterator[str]:
    """Yield the commands that install a build of PyTorch with its companions by wheels."""
    variant = choice.build.variant
    known = torch_companions(choice.version)
    if choice.build.pypi_default and _numbers(choice.version) < FIRST_WITH_NAMED_DEFAULT:
        # Its version names no variant. "==" would accept every variant, "===" accepts this one only.
        named = {"torch": choice.version} | {name: getattr(known, name, None) for name in companions}
        pins = [f"{name}==={version}" for name, version in named.items() if version]
        yield environment.install([*(index_options((1, 8), variant) if environment.windows else ()), *pins])
        return
    arguments = [*index_options(_numbers(choice.version), variant), f"torch=={choice.version}+{variant}"]
    from_pypi = ""
    for name, package in companions.items():
        version = getattr(known, name, None)
        built = getattr(known, f"{name}_variants", None)
        if version is None:
            # Unpinned, an installed build for another torch would count as "already satisfied".
            yield environment.uninstall([name])
            arguments.append(name)
        elif built is None or variant in built:
            arguments.append(f"{name}=={version}+{variant}")
        elif package is None or package.version.public != version:
            from_pypi = f"{name}=={version}"
    if environment.project == "poetry" and "--index-url" in arguments:
        yield f"poetry source add --priority=explicit {index_name(arguments[1])} {arguments[1]}"
    yield environment.install(arguments)
    if from_pypi:
        # This torchaudio requires no torch version, and the variant's index lacks it.
        yield environment.install(["--no-deps", from_pypi])


def index_options(release: tuple[int, ...], variant: str) -> list[str]:
    """Return the options for a variant's index. Source: "Previous PyTorch Versions" of pytorch.org."""
    if release >= (2, 0):
        return ["--index-url", f"{INDEX}/{variant}"]
    if release >= (1, 11):
        return ["--extra-index-url", f"{INDEX}/{variant}"]
    return ["--find-links", f"{INDEX}/torch_stable.html"]


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def _install_with_conda(
    environment: Environment,
    choice: Choice,
    machine: Machine,
    torch: Pytorch | Torch,
    companions: Mapping[str, Package | None],
) -> Remedy:
    """Return the remedy for an environment with conda's torch.

    It uses conda-forge, because PyTorch's own channel ended with 2.5: https://github.com/pytorch/pytorch/issues/138506
    """
    # conda-forge builds no new PyTorch for CUDA 11: https://github.com/facebookresearch/momentum/pull/148
    is_free = machine.driver_is_unknown() and min(machine.capabilities, default=FIRST_OF_CUDA_12) >= FIRST_OF_CUDA_12
    major = max(choice.build.cuda.major, 12) if is_free else choice.build.cuda.major
    commands = [environment.conda("remove", ["cpuonly"])] if torch.conda_cpuonly else []
    of_conda = [name for name, package in companions.items() if package is None or package.installer == "conda"]
    install = ["--channel", "conda-forge", "pytorch-gpu", f"cuda-version={major}", *of_conda]
    commands += [environment.conda("install", install), environment.run(VERIFY)]
    summary = f"Install conda-forge's PyTorch built with CUDA {major}, which {_fits(machine)}"
    if environment.project == "pixi":  # https://pixi.prefix.dev/latest/python/pytorch/
        summary += f'. If pixi finds no build, add cuda = "{major}" to [system-requirements] of the project first'
    return Remedy(
        summary=summary,
        commands=tuple(commands),
        reference=CONDA_FORGE,
    )


def _summary(choice: Choice, machine: Machine, environment: Environment, torch: Pytorch | Torch | None) -> str:
    build = choice.build
    text = f"Install PyTorch {choice.version} built with CUDA {build.cuda}, which {_fits(machine)}"
    if torch is not None and torch.version is not None and torch.version.minor_release != build.release:
        known = any(release.release == torch.version.minor_release for release in torch_releases())
        text += f"; {torch.version} " + ("has no build that fits" if known else "is not in gpudoctor's table")
    if machine.driver_is_unknown():
        text += f". It needs driver {_oldest_driver(build, machine)} or newer: nvidia-smi shows yours"
        older = choose_for_older_driver(choice, machine)
        if older is not None:
            pinned = f"torch=={older.version}+{older.variant}"
            text += (
                f". With driver {_oldest_driver(older, machine)} or newer, {pinned} works (index whl/{older.variant})"
            )
    if not machine.capabilities:
        text += f". Check the GPU's compute capability: the build supports {', '.join(build.architectures)}"
    newest = max(_numbers(version.rstrip("t")) for version in build.pythons["linux_x86_64"])
    if machine.python is None and newest < OLD_PYTHON:
        text += f". It needs Python {'.'.join(map(str, newest))} or older"
    if environment.project:
        file = "the project's file" if environment.project == "pixi" else "pyproject.toml"
        text += f". {environment.project} add writes it and its index into {file}, so that a later sync keeps it"
    if environment.setup:
        text += ". The distribution forbids pip in its own Python, so this creates a virtual environment"
    return text


def _oldest_driver(build: TorchBuild, machine: Machine) -> DriverVersion | None:
    """Return the oldest driver that runs the build and knows the machine's devices; None if it is not in the tables."""
    os = "windows" if machine.windows else "linux"
    needed = (minimum_driver(build.cuda, os), *(first_driver(capability, os) for capability in machine.capabilities))
    return max(filter(None, needed), default=None)


def _fits(machine: Machine) -> str:
    names = []
    if machine.driver.version is not None:
        names.append(f"driver {machine.driver.version}")
    elif machine.offered_cuda() is not None:
        names.append(f"a driver for CUDA {machine.offered_cuda()}")
    if machine.capabilities:
        names.append("compute capability " + ", ".join(map(str, machine.capabilities)))
    return "fits " + " and ".join(names) if names else "is the usual build for this platform"
