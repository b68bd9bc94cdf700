"""The CUDA version of the installed CuPy against driver and toolkit."""

from collections.abc import Iterator

from gpudoctor.conclusions.cupy_cuda import (
    Mismatch,
    all_else_of_another_cuda,
    cupy_name,
    library_of_another_toolkit,
    named_for_another_toolkit,
    newer_libraries_first,
    only_other_toolkits,
)
from gpudoctor.conclusions.cupy_errors import cupy_works
from gpudoctor.conclusions.installed import Machine, cupy_installed
from gpudoctor.conclusions.messages import reported
from gpudoctor.data import driver_can_run, minimum_driver, offered_cuda_can_run, supported_cuda
from gpudoctor.model import (
    CudaVersion,
    Cupy,
    CupyRuntime,
    Device,
    Driver,
    Finding,
    Python,
    Remedy,
    Severity,
    Symptom,
    System,
    Toolkit,
    Torch,
)
from gpudoctor.registry import check, known, skip_unless
from gpudoctor.remedies import install_cupy, python_command, unset_variable, update_driver
from gpudoctor.remedies.cupy_install import install_cupy_for_rocm, one_cuda_for_all

# What the table of messages gives where CuPy names no cause.
NO_CAUSE = "ImportError: Failed to import CuPy"


@check(
    family="cupy",
    explains=(
        "cupy-unusable",
        "cupy-nvrtc-missing",
        "cupy-cuda-libs-missing",
        "cupy-arch-unsupported",
        "cuda-libs-conflict",
    ),
)
def cupy_wrong_cuda_package(
    cupy: Cupy | None = None,
    cupy_runtime: CupyRuntime | None = None,
    driver: Driver | None = None,
    toolkit: Toolkit | None = None,
    python: Python | None = None,
    system: System | None = None,
    devices: tuple[Device, ...] | None = None,
    torch: Torch | None = None,
    symptoms: tuple[Symptom, ...] | None = None,
) -> Iterator[Finding]:
    """The installed CuPy package is for another CUDA major version than the one present.

    Why: cupy-cuda13x needs a driver for CUDA 13 (580 or newer), and a CuPy without CUDA's libraries as wheels needs the
    toolkit of its own major version: "libnvrtc.so.12: cannot open shared object file". The evidence, in this order:
    a symbol that a module of CuPy does not find in the library that is loaded; the library that CuPy misses, against
    nvcc's version (libnvrtc.so.11.1 is of CUDA 11.1 only, from 11.2 on the major version counts); CuPy's major version,
    by the name of its distribution, against the driver's; libraries of a newer CUDA than the driver's that CuPy takes,
    as PyTorch's wheels bring them; the toolkits. Where none of them differs the library is only not found:
    cupy-nvrtc-missing and cupy-cuda-libs-missing.
    Exception: drivers run everything older, so cupy-cuda12x passes on a driver for CUDA 13. With the wheels that the
    extra [ctk] brings no toolkit counts. A CuPy that works passes.
    Reference: https://docs.cupy.dev/en/stable/install.html
    """
    machine = Machine(python=python, system=system, driver=driver, devices=devices)
    symbol = reported(symptoms, "cupy-symbol-missing")
    if symbol:
        yield _symbol_finding(symbol[0], cupy, machine)
        return
    told = reported(symptoms, "cupy-driver-mismatch")
    skip_unless(
        told or known(cupy_installed(cupy, cupy_runtime), "cupy.distributions"),
        "CuPy is not installed",
    )
    if cupy_works(cupy_runtime):
        return
    cupy = cupy or Cupy()
    if cupy.platform == "rocm":
        if known(machine.gpu(), "devices"):
            yield _for_rocm(cupy, machine)
        return
    if told and cupy.cuda_major is None:
        yield _told_finding(told[0][0], driver, toolkit, machine)
        return
    missing = library_of_another_toolkit(cupy, cupy_runtime, toolkit)
    missing = missing or named_for_another_toolkit(cupy, cupy_runtime, toolkit, symptoms)
    if missing is not None:
        yield _finding(missing, cupy, (machine.install_cupy(cupy),))
        return
    doubted = reported(symptoms, "cupy-version-doubted")
    if doubted and cupy_runtime is not None and cupy_runtime.import_error == NO_CAUSE and cupy.cuda_major is None:
        yield _doubted_finding(doubted[0][0], torch, machine)
        return
    major = known(cupy.cuda_major or _built_for(cupy_runtime), "cupy.cuda_major")
    runs = _driver_runs(driver, major)
    if runs is False:
        update = update_driver(system=system, needed=CudaVersion(major, 0), devices=devices, driver=driver)
        yield _driver_finding(cupy, major, driver, (machine.install_cupy(cupy), update))
        return
    newer = newer_libraries_first(cupy, major, cupy_runtime)
    other = only_other_toolkits(cupy, major, cupy_runtime, toolkit, python)
    other = other or all_else_of_another_cuda(cupy, major, toolkit, python, torch)
    if newer is not None:
        yield _finding(newer, cupy, (one_cuda_for_all(major=major, python=python), machine.install_cupy(cupy)))
    elif other is not None:
        yield _finding(other, cupy, (_install(cupy, machine, other.cuda_major),))
    elif runs is None:
        known(driver and (driver.cuda_version or driver.version), "driver.cuda_version")


def _finding(mismatch: Mismatch, cupy: Cupy, remedies: tuple[Remedy, ...]) -> Finding:
    return Finding(
        severity=Severity.ERROR if mismatch.certain else Severity.WARNING,
        summary=mismatch.summary,
        subject=cupy_name(cupy),
        facts=mismatch.facts,
        remedies=remedies,
    )


def _install(cupy: Cupy, machine: Machine, cuda_major: int | None) -> Remedy:
    """Return how to install the CuPy for this CUDA major version; None for the newest that fits."""
    return install_cupy(
        python=machine.python,
        system=machine.system,
        driver=machine.driver,
        devices=machine.devices,
        cupy=cupy,
        cuda_major=cuda_major,
    )


def _built_for(cupy_runtime: CupyRuntime | None) -> int | None:
    """Return the CUDA major version that CuPy names itself, without a distribution's name."""
    built_with = cupy_runtime.build_cuda_version if cupy_runtime is not None else None
    return built_with.major if built_with is not None else None


def _driver_runs(driver: Driver | None, major: int) -> bool | None:
    """Return whether the driver runs programs of the CUDA major version; None where that is not known."""
    if driver is None:
        return None
    first = CudaVersion(major, 0)
    if driver.cuda_version is not None and offered_cuda_can_run(driver.cuda_version, first):
        return True
    if driver.version is not None:
        return driver_can_run(driver.version, first)
    return None if driver.cuda_version is None else False


def _driver_finding(cupy: Cupy, major: int, driver: Driver | None, remedies: tuple[Remedy, ...]) -> Finding:
    version = driver.version if driver is not None else None
    offered = driver.cuda_version if driver is not None else None
    offered = offered or (supported_cuda(version) if version is not None else None)
    supports = f"supports CUDA {offered}" if offered else "is older"
    return Finding(
        severity=Severity.ERROR,
        summary=f"{cupy_name(cupy)} needs a driver for CUDA {major} ({minimum_driver(CudaVersion(major, 0))} or "
        f"newer), and driver{f' {version}' if version else ''} {supports}",
        subject=cupy_name(cupy),
        facts=(
            "cupy.cuda_major" if cupy.cuda_major is not None else "cupy_runtime.build_cuda_version",
            *(("driver.version",) if version else ()),
            *(("driver.cuda_version",) if driver is not None and driver.cuda_version else ()),
        ),
        remedies=remedies,
    )


def _told_finding(fact: str, driver: Driver | None, toolkit: Toolkit | None, machine: Machine) -> Finding:
    """Return the finding where CuPy says that the driver does not fit, and its distribution is not known."""
    offered = driver.cuda_version if driver is not None else None
    nvcc = toolkit.nvcc_version if toolkit is not None else None
    supports = f"the driver supports CUDA {offered}" if offered else "the driver is older"
    update = update_driver(
        system=machine.system, needed=CudaVersion(13, 0), devices=machine.devices, driver=machine.driver
    )
    return Finding(
        severity=Severity.ERROR,
        summary=f"CuPy runs on a newer CUDA than the driver does: {supports}",
        subject="cupy",
        facts=(
            fact,
            *(("driver.cuda_version",) if offered else ()),
            *(("toolkit.nvcc_version",) if nvcc else ()),
        ),
        remedies=(machine.install_cupy(), update),
    )


def _doubted_finding(fact: str, torch: Torch | None, machine: Machine) -> Finding:
    """Return the finding where CuPy cannot be imported and names no cause but that it may be for another CUDA."""
    built = torch.cuda_version if torch is not None else None
    beside = f", and PyTorch beside it is built with CUDA {built}" if built else ""
    return Finding(
        severity=Severity.ERROR,
        summary=f"CuPy cannot be imported, and asks whether it is for the CUDA that is here{beside}",
        subject="cupy",
        facts=(fact, *(("torch.cuda_version",) if built else ())),
        remedies=(
            machine.install_cupy(),
            Remedy(
                summary="Let all libraries of the environment match one CUDA: the number in CuPy's name, the version "
                "of nvcc and torch.version.cuda of the same major version (before CUDA 11.2 of the same minor one too)",
                commands=(
                    python_command(machine.python, "-m", "pip", "list"),
                    "nvcc --version",
                    python_command(machine.python, "-c", "import torch; print(torch.version.cuda)"),
                ),
            ),
        ),
    )


def _symbol_finding(symbol: tuple[str, Symptom], cupy: Cupy | None, machine: Machine) -> Finding:
    """Return the finding where a module of CuPy asks the library that is loaded for what that does not have."""
    fact, message = symbol
    name, library = message.names["symbol"], message.names.get("library", "the library that is loaded")
    of_rocm = any(part in name.lower() for part in ("hip", "roc"))
    others_first = unset_variable(
        system=machine.system,
        name="LD_LIBRARY_PATH",
        summary="If CuPy is for the CUDA that is here, an older library of the same name is loaded first: take its "
        "folder from LD_LIBRARY_PATH, and import cupy before PyTorch",
    )
    package = cupy_name(cupy or Cupy())
    return Finding(
        severity=Severity.ERROR,
        summary=f"{package} was built for another {'ROCm' if of_rocm else 'CUDA'} version: it finds no {name} in "
        f"{library}",
        subject=package,
        facts=(fact,),
        remedies=(install_cupy_for_rocm(cupy),) if of_rocm else (machine.install_cupy(cupy), others_first),
    )


def _for_rocm(cupy: Cupy, machine: Machine) -> Finding:
    return Finding(
        severity=Severity.ERROR,
        summary=f"{cupy_name(cupy)} is for GPUs of AMD, and the machine has {machine.gpu()}",
        subject=cupy_name(cupy),
        facts=("cupy.platform", machine.gpu_fact()),
        remedies=(machine.install_cupy(cupy),),
    )
