"""conda's choice of PyTorch's build."""

from collections.abc import Iterator

from gpudoctor.model import Device, Driver, Finding, Message, Python, Severity, System, Torch
from gpudoctor.reasoning.installed import Machine, package
from gpudoctor.reasoning.messages import reported
from gpudoctor.reasoning.torch_requests import cuda_wanted
from gpudoctor.registry import applies, check, known

# Packages that bring CUDA and that nobody installs for a CPU build. Source: channels pytorch and conda-forge.
CUDA_PACKAGES = ("cudatoolkit", "pytorch-cuda", "cuda-version")


@check(family="torch", explains=("torch-cpu-build", "torch-cuda-unavailable", "torchvision-mismatch"))
def conda_cpuonly_solved(
    torch: Torch,
    devices: tuple[Device, ...] | None = None,
    driver: Driver | None = None,
    system: System | None = None,
    python: Python | None = None,
    messages: tuple[Message, ...] | None = None,
) -> Iterator[Finding]:
    """conda's solver chose the CPU build of PyTorch on a machine with an NVIDIA GPU.

    Why: the package cpuonly forbids every CUDA build for as long as it is installed. Without it the solver still takes
    the CPU build where the packages asked for leave no CUDA build, or where it saw no driver (conda-forge's virtual
    package __cuda), as on a login node or while an image is built.
    Exception: without a GPU the CPU build is right. A PyTorch that pip installed is torch-cpu-build. Where a report
    does not name the GPU, a request for CUDA stands for it.
    Reference: https://conda-forge.org/docs/user/tipsandtricks/#installing-cuda-enabled-packages-like-tensorflow-and-pytorch
    """
    applies(torch.installed is not False, "PyTorch is not installed")
    build = known(torch.conda_build, "torch.conda_build")
    applies(build, "conda did not install PyTorch")
    if torch.build not in (None, "cpu") or not (torch.conda_cpuonly or "cpu" in build):
        return
    machine = Machine(python=python, system=system, driver=driver, devices=devices)
    gpu, wanted = machine.gpu(), _wanted(python, messages)
    if gpu is None and not wanted:
        known(gpu, "devices")
    if gpu == "":
        return
    version = f" {torch.version}" if torch.version else ""
    forced = ", as its package cpuonly demands" if torch.conda_cpuonly else ""
    yield Finding(
        severity=Severity.ERROR,
        summary=f"conda chose the CPU build {build} of PyTorch{version}{forced}, and "
        + (f"the machine has {gpu}" if gpu else "CUDA was asked for"),
        subject=f"torch{version}",
        facts=(
            "torch.conda_build",
            *(("torch.conda_cpuonly",) if torch.conda_cpuonly else ()),
            machine.gpu_fact() if gpu else str(wanted),
        ),
        remedies=(machine.install_torch(torch),),
    )


def _wanted(python: Python | None, messages: tuple[Message, ...] | None) -> str | None:
    """Return the fact by which CUDA was asked for: of conda, by a package or by a program."""
    asked = reported(messages, "conda-cuda-asked")
    if asked:
        return asked[0][0]
    installed = next((found for name in CUDA_PACKAGES if (found := package(python, name)) is not None), None)
    return installed[0] if installed is not None else cuda_wanted(messages)
