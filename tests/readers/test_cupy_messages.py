"""Reports of CuPy: what is pasted, in words, wrapped, cut off and of any age, and the cause that comes first."""

import pytest

from gpudoctor.engine.runner import run_checks
from gpudoctor.model import Severity
from gpudoctor.readers import messages
from gpudoctor.readers.report import read_texts
from gpudoctor.readers.text import clean_text
from tests.own_checks import own_checks

LIBRARIES, NVRTC, WRONG = "cupy-cuda-libs-missing", "cupy-nvrtc-missing", "cupy-wrong-cuda-package"
UNUSABLE, MISSING, NUMPY, ARCHITECTURE = (
    "cupy-unusable",
    "cupy-missing",
    "cupy-numpy-incompatible",
    "cupy-arch-unsupported",
)


def causes(text: str) -> list[str]:
    """Return the ids of the findings that are no advice, first things first."""
    report = run_checks(own_checks(), read_texts([("report.txt", text.encode())]))
    return [finding.check_id for finding in report.findings if finding.severity is not Severity.INFO]


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        pytest.param(
            "I tried cupy with several toolkits.\nHere is CUDA 11.4\nOriginal error:\n  ImportError: libnvrtc.so.11.0: "
            "cannot open shared object file",
            WRONG,
            id="a library of another toolkit, in words",
        ),
        pytest.param(
            "with cupy I always get: libcusolver.so.11 not found, what is it?", LIBRARIES, id="not found, in words"
        ),
        pytest.param("CuPy failed to load libnvrtc.so.13: OSError: libnvrtc.so.13: ca", NVRTC, id="cut off"),
        pytest.param(
            "ImportError: CuPy is not correctly installed.\n\noriginal error: libcurand.so.9.2: cannot open shared\n"
            "object file: No such file or directory",
            LIBRARIES,
            id="the banner of CuPy 7",
        ),
        pytest.param(
            '  File "cupy\\cuda\\device.pyx", line 9, in init cupy.cuda.device\nImportError: DLL load failed: '
            "指定されたモジュールが見つかりません。",
            LIBRARIES,
            id="a DLL, without CuPy's banner",
        ),
        pytest.param(
            "DLL load failed while importing cusolver: The specified module could not be found.\nThat is cupy on "
            "Windows 10\nCUDA toolkit 11.7\npip install cupy-cuda12x",
            WRONG,
            id="a DLL, and a toolkit of another CUDA",
        ),
        pytest.param(
            "chainer 6.2, python 3.6\nnvrtc: error: failed to open libnvrtc-builtins.so.10.1", NVRTC, id="Chainer's"
        ),
        pytest.param(
            '  File "cupy/cuda/nvrtc.pyx", line 53, in cupy.cuda.nvrtc.check_status\ncupy.cuda.nvrtc.NVRTCError: '
            "NVRTC_ERROR_BUILTIN_OPERATION_FAILURE (7)",
            NVRTC,
            id="the status of NVRTC alone",
        ),
        pytest.param(
            "cupy_backends.cuda.libs.nvrtc.NVRTCError: NVRTC_ERROR_INVALID_OPTION (5)", ARCHITECTURE, id="an option"
        ),
        pytest.param(
            "cupy.cuda.compiler.CompileException: nvrtc: error: invalid value for --gpu-architecture (-arch)\n"
            "Options: -I/x/cupy/core/include -ftz=true -arch=compute_52",
            ARCHITECTURE,
            id="the architecture that CuPy asks for",
        ),
        pytest.param(
            "cupy_backends.cuda.api.driver.CUDADriverError: CUDA_ERROR_INVALID_SOURCE: device kernel image is invalid",
            ARCHITECTURE,
            id="an image that the device refuses",
        ),
        pytest.param(
            "RuntimeError: CUDA environment is not correctly set up\n(see https://github.com/chainer/chainer"
            "#installation).No module named 'cupy'",
            MISSING,
            id="Chainer without CuPy",
        ),
        pytest.param("RuntimeError: CUDA environment is not correctly set up", UNUSABLE, id="Chainer names no reason"),
        pytest.param(
            "ERROR: No matching distribution found for cupy-cuda118", MISSING, id="a distribution that pip lacks"
        ),
        pytest.param("AttributeError: module 'cupy' has no attribute 'asarray'", UNUSABLE, id="a part of the package"),
        pytest.param(
            "site-packages/cupy_backends/cuda/libs/cublas.cpython-39-x86_64-linux-gnu.so: undefined symbol: "
            "cublasGemmEx64, version libcublas.so.11",
            WRONG,
            id="a symbol of another CUDA",
        ),
        pytest.param(
            "site-packages/cupy/cuda/driver.cpython-38-x86_64-linux-gnu.so: undefined symbol: cuLinkCreate_v9",
            "driver-too-old",
            id="a symbol of the driver",
        ),
        pytest.param(
            "since yesterday cupy says module 'numpy' has no attribute 'AxisError'", NUMPY, id="NumPy, in words"
        ),
        pytest.param(
            "numpy.core.multiarray failed to import, and then Failed to import CuPy", NUMPY, id="NumPy's error first"
        ),
        pytest.param(
            "Collecting cupy\n-------- Configuring Module: cuda --------\na.cpp:1: fatal error: cuda.h: No such file",
            LIBRARIES,
            id="a build from source",
        ),
        pytest.param(
            "File \"/work/me/cupy.py\", line 1, in <module>\nModuleNotFoundError: No module named 'cupy.random'; "
            "'cupy' is not a package",
            "module-shadowed",
            id="a file of the same name",
        ),
        pytest.param("cupy.cuda.cusolver.CUSOLVERError: CUSOLVER_STATUS_INTERNAL_ERROR", UNUSABLE, id="a status"),
        pytest.param(
            "CuPy Version          : 14.0.1\nCUDA Build Version    : 12090\nCUDA Driver Version   : 12060\n"
            "CUDA Runtime Version  : 12090 (linked to CuPy) / 13000 (locally installed)\n",
            WRONG,
            id="the libraries of a newer CUDA beside CuPy",
        ),
    ],
)
def test_the_first_cause(text: str, cause: str) -> None:
    assert causes(text)[:1] == [cause]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            "chainer/backends/cuda.py:146: UserWarning: cuDNN is not enabled.\nPlease reinstall CuPy after you install "
            "cudnn",
            id="Chainer without cuDNN",
        ),
        pytest.param(
            "cupy._util.PerformanceWarning: Jitify is performing a one-time only warm-up", id="a warning of speed"
        ),
        pytest.param(
            "UserWarning: nccl library could not be loaded. Reason: ImportError (libnccl.so.2: cannot open shared "
            "object file)\n>>> import cupy; cupy.arange(3).sum()\narray(3)",
            id="an optional library",
        ),
        pytest.param("cupy-cuda12x==13.6.0\ntorch==2.6.0+cu124\nrelease 12.4, V12.4.131", id="versions that fit"),
    ],
)
def test_what_is_no_fault_of_cupy(text: str) -> None:
    assert causes(text) == []


def test_a_library_that_another_program_misses_is_not_cupys() -> None:
    text = (
        "import onnxruntime\nImportError: libcublasLt.so.12: cannot open shared object file: No such file\n"
        "$ pip list\ncupy-cuda11x             12.3.0\nonnxruntime-gpu          1.19.0\n"
    )
    assert causes(text)[:1] == ["cuda-libs-conflict"]


def test_a_name_that_numpy_gave_up_is_no_broken_cupy() -> None:
    found = messages.read(clean_text("AttributeError: module 'cupy' has no attribute 'bool'", "log"))["symptoms"]
    assert "cupy-attribute-missing" not in [message.kind for message in found]
