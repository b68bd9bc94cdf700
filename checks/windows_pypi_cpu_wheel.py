"""PyTorch from the default index on Windows."""

from collections.abc import Iterator

from gpudoctor.conclusions.installed import Machine, package, torch_fact, whole_torch
from gpudoctor.conclusions.messages import reported
from gpudoctor.conclusions.torch_requests import cuda_wanted
from gpudoctor.model import (
    Device,
    Driver,
    Finding,
    PackageVersion,
    Python,
    Severity,
    Symptom,
    System,
    Torch,
    TorchRuntime,
)
from gpudoctor.registry import check, known, skip_unless


@check(family="torch", explains=("torch-cpu-build", "torch-cuda-unavailable", "torchvision-mismatch"))
def windows_pypi_cpu_wheel(
    system: System,
    python: Python | None = None,
    torch: Torch | None = None,
    torch_runtime: TorchRuntime | None = None,
    devices: tuple[Device, ...] | None = None,
    driver: Driver | None = None,
    symptoms: tuple[Symptom, ...] | None = None,
) -> Iterator[Finding]:
    """PyTorch was installed on Windows from PyPI, which has only CPU builds for it.

    Why: pip install torch gives a CUDA build on Linux and a CPU build on Windows; the CUDA builds for Windows are on
    PyTorch's own index.
    Exception: Linux inside WSL gets the builds for Linux. A wheel from the index whl/cpu, whose metadata say "+cpu",
    was chosen as such and is torch-cpu-build.
    Reference: https://pytorch.org/get-started/locally/
    """
    skip_unless(known(system.os, "system.os") == "windows", "this is not Windows")
    whole = whole_torch(torch, torch_runtime)
    skip_unless(known(whole.installed, "torch.installed"), "PyTorch is not installed")
    build = whole.build
    if build is None and torch_runtime is not None and torch_runtime.available is False and cuda_wanted(symptoms):
        build = "cpu"  # a CUDA build for Windows has a local version, which is looked at below
    if known(build, "torch.build") != "cpu":
        return
    skip_unless(not whole.conda_build, "conda installed PyTorch")
    skip_unless(
        not _may_be_of_conda(python, symptoms),
        "conda's packages are here, and nothing tells that pip installed PyTorch",
    )
    fact, version = _wheel(python, whole, symptoms)
    if version.local:
        return
    machine = Machine(python=python, system=system, driver=driver, devices=devices)
    gpu, wanted = machine.gpu(), cuda_wanted(symptoms)
    if gpu is None and not wanted:
        known(gpu, "devices")
    if gpu == "":
        return
    yield Finding(
        severity=Severity.ERROR,
        summary=f"PyTorch {whole.version or version} is the CPU build that PyPI has for Windows, and "
        + (f"the machine has {gpu}" if gpu else "a program asks for CUDA"),
        subject=f"torch {whole.version or version}",
        facts=(
            fact,
            torch_fact("build", torch, torch_runtime) if whole.build else "torch_runtime.available",
            "system.os",
            machine.gpu_fact() if gpu else str(wanted),
        ),
        remedies=(machine.install_torch(whole),),
    )


def _may_be_of_conda(python: Python | None, symptoms: tuple[Symptom, ...] | None) -> bool:
    """Return whether the report shows packages of conda, and leaves it open which installer PyTorch came from."""
    packages = (python.packages if python is not None else None) or ()
    of_conda = reported(symptoms, "conda-cuda-asked") or any(found.installer == "conda" for found in packages)
    return bool(of_conda) and any(found.name == "torch" and not found.installer for found in packages)


def _wheel(python: Python | None, whole: Torch, symptoms: tuple[Symptom, ...] | None) -> tuple[str, PackageVersion]:
    """Return the fact and the version of the wheel that was installed: by its file, else by its metadata."""
    downloads = reported(symptoms, "pip-windows-default-wheel")
    if downloads and whole.version is not None:
        return downloads[0][0], whole.version
    known(python.packages if python is not None else None, "python.packages")
    return known(package(python, "torch"), "the version in the metadata of torch")
