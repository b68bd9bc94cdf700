"""Causes that people tell in their own words, or that a message tells only together with what stands beside it."""

from __future__ import annotations

import pytest

from gpudoctor.engine.runner import run_checks
from gpudoctor.model import Finding, Report
from gpudoctor.readers.report import read_texts
from tests.own_checks import own_checks

NVRTC = "RuntimeError: nvrtc: error: invalid value for --gpu-architecture (-arch)\n"
NO_DRIVER = "RuntimeError: Found no NVIDIA driver on your system.\n"


def diagnosed(*texts: str) -> Report:
    named = [(f"report-{number}.txt", text.encode()) for number, text in enumerate(texts)]
    return run_checks(own_checks(), read_texts(named))


def first(*texts: str) -> Finding | None:
    """Return the first finding that is no advice."""
    return next((finding for finding in diagnosed(*texts).findings if finding.severity.name != "INFO"), None)


def remedies(finding: Finding | None) -> str:
    assert finding is not None
    return "\n".join(f"{remedy.summary} {' '.join(remedy.commands)}" for remedy in finding.remedies)


@pytest.mark.parametrize(
    ("text", "check"),
    [
        pytest.param(NVRTC + "torch 1.9.1+cu111 on a RTX 4080", "torch-no-kernel-for-device", id="NVRTC of PyTorch"),
        pytest.param(NVRTC + "import cupy\nGPU: RTX 5070", "cupy-arch-unsupported", id="NVRTC of CuPy"),
        pytest.param("Value 'sm_120' is not defined for option 'gpu-name'", "torch-no-kernel-for-device", id="ptxas"),
        pytest.param("At boot: NVIDIA kernel module not found, nouveau is taken", "driver-not-loaded", id="no module"),
        pytest.param(
            "Two cards answer nonsense. With NCCL_P2P_DISABLE=1 the server works.", "nccl-p2p-problem", id="without P2P"
        ),
        pytest.param(NO_DRIVER + "I don't have NVIDIA, what now?", "no-nvidia-gpu", id="none of NVIDIA"),
        pytest.param(
            "AssertionError: Torch not compiled with CUDA enabled. I dont have a GPU.", "no-nvidia-gpu", id="none"
        ),
        pytest.param(NO_DRIVER + "I'm using AMD Radeon here", "cuda-build-on-amd", id="AMD without a product's name"),
        pytest.param(NO_DRIVER + "my card is gfx1100", "cuda-build-on-amd", id="AMD by its gfx target"),
        pytest.param(
            "SystemError: Please update your GPU driver to support cu128\nI have an AMD RX 7800 XT",
            "cuda-build-on-amd",
            id="a program that asks for a driver",
        ),
        pytest.param(
            "GPU: NVIDIA RTX 3060\nThe installer downloaded the ROCm build of torch",
            "rocm-build-on-nvidia",
            id="ROCm told",
        ),
        pytest.param(NO_DRIVER + "OS: macOS 10.12, built from source with CUDA 8", "no-nvidia-gpu", id="CUDA on a Mac"),
        pytest.param(
            "spacy.require_gpu()\nValueError: GPU is not accessible. Was the library installed correctly?",
            "cupy-missing",
            id="spaCy",
        ),
        pytest.param(
            "AttributeError: module 'cupy' has no attribute 'array'\nI have both cupy and cupy-cuda11x.",
            "cupy-multiple-packages",
            id="two CuPys",
        ),
        pytest.param(
            "TypeError: Alias 'float_' was removed in NumPy 2.0.\nfrom cupy code", "cupy-numpy-incompatible", id="alias"
        ),
        pytest.param(
            "CuPy is not correctly installed. make sure that the version of CuPy you installed matches with the "
            "version of CUDA on your host.",
            "cupy-wrong-cuda-package",
            id="CuPy doubts its CUDA",
        ),
        pytest.param("The card overheats and slows down after ten minutes", "gpu-throttled", id="heat"),
        pytest.param("Under load the clock drops to 300 MHz", "gpu-throttled", id="clock"),
        pytest.param("it is capped at 90 W instead of 250 W", "gpu-throttled", id="power"),
        pytest.param("After my notebook woke up: CUDA error: unknown error", "cuda-init-unknown-error-999", id="sleep"),
        pytest.param("The logits are NaN with fp16 and right in float32", "fp16-nan", id="NaN"),
        pytest.param(
            "On my A100 matmul in float32 does not give the right results, numpy does",
            "tf32-precision-surprise",
            id="TF32",
        ),
        pytest.param(
            "error 4090 float32 2e-4, 1080 float32 1e-7, matmul", "tf32-precision-surprise", id="TF32 by numbers"
        ),
        pytest.param("Distributed training hangs on 2 x A100", "nccl-p2p-problem", id="a job that hangs"),
        pytest.param(
            "P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)\n D\\D 0 1\n 0 800.10 1.20\n 1 1.30 800.00",
            "nccl-p2p-problem",
            id="slow transfers",
        ),
        pytest.param(
            "torch.cuda.is_available() in the terminal is True, in the notebook it is False",
            "wrong-python-environment",
            id="another program sees the GPU",
        ),
        pytest.param(
            "sys.executable is /opt/a/bin/python in the shell and /usr/bin/python3 in Jupyter",
            "wrong-python-environment",
            id="two interpreters",
        ),
        pytest.param(
            "NameError: name 'bare_metal_version' is not defined", "toolkit-mismatch-building-extension", id="nvcc"
        ),
        pytest.param(
            "import torchaudio\nOSError: libtorch_hip.so: cannot open shared object file",
            "torchvision-mismatch",
            id="vendor",
        ),
        pytest.param(
            "WSL, Debian, nix-shell: torch.cuda.is_available() is False", "wsl-driver-problem", id="a program of Nix"
        ),
    ],
)
def test_cause(text: str, check: str) -> None:
    finding = first(text)
    assert finding is not None
    assert finding.check_id == check


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            "CUDA error: unspecified launch failure after resuming training from step 900", id="resumed training"
        ),
        pytest.param("temperature=0.7 runs slower than temperature=0", id="temperature of sampling"),
        pytest.param("Clocks are locked at 1410 MHz on purpose", id="clocks set by hand"),
        pytest.param(
            "P2P=Enabled Bandwidth Matrix (GB/s)\n D\\D 0 1\n 0 800.10 24.9\n 1 24.8 800.00", id="fast transfers"
        ),
        pytest.param("sys.executable is /usr/bin/python3 here and /usr/bin/python3 there", id="one interpreter"),
        pytest.param("If you don't have an NVIDIA card, use the CPU", id="advice"),
    ],
)
def test_no_cause(text: str) -> None:
    assert first(f"Python 3.11\n{text}") is None


def test_an_old_nvrtc_is_no_reason_to_keep_the_release() -> None:
    finding = first(NVRTC + "torch 1.9.1+cu111 on a RTX 4080")
    assert finding is not None
    assert finding.summary.startswith("The NVRTC of PyTorch 1.9.1+cu111 does not compile for")
    assert "CUDA 11.8 or newer" in finding.summary
    assert "torch==1.9" not in remedies(finding)


def test_an_extension_without_code_is_compiled_for_the_card() -> None:
    finding = first(
        "torch 1.8.1\nmy_ext: RuntimeError: CUDA error: no kernel image is available for execution on the device"
    )
    assert "TORCH_CUDA_ARCH_LIST" in remedies(finding)


def test_a_list_of_versions_is_read_to_its_end() -> None:
    old = ", ".join(
        f"1.{minor}.{patch}+cu{variant}" for minor in (4, 5, 6) for patch in (0, 1) for variant in (92, 101)
    )
    finding = first(
        "Windows 10, Python 3.8\nERROR: Could not find a version that satisfies the requirement torch==1.8.1+cu102 "
        f"(from versions: 0.1.2, {old}, 1.7.1, 1.8.1, 1.8.1+cpu, 1.8.1+cu101, 1.8.1+cu111)\n"
        "ERROR: No matching distribution found for torch==1.8.1+cu102\n"
        "pip install torch==1.8.1+cu102 -f https://download.pytorch.org/whl/torch_stable.html"
    )
    assert finding is not None
    assert finding.check_id == "wheel-index-wrong"
    assert "torch==1.8.1+cu111" in remedies(finding)
    assert "torch==1.8.1+cu102" not in remedies(finding)


def test_a_cpu_build_from_another_index() -> None:
    index = "pip install torch --index-url https://download.pytorch.org/whl/cu128\n"
    assert "PIP_EXTRA_INDEX_URL" in remedies(first(index + ">>> torch.__version__\n'2.9.0+cpu'\n"))


def test_a_cpu_build_in_place_of_rocm() -> None:
    finding = first(
        "pip install torch --extra-index-url https://download.pytorch.org/whl/rocm9.9\n"
        "That installed a plain CPU torch, torch.cuda.is_available() is False. GPU: RX 6800"
    )
    assert finding is not None
    assert (finding.check_id, "rocm9.9" in finding.summary) == ("torch-cpu-build", True)


def test_mig_without_its_instances_shown() -> None:
    table = """| NVIDIA-SMI 550.54.15    Driver Version: 550.54.15    CUDA Version: 12.4     |
|-------------------------------+----------------------+----------------------+
|   0  NVIDIA H100 80GB HBM3 On | 00000000:1B:00.0 Off |                   On |
| N/A   30C    P0    70W / 700W |      5MiB / 81559MiB |     N/A      Default |
|                               |                      |              Enabled |
"""
    finding = first(table, "RuntimeError: No CUDA GPUs are available")
    assert finding is not None
    assert finding.check_id == "mig-misconfigured"


def test_a_log_of_compose_is_that_of_a_container() -> None:
    log = "my-app-1  | loading\nmy-app-1  | RuntimeError: No CUDA GPUs are available\nmy-app-1 exited with code 1\n"
    host = "| NVIDIA-SMI 570.86.10    Driver Version: 570.86.10    CUDA Version: 12.8     |\n"
    finding = first(log, host)
    assert finding is not None
    assert finding.check_id == "container-without-gpu"


def test_a_variable_comes_before_the_environment() -> None:
    finding = first(
        "torch 2.1.0+cu118, RTX 3080. torch.cuda.is_available() in the console is True, in my script False.\n"
        "os.environ['CUDA_VISIBLE_DEVICES'] = '-1'\n"
    )
    assert finding is not None
    assert finding.check_id == "cuda-visible-devices-hides-gpu"


def test_what_ollama_lists_is_a_gpu_that_works() -> None:
    report = diagnosed(
        'msg="inference compute" id=GPU-1 library=cuda variant=v12 compute=8.9 driver=12.4 name="NVIDIA L4" total="9"'
    )
    assert [finding for finding in report.findings if finding.severity.name != "INFO"] == []
    assert any("NVIDIA L4" in finding.summary for finding in report.findings)


@pytest.mark.parametrize(
    "text",
    [
        "RuntimeError: mat1 and mat2 shapes cannot be multiplied (4x10 and 12x3)",
        "Error(s) in loading state_dict for UNet: size mismatch for conv.weight",
        "ValueError: Transformers does not recognize this architecture.",
    ],
)
def test_a_fault_of_the_program_is_advice(text: str) -> None:
    assert [finding.severity.name for finding in diagnosed(text).findings] == ["INFO"]


def test_a_sensor_that_cannot_be_read() -> None:
    finding = first(
        "|   0  Tesla P100-PCIE...  On   | 00000000:03:00.0 Off |  0 |\n"
        "| N/A   40C    P0   ERR! / 250W |  10MiB / 16280MiB |"
    )
    assert finding is not None
    assert (finding.check_id, finding.severity.name) == ("gpu-hardware-xid-ecc", "WARNING")
