"""The compiler library NVRTC, which CuPy cannot do without."""

from collections.abc import Iterator

from gpudoctor.conclusions.cupy_errors import missing_library
from gpudoctor.conclusions.installed import Machine, cupy_installed
from gpudoctor.model import (
    Cupy,
    CupyRuntime,
    Device,
    Driver,
    Finding,
    Python,
    Remedy,
    Severity,
    System,
    Toolkit,
)
from gpudoctor.registry import check, known, skip_unless
from gpudoctor.remedies.cuda_libraries import cuda_major_of, install_cuda_library


@check(family="cupy", explains=("cupy-unusable",))
def cupy_nvrtc_missing(
    cupy: Cupy | None = None,
    cupy_runtime: CupyRuntime | None = None,
    toolkit: Toolkit | None = None,
    python: Python | None = None,
    system: System | None = None,
    driver: Driver | None = None,
    devices: tuple[Device, ...] | None = None,
) -> Iterator[Finding]:
    """CuPy finds no NVRTC library.

    Why: CuPy compiles every kernel with NVRTC when it is first used, and its wheels hold none: it comes with the extra
    [ctk], with a toolkit of the same CUDA major version or with conda. PyTorch's wheels bring one of their own.
    libnvrtc-builtins belongs to it: NVRTC says itself that it cannot open it. "libnvrtc.so.12: cannot open shared
    object file" in CuPy's import, or in its first kernel, is the evidence, or a disk on which no such file lies.
    Exception: without an NVIDIA GPU CuPy compiles nothing.
    Reference: https://docs.cupy.dev/en/stable/install.html
    """
    skip_unless(known(cupy_installed(cupy, cupy_runtime), "cupy.distributions"), "CuPy is not installed")
    machine = Machine(python=python, system=system, driver=driver, devices=devices)
    skip_unless(machine.gpu() != "", "there is no NVIDIA GPU for CuPy")
    reported = missing_library(cupy_runtime, "nvrtc|nvrtc-builtins")
    if reported is not None:
        yield _finding(f"CuPy cannot load {reported[1]}", (reported[0],), cupy, machine, reported[1])
    elif cupy_runtime is None or (cupy_runtime.import_error == "" and cupy_runtime.calls is None):
        yield from _from_disk(cupy, toolkit, python, machine)


def _from_disk(
    cupy: Cupy | None, toolkit: Toolkit | None, python: Python | None, machine: Machine
) -> Iterator[Finding]:
    """Yield a finding where neither wheels nor a toolkit nor the loader has the library."""
    if known(cupy.nvrtc_files if cupy is not None else None, "cupy.nvrtc_files"):
        return
    there = toolkit or Toolkit()
    installs = known(there.toolkits, "toolkit.toolkits")
    libraries = (*known(there.system_libraries, "toolkit.system_libraries"), *(there.library_path_libraries or ()))
    packages = (python.packages if python is not None else None) or ()
    by_conda = any(package.installer == "conda" and "nvrtc" in package.name for package in packages)
    in_conda = python is not None and python.environment == "conda"
    skip_unless(not in_conda or by_conda, "what conda's packages hold is not known")
    if installs or by_conda or any("nvrtc" in library.soname for library in libraries):
        return
    facts = ("cupy.nvrtc_files", "toolkit.toolkits", "toolkit.system_libraries")
    yield _finding("CuPy is installed, and there is no NVRTC: no wheel and no CUDA toolkit", facts, cupy, machine)


def _finding(
    summary: str, facts: tuple[str, ...], cupy: Cupy | None, machine: Machine, library: str = "libnvrtc.so"
) -> Finding:
    return Finding(
        severity=Severity.ERROR,
        summary=summary,
        subject="NVRTC",
        facts=facts,
        remedies=tuple(_remedies(library, cupy, machine)),
    )


def _remedies(library: str, cupy: Cupy | None, machine: Machine) -> Iterator[Remedy]:
    yield machine.install_cupy(cupy)
    major = cuda_major_of(library) or (cupy.cuda_major if cupy is not None else None)
    name = library if cuda_major_of(library) or major is None else f"libnvrtc.so.{major}"
    yield from install_cuda_library(name=name, python=machine.python, system=machine.system, torch=None)
