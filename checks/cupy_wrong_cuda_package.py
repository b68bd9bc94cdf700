"""The CUDA version of the installed CuPy against driver and toolkit."""

from collections.abc import Iterator

from gpudoctor.data import driver_can_run, minimum_driver, offered_cuda_can_run, supported_cuda
from gpudoctor.model import (
    CudaVersion,
    Cupy,
    CupyRuntime,
    Device,
    Driver,
    Finding,
    Message,
    Package,
    Python,
    Remedy,
    Severity,
    System,
    Toolkit,
)
from gpudoctor.reasoning.cupy_errors import cupy_works, missing_library
from gpudoctor.reasoning.installed import Machine, cupy_installed
from gpudoctor.reasoning.messages import reported
from gpudoctor.registry import applies, check, known
from gpudoctor.remedies import update_driver


@check(
    family="cupy",
    explains=("cupy-unusable", "cupy-nvrtc-missing", "cupy-cuda-libs-missing", "cupy-arch-unsupported"),
)
def cupy_wrong_cuda_package(
    cupy: Cupy | None = None,
    cupy_runtime: CupyRuntime | None = None,
    driver: Driver | None = None,
    toolkit: Toolkit | None = None,
    python: Python | None = None,
    system: System | None = None,
    devices: tuple[Device, ...] | None = None,
    messages: tuple[Message, ...] | None = None,
) -> Iterator[Finding]:
    """The installed CuPy package is for another CUDA major version than the one present.

    Why: cupy-cuda13x needs a driver for CUDA 13 (580 or newer), and a CuPy without CUDA's libraries as wheels needs the
    toolkit of its own major version: "libnvrtc.so.12: cannot open shared object file".
    Exception: drivers run everything older, so cupy-cuda12x passes on a driver for CUDA 13. With the wheels that the
    extra [ctk] brings no toolkit counts. A CuPy that works passes.
    Reference: https://docs.cupy.dev/en/stable/install.html
    """
    machine = Machine(python=python, system=system, driver=driver, devices=devices)
    told = reported(messages, "cupy-driver-mismatch")
    applies(
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
    major = known(cupy.cuda_major, "cupy.cuda_major")
    runs = _driver_runs(driver, major)
    if runs is False:
        update = update_driver(system=system, needed=CudaVersion(major, 0), devices=devices, driver=driver)
        yield _driver_finding(cupy, major, driver, (machine.install_cupy(cupy), update))
        return
    others = _only_other_toolkits(cupy, major, toolkit, python) or _other_nvcc(major, toolkit, cupy_runtime)
    if others:
        yield _toolkit_finding(cupy, major, others, machine.install_cupy(cupy))
    elif runs is None:
        known(driver and (driver.cuda_version or driver.version), "driver.cuda_version")


def _name(cupy: Cupy) -> str:
    package = _package(cupy)
    return f"{package.name} {package.version}" if package else f"CuPy {cupy.version or ''}".strip()


def _package(cupy: Cupy) -> Package | None:
    """Return the distribution that the facts are about; None where several are installed and none fits."""
    distributions = cupy.distributions or ()
    fitting = [package for package in distributions if f"cuda{cupy.cuda_major}" in package.name]
    found = fitting if len(distributions) > 1 else list(distributions)
    return found[0] if found else None


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
        summary=f"{_name(cupy)} needs a driver for CUDA {major} ({minimum_driver(CudaVersion(major, 0))} or newer), "
        f"and driver{f' {version}' if version else ''} {supports}",
        subject=_name(cupy),
        facts=(
            "cupy.cuda_major",
            *(("driver.version",) if version else ()),
            *(("driver.cuda_version",) if driver is not None and driver.cuda_version else ()),
        ),
        remedies=remedies,
    )


def _only_other_toolkits(
    cupy: Cupy, major: int, toolkit: Toolkit | None, python: Python | None
) -> tuple[tuple[str, str, CudaVersion], ...]:
    """Return the toolkits (fact, path, version) where all are of other majors and CuPy's libraries come from none else.

    Packages for one toolkit only, such as cupy-cuda115, are compared by their major version too.
    """
    if toolkit is None or toolkit.toolkits is None or cupy.nvrtc_files is None or cupy.platform != "cuda":
        return ()
    libraries = (*(toolkit.system_libraries or ()), *(toolkit.library_path_libraries or ()))
    suffix = f".so.{major}"
    if any(_is_of(file.rpartition("/")[2], suffix, major) for file in cupy.nvrtc_files):
        return ()
    if any(_is_of(library.soname, suffix, major) for library in libraries if "nvrtc" in library.soname):
        return ()
    packages = (python.packages if python is not None else None) or ()
    if any(package.installer == "conda" and "nvrtc" in package.name for package in packages):
        return ()
    found = tuple(
        (f"toolkit.toolkits[{number}].version", install.path, install.version)
        for number, install in enumerate(toolkit.toolkits)
        if install.version is not None
    )
    if len(found) < len(toolkit.toolkits) or any(version.major == major for _, _, version in found):
        return ()
    return found


def _other_nvcc(
    major: int, toolkit: Toolkit | None, cupy_runtime: CupyRuntime | None
) -> tuple[tuple[str, str, CudaVersion], ...]:
    """Return the toolkit of nvcc where it is of another major version and CuPy finds none of CUDA's libraries."""
    version = toolkit.nvcc_version if toolkit is not None else None
    missing = missing_library(cupy_runtime, "nvrtc|cudart|cublas|cufft|curand|cusolver|cusparse")
    if toolkit is None or version is None or version.major == major or missing is None:
        return ()
    return (("toolkit.nvcc_version", toolkit.nvcc_path or "nvcc", version),)


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


def _is_of(name: str, suffix: str, major: int) -> bool:
    """Return whether the file is of that CUDA major version: libnvrtc.so.12, libnvrtc.so.11.2, nvrtc64_120_0.dll."""
    return name.endswith(suffix) or f"{suffix}." in name or f"64_{major}" in name


def _toolkit_finding(
    cupy: Cupy, major: int, others: tuple[tuple[str, str, CudaVersion], ...], remedy: Remedy
) -> Finding:
    there = " and ".join(f"CUDA {version} ({path})" for _, path, version in others)
    return Finding(
        severity=Severity.ERROR,
        summary=f"{_name(cupy)} needs the libraries of CUDA {major}, and this machine has {there}",
        subject=_name(cupy),
        facts=("cupy.cuda_major", *(fact for fact, _, _ in others)),
        remedies=(remedy,),
    )


def _for_rocm(cupy: Cupy, machine: Machine) -> Finding:
    return Finding(
        severity=Severity.ERROR,
        summary=f"{_name(cupy)} is for GPUs of AMD, and the machine has {machine.gpu()}",
        subject=_name(cupy),
        facts=("cupy.platform", machine.gpu_fact()),
        remedies=(machine.install_cupy(cupy),),
    )
