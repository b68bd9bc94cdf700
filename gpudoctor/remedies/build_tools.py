"""The tools besides the CUDA toolkit with which extensions and Triton's kernels are compiled."""

from collections.abc import Iterator

from gpudoctor.data.cuda_libraries import first_toolkit_for_gcc
from gpudoctor.model import Python, Pytorch, Remedy, System
from gpudoctor.remedies.commands import environment_of, python_command, with_sudo
from gpudoctor.remedies.fixes import fix

APT = ("ubuntu", "debian")
POLICY = "https://docs.nvidia.com/cuda/cuda-installation-guide-linux/#host-compiler-support-policy"
TRITON_WINDOWS = "https://github.com/woct0rdho/triton-windows#windows"
# What a build without isolation must find installed. Source: flash-attention, README, "Installation and features".
BUILD_TOOLS = ("setuptools", "wheel", "packaging", "ninja")
UV = "https://docs.astral.sh/uv/concepts/projects/config/#build-isolation"
REFERENCE = "https://pip.pypa.io/en/stable/cli/pip_install/#cmdoption-no-build-isolation"


def is_windows(system: System | None) -> bool:
    """Return whether the machine is known to run Windows."""
    return system is not None and system.os == "windows"


@fix
def install_python_headers(*, python: Python | None, system: System | None) -> tuple[Remedy, ...]:
    """Return how to install the development files of Python."""
    release = ".".join(map(str, python.version.release[:2])) if python is not None and python.version else ""
    package = f"python{release or '3'}-dev"
    linux = Remedy(
        summary=f"Install Python's headers (Debian and Ubuntu: {package}, of the very version that runs; Fedora: "
        "python3-devel), or use a Python of conda or uv, which have them",
        commands=(with_sudo(f"apt-get install --yes {package}", system),),
        needs=("root",),
    )
    windows = Remedy(
        summary="On Windows, in an embedded Python (ComfyUI portable): copy the folders include and libs of a full "
        "Python of the same version into python_embeded",
        reference=TRITON_WINDOWS,
    )
    return (windows,) if is_windows(system) else (linux, windows)


@fix
def install_compiler(
    *, visual_studio: bool = False, python: Python | None, system: System | None
) -> tuple[Remedy, ...]:
    """Return how to install a compiler. visual_studio: cl.exe is the one that is missing."""
    return tuple(_compilers(visual_studio, python, system))


def _compilers(visual_studio: bool, python: Python | None, system: System | None) -> Iterator[Remedy]:
    windows = is_windows(system)
    environment = environment_of(python, system)
    if environment.conda_prefix and not windows:
        command = environment.conda("install", ["--channel", "conda-forge", "gcc", "gxx"])
        yield Remedy(summary="Install gcc in the conda environment", commands=(command, "gcc --version"))
    elif not windows:
        yield Remedy(
            summary="Install a compiler (Debian and Ubuntu: build-essential; Fedora: gcc-c++), and name another one in "
            "the variables CC and CXX",
            commands=(with_sudo("apt-get install --yes build-essential", system), "gcc --version"),
            needs=("root",),
        )
    if windows or visual_studio or system is None or system.os is None:
        yield Remedy(
            summary="On Windows, install the Build Tools for Visual Studio with the workload Desktop development with "
            "C++, and build in the x64 Native Tools Command Prompt; Triton is triton-windows there, and brings a "
            "compiler from 3.2 on",
            commands=("winget install --exact --id Microsoft.VisualStudio.2022.BuildTools", "where.exe cl"),
            needs=("root",),
            reference=TRITON_WINDOWS,
        )


@fix
def install_gcc(*, newest: int, python: Python | None, system: System | None) -> Remedy:
    """Return how to compile with a gcc that nvcc accepts."""
    environment = environment_of(python, system)
    if environment.conda_prefix:
        command = environment.conda("install", ["--channel", "conda-forge", f"gxx_linux-64={newest}"])
        return Remedy(summary=f"Install gcc {newest} in the conda environment", commands=(command, "$CC --version"))
    # PyTorch hands CC to nvcc as its host compiler, CMake takes CUDAHOSTCXX, nvcc itself NVCC_CCBIN for its -ccbin.
    # Source: torch/utils/cpp_extension.py; CMake's documentation of CUDAHOSTCXX; nvcc --help.
    use = (
        f"export CC=gcc-{newest} CXX=g++-{newest} NVCC_CCBIN=g++-{newest} CUDAHOSTCXX=g++-{newest}",
        f"gcc-{newest} --version",
    )
    if system is not None and system.distribution in APT:
        install = with_sudo(f"apt-get install --yes gcc-{newest} g++-{newest}", system)
        return Remedy(
            summary=f"Install gcc {newest} beside the newer one and compile with it",
            commands=(install, *use),
            needs=("root",),
        )
    return Remedy(
        summary=f"Install gcc {newest} (Debian and Ubuntu: gcc-{newest} g++-{newest}) beside the newer one and compile "
        f"with it (nvcc -ccbin g++-{newest})",
        commands=use,
        needs=("root",),
    )


@fix
def newer_toolkit_for_compiler(*, gcc: str) -> Remedy:
    """Return which newer toolkit accepts this version of gcc; "" for another compiler or an unknown version."""
    major = int(gcc.partition(".")[0]) if gcc else None
    first = first_toolkit_for_gcc(major) if major is not None else None
    which = f"CUDA {first} or newer accepts gcc {major}" if first else "newer ones accept newer compilers"
    return Remedy(
        summary=f"Or install a newer CUDA toolkit ({which}), of the major version that PyTorch was built with",
        reference=POLICY,
    )


@fix
def build_without_isolation(
    *, package: str, pytorch: Pytorch, python: Python | None, system: System | None
) -> tuple[Remedy, ...]:
    """Return how to build a package where its setup.py finds PyTorch. package: "" if it is unknown."""
    environment = environment_of(python, system)
    first = "" if pytorch.installed else ", after PyTorch is installed there"
    name = package or "PACKAGE"
    install = environment.install(["--no-build-isolation", name])
    return (
        Remedy(
            summary=f"Build {package or 'it'} in the environment itself with --no-build-isolation{first}; the build "
            "tools must then be installed too",
            commands=(
                *environment.setup,
                python_command(python, "-c", "import torch; print(torch.__version__)"),
                environment.install([*BUILD_TOOLS]),
                *((install,) if package else ()),
            ),
            reference=REFERENCE,
        ),
        Remedy(
            summary=f"In a project of uv: uv sync --no-build-isolation-package {name}, or in pyproject.toml name it "
            f"under [tool.uv] no-build-isolation-package, or torch for {name} under "
            "[tool.uv.extra-build-dependencies]",
            reference=UV,
        ),
    )
