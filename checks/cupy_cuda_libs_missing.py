"""The CUDA libraries and headers that CuPy calls."""

from collections.abc import Iterator

from gpudoctor.model import CupyRuntime, CupyStatus, Finding, Gpu, Severity
from gpudoctor.registry import check, known, skip_unless
from gpudoctor.symptoms import Symptoms, of_kind
from gpudoctor.symptoms.answers import answers


@check(family="cupy", explains=("cupy-unusable", "cupy-nvrtc-missing", "toolkit-mismatch-building-extension"))
def cupy_cuda_libs_missing(
    cupy_status: CupyStatus, gpu: Gpu, cupy_runtime: CupyRuntime = CupyRuntime(), symptoms: Symptoms = None
) -> Iterator[Finding]:
    """CuPy does not find cuBLAS, cuFFT or another CUDA library, or the CUDA headers.

    Why: CuPy's wheels contain no CUDA libraries and headers. The extra [ctk], a toolkit of the same CUDA major version,
    or conda provides them. The evidence is a library, header or DLL that CuPy's own message names, or a failed pip
    build of the source package cupy.
    Exception: NVRTC alone is cupy-nvrtc-missing. If the installed toolkit has a different version than the library,
    cupy-wrong-cuda-package reports it. Without an NVIDIA GPU CuPy calls none of them.
    Reference: https://docs.cupy.dev/en/stable/install.html
    """
    if not of_kind(symptoms, "cupy-source-build"):
        skip_unless(known(cupy_status.installed, "cupy.distributions"), "CuPy is not installed")
        skip_unless(gpu.name != "", "there is no NVIDIA GPU for CuPy")
    # A CuPy that answers need not know where the toolkit is.
    answered = bool(cupy_runtime.calls) and cupy_runtime.first_error is None
    found = [f for f in answers(symptoms, "cupy-cuda-libs-missing") if f.severity is Severity.ERROR or not answered]
    if found:
        yield max(found, key=lambda finding: finding.severity)
    elif not of_kind(symptoms, "cupy-source-build"):
        known(cupy_runtime.import_error, "cupy_runtime.import_error")
