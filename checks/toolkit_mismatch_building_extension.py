"""The CUDA toolkit that compiles extensions against PyTorch's CUDA version."""

from collections.abc import Iterator

from gpudoctor.model import (
    CudaVersion,
    Finding,
    Project,
    Python,
    Remedy,
    Severity,
    System,
    Toolkit,
    Torch,
    TorchRuntime,
)
from gpudoctor.reasoning.installed import extension_to_build, torch_fact, whole_torch
from gpudoctor.registry import applies, check, known
from gpudoctor.remedies import set_variable
from gpudoctor.remedies.commands import environment_of


@check(family="cuda")
def toolkit_mismatch_building_extension(
    toolkit: Toolkit,
    torch: Torch | None = None,
    torch_runtime: TorchRuntime | None = None,
    project: Project | None = None,
    python: Python | None = None,
    system: System | None = None,
) -> Iterator[Finding]:
    """The CUDA toolkit that would compile extensions is of another major version than PyTorch's CUDA.

    Why: torch.utils.cpp_extension refuses to compile: "The detected CUDA version mismatches the version that was used
    to compile PyTorch". It takes the toolkit of CUDA_HOME, else that of nvcc on PATH.
    Exception: PyTorch itself needs no toolkit, so none at all passes, and one that differs is advice unless the project
    requires a package that is still to be compiled. Minor versions may differ.
    Reference: https://docs.pytorch.org/docs/stable/cpp_extension.html
    """
    whole = whole_torch(torch, torch_runtime)
    applies(whole.build in (None, "cuda"), "PyTorch is not built for CUDA")
    applies(toolkit.nvcc_path != "", "no nvcc is found, and none is needed to run PyTorch")
    nvcc = known(toolkit.nvcc_version, "toolkit.nvcc_version")
    built_with = known(whole.cuda_version, "torch.cuda_version")
    if nvcc.major == built_with.major:
        return
    extension = extension_to_build(project, python)
    needs = f", and {extension.source} asks for {extension.name}" if extension else ""
    yield Finding(
        severity=Severity.WARNING if extension else Severity.INFO,
        summary=f"nvcc is of CUDA {nvcc}, PyTorch was built with CUDA {built_with}{needs}",
        subject="nvcc",
        facts=(
            "toolkit.nvcc_version",
            torch_fact("cuda_version", torch, torch_runtime),
            *(("project.requirements",) if extension else ()),
        ),
        remedies=tuple(_remedies(built_with, toolkit, python, system)),
    )


def _remedies(
    built_with: CudaVersion, toolkit: Toolkit, python: Python | None, system: System | None
) -> Iterator[Remedy]:
    fitting = [
        install
        for install in toolkit.toolkits or ()
        if install.has_nvcc and install.version is not None and install.version.major == built_with.major
    ]
    if fitting:
        nearest = max(fitting, key=lambda install: (install.version == built_with, str(install.version)))
        yield set_variable(
            system=system,
            name="CUDA_HOME",
            value=nearest.path,
            summary=f"Compile with the toolkit of CUDA {nearest.version}, which is installed too",
        )
        return
    environment = environment_of(python, system)
    if environment.conda_prefix:
        command = environment.conda(
            "install", ["--channel", "conda-forge", "cuda-toolkit", f"cuda-version={built_with}"]
        )
        yield Remedy(
            summary=f"Install the toolkit of CUDA {built_with} in the conda environment",
            commands=(command, "nvcc --version"),
        )
        return
    yield Remedy(
        summary=f"Install the toolkit of CUDA {built_with} beside the other one and set CUDA_HOME to it",
        reference="https://developer.nvidia.com/cuda-toolkit-archive",
    )
