"""PyTorch is there, and importing it fails."""

import re
import shlex
from collections.abc import Callable, Iterator

from gpudoctor.conclusions.error_codes import in_container
from gpudoctor.model import Environment, Finding, Python, Remedy, Severity, System, Torch, TorchRuntime
from gpudoctor.model.record import record
from gpudoctor.registry import check, known, skip_unless
from gpudoctor.remedies import (
    install_driver,
    install_packages,
    python_command,
    reinstall_torch,
    set_variable,
    start_container_with_gpu,
    unset_variable,
)

# What torch itself requires, and what that requires. Source: Requires-Dist of torch 2.13.0, jinja2 and sympy.
REQUIRED = ("filelock", "fsspec", "jinja2", "markupsafe", "mpmath", "networkx", "sympy", "typing_extensions")


@record
class _Machine:
    """What remedies depend on."""

    torch: Torch | None
    python: Python | None
    system: System | None
    environment: Environment | None


@record
class _Cause:
    """A cause by the text of the exception: `meaning` and `remedies` get the match."""

    pattern: str
    meaning: str
    remedies: Callable[[re.Match[str], _Machine], tuple[Remedy, ...]]


@check(family="torch", explains=("torch-cuda-unavailable", "torch-wrong-results"))
def torch_import_failed(
    torch_runtime: TorchRuntime,
    torch: Torch | None = None,
    python: Python | None = None,
    system: System | None = None,
    environment: Environment | None = None,
) -> Iterator[Finding]:
    """PyTorch is installed, but importing it fails.

    Why: every program that uses PyTorch ends at its first line. Mostly a library of the build is missing or of another
    version, or a file named torch.py is imported instead.
    Exception: where PyTorch is not installed at all, torch-not-installed says so.
    Reference: https://docs.pytorch.org/docs/stable/notes/faq.html
    """
    error = known(torch_runtime.import_error, "torch_runtime.import_error")
    skip_unless(torch is None or torch.installed is not False, "PyTorch is not installed")
    skip_unless(not re.search(r"No module named '?torch'?$", error), "PyTorch is not installed")
    if not error:
        return
    cause, match = _cause_of(error)
    meaning = match.expand(cause.meaning)
    shadowing = [file for file in (python.shadowed_modules or () if python else ()) if "torch" in file]
    yield Finding(
        severity=Severity.ERROR,
        summary=f"import torch fails{': ' + meaning if meaning else ''} ({_shortened(error)})",
        subject=f"torch {torch.version}" if torch is not None and torch.version is not None else "torch",
        facts=("torch_runtime.import_error", *(("python.shadowed_modules",) if shadowing else ())),
        remedies=(
            _rename(shadowing)
            if shadowing
            else cause.remedies(match, _Machine(torch=torch, python=python, system=system, environment=environment))
        ),
    )


def _cause_of(error: str) -> tuple[_Cause, re.Match[str]]:
    for cause in CAUSES:
        match = re.search(cause.pattern, error)
        if match is not None:
            return cause, match
    raise AssertionError("the last pattern matches every text")


def _shortened(error: str) -> str:
    return error if len(error) <= 240 else error[:237] + "..."


def _reinstall(_match: re.Match[str], machine: _Machine) -> tuple[Remedy, ...]:
    return (reinstall_torch(python=machine.python, system=machine.system, pytorch=machine.torch),)


def _without_library_path(match: re.Match[str], machine: _Machine) -> tuple[Remedy, ...]:
    """Return the remedies where another library than PyTorch's own was loaded."""
    if machine.environment is None or not machine.environment.get("LD_LIBRARY_PATH"):
        return _reinstall(match, machine)
    unset = unset_variable(
        system=machine.system,
        name="LD_LIBRARY_PATH",
        summary="Remove LD_LIBRARY_PATH, whose folders come before the libraries that PyTorch brings",
    )
    return (unset, *_reinstall(match, machine))


def _driver_library(_match: re.Match[str], machine: _Machine) -> tuple[Remedy, ...]:
    if in_container(machine.system):
        return (start_container_with_gpu(system=machine.system),)
    return (install_driver(system=machine.system),)


def _newer_system(match: re.Match[str], machine: _Machine) -> tuple[Remedy, ...]:
    """Return the remedies where the build needs a newer glibc (part of the system) or libstdc++ (conda has its own)."""
    python = machine.python
    if not match[1].startswith("GLIBC_") and python is not None and python.environment == "conda" and python.prefix:
        update = ["conda", "install", "--yes", "--prefix", python.prefix, "--channel", "conda-forge", "libstdcxx-ng"]
        verify = python_command(python, "-c", "import torch; print(torch.__version__)")
        return (
            Remedy(summary="Update the C++ library of the conda environment", commands=(shlex.join(update), verify)),
        )
    return (
        Remedy(
            summary=f"Use a distribution or container image that has {match[1]}, or an older PyTorch release, which "
            "was built for the library here"
        ),
    )


def _preload(match: re.Match[str], machine: _Machine) -> tuple[Remedy, ...]:
    return (
        set_variable(
            system=machine.system,
            name="LD_PRELOAD",
            value=match[1],
            summary="Load the library before the program starts, while there is room for it",
        ),
    )


def _openmp_runtime(_match: re.Match[str], machine: _Machine) -> tuple[Remedy, ...]:
    """Return the remedies for fbgemm.dll, which of 2.4.0 alone needs LLVM's OpenMP: pytorch/pytorch#131662."""
    newer = install_packages(
        python=machine.python,
        requirements=("--upgrade", "torch>=2.4.1"),
        summary="Install a newer PyTorch, from the same index as before: fbgemm.dll of 2.4.0 needs "
        "libomp140.x86_64.dll, which Windows does not have",
        verify="import torch; print(torch.__version__)",
    )
    workload = "--add Microsoft.VisualStudio.Workload.VCTools --includeRecommended --passive"
    keep = Remedy(
        summary="Or keep the release and install what brings libomp140.x86_64.dll: the Visual Studio Build Tools with "
        "the C++ workload",
        commands=(f'winget install --exact --id Microsoft.VisualStudio.2022.BuildTools --override "{workload}"',),
        needs=("root",),
        reference="https://github.com/pytorch/pytorch/issues/131662",
    )
    return (newer, keep)


def _older_mkl(_match: re.Match[str], machine: _Machine) -> tuple[Remedy, ...]:
    """Return the remedies for conda's PyTorch beside a newer MKL: pytorch/pytorch#123097."""
    python = machine.python
    where = ["--prefix", python.prefix] if python is not None and python.prefix else []
    pin = ["conda", "install", "--yes", *where, "mkl<2024.1", "intel-openmp<2024.1"]
    return (
        Remedy(
            summary="Install an older MKL: 2024.1 and newer have no iJIT_NotifyEvent, which conda's PyTorch takes from "
            "it; or install PyTorch with pip, whose wheels bring their own",
            commands=(shlex.join(pin), python_command(python, "-c", "import torch; print(torch.__version__)")),
            reference="https://github.com/pytorch/pytorch/issues/123097",
        ),
    )


def _visual_cpp(match: re.Match[str], machine: _Machine) -> tuple[Remedy, ...]:
    runtime = Remedy(
        summary="Install the Microsoft Visual C++ runtime, which PyTorch's DLLs need",
        commands=("winget install --exact --id Microsoft.VCRedist.2015+.x64",),
        needs=("root",),
        reference="https://learn.microsoft.com/cpp/windows/latest-supported-vc-redist",
    )
    return (runtime, *_reinstall(match, machine))


def _required_module(match: re.Match[str], machine: _Machine) -> tuple[Remedy, ...]:
    module = match[1].split(".")[0]
    if module not in REQUIRED:
        return _reinstall(match, machine)
    return (
        install_packages(
            python=machine.python,
            requirements=(module,),
            summary=f"Install {module}, which PyTorch requires",
            verify="import torch; print(torch.__version__)",
        ),
    )


def _rename(files: list[str]) -> tuple[Remedy, ...]:
    return (Remedy(summary=f"Rename {' and '.join(files)}: Python imports it instead of PyTorch", needs=("restart",)),)


def _find_other_torch(_match: re.Match[str], machine: _Machine) -> tuple[Remedy, ...]:
    return (
        Remedy(summary="Rename the file torch.py or the folder torch that Python finds before PyTorch"),
        reinstall_torch(python=machine.python, system=machine.system, pytorch=machine.torch),
    )


# The first pattern that is found counts; the last one is found in every text.
CAUSES = tuple(
    _Cause(pattern=pattern, meaning=meaning, remedies=remedies)
    for pattern, meaning, remedies in (
        (r"libcuda\.so\.1: cannot open", "the driver's library libcuda.so.1 is missing", _driver_library),
        (r"([\w.+-]+\.so[\w.]*): cannot open shared object", r"the library \1 is missing", _reinstall),
        (r"Library not loaded: \S*?([^/\s]+)(\s|$)", r"the library \1 is missing", _reinstall),
        (r"fbgemm\.dll", "fbgemm.dll or a DLL that it needs is missing", _openmp_runtime),
        (r"iJIT_\w+", "the MKL here is newer than PyTorch's build expects", _older_mkl),
        (r"WinError (126|127|1114)|DLL load failed", "a DLL that PyTorch needs is missing", _visual_cpp),
        (r"undefined symbol", "a library of another version is loaded", _without_library_path),
        (r"((?:GLIBCXX|CXXABI|GLIBC)_[\d.]+)' not found", r"the C or C++ library here lacks \1", _newer_system),
        (r"(/\S+\.so[\w.]*): cannot allocate memory in static TLS block", r"\1 was loaded too late", _preload),
        (r"invalid ELF header|file too short", "a file of PyTorch is damaged", _reinstall),
        (r"No module named '?([\w.]+)", r"the module \1 is missing", _required_module),
        (
            r"partially initialized module|module 'torch' has no attribute",
            "something else of that name is imported",
            _find_other_torch,
        ),
        (r"", "", _reinstall),
    )
)
