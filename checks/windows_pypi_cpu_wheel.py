"""PyTorch from the default index on Windows."""

from collections.abc import Iterator

from gpudoctor.model import CudaIntent, Finding, Fix, Gpu, Python, Pytorch, System
from gpudoctor.registry import check, known, skip_unless
from gpudoctor.symptoms import Symptoms, of_kind


@check(family="torch", explains=("torch-cpu-build", "torch-cuda-unavailable", "torchvision-mismatch", "runs-on-cpu"))
def windows_pypi_cpu_wheel(
    pytorch: Pytorch,
    gpu: Gpu,
    cuda_intent: CudaIntent,
    system: System,
    python: Python = Python(),
    symptoms: Symptoms = None,
) -> Iterator[Finding]:
    """PyTorch was installed on Windows from PyPI, which has only CPU builds for it.

    Why: pip install torch installs a CUDA build on Linux and a CPU build on Windows. The CUDA builds for Windows are on
    PyTorch's own index.
    Exception: Linux inside WSL gets the builds for Linux. A wheel from the index whl/cpu, whose metadata has "+cpu",
    was chosen on purpose: torch-cpu-build reports it.
    Reference: https://pytorch.org/get-started/locally/
    """
    skip_unless(known(system.os, "system.os") == "windows", "this is not Windows")
    skip_unless(known(pytorch.installed, "torch.installed"), "PyTorch is not installed")
    if known(pytorch.build, "torch.build") != "cpu":
        return
    skip_unless(not pytorch.conda_build, "conda installed PyTorch")
    skip_unless(
        not _may_be_of_conda(python, symptoms), "conda packages are installed, and nothing shows that pip was used"
    )
    downloads = of_kind(symptoms, "pip-windows-default-wheel")
    if downloads and pytorch.version is not None:
        fact, version = downloads[0].fact, pytorch.version
    else:
        known(python.packages, "python.packages")
        wheel = python.package("torch")
        fact, version = known(wheel, "the version in the metadata of torch")
    if version.local:
        return
    if not cuda_intent.program:
        known(gpu.name, "devices")
    if gpu.name == "":
        return
    likely = "build" in pytorch.likely
    summary = (
        f"PyTorch {pytorch.version or version} is {'probably ' if likely else ''}the CPU build that PyPI has "
        f"for Windows, and {f'the GPU is {gpu.name}' if gpu.name else 'a program asks for CUDA'}"
    )
    facts = (fact, *pytorch.paths("build"), "system.os", gpu.fact or cuda_intent.program)
    yield Finding.error(f"torch {pytorch.version or version}", summary, facts, Fix("install-torch"), certain=not likely)


def _may_be_of_conda(python: Python, symptoms: Symptoms) -> bool:
    """Return whether the report shows packages of conda, and does not show which installer PyTorch came from."""
    packages = python.packages or ()
    of_conda = of_kind(symptoms, "conda-cuda-asked") or any(found.installer == "conda" for found in packages)
    return bool(of_conda) and any(found.name == "torch" and not found.installer for found in packages)
