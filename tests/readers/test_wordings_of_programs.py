"""One cause in the words of many programs: JAX, Numba, Ollama, NCCL, PaddlePaddle, pip, runc and the kernel."""

import json
import re

import pytest

from gpudoctor.engine.runner import run_checks
from gpudoctor.model import Finding
from gpudoctor.model.codec import to_json
from gpudoctor.readers.report import read_texts
from tests.causes import causes_of
from tests.own_checks import own_checks


def causes(text: str) -> list[Finding]:
    """Return the causes, the root cause first."""
    report = run_checks(own_checks(), read_texts([("report.txt", text.encode())]))
    assert not [result for result in report.results if result.outcome.value == "crashed"]
    return causes_of(report)


UUID = "5b0f6a1e-9c3d-4e27-8f11-2a7b64d0c9e3"
BUILD_CUT_OFF = """\
  x Failed to build `gsplat==1.4.0`
  Call to `setuptools.build_meta:__legacy__.build_wheel` failed (exit status: 1)
    File "<string>", line 11, in <module>
    ModuleNotFoundError: No mod"""
BUILD_OF_AN_OLD_PIP = """\
      File "/tmp/pip-req-build-1/setup.py", line 9, in <module>
        import torch
    ModuleNotFoundError: No module named 'torch'
    [end of output]
  ERROR: Failed building wheel for causal-conv1d
"""
VIDEO_IN_A_CONTAINER = """\
$ docker run --rm --gpus all encoder ffmpeg -i a.mkv -c:v hevc_nvenc b.mkv
[hevc_nvenc @ 0x55aa] Cannot load libnvidia-encode.so.1
[hevc_nvenc @ 0x55aa] The minimum required Nvidia driver for nvenc is 520.56 or newer
"""
OLD_TORCH_ON_AN_OLDER_DRIVER = """\
$ python3 -m pip install torch==1.3.1 torchvision==0.4.2
>>> import torch
>>> torch.cuda.is_available()
False
| NVIDIA-SMI 410.79       Driver Version: 410.79       |
"""
AMD_ALONE = """\
GPU models and configuration: AMD Renoir
RuntimeError: cuda runtime error (35) : CUDA driver version is insufficient for CUDA runtime version
"""
WSL_WITHOUT_NVML = "5.15.153.1-microsoft-standard-WSL2\n$ nvidia-smi\nFailed to initialize NVML: N/A\n"
OUTDATED_FOR_JAX = """\
Outdated CUDA installation found.
Version JAX was built against: 12030
Minimum supported: 12010
Installed version: 11080
"""
GPU_NEWER_THAN_THE_DRIVER = """\
NVRM: The NVIDIA GPU 0000:0a:00.0 (PCI ID: 10de:2c05)
NVRM: installed in this system is not supported by the
NVRM: NVIDIA 535.183.01 driver release.
"""
ROCM_BESIDE_NVIDIA = """\
| NVIDIA-SMI 550.54.15  Driver Version: 550.54.15  CUDA Version: 12.4 |
GPU 0: NVIDIA GeForce RTX 4070
  File "/e/site-packages/torch/__init__.py", line 239, in <module>
ImportError: libroctx64.so.4: cannot open shared object file: No such file or directory
"""
CPU_BUILD_IN_A_SHELL = """\
PS C:\\app> python -c "import torch; print(torch.__version__, torch.cuda.is_available())"
2.8.0+cpu False
"""
LISTED_BY_TENSORFLOW = """\
gpu_device.cc:1928] Created device /job:localhost/replica:0/task:0/device:GPU:0 with 9000 MB memory:
 -> device: 0, name: NVIDIA A10, pci bus id: 0000:01:00.0, compute capability: 8.6
"""
CASES = {
    "cudnn-missing-or-mismatch": [
        ("Found cuDNN version 8500, but JAX was built against version 8906, which is newer.", "cudnn"),
        ("hl_cuda_cudnn.cc:99] [cudnn init] libcudnn v6 with header v7 unmatched!", "cudnn"),
        (
            "The third-party dynamic library (cudnn64_8.dll) that Paddle depends on is not configured correctly.",
            "cudnn",
        ),
        ("RuntimeError: GET was unable to find an engine to execute this computation", "(?i)cudnn"),
        ("Could not locate zlibwapi.dll. Please make sure it is in your library path!", "(?i)cudnn"),
    ],
    "jax-cuda-libs-mismatch": [
        ("Found cuSPARSE version 12002, but JAX was built against version 12102, which is newer.", r"jax\[cuda12\]"),
        (OUTDATED_FOR_JAX, r"jax\[cuda12\]"),
    ],
    "cuda-libs-conflict": [
        ("CudaSupportError: Error at driver init: Call to cuInit results in UNKNOWN_CUDA_ERROR (34)", "stubs"),
        ("ValueError: libcusolver.so.*[0-9] not found in the system path ['/srv/app']", "cusolver"),
        ("The third-party dynamic library (cublas64_11.dll) that Paddle depends on is not configured", "cublas"),
    ],
    "driver-too-old": [
        ("ollama 0.30 on a V100, driver 535: CUDA error: device kernel image is invalid", "driver"),
        (
            "ptxas application ptx input, line 12; fatal   : Unsupported .version 8.6; current version is '8.2'",
            "driver",
        ),
        ('level=WARN msg="old CUDA driver detected - please upgrade to a newer driver" version=11.2', "driver"),
        (OLD_TORCH_ON_AN_OLDER_DRIVER, "418"),
    ],
    "toolkit-mismatch-building-extension": [
        ("/usr/bin/ld: cannot find -lcurand: No such file or directory", "CUDA_HOME"),
        ("ptxas /tmp/tmp4x.ptx, line 5; fatal   : Unsupported .version 8.6; current version is '8.2'", "CUDA_HOME"),
        ("OSError: Unknown compute capability. Ensure PyTorch with CUDA support is installed.", "TORCH_CUDA_ARCH_LIST"),
    ],
    "driver-library-mismatch": [
        ("| NVIDIA-SMI 470.82.01   Driver Version: 550.54.15   CUDA Version: N/A |", "reboot"),
    ],
    "cuda-visible-devices-hides-gpu": [
        (f"nvidia-container-cli: device error: GPU-{UUID}: unknown device: unknown", "nvidia-smi -L"),
        ("I chose HIP_VISIBLE_DEVICES=2, then: RuntimeError: No CUDA GPUs are available", "HIP_VISIBLE_DEVICES"),
    ],
    "no-nvidia-gpu": [
        ("On my MacBook: ResolvePackageNotFound:\n  - cudatoolkit=11.3\n", "mps"),
        ('macOS, docker run --gpus all image\ncould not select device driver "" with capabilities: [[gpu]]', "Metal"),
        ("AssertionError: Torch not compiled with CUDA enabled. The server has no GPU to speak of.", "CPU"),
    ],
    "wheel-index-wrong": [
        ("ERROR: No matching distribution found for jaxlib==0.4.7+cuda11.cudnn86", r"jax\[cuda1"),
    ],
    "wrong-python-environment": [
        (
            (
                'python3 -c "import torch; print(torch.cuda.is_available())"\nFalse\n'
                'python -c "import torch; print(torch.cuda.is_available())"\nTrue\n'
            ),
            "which -a python",
        ),
    ],
    "build-tools-missing": [
        (
            (
                "Installed CUDA version 12.5 does not match the version torch was compiled with 12.1 but since the "
                "APIs are compatible, accepting this combination\nfatal error: Python.h: No such file or directory"
            ),
            "python3-devel",
        ),
    ],
    "torch-no-kernel-for-device": [
        (
            (
                "Mismatched GPU Architecture: The installed PaddlePaddle package was compiled for 70 75 80 86 ,but "
                "your current GPU is 120"
            ),
            "compute_cap",
        ),
        ("FATAL: kernel `fmha_cutlassF_bf16_sm80` is for sm80-sm100, but was built for sm37", "compute_cap"),
        ("RuntimeError: FlashAttention only supports Ampere GPUs or newer.", "sdpa"),
        ("requires device with capability <= (9, 0) but your GPU has capability (12, 0) (too new)", "cu128"),
        ("with Cuda compute capability 3.0. The minimum required Cuda capability is 3.5.", "(?i)kepler"),
    ],
    "fabric-manager-not-running": [
        ("node3:88 [1] transport/nvls.cc:230 NCCL WARN Cuda failure 1 'invalid argument'", "reboot"),
    ],
    "container-without-gpu": [
        ('docker: Error response from daemon: exec: "nvidia-smi": executable file not found in $PATH', "--gpus"),
    ],
    "driver-capabilities-missing": [(VIDEO_IN_A_CONTAINER, "compute,video,utility")],
    "build-isolation-hides-torch": [
        (BUILD_CUT_OFF, "--no-build-isolation"),
        (BUILD_OF_AN_OLD_PIP, "--no-build-isolation"),
    ],
    "bitsandbytes-cuda-setup": [
        ("NameError: name 'str2optimizer8bit_blockwise' is not defined", "bitsandbytes"),
        (r"Error named symbol not found at line 77 in file D:\w\bitsandbytes\csrc\ops.cu", "bitsandbytes"),
    ],
    "driver-not-loaded": [
        (GPU_NEWER_THAN_THE_DRIVER, "driver"),
        ("ERROR: The Nouveau kernel driver is currently in use by your system.", "blacklist"),
        ("ERROR: Unable to find the kernel source tree for the currently running kernel.", "headers"),
    ],
    "cuda-init-unknown-error-999": [("cuda driver library failed to get device context 999", "nvidia[-_]uvm")],
    "wsl-driver-problem": [(WSL_WITHOUT_NVML, "(?i)wsl")],
    "cuda-build-on-amd": [(AMD_ALONE, "rocm")],
    "rocm-build-on-nvidia": [
        (ROCM_BESIDE_NVIDIA, "cu1"),
    ],
    "cupy-missing": [("ImportError: CuPy is required for the backend 'gpu'.", "cupy-cuda")],
    "pynvml-deprecated": [
        (
            "name = pynvml.nvmlDeviceGetName(handle).decode()\nAttributeError: 'str' object has no attribute 'decode'",
            "nvidia-ml-py",
        ),
    ],
    "torchvision-mismatch": [
        ("Failed to load image Python extension: '[WinError 127] The specified procedure could not be found'", "torch"),
    ],
    "mps-op-not-implemented": [
        (
            "NotImplementedError: Output channels > 65536 not supported at the MPS device.",
            "PYTORCH_ENABLE_MPS_FALLBACK",
        ),
    ],
    "mps-issues": [
        ("TypeError: Trying to convert Float8_e5m2 to the MPS backend but it does not have support", "GGUF"),
        ("RuntimeError: MPS backend is supported on MacOS 12.3+", "macOS"),
    ],
    "torch-cpu-build": [
        (CPU_BUILD_IN_A_SHELL, "index-url"),
    ],
    "amp-unsupported": [
        ("Training is too slow on my GTX 1650, a card without Tensor Cores, since version 6.1 turned amp on.", "amp"),
    ],
}


@pytest.mark.parametrize(
    ("check", "text", "fix"),
    [
        pytest.param(check, text, fix, id=f"{check}: {text[:40]}")
        for check, cases in CASES.items()
        for text, fix in cases
    ],
)
def test_the_cause_comes_first_with_its_fix(check: str, text: str, fix: str) -> None:
    first = causes(text)[0]
    assert first.check_id == check
    assert re.search(fix, json.dumps([to_json(remedy) for remedy in first.remedies]))


def test_a_driver_that_ffmpeg_names_is_needed_if_the_library_is_there() -> None:
    text = "[hevc_nvenc @ 0x55aa] The minimum required Nvidia driver for nvenc is 520.56 or newer"
    assert causes(text)[0].check_id == "driver-too-old"


def test_a_variant_in_the_command_is_no_default_wheel() -> None:
    text = OLD_TORCH_ON_AN_OLDER_DRIVER.replace(
        "torch==1.3.1 ", "torch==1.3.1 --index-url https://download.pytorch.org/whl/cpu "
    )
    assert "driver-too-old" not in [finding.check_id for finding in causes(text)]


def test_a_python_at_a_prompt_of_windows_is_that_of_windows() -> None:
    text = r"""
C:\Users\kim>pip list
torch              2.6.0
torchvision        0.21.0
C:\Users\kim>python -c "import torch; print(torch.cuda.is_available())"
False
NVIDIA GeForce RTX 4060
"""
    assert causes(text)[0].check_id == "windows-pypi-cpu-wheel"


@pytest.mark.parametrize(
    "text",
    [
        LISTED_BY_TENSORFLOW,
        "ggml_cuda_init: found 2 CUDA devices:\n  Device 0: NVIDIA L4, compute capability 8.9, VMM: yes\n",
    ],
    ids=["TensorFlow", "llama.cpp"],
)
def test_a_program_that_lists_its_gpu_is_fine(text: str) -> None:
    assert not causes(text)
    assert read_texts([("log.txt", text.encode())]).devices


def test_a_prompt_right_after_an_expression_means_none() -> None:
    session = ">>> import torch\n>>> torch.version.cuda\n>>> torch.__version__\n'2.4.1'\n"
    environment = read_texts([("session.txt", session.encode())])
    assert environment.torch is not None
    assert environment.torch.build == "cpu"
    assert environment.torch.cuda_version is None
    assert str(environment.torch.version) == "2.4.1"


TF_DEVICES = (
    "Cannot assign a device for MatMul: '/device:GPU:0'; available devices: /job:localhost/replica:0/task:0/cpu:0"
)
NOT_GIVEN = (
    'docker run --rm --gpus all ubuntu nvidia-smi\nexec: "nvidia-smi": executable file not found in $PATH: unknown'
)
DLL = 'Error loading "onnxruntime_providers_cuda.dll" which depends on "cublasLt64_12.dll" which is missing.'
FLASH = "undefined symbol: _ZN3c104cuda9SetDeviceEi since I updated flash attention"


@pytest.mark.parametrize(
    ("text", "check", "remedy"),
    [
        (f"tensorflow 1.4\n{TF_DEVICES}", "tensorflow-no-gpu-build", "tensorflow"),
        (f"tensorflow-gpu 1.4\n{TF_DEVICES}", "runs-on-cpu", "tensorflow"),
        (NOT_GIVEN, "nvidia-container-toolkit-missing", "nvidia-ctk"),
        (
            "flash_attn_2_cuda.cpython-311-x86_64-linux-gnu.so: undefined symbol:",
            "extension-abi-mismatch",
            "flash-attn",
        ),
        (FLASH, "extension-abi-mismatch", "--no-deps flash-attn"),
        ("on our cluster:\n$ nvidia-smi\nbash: nvidia-smi: command not found", "driver-missing", "srun --gres"),
        (
            "in LXD: Failed to initialize NVML: Driver/library version mismatch",
            "driver-library-mismatch",
            "--no-kernel",
        ),
        (DLL, "cuda-libs-conflict", "nvidia-cublas-cu12"),
        ("With half precision enabled every output image is black", "fp16-nan", "bf16"),
        ("fp16=true gives me only black frames", "fp16-nan", "bf16"),
        ("When I switch to float16 the generated pictures come out completely black", "fp16-nan", "bf16"),
        ("Radeon RX 5700x. It is very slow, my graphics card is not being used at all", "runs-on-cpu", "directml"),
        (
            "GPU missing after a Windows update. I shut down the PC for it",
            "driver-missing",
            "driver",
        ),
    ],
)
def test_what_a_message_shows_leads_to_its_fix(text: str, check: str, remedy: str) -> None:
    finding = causes(text)[0]
    assert (finding.check_id, remedy in json.dumps(to_json(finding.remedies))) == (check, True)


def test_fp16_that_gives_pictures_is_no_fault() -> None:
    assert causes("With fp16 the images are not black any more, and my black cat looks good") == []


@pytest.mark.parametrize(
    "text",
    [
        "GPU is idle while the batch is prepared on the CPU. How can I increase the GPU utilization?",
        "the GPU is idle most of the time, waiting for data. Should I use more workers?",
    ],
)
def test_a_gpu_that_waits_for_data_is_used(text: str) -> None:
    assert causes(text) == []
