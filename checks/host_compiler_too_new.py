"""The host compiler against the CUDA toolkit."""

from collections.abc import Iterator

from gpudoctor.model import Finding, Project, Python, Remedy, Severity, System, Toolkit
from gpudoctor.reasoning.installed import extension_to_build
from gpudoctor.registry import applies, check, known
from gpudoctor.remedies.commands import environment_of, with_sudo

APT = ("ubuntu", "debian")


@check(family="cuda")
def host_compiler_too_new(
    toolkit: Toolkit,
    project: Project | None = None,
    python: Python | None = None,
    system: System | None = None,
) -> Iterator[Finding]:
    """The host compiler is newer than this nvcc accepts.

    Why: nvcc hands the host code to gcc and ends with "unsupported GNU version! gcc versions later than N are not
    supported".
    Exception: without nvcc nothing is compiled. Unless the project requires a package that is still to be compiled this
    is advice. The limit is that of the toolkit's own header; compilers other than gcc are not compared.
    Reference: https://docs.nvidia.com/cuda/cuda-installation-guide-linux/#host-compiler-support-policy
    """
    applies(toolkit.nvcc_path != "", "no nvcc is found, and none is needed to run PyTorch or CuPy")
    applies(known(toolkit.host_compiler, "toolkit.host_compiler") == "gcc", "the host compiler is not gcc")
    version = known(toolkit.host_compiler_version, "toolkit.host_compiler_version")
    newest = known(toolkit.host_compiler_max, "toolkit.host_compiler_max")
    if not version or version[0] <= newest:
        return
    extension = extension_to_build(project, python)
    needs = f", and {extension.source} asks for {extension.name}" if extension else ""
    nvcc = f" of CUDA {toolkit.nvcc_version}" if toolkit.nvcc_version else ""
    yield Finding(
        severity=Severity.WARNING if extension else Severity.INFO,
        summary=f"gcc is {'.'.join(map(str, version))}, and nvcc{nvcc} accepts {newest} at most{needs}",
        subject="gcc",
        facts=(
            "toolkit.host_compiler_version",
            "toolkit.host_compiler_max",
            *(("toolkit.nvcc_version",) if toolkit.nvcc_version else ()),
            *(("project.requirements",) if extension else ()),
        ),
        remedies=(_remedy(newest, python, system),),
    )


def _remedy(newest: int, python: Python | None, system: System | None) -> Remedy:
    environment = environment_of(python, system)
    if environment.conda_prefix:
        command = environment.conda("install", ["--channel", "conda-forge", f"gxx_linux-64={newest}"])
        return Remedy(summary=f"Install gcc {newest} in the conda environment", commands=(command, "$CC --version"))
    # PyTorch hands CC to nvcc as its host compiler. Source: torch/utils/cpp_extension.py.
    use = (f"export CC=gcc-{newest} CXX=g++-{newest} NVCC_CCBIN=g++-{newest}", f"gcc-{newest} --version")
    if system is not None and system.distribution in APT:
        install = with_sudo(f"apt-get install --yes g++-{newest}", system)
        return Remedy(
            summary=f"Install gcc {newest} beside the newer one and compile with it",
            commands=(install, *use),
            needs=("root",),
        )
    return Remedy(summary=f"Install gcc {newest} beside the newer one and compile with it", commands=use)
