"""The CUDA version of the installed CuPy against driver and toolkit."""

from collections.abc import Iterator

from gpudoctor.data.drivers import driver_can_run, minimum_driver, offered_cuda_can_run, supported_cuda
from gpudoctor.model import Cupy, CupyMismatch, CupyMismatches, CupyStatus, Driver, Finding, Fix, Gpu, Severity
from gpudoctor.model.versions import CudaVersion
from gpudoctor.registry import check, known, skip_unless
from gpudoctor.symptoms.answers import filled

OTHERS_FIRST = (
    "If CuPy matches the installed CUDA, an older library of that name is loaded first: remove its folder from "
    "LD_LIBRARY_PATH, and import cupy before PyTorch"
)

SUMMARIES = {
    "symbol": "{cupy} was built for another CUDA version: it finds no {symbol} in {library}",
    "rocm-symbol": "{cupy} was built for another ROCm version: it finds no {symbol} in {library}",
    "driver": "CuPy uses a newer CUDA version than the driver supports[: the driver supports CUDA {offered}]",
    "library": "{cupy} needs {library}, which the CUDA toolkit here, {nvcc}, does not have",
    "named-library": "{named} needs the libraries of CUDA {major}, but the toolkit here is CUDA {nvcc}",
    "doubted": "CuPy cannot be imported, and its message says that its CUDA version may not match"
    "[, and PyTorch in the same environment is built with CUDA {torch}]",
    "newer-libraries": "{cupy} for CUDA {major} loads the libraries of CUDA {local}, but the driver supports only CUDA "
    "{offered}",
    "toolkit": "{cupy} needs the libraries of CUDA {major}, but this machine has {toolkits}",
    "all-else": "{cupy} for CUDA {major} is probably the wrong one: nvcc ({nvcc}) and PyTorch ({torch}) are for CUDA "
    "{other}",
}


@check(
    family="cupy",
    explains=(
        *("cupy-unusable", "cupy-nvrtc-missing", "cupy-cuda-libs-missing", "cupy-arch-unsupported"),
        "cuda-libs-conflict",
    ),
)
def cupy_wrong_cuda_package(
    cupy_status: CupyStatus, cupy_mismatch: CupyMismatches, gpu: Gpu, cupy: Cupy = Cupy(), driver: Driver = Driver()
) -> Iterator[Finding]:
    """The installed CuPy package is for a different CUDA major version than this machine has.

    Why: cupy-cuda13x needs a driver for CUDA 13 (580 or newer). Without CUDA wheels, CuPy needs a toolkit of its own
    major version: "libnvrtc.so.12: cannot open shared object file". gpudoctor first compares a symbol that CuPy needs
    with the loaded library. Next, it compares a missing library with the version of nvcc: libnvrtc.so.11.1 belongs to
    CUDA 11.1 only; from 11.2 on, only the major version counts. Then it compares the CUDA version in CuPy's package
    name, and of the libraries that CuPy loads, with the driver's, and last the toolkits. If all of them match, the
    library is only missing, and cupy-nvrtc-missing or cupy-cuda-libs-missing reports it.
    Exception: drivers run everything older, so cupy-cuda12x passes on a driver for CUDA 13. With the wheels of the
    extra [ctk], toolkits are not compared. A CuPy that works passes.
    Reference: https://docs.cupy.dev/en/stable/install.html
    """
    if cupy_mismatch.by_message is not None:
        yield _finding(cupy_mismatch.by_message, cupy_status)
        return
    skip_unless(known(cupy_status.installed, "cupy.distributions"), "CuPy is not installed")
    if cupy_status.works:
        return
    if cupy.platform == "rocm":
        if known(gpu.name, "devices"):
            summary = f"{cupy_status.name} is for AMD GPUs, but the GPU is {gpu.name}"
            yield Finding.error(cupy_status.name, summary, ("cupy.platform", gpu.fact), Fix("install-cupy"))
        return
    major = known(cupy_status.cuda_major, "cupy.cuda_major")
    runs = _driver_runs(driver, major)
    if runs is False:
        yield _driver_finding(cupy_status, major, driver)
    elif cupy_mismatch.by_version is not None:
        yield _finding(cupy_mismatch.by_version, cupy_status)
    elif runs is None:
        known(driver.cuda_version or driver.version, "driver.cuda_version")


def _finding(mismatch: CupyMismatch, cupy_status: CupyStatus) -> Finding:
    install = Fix("install-cupy", cuda_major=mismatch.cuda_major)
    fixes = {
        "symbol": (install, Fix("unset-variable", name="LD_LIBRARY_PATH", summary=OTHERS_FIRST)),
        "rocm-symbol": (Fix("install-cupy-for-rocm"),),
        "driver": (install, Fix("update-driver", needed=CudaVersion(13, 0))),
        "doubted": (install, Fix("compare-cuda-versions")),
        "newer-libraries": (Fix("one-cuda-for-all", major=cupy_status.cuda_major), install),
    }
    return Finding.of(
        Severity.ERROR if mismatch.certain else Severity.WARNING,
        cupy_status.name,
        filled(SUMMARIES[mismatch.kind], {"cupy": cupy_status.name, **mismatch.names}),
        mismatch.facts,
        *fixes.get(mismatch.kind, (install,)),
        certain=mismatch.certain,
    )


def _driver_runs(driver: Driver, major: int) -> bool | None:
    """Return whether the driver runs programs of the CUDA major version; None if that is unknown."""
    first = CudaVersion(major, 0)
    if driver.cuda_version is not None and offered_cuda_can_run(driver.cuda_version, first):
        return True
    if driver.version is not None:
        return driver_can_run(driver.version, first)
    return None if driver.cuda_version is None else False


def _driver_finding(cupy_status: CupyStatus, major: int, driver: Driver) -> Finding:
    first = CudaVersion(major, 0)
    offered = driver.cuda_version or (supported_cuda(driver.version) if driver.version is not None else None)
    version = f" {driver.version}" if driver.version else ""
    needed = f" ({minimum_driver(first)} or newer)" if minimum_driver(first) is not None else ""
    summary = (
        f"{cupy_status.name} needs a driver for CUDA {major}{needed}, but "
        f"driver{version} {f'supports CUDA {offered}' if offered else 'is older'}"
    )
    facts = (cupy_status.cuda_fact, "driver.version", "driver.cuda_version")
    return Finding.error(cupy_status.name, summary, facts, Fix("install-cupy"), Fix("update-driver", needed=first))
