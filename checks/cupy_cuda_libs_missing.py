"""The CUDA libraries and headers that CuPy calls."""

from collections.abc import Iterator

from gpudoctor.conclusions.cupy_errors import DLL, cupy_errors, error_with, missing_library
from gpudoctor.conclusions.installed import Machine, cupy_installed
from gpudoctor.conclusions.messages import reported
from gpudoctor.model import Cupy, CupyRuntime, Device, Driver, Finding, Python, Remedy, Severity, Symptom, System
from gpudoctor.registry import check, known, skip_unless
from gpudoctor.remedies.cuda_libraries import install_cuda_library

LIBRARIES = "cudart|cublas|cufft|curand|cusolver|cusparse|nvJitLink"
# Source: "CuPy always raises NVRTC_ERROR_COMPILATION (6)" in https://docs.cupy.dev/en/stable/install.html
HEADERS = r"cannot open source file \"([\w./]+\.h)\"|could not open source file \"([\w./]+\.h)\""
MIXED = r"identifier \"__half_raw\" is undefined"
# What glibc says of a library whose name it read wrong, or that the report leaves out.
UNNAMED = r"ImportError: (?:[^\w\s]{1,4}|\S{0,60}\.\.\.): cannot open shared object file"
NOT_FOUND = r"\bCUDA (?:is not found|path could not be detected|root directory not found)"


@check(family="cupy", explains=("cupy-unusable", "cupy-nvrtc-missing", "toolkit-mismatch-building-extension"))
def cupy_cuda_libs_missing(
    cupy_runtime: CupyRuntime | None = None,
    cupy: Cupy | None = None,
    python: Python | None = None,
    system: System | None = None,
    driver: Driver | None = None,
    devices: tuple[Device, ...] | None = None,
    symptoms: tuple[Symptom, ...] | None = None,
) -> Iterator[Finding]:
    """CuPy finds no cuBLAS, cuFFT or another CUDA library, or not the headers to compile with.

    Why: CuPy's wheels hold none of CUDA's libraries and headers: they come with the extra [ctk], with a toolkit of the
    same CUDA major version or with conda.
    A library, a header or a DLL that CuPy's own message names is the evidence; pip that compiles the source package
    cupy, and fails, is another.
    Exception: NVRTC alone is cupy-nvrtc-missing. Where the toolkit that is there is of another version than the library
    it is cupy-wrong-cuda-package. Without an NVIDIA GPU CuPy calls none of them.
    Reference: https://docs.cupy.dev/en/stable/install.html
    """
    machine = Machine(python=python, system=system, driver=driver, devices=devices)
    built = reported(symptoms, "cupy-source-build")
    if built:
        yield _finding(built[0][0], "pip compiles CuPy from source, and finds no CUDA toolkit that fits", cupy, machine)
        return
    skip_unless(known(cupy_installed(cupy, cupy_runtime), "cupy.distributions"), "CuPy is not installed")
    skip_unless(machine.gpu() != "", "there is no NVIDIA GPU for CuPy")
    cupy_runtime = known(cupy_runtime, "cupy_runtime")
    library = missing_library(cupy_runtime, LIBRARIES)
    if library is not None:
        yield _finding(library[0], f"CuPy cannot load {library[1]}", cupy, machine, library[1])
        return
    said = _said(cupy_runtime)
    if said is not None:
        yield _finding(*said, cupy, machine)
        return
    warned = reported(symptoms, "cupy-cuda-path-unknown")
    if warned and not _answered(cupy_runtime):
        fact, summary = warned[0][0], "CuPy does not know where the CUDA toolkit is"
        yield _finding(fact, summary, cupy, machine, severity=Severity.WARNING)
        return
    known(cupy_runtime.import_error, "cupy_runtime.import_error")


def _said(cupy_runtime: CupyRuntime) -> tuple[str, str] | None:
    """Return the fact and the summary where an error tells of headers, of the toolkit, or of a DLL without its name."""
    header = error_with(cupy_runtime, HEADERS)
    if header is not None:
        name = header[1][1] or header[1][2]
        return header[0], f"CuPy compiles its kernels without CUDA's headers: {name} is not found"
    mixed = error_with(cupy_runtime, MIXED)
    if mixed is not None:
        return mixed[0], "CuPy compiles its kernels with headers of several CUDA versions"
    toolkit = error_with(cupy_runtime, NOT_FOUND)
    if toolkit is not None:
        return toolkit[0], "CuPy finds no CUDA toolkit and no wheels of its libraries"
    unnamed = error_with(cupy_runtime, UNNAMED)
    if unnamed is not None:
        return unnamed[0], "CuPy finds no CUDA library that it needs, and the loader's message does not name it"
    dll = error_with(cupy_runtime, DLL)
    if dll is not None and "numpy" not in getattr(cupy_runtime, dll[0].partition(".")[2], "").lower():
        return dll[0], f"CuPy finds no CUDA library that it needs: {dll[1][0]}"
    return None


def _answered(cupy_runtime: CupyRuntime) -> bool:
    """Return whether CuPy called a library and none failed."""
    return bool(cupy_runtime.calls) and next(cupy_errors(cupy_runtime), None) is None


def _finding(
    fact: str,
    summary: str,
    cupy: Cupy | None,
    machine: Machine,
    library: str = "",
    *,
    severity: Severity = Severity.ERROR,
) -> Finding:
    return Finding(
        severity=severity,
        summary=summary,
        subject="cupy",
        facts=(fact,),
        remedies=tuple(_remedies(library, cupy, machine)),
    )


def _remedies(library: str, cupy: Cupy | None, machine: Machine) -> Iterator[Remedy]:
    yield machine.install_cupy(cupy)
    if library:
        name = library if "." in library else f"lib{library}.so"
        yield from install_cuda_library(name=name, python=machine.python, system=machine.system, torch=None)
    windows = machine.system is not None and machine.system.os == "windows"
    if windows:
        commands: tuple[str, ...] = (
            r"Get-ChildItem 'C:\Program Files\NVIDIA GPU Computing Toolkit\CUDA'",
            r"$env:CUDA_PATH = 'C:\Program Files\NVIDIA GPU Computing Toolkit\CUDA\v12.8'",
        )
    else:
        commands = ("ls -d /usr/local/cuda*", "export CUDA_PATH=/usr/local/cuda")
    yield Remedy(
        summary="If a CUDA toolkit of the CUDA major version in CuPy's name is installed (cupy-cuda12x: CUDA 12), set "
        "CUDA_PATH to its folder" + ("" if windows else " (on Windows with $env:CUDA_PATH)"),
        commands=commands,
        needs=("restart",),
        reference="https://docs.cupy.dev/en/stable/install.html#faq",
    )
