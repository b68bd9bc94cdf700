"""The compiler library NVRTC, which CuPy cannot do without."""

from collections.abc import Iterator

from gpudoctor.model import CupyRuntime, CupyStatus, Finding, Fix, Gpu, Nvrtc
from gpudoctor.registry import check, known, skip_unless
from gpudoctor.symptoms import Symptoms
from gpudoctor.symptoms.answers import answers


@check(family="cupy", explains=("cupy-unusable",))
def cupy_nvrtc_missing(
    cupy_status: CupyStatus,
    gpu: Gpu,
    nvrtc: Nvrtc,
    cupy_runtime: CupyRuntime = CupyRuntime(),
    symptoms: Symptoms = None,
) -> Iterator[Finding]:
    """CuPy finds no NVRTC library.

    Why: CuPy compiles every kernel with NVRTC when it is first used, and its wheels do not contain NVRTC. The extra
    [ctk], a toolkit of the same CUDA major version, or conda provides it. PyTorch's wheels have their own. The evidence
    is "libnvrtc.so.12: cannot open shared object file" from CuPy's import or first kernel, NVRTC's message that it
    cannot open its libnvrtc-builtins, or a disk without such a file.
    Exception: without an NVIDIA GPU CuPy compiles nothing.
    Reference: https://docs.cupy.dev/en/stable/install.html
    """
    skip_unless(known(cupy_status.installed, "cupy.distributions"), "CuPy is not installed")
    skip_unless(gpu.name != "", "there is no NVIDIA GPU for CuPy")
    found = answers(symptoms, "cupy-nvrtc-missing")
    yield from found[:1]
    not_called = not cupy_runtime.import_error and cupy_runtime.calls is None
    if not found and not_called and not known(nvrtc.on_disk, nvrtc.unknown):
        summary = "CuPy is installed without NVRTC: there is no NVRTC wheel and no CUDA toolkit"
        facts = ("cupy.nvrtc_files", "toolkit.toolkits", "toolkit.system_libraries")
        yield Finding.error(
            "NVRTC", summary, facts, Fix("install-cupy"), Fix("install-library-for-cupy", library="libnvrtc.so")
        )
