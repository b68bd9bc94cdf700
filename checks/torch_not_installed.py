"""Whether PyTorch is there at all."""

from collections.abc import Iterator

from gpudoctor.conclusions.installed import Machine, required, severity_without_torch, torch_fact, whole_torch
from gpudoctor.conclusions.messages import reported
from gpudoctor.model import (
    Cupy,
    Device,
    Driver,
    Finding,
    Project,
    Python,
    Remedy,
    Severity,
    Symptom,
    System,
    Torch,
    TorchRuntime,
)
from gpudoctor.registry import check, known
from gpudoctor.remedies import install_packages, python_command

CPU_INDEX = "https://download.pytorch.org/whl/cpu"
REFERENCE = "https://pytorch.org/get-started/locally/"


@check(family="torch")
def torch_not_installed(
    torch: Torch | None = None,
    torch_runtime: TorchRuntime | None = None,
    project: Project | None = None,
    cupy: Cupy | None = None,
    python: Python | None = None,
    system: System | None = None,
    driver: Driver | None = None,
    devices: tuple[Device, ...] | None = None,
    symptoms: tuple[Symptom, ...] | None = None,
) -> Iterator[Finding]:
    """PyTorch is not installed in this environment.

    Why: import torch ends with "No module named 'torch'". Often it is installed, but in another environment than the
    one that runs.
    Exception: where nothing asks for PyTorch this is advice: no requirement of the project names it, and there is no
    GPU, or CuPy or another framework uses it. A requirement in an extra or a group asks for nothing.
    Reference: https://pytorch.org/get-started/locally/
    """
    if known(whole_torch(torch, torch_runtime).installed, "torch.installed"):
        return
    machine = Machine(python=python, system=system, driver=driver, devices=devices)
    gpu = machine.gpu()
    requirement = required(project, "torch", "pytorch", "torchvision", "torchaudio")
    failed = tuple(
        fact for fact, message in reported(symptoms, "torch-module-missing", "torch-said-missing") if _at_run(message)
    )
    severity = Severity.ERROR if failed else severity_without_torch(project, gpu, cupy, python)
    where = f" in the environment {python.prefix}" if python is not None and python.prefix else ""
    asks = f", and {requirement.source} asks for {requirement.name}{requirement.specifier}" if requirement else ""
    if failed and not requirement:
        asks = ", and a program imports it"
    elif not requirement and severity is Severity.WARNING:
        asks = f", and the machine has {_article(gpu)}"
    yield Finding(
        severity=severity,
        summary=f"PyTorch is not installed{where}{asks}",
        subject="torch",
        facts=(
            torch_fact("installed", torch, torch_runtime),
            *failed[:1],
            *(("project.requirements",) if requirement else ()),
        ),
        remedies=(
            _install(machine),
            *((_build_after(python),) if reported(symptoms, "torch-missing-in-setup") else ()),
            *((_other_environment(python),) if failed else ()),
        ),
    )


def _at_run(message: Symptom) -> bool:
    """Return whether a program failed, not the build of a package."""
    return "build" not in message.names and "after" not in message.names


def _build_after(python: Python | None) -> Remedy:
    return Remedy(
        summary="Then install the package whose setup.py imports torch, in a command of its own and with "
        "--no-build-isolation",
        commands=(python_command(python, "-c", "import torch; print(torch.__version__)"),),
    )


def _other_environment(python: Python | None) -> Remedy:
    return Remedy(
        summary="Or run the program in the environment that has PyTorch: activate it (conda activate NAME, or the "
        "activate script of its venv), choose it as the notebook's kernel, and see which Python runs",
        commands=(python_command(python, "-c", "import sys; print(sys.executable)"),),
    )


def _article(gpu: str | None) -> str:
    return gpu if gpu and gpu.startswith(("a ", "an ")) else f"an {gpu}"


def _install(machine: Machine) -> Remedy:
    if machine.gpu() != "":
        return machine.install_torch()
    system = machine.system
    if system is not None and any(gpu.vendor == "amd" for gpu in system.pci_gpus or ()):
        return Remedy(summary="Install PyTorch's ROCm build where it supports the AMD GPU here", reference=REFERENCE)
    on_mac = system is not None and system.os == "darwin"
    return install_packages(
        python=machine.python,
        requirements=("torch",) if on_mac else ("--index-url", CPU_INDEX, "torch"),
        summary="Install PyTorch" if on_mac else "Install the CPU build of PyTorch, for there is no NVIDIA GPU",
        verify="import torch; print(torch.__version__)",
    )
