"""The CUDA libraries and headers that CuPy calls."""

from collections.abc import Iterator

from gpudoctor.model import Cupy, CupyRuntime, Device, Driver, Finding, Python, Severity, System
from gpudoctor.reasoning.cupy_errors import error_with, missing_library
from gpudoctor.reasoning.installed import Machine, cupy_installed
from gpudoctor.registry import applies, check, known

LIBRARIES = "cudart|cublas|cufft|curand|cusolver|cusparse|nvJitLink"
# Source: "CuPy always raises NVRTC_ERROR_COMPILATION (6)" in https://docs.cupy.dev/en/stable/install.html
HEADERS = r"cannot open source file \"([\w./]+\.h)\"|could not open source file \"([\w./]+\.h)\""
NOT_FOUND = r"\bCUDA (?:is not found|path could not be detected|root directory not found)"


@check(family="cupy", explains=("cupy-unusable", "cupy-nvrtc-missing"))
def cupy_cuda_libs_missing(
    cupy_runtime: CupyRuntime,
    cupy: Cupy | None = None,
    python: Python | None = None,
    system: System | None = None,
    driver: Driver | None = None,
    devices: tuple[Device, ...] | None = None,
) -> Iterator[Finding]:
    """CuPy finds no cuBLAS, cuFFT or another CUDA library, or not the headers to compile with.

    Why: CuPy's wheels hold none of CUDA's libraries and headers: they come with the extra [ctk], with a toolkit of the
    same CUDA major version or with conda.
    Exception: NVRTC alone is cupy-nvrtc-missing. Without an NVIDIA GPU CuPy calls none of them.
    Reference: https://docs.cupy.dev/en/stable/install.html
    """
    applies(known(cupy_installed(cupy, cupy_runtime), "cupy.distributions"), "CuPy is not installed")
    machine = Machine(python=python, system=system, driver=driver, devices=devices)
    applies(machine.gpu() != "", "there is no NVIDIA GPU for CuPy")
    library = missing_library(cupy_runtime, LIBRARIES)
    header = error_with(cupy_runtime, HEADERS)
    toolkit = error_with(cupy_runtime, NOT_FOUND)
    if library is not None:
        fact, summary = library[0], f"CuPy cannot load {library[1]}"
    elif header is not None:
        name = header[1][1] or header[1][2]
        fact, summary = header[0], f"CuPy compiles its kernels without CUDA's headers: {name} is not found"
    elif toolkit is not None:
        fact, summary = toolkit[0], "CuPy finds no CUDA toolkit and no wheels of its libraries"
    else:
        known(cupy_runtime.import_error, "cupy_runtime.import_error")
        return
    yield Finding(
        severity=Severity.ERROR,
        summary=summary,
        subject="cupy",
        facts=(fact,),
        remedies=(machine.install_cupy(cupy),),
    )
