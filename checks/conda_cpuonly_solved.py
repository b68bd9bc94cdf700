"""conda's choice of PyTorch's build."""

from collections.abc import Iterator
from dataclasses import replace

from gpudoctor.conclusions.installed import Machine, package
from gpudoctor.conclusions.messages import reported
from gpudoctor.conclusions.torch_requests import cuda_wanted, gpu_named
from gpudoctor.data import torch_builds
from gpudoctor.model import Device, Driver, Finding, Python, Remedy, Severity, Symptom, System, Torch
from gpudoctor.registry import check, known, skip_unless
from gpudoctor.remedies.commands import environment_of
from gpudoctor.remedies.torch_install import index_options

# The channel pytorch ended with 2.5. Source: pytorch/pytorch#138506.
FIRST_WITHOUT_CHANNEL = (2, 6)
# Packages that bring CUDA and that nobody installs for a CPU build. Source: channels pytorch and conda-forge.
CUDA_PACKAGES = ("cudatoolkit", "pytorch-cuda", "cuda-version")
# conda's virtual package __cuda. Source: "Managing virtual packages" of conda's documentation.
SEEN = "conda-driver-seen"
BY_BUILD = Remedy(
    summary="Or name a CUDA build by its build string: where the solver cannot have it, it says why instead of taking "
    "the CPU build",
    commands=('conda install "pytorch=*=*cuda*"',),
    reference="https://conda-forge.org/docs/user/tipsandtricks/#installing-cuda-enabled-packages-like-tensorflow-and-pytorch",
)


@check(family="torch", explains=("torch-cpu-build", "torch-cuda-unavailable", "torchvision-mismatch"))
def conda_cpuonly_solved(
    torch: Torch,
    devices: tuple[Device, ...] | None = None,
    driver: Driver | None = None,
    system: System | None = None,
    python: Python | None = None,
    symptoms: tuple[Symptom, ...] | None = None,
) -> Iterator[Finding]:
    """conda's solver chose the CPU build of PyTorch on a machine with an NVIDIA GPU.

    Why: the package cpuonly forbids every CUDA build for as long as it is installed. Without it the solver still takes
    the CPU build where the packages asked for leave no CUDA build, or where it saw no driver (conda-forge's virtual
    package __cuda), as on a login node or while an image is built.
    Exception: without a GPU the CPU build is right. A PyTorch that pip installed is torch-cpu-build. Where a report
    does not name the GPU, a request for CUDA or conda's package __cuda stands for it.
    Reference: https://conda-forge.org/docs/user/tipsandtricks/#installing-cuda-enabled-packages-like-tensorflow-and-pytorch
    """
    skip_unless(torch.installed is not False, "PyTorch is not installed")
    said = next((fact for fact, _ in reported(symptoms, "conda-cpu-chosen")), None)
    build = (torch.conda_build or None) if said else known(torch.conda_build, "torch.conda_build")
    skip_unless(said or build, "conda did not install PyTorch")
    if torch.build not in (None, "cpu") and not (said and "cpu" in (torch.conda_build or "")):
        return  # a report may also show another environment, in which it works
    if not (said or torch.conda_cpuonly or "cpu" in str(build)):
        return
    machine = Machine(python=python, system=system, driver=driver, devices=devices)
    gpu, wanted, seen = machine.gpu(), _wanted(python, symptoms), reported(symptoms, SEEN)
    if gpu is None and not wanted:
        known(gpu, "devices")
    if gpu == "":
        return
    by_conda = replace(torch, conda_build=build or "cpu")  # whatever else is known, conda installed it
    version = f" {torch.version}" if torch.version else ""
    forced = ", as its package cpuonly demands" if torch.conda_cpuonly else ""
    yield Finding(
        severity=Severity.ERROR,
        summary=f"conda chose the CPU build{f' {build}' if build else ''} of PyTorch{version}{forced}, and "
        + (f"the machine has {gpu}" if gpu else "conda sees an NVIDIA driver" if seen else "CUDA was asked for"),
        subject=f"torch{version}",
        facts=(
            "torch.conda_build" if build else str(said),
            *(("torch.conda_cpuonly",) if torch.conda_cpuonly else ()),
            machine.gpu_fact() if gpu else str(wanted),
        ),
        remedies=(machine.install_torch(by_conda), *_variants(torch, machine), BY_BUILD),
    )


def _variants(torch: Torch, machine: Machine) -> Iterator[Remedy]:
    """Yield for which versions of CUDA the release was built: for another one the solver finds only the CPU build."""
    version = torch.version
    builds = torch_builds(version.minor_release) if version is not None else ()
    if version is None or not builds or version.release >= FIRST_WITHOUT_CHANNEL:
        return
    named = ", ".join(dict.fromkeys(str(build.cuda) for build in builds))
    variant = builds[-1].variant
    environment = environment_of(machine.python, machine.system)
    yield Remedy(
        summary=f"Or keep {version.public}, which was built for CUDA {named}: ask conda for one of these (cudatoolkit, "
        "from 1.13 on pytorch-cuda, from the channels pytorch and nvidia) after conda remove cpuonly, or take pip's "
        "wheel",
        commands=(
            environment.install([*index_options(version.release, variant), f"torch=={version.public}+{variant}"]),
        ),
        reference="https://pytorch.org/get-started/previous-versions/",
    )


def _wanted(python: Python | None, symptoms: tuple[Symptom, ...] | None) -> str | None:
    """Return the fact by which CUDA was asked for: of conda, by a package or by a program."""
    asked = reported(symptoms, "conda-cuda-asked", SEEN)
    if asked:
        return asked[0][0]
    installed = next((found for name in CUDA_PACKAGES if (found := package(python, name)) is not None), None)
    return installed[0] if installed is not None else cuda_wanted(symptoms) or gpu_named(symptoms)
