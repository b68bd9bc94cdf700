"""One cause in many words: how programs, loaders, compilers and people put that a library or a tool is missing."""

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


LIBCUDA_IN_A_CONTAINER = """\
nvidia-container-cli: initialization error: load library failed: libcuda.so.1
| NVIDIA-SMI 535.54.03    Driver Version: 535.54.03    CUDA Version: 12.2     |
|   0  NVIDIA T4           Off  | 00000000:01:00.0 Off |                  N/A |
| N/A   37C    P0    26W /  70W |      0MiB / 15360MiB |      0%      Default |
"""
DLL_OF_AN_EXTENSION = r"""
File "C:\e\site-packages\torch_cluster\__init__.py", line 18, in <module>
File "C:\e\lib\ctypes\__init__.py", line 374, in __init__
OSError: [WinError 127] procedure
"""
CASES = {
    "cudnn-missing-or-mismatch": [
        ("RuntimeError: cuDNN version mismatch: PyTorch was compiled against 7201 but linked against 7005", "cudnn"),
        ("RuntimeError: cuDNN version incompatibility: PyTorch was comp", "cudnn"),
        (
            "cuDNN version incompatibility: PyTorch was compiled against (8, 4, 0) but linked against (8, 1, 1)",
            "LD_LIB",
        ),
        ("[enforce fail at common_cudnn.h:99] cuDNN compiled (6021) and runtime (5110) versions mismatch", "cudnn"),
        ("WARNING: Paddle is compiled with CUDNN 8.4, but CUDNN version in your machine is 8.2", "cudnn"),
        ("cuDNN lib mismatch: linked-against version 7605 != compiled-against version 8001.", "cudnn"),
        ("Loaded runtime CuDNN library: 9.1.0 but source was co", "cudnn"),
        ("dso_loader.cc:105] Couldn't open CUDA library libcudnn.so.6. LD_LIBRARY_PATH: /opt/cuda/lib64", "cudnn"),
        ("Can not find library: libcudnn.so. The process maybe hangs", "cudnn"),
        ("ldd libx.so\n    libcudnn.so.9 => not found", r"cudnn-cu12==9"),
        ("OSError: libcudnn.so.7: cannot open sha", "cudnn"),
        ("Library not loaded: @rpath/libcudnn.6.dylib", "cudnn"),
        ("The code execution cannot proceed because cudnn64_8.dll was not found.", r"\$env:PATH"),
        ("由于找不到cudnn64_7.dll,无法继续执行代码", "cudnn"),
        ("src/conv.cu(3): fatal error C1083: Cannot open include file: 'cudnn.h': No such file", "headers"),
        ("Could NOT find CUDNN (missing: CUDNN_LIBRARY_PATH CUDNN_INCLUDE_PATH)", "CUDNN_HOME"),
        ("EP Error: CUDA_PATH is set but CUDA wasn't able to be loaded.", "cudnn"),
    ],
    "cuda-libs-conflict": [
        ("OSError: libcudart.so.9.0: cannot open shar", "cuda"),
        ("dso_loader.cc:105] Couldn't open CUDA library libcublas.so.8.0. LD_LIBRARY_PATH: ", "cublas"),
        ("ldd _C.so\n    libcusparse.so.11 => not found\n    libc.so.6 => /lib/libc.so.6 (0x1)", "cusparse"),
        ("找不到 cublasLt64_11.dll", "cublas"),
        ("ImportError: Could not find 'cudart64_90.dll'. TensorFlow requires that this DLL be installed", "cuda"),
        ("RuntimeError: Unable to load cuSOLVER. Is it installed?", r"jax\[cuda12\]"),
        ("gpu_device.cc:2211] Cannot dlopen some GPU libraries. Please make sure", r"tensorflow\[and-cuda\]"),
        ("cudart_stub.cc:28] Could not find cuda drivers on your machine, GPU will", r"tensorflow\[and-cuda\]"),
    ],
    "libcuda-not-on-linker-path": [
        ("ld: library not found for -lcuda", "libcuda"),
        (LIBCUDA_IN_A_CONTAINER, "ldconfig"),
    ],
    "toolkit-mismatch-building-extension": [
        ("The detected CUDA version (12.6) mismatches the ver", "toolkit"),
        ("x.cpp:5:10: fatal error: 'cuda_runtime_api.h' file not found", "CUDA_HOME"),
        ("x.h:6:10: fatal error: cusparse.h: Datei oder Verzeichnis nicht gefunden", "toolkit"),
        ("x.h:6:10: 致命错误: cuda.h: 没有那个文件或目录", "toolkit"),
        ("-- The CUDA compiler identification is unknown", "toolkit"),
        ("CMake Error: CMAKE_CUDA_ARCHITECTURES must be non-empty if set.", "CMAKE_CUDA_COMPILER"),
        ("nvcc fatal   : Unsupported gpu architecture 'compute_'", "CMAKE_CUDA_ARCHITECTURES"),
        ("CMake Error at CMakeDetermineCompilerId.cmake:9 (message):\n  No CUDA toolset found.", "Visual Studio"),
        ('Target "a" links to target "CUDA::cufft" but the target was not\n  found.', "toolkit"),
        ("/bin/sh: 1: /opt/cuda/bin/nvcc: not found\nninja: build stopped: subcommand failed.", "CUDA_HOME"),
        ("make: nvcc: Command not found", "CUDA_HOME"),
        ("sh: 1: cicc: not found", "toolkit"),
        ("INTERNAL: libdevice not found at ./libdevice.10.bc", "XLA_FLAGS"),
        ("Can't find libdevice directory ${CUDA_DIR}/nvvm/libdevice.", "cuda-nvcc"),
    ],
    "host-compiler-too-new": [
        ("host_config.h:138:2: error: #error -- unsupported GNU version! gcc versions later than 7 are", "gcc-7"),
        ("host_config.h:138:2: error: #error -- unsupported GNU ver", "gcc"),
        ('/usr/include/math.h(9): error: identifier "_Float64x" is undefined', "gcc"),
        ("nvcc fatal   : The version ('90000') of the host compiler ('Apple clang') is not supported", "gcc"),
        ("fatal error C1189: #error: -- unsupported Microsoft Visual Studio version! Only", "Build Tools"),
    ],
    "build-tools-missing": [
        ("RuntimeError: Failed to find C compiler. Please specify via CC environment variable.", "build-essential"),
        ("error: command 'x86_64-linux-gnu-gcc' failed: No such file or directory", "build-essential"),
        ("/tmp/tmpx/main.c:5:10: fatal error: Python.h: No such file or directory", "python3-dev"),
        ("cuda_utils.c:14: error: include file 'Python.h' not found", "python_embeded"),
        ("error: Microsoft Visual C++ 14.0 or greater is required.", "Build Tools"),
        ("RuntimeError: Ninja is required to load C++ extensions", "ninja"),
        ("The current installed version of g++ (4.8.5) is less than the minimum required version by CUDA 11.3", "gcc"),
        ("torch._inductor.exc.TritonMissing: Cannot find a working triton installation.", "triton"),
    ],
    "extension-abi-mismatch": [
        (DLL_OF_AN_EXTENSION, "torch-cluster"),
        ("nms.cu:8:10: fatal error: THC/THC.h: No such file or directory", "1.10"),
        ("error: #error C++17 or later compatible compiler is required to use PyTorch.", "c.{0,3}17"),
    ],
    "extension-needs-newer-system": [
        ("/opt/conda/lib/libstdc++.so.6: version `GLIBCXX_3.4.30' not found", "libstdcxx"),
    ],
    "numpy-abi-mismatch": [
        ("RuntimeError: module compiled against API version 0xf but this version of numpy is 0xd", "numpy"),
        ("ImportError: numpy.core.multiarray failed to import", "numpy"),
    ],
    "bitsandbytes-cuda-setup": [
        ("CUDA_SETUP: WARNING! libcudart.so not found in any environmental path.", "upgrade"),
        ("No libcudart.so found!\nCUDA SETUP: WARNING! libcuda.so not found! Do you have a driver?", "upgrade"),
    ],
}


@pytest.mark.parametrize(
    ("check", "text", "fix"), [(check, text, fix) for check, cases in CASES.items() for text, fix in cases]
)
def test_the_cause_comes_first_with_its_remedy(check: str, text: str, fix: str) -> None:
    found = causes(text)
    assert [finding.check_id for finding in found][:1] == [check]
    assert re.search(fix, json.dumps(to_json(found[0].remedies), ensure_ascii=False), re.IGNORECASE)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("dso_loader.cc:49] Successfully opened dynamic library libcudnn.so.8\nTesla T4", id="opened"),
        pytest.param("Loaded cuDNN version 8907\nNVIDIA A10", id="loaded"),
        pytest.param("System CUDA_HOME is None: True\nPyTorch version: 2.1.0+cu121", id="CUDA_HOME is not needed"),
        pytest.param("-- Found CUDAToolkit: /usr/local/cuda/include (found version 12.4)\nRTX 3060", id="found"),
        pytest.param("ldd a.so\n libcudnn.so.9 => /usr/lib/libcudnn.so.9 (0x7f)\nRTX 3060", id="ldd finds all"),
    ],
)
def test_nothing_is_wrong(text: str) -> None:
    assert causes(text) == []


def test_a_cudnn_before_the_first_wheel_is_not_asked_of_pip() -> None:
    (finding, *_) = causes("OSError: libcudnn.so.7: cannot open shared object file: No such file or directory")
    commands = [command for remedy in finding.remedies for command in remedy.commands]
    assert not any("pip install" in command and "cudnn" in command for command in commands)
    assert any("conda install" in command for command in commands)
