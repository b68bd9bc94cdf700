"""conda's choice of PyTorch's build."""

from collections.abc import Iterator

from gpudoctor.model import Device, Driver, Finding, Python, Severity, System, Torch
from gpudoctor.reasoning.installed import Machine
from gpudoctor.registry import applies, check, known


@check(family="torch", explains=("torch-cpu-build", "torch-cuda-unavailable", "torchvision-mismatch"))
def conda_cpuonly_solved(
    torch: Torch,
    devices: tuple[Device, ...] | None = None,
    driver: Driver | None = None,
    system: System | None = None,
    python: Python | None = None,
) -> Iterator[Finding]:
    """conda's solver chose the CPU build of PyTorch on a machine with an NVIDIA GPU.

    Why: the package cpuonly forbids every CUDA build for as long as it is installed. Without it the solver still takes
    the CPU build where the packages asked for leave no CUDA build, or where it saw no driver (conda-forge's virtual
    package __cuda), as on a login node or while an image is built.
    Exception: without a GPU the CPU build is right. A PyTorch that pip installed is torch-cpu-build.
    Reference: https://conda-forge.org/docs/user/tipsandtricks/#installing-cuda-enabled-packages-like-tensorflow-and-pytorch
    """
    applies(torch.installed is not False, "PyTorch is not installed")
    build = known(torch.conda_build, "torch.conda_build")
    applies(build, "conda did not install PyTorch")
    if torch.build not in (None, "cpu") or not (torch.conda_cpuonly or "cpu" in build):
        return
    machine = Machine(python=python, system=system, driver=driver, devices=devices)
    gpu = known(machine.gpu(), "devices")
    if not gpu:
        return
    version = f" {torch.version}" if torch.version else ""
    forced = ", as its package cpuonly demands" if torch.conda_cpuonly else ""
    yield Finding(
        severity=Severity.ERROR,
        summary=f"conda chose the CPU build {build} of PyTorch{version}{forced}, and the machine has {gpu}",
        subject=f"torch{version}",
        facts=(
            "torch.conda_build",
            *(("torch.conda_cpuonly",) if torch.conda_cpuonly else ()),
            machine.gpu_fact(),
        ),
        remedies=(machine.install_torch(torch),),
    )
