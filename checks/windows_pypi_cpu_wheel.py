"""PyTorch from the default index on Windows."""

from collections.abc import Iterator

from gpudoctor.model import Device, Driver, Finding, Python, Severity, System, Torch, TorchRuntime
from gpudoctor.reasoning.installed import Machine, package, torch_fact, whole_torch
from gpudoctor.registry import applies, check, known


@check(family="torch", explains=("torch-cpu-build", "torch-cuda-unavailable", "torchvision-mismatch"))
def windows_pypi_cpu_wheel(
    system: System,
    python: Python,
    torch: Torch | None = None,
    torch_runtime: TorchRuntime | None = None,
    devices: tuple[Device, ...] | None = None,
    driver: Driver | None = None,
) -> Iterator[Finding]:
    """PyTorch was installed on Windows from PyPI, which has only CPU builds for it.

    Why: pip install torch gives a CUDA build on Linux and a CPU build on Windows; the CUDA builds for Windows are on
    PyTorch's own index.
    Exception: Linux inside WSL gets the builds for Linux. A wheel from the index whl/cpu, whose metadata say "+cpu",
    was chosen as such and is torch-cpu-build.
    Reference: https://pytorch.org/get-started/locally/
    """
    applies(known(system.os, "system.os") == "windows", "this is not Windows")
    whole = whole_torch(torch, torch_runtime)
    applies(known(whole.installed, "torch.installed"), "PyTorch is not installed")
    if known(whole.build, "torch.build") != "cpu":
        return
    applies(not whole.conda_build, "conda installed PyTorch")
    known(python.packages, "python.packages")
    fact, version = known(package(python, "torch"), "the version in the metadata of torch")
    if version.local:
        return
    machine = Machine(python=python, system=system, driver=driver, devices=devices)
    gpu = known(machine.gpu(), "devices")
    if not gpu:
        return
    yield Finding(
        severity=Severity.ERROR,
        summary=f"PyTorch {whole.version or version} is the CPU build that PyPI has for Windows, "
        f"and the machine has {gpu}",
        subject=f"torch {whole.version or version}",
        facts=(fact, torch_fact("build", torch, torch_runtime), "system.os", machine.gpu_fact()),
        remedies=(machine.install_torch(whole),),
    )
