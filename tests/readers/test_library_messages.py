"""Reports that end with a message about CUDA's libraries, a build or CuPy: the cause that comes first, and its fix."""

import json
import re

import pytest

from gpudoctor.engine.runner import run_checks
from gpudoctor.model import Finding, Severity
from gpudoctor.model.codec import to_json
from gpudoctor.readers.report import read_texts
from tests.own_checks import own_checks


def causes(text: str) -> list[Finding]:
    """Return the findings of a report that are no advice, first things first."""
    report = run_checks(own_checks(), read_texts([("report.txt", text.encode())]))
    assert not [result for result in report.results if result.outcome.value == "crashed"]
    return [finding for finding in report.findings if finding.severity is not Severity.INFO]


CUDNN, LIBRARIES = "cudnn-missing-or-mismatch", "cuda-libs-conflict"
LIBCUDA, TOOLKIT, COMPILER = (
    "libcuda-not-on-linker-path",
    "toolkit-mismatch-building-extension",
    "host-compiler-too-new",
)
CASES = [
    pytest.param(
        "Could not load library libcudnn_cnn_infer.so.8. Error: libcudnn_cnn_infer.so.8: cannot open shared "
        "object file",
        CUDNN,
        r"nvidia-cudnn-cu12==8\.\*.*LD_LIBRARY_PATH",
        id="a part of cuDNN 8",
    ),
    pytest.param(
        "Could not locate cudnn_graph64_9.dll. Please make sure it is in your library path!\n"
        "Invalid handle. Cannot load symbol cudnnGetVersion",
        CUDNN,
        r"cudnn-cu12==9\.\*.*\$env:PATH",
        id="a part of cuDNN 9 on Windows",
    ),
    pytest.param(
        "Unable to load any of {libcudnn_graph.so.9.5.1, libcudnn_graph.so.9.5, libcudnn_graph.so.9}\n"
        "torch==2.2.2+cu118\nctranslate2==4.6.0",
        CUDNN,
        r"ctranslate2<4\.5",
        id="CTranslate2 for cuDNN 9 beside PyTorch for 8",
    ),
    pytest.param(
        "Could not load library libcudnn_ops_infer.so.8. Error: libcudnn_ops_infer.so.8: cannot open shared object "
        "file\ntorch==2.6.0+cu124\nfaster-whisper==1.0.3",
        CUDNN,
        r"ctranslate2>=4\.5",
        id="CTranslate2 for cuDNN 8 beside PyTorch for 9",
    ),
    pytest.param(
        "RuntimeError: cuDNN version incompatibility: PyTorch was compiled  against (8, 7, 0) but found runtime "
        "version (8, 2, 4).",
        CUDNN,
        "unset LD_LIBRARY_PATH.*>=8.7,<9",
        id="an older cuDNN than PyTorch's",
    ),
    pytest.param(
        "Loaded runtime CuDNN library: 8.2.4 but source was compiled with: 8.9.4. CuDNN library needs to have",
        CUDNN,
        ">=8.9,<9",
        id="an older cuDNN than TensorFlow's",
    ),
    pytest.param(
        "Outdated cuDNN installation found. Version JAX was built against: 90300 Minimum supported: 9000 "
        "Installed version: 8906",
        CUDNN,
        ">=9.3,<10",
        id="an older cuDNN than JAX needs",
    ),
    pytest.param("cuDNN error: CUDNN_STATUS_NOT_INITIALIZED", CUDNN, "nvidia-smi", id="a status with several causes"),
    pytest.param(
        "Failed to create CUDAExecutionProvider. Require cuDNN 9.* and CUDA 12.*, and the latest MSVC runtime.",
        CUDNN,
        "nvidia-cudnn-cu12",
        id="ONNX Runtime names no file",
    ),
    pytest.param(
        "libonnxruntime_providers_cuda.so with error: libcufft.so.11: cannot open shared object file\n"
        "Failed to create CUDAExecutionProvider. Require cuDNN 9.* and CUDA 12.*",
        LIBRARIES,
        "nvidia-cufft-cu12",
        id="ONNX Runtime names a CUDA library",
    ),
    pytest.param(
        "libcusparse.so.12: undefined symbol: __nvJitLinkGetErrorLog_12_6, version libnvJitLink.so.12\n"
        "\tlibnvJitLink.so.12 => /opt/cuda-12.0/lib64/libnvJitLink.so.12 (0x00007f00)",
        LIBRARIES,
        "LD_LIBRARY_PATH.*nvidia-nvjitlink-cu12",
        id="an older nvJitLink",
    ),
    pytest.param("undefined symbol ncclMemAlloc", LIBRARIES, "nvidia-nccl", id="an older NCCL, without a colon"),
    pytest.param("CUDA error: CUDA driver is a stub library", LIBRARIES, "stubs", id="a stub of libcuda"),
    pytest.param(
        "Error 804: forward compatibility was attempted on non supported HW", LIBRARIES, "cuda-compat", id="cuda-compat"
    ),
    pytest.param(
        "RuntimeError: Library libcublas.so.12 is not found or cannot be loaded",
        LIBRARIES,
        "nvidia-cublas-cu12",
        id="cuBLAS that CTranslate2 needs",
    ),
    pytest.param(
        "/usr/bin/ld: cannot find -lcuda\ncollect2: error: ld returned 1 exit status",
        LIBCUDA,
        "ldconfig.*LIBRARY_PATH.*stubs",
        id="the linker",
    ),
    pytest.param(
        "AssertionError: libcuda.so cannot found!\nPossible files are located at ['/lib64/libcuda.so.1'].",
        LIBCUDA,
        "ln -s /lib64/libcuda.so.1 /lib64/libcuda.so",
        id="Triton names the file",
    ),
    pytest.param(
        "Could not load library libcudnn_ops_infer.so.8. Error: libcuda.so: cannot open shared object file",
        LIBCUDA,
        "/usr/lib/wsl/lib",
        id="cuDNN looks for libcuda.so",
    ),
    pytest.param(
        "RuntimeError: The detected CUDA version (12.6) mismatches the version that was used\n to compile\n  PyTorch "
        "(11.8). Please make sure",
        TOOLKIT,
        "CUDA_HOME.*cu126.*--no-build-isolation",
        id="another toolkit, wrapped lines",
    ),
    pytest.param(
        "OSError: CUDA_HOME environment variable is not set. Please set it to your CUDA install root.",
        TOOLKIT,
        "export CUDA_HOME",
        id="CUDA_HOME is not set",
    ),
    pytest.param(
        "error: [Errno 2] No such file or directory: '/usr/local/cuda-12.4/bin/nvcc'", TOOLKIT, "nvcc", id="no nvcc"
    ),
    pytest.param("CMake Error: No CUDA toolset found.", TOOLKIT, "toolkit", id="CMake on Windows"),
    pytest.param(
        "nvcc fatal   : Unsupported gpu architecture 'compute_90'",
        TOOLKIT,
        "CUDA 11.8 is the first.*TORCH_CUDA_ARCH_LIST",
        id="an architecture too new",
    ),
    pytest.param(
        "nvcc fatal   : Unsupported gpu architecture 'compute_60'",
        TOOLKIT,
        "CUDA 12.9 is the last",
        id="an architecture too old",
    ),
    pytest.param(
        "Installed CUDA version 12.4 does not match the version torch was compiled with 11.7, unable to compile",
        TOOLKIT,
        "cuda-toolkit-11-7",
        id="DeepSpeed",
    ),
    pytest.param(
        "_get_cuda_arch_flags\n    arch_list[-1] += '+PTX'\nIndexError: list index out of range",
        TOOLKIT,
        "TORCH_CUDA_ARCH_LIST",
        id="docker build has no GPU",
    ),
    pytest.param(
        "host_config.h:138:2: error: #error -- unsupported GNU version! gcc versions later than 11 are not supported!",
        COMPILER,
        "g\\+\\+-11.*-ccbin|-ccbin.*g\\+\\+-11",
        id="gcc",
    ),
    pytest.param(
        "/usr/include/c++/11/bits/std_function.h:530:146: error: parameter packs not expanded with '...':",
        COMPILER,
        "gcc-10",
        id="gcc 11 that nvcc cannot read",
    ),
    pytest.param(
        "error: #error:  -- unsupported Microsoft Visual Studio version! Only the versions between 2017 and 2019",
        COMPILER,
        "between 2017 and 2019",
        id="Visual Studio",
    ),
    pytest.param(
        'static assertion failed with "error STL1002: Unexpected compiler version, expected CUDA 12.4 or newer."',
        COMPILER,
        "12.4",
        id="the STL of Visual Studio",
    ),
    pytest.param(
        "CuPy may not function correctly because multiple CuPy packages are installed\n  in your environment:\n\n"
        "    cupy-cuda118, cupy-cuda12x\n\n  Follow these steps",
        "cupy-multiple-packages",
        "uninstall -y cupy-cuda118 cupy-cuda12x",
        id="several CuPy packages",
    ),
    pytest.param(
        "RuntimeError: CuPy failed to load nvrtc64_120_0.dll: FileNotFoundError: Could not find module",
        "cupy-nvrtc-missing",
        r"cupy-cuda12x\[ctk\].*nvidia-cuda-nvrtc-cu12",
        id="no NVRTC",
    ),
    pytest.param(
        "Failed to import CuPy.\nCUDA Path: None\nDLL dependencies:\n  curand64_10.dll -> not found\nOriginal error:\n"
        "  ImportError: DLL load failed while importing core: The specified module could not be found.",
        "cupy-cuda-libs-missing",
        "CUDA_PATH",
        id="a DLL of CUDA is missing",
    ),
    pytest.param(
        "Failed to import CuPy.\nOriginal error:\n  ImportError: numpy.core.multiarray failed to import",
        "cupy-numpy-incompatible",
        "numpy<2",
        id="the inner error names NumPy",
    ),
    pytest.param(
        'File "/usr/lib/python3/site-packages/cupy/_creation/from_data.py", line 46\n'
        "AttributeError: module 'numpy' has no attribute 'bool'",
        "cupy-numpy-incompatible",
        "numpy<1.24",
        id="a function that NumPy 1.24 removed",
    ),
    pytest.param(
        "Quadro P2000\ncupy.cuda.compiler.CompileException: nvrtc: error: invalid value for --gpu-architecture (-arch)",
        "cupy-arch-unsupported",
        "cupy-cuda12x",
        id="NVRTC too new for Pascal",
    ),
    pytest.param(
        "cupy.cuda.compiler.CompileException: nvrtc: error: invalid value for --gpu-architecture (-arch)",
        "cupy-arch-unsupported",
        "Pascal.*Blackwell",
        id="NVRTC too new or too old",
    ),
    pytest.param(
        "ValueError: Cannot use GPU, CuPy is not installed", "cupy-missing", "pip install 'cupy-cuda12x", id="spaCy"
    ),
    pytest.param(
        "error: -- unsupported GNU version! gcc 9 and up are not supported!",
        COMPILER,
        "gcc-8",
        id="gcc, as CUDA 10 says",
    ),
    pytest.param(
        "  File cpp_extension.py, line 400\n    subprocess.check_output([nvcc, '--version'])\nFileNotFoundError: "
        "[WinError 2] The system cannot find the file specified",
        TOOLKIT,
        "CUDA_HOME",
        id="no nvcc on Windows",
    ),
    pytest.param("LINK : fatal error LNK1181: cannot open input file 'cuda.lib'", LIBCUDA, "stubs", id="the linker cl"),
    pytest.param(
        "cupy_backends.cuda.api.driver.CUDADriverError: CUDA_ERROR_NO_BINARY_FOR_GPU: no kernel image is available",
        "cupy-arch-unsupported",
        "cupy",
        id="CuPy has no machine code",
    ),
    pytest.param(
        "ImportError: libcusolver.so.11: cannot open shared object file: No such file\n\nThe above exception "
        "was the direct cause of the following exception:\n\nImportError:\n====\nFailed to import CuPy.",
        "cupy-cuda-libs-missing",
        "nvidia-cusolver",
        id="the cause stands before",
    ),
    pytest.param(
        "  ERROR: Failed building wheel for cupy\nYour CUDA environment is invalid.",
        "cupy-cuda-libs-missing",
        "cupy-cuda12x",
        id="CuPy from source",
    ),
]


@pytest.mark.parametrize(("text", "check", "fix"), CASES)
def test_the_cause_comes_first_with_its_remedy(text: str, check: str, fix: str) -> None:
    found = causes(text)
    assert [finding.check_id for finding in found][:1] == [check]
    assert found[0].severity is (Severity.WARNING if "STATUS_NOT" in text or "multiple" in text else Severity.ERROR)
    assert re.search(fix, json.dumps(to_json(found[0].remedies)), re.DOTALL | re.IGNORECASE)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            "nccl library could not be loaded.\n\nReason: ImportError (libnccl.so.2: cannot open shared object file)",
            id="optional, of CuPy",
        ),
        pytest.param(
            "The detected CUDA version (12.2) has a minor version mismatch\nCuda compilation tools, release 12.2",
            id="minor",
        ),
        pytest.param("CUDA Driver Version : 12040\nCuPy Version : 13.0.0\ncuBLAS Version : (available)", id="works"),
        pytest.param("nvcc: command not found\ntorch.cuda.is_available()\nTrue", id="no toolkit is needed"),
        pytest.param("cuTENSOR.dll -> not found\nCuPy Version : 13.0.0\nNVRTC Version : (12, 4)", id="no cuTENSOR"),
    ],
)
def test_nothing_is_wrong(text: str) -> None:
    assert causes(text) == []


def test_what_cupy_works_without_is_no_finding() -> None:
    text = """\
CuPy Version : 13.3.0
CUDA Build Version : 12060
CUDA Driver Version : 12060
CUDA Runtime Version : 12060 (linked to CuPy) / RuntimeError('CuPy failed to load libcudart.so.12: OSError: \
libcudart.so.12: cannot open shared object file') (locally installed)
cuBLAS Version : (available)
NVRTC Version : (12, 6)
NCCL Runtime Version : ImportError('libnccl.so.2: cannot open shared object file')
Device 0 Name : NVIDIA L40S
Device 0 Compute Capability : 89
"""
    assert causes(text) == []


def test_a_full_memory_explains_a_status_of_cudnn() -> None:
    text = "CUDNN_STATUS_NOT_INITIALIZED\ntorch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"
    assert CUDNN not in [finding.check_id for finding in causes(text)]
