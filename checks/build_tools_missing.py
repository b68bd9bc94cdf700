"""The tools besides the CUDA toolkit with which extensions and Triton's kernels are compiled."""

from collections.abc import Iterator

from gpudoctor.conclusions.messages import reported
from gpudoctor.model import Finding, Python, Remedy, Severity, Symptom, System
from gpudoctor.registry import check, skip_unless
from gpudoctor.remedies import install_packages
from gpudoctor.remedies.commands import environment_of, with_sudo

LONGEST = 200
TRITON_WINDOWS = "https://github.com/woct0rdho/triton-windows#windows"

# What is missing, by the kind of message; those that say most stand first.
TOOLS = {
    "build-tool-python-headers": "The compiler finds no {header}: the development files of Python are missing",
    "build-tool-ninja": "There is no ninja, with which PyTorch builds extensions",
    "build-tool-msvc": "The compiler of Visual Studio, cl.exe, is missing or not on PATH",
    "build-tool-compiler": "There is no compiler for C and C++",
    "build-tool-compiler-old": "The compiler is older than PyTorch or nvcc needs",
    "build-tool-triton": "PyTorch's compiler finds no Triton that works",
}


@check(family="torch")
def build_tools_missing(
    symptoms: tuple[Symptom, ...], python: Python | None = None, system: System | None = None
) -> Iterator[Finding]:
    """A compiler that is new enough, Python's headers, ninja or Triton are missing where something is compiled.

    Why: extensions are compiled when they are installed, Triton's kernels (torch.compile, SageAttention, vLLM) when
    they run: "Failed to find C compiler", "fatal error: Python.h", "Ninja is required to load C++ extensions".
    Exception: only what a report says is found here. Of nvcc, and of a compiler that is too new, other checks tell.
    Reference: https://docs.pytorch.org/docs/stable/cpp_extension.html
    """
    told = reported(symptoms, *TOOLS)
    skip_unless(told, "no such message in the report")
    fact, message = min(told, key=lambda pair: list(TOOLS).index(pair[1].kind))
    windows = system is not None and system.os == "windows"
    yield Finding(
        severity=Severity.ERROR,
        summary=f"{TOOLS[message.kind].format(**message.names)}: {message.text[:LONGEST]}",
        subject=message.names.get("header") or message.names.get("tool") or message.kind.removeprefix("build-tool-"),
        facts=(fact,),
        remedies=tuple(_remedies(message.kind, windows, python, system)),
        details=dict(message.names),
    )


def _remedies(kind: str, windows: bool, python: Python | None, system: System | None) -> Iterator[Remedy]:
    if kind == "build-tool-ninja":
        yield install_packages(
            python=python,
            requirements=("ninja",),
            summary="Install ninja in this environment, whose folder of programs must be on PATH",
        )
    elif kind == "build-tool-triton":
        yield install_packages(
            python=python,
            requirements=("--upgrade", "triton-windows" if windows else "triton"),
            summary="Install the Triton that belongs to this PyTorch (on Windows the package is triton-windows)",
            verify="import torch, triton; print(torch.__version__, triton.__version__)",
        )
    elif kind == "build-tool-python-headers":
        yield from _headers(windows, python, system)
    else:
        yield from _compiler(kind, windows, python, system)


def _headers(windows: bool, python: Python | None, system: System | None) -> Iterator[Remedy]:
    release = ".".join(map(str, python.version.release[:2])) if python is not None and python.version else ""
    package = f"python{release or '3'}-dev"
    if not windows:
        yield Remedy(
            summary=f"Install Python's headers (Debian and Ubuntu: {package}, of the very version that runs; Fedora: "
            "python3-devel), or use a Python of conda or uv, which have them",
            commands=(with_sudo(f"apt-get install --yes {package}", system),),
            needs=("root",),
        )
    yield Remedy(
        summary="On Windows, in an embedded Python (ComfyUI portable): copy the folders include and libs of a full "
        "Python of the same version into python_embeded",
        reference=TRITON_WINDOWS,
    )


def _compiler(kind: str, windows: bool, python: Python | None, system: System | None) -> Iterator[Remedy]:
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
    if windows or kind == "build-tool-msvc" or system is None or system.os is None:
        yield Remedy(
            summary="On Windows, install the Build Tools for Visual Studio with the workload Desktop development with "
            "C++, and build in the x64 Native Tools Command Prompt; Triton is triton-windows there, and brings a "
            "compiler from 3.2 on",
            commands=("winget install --exact --id Microsoft.VisualStudio.2022.BuildTools", "where.exe cl"),
            needs=("root",),
            reference=TRITON_WINDOWS,
        )
