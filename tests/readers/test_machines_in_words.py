"""Machines described in words rather than shown: what the words say about the cause, and what passes."""

from __future__ import annotations

import pytest

from gpudoctor.engine.runner import run_checks
from gpudoctor.model import Finding
from gpudoctor.readers.report import read_texts
from tests.own_checks import own_checks

HOST = """+-----------------------------------------------------------------------------+
| NVIDIA-SMI 470.57.02    Driver Version: 470.57.02    CUDA Version: 11.4     |
|-------------------------------+----------------------+----------------------+
|   0  Tesla T4            Off  | 00000000:3B:00.0 Off |                    0 |
| N/A   41C    P8     9W /  70W |      0MiB / 15109MiB |      0%      Default |
+-------------------------------+----------------------+----------------------+
"""
FULL = HOST.replace("    0MiB /", "14000MiB /")
MODULE = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.54.03  Tue Jun  6 22:20:39 UTC 2023\n"
VLLM = "WARNING _custom_ops.py:15] Failed to import from vllm._C with ImportError('libcudart.so.12: cannot open shared "
REFUSED = "ValueError: Bfloat16 is only supported on GPUs with compute capability of at least 8.0. Your Tesla T4"


def first(text: str) -> Finding | None:
    """Return the first finding that is no advice."""
    findings = run_checks(own_checks(), read_texts([("report.txt", text.encode())])).findings
    return next((finding for finding in findings if finding.severity.name != "INFO"), None)


def remedies(finding: Finding | None) -> str:
    assert finding is not None
    return "\n".join(f"{remedy.summary} {' '.join(remedy.commands)}" for remedy in finding.remedies)


@pytest.mark.parametrize(
    ("text", "check", "remedy"),
    [
        pytest.param(
            "`nvidia-smi` could not talk to the driver on my server", "driver-not-loaded", "linux-headers", id="no talk"
        ),
        pytest.param(
            "After the update nvidia-smi stopped working. I enrolled a MOK key again.",
            "driver-not-loaded",
            "mokutil",
            id="Secure Boot",
        ),
        pytest.param(
            "The kernel was upgraded to 6.5 and nvidia-smi no longer finds any GPU",
            "driver-not-loaded",
            "dkms autoinstall",
            id="new kernel",
        ),
        pytest.param(
            MODULE + "ii  nvidia-smi   545.23.06-1  amd64  NVIDIA System Management Interface",
            "driver-library-mismatch",
            "reboot",
            id="packages newer than the module",
        ),
        pytest.param(
            "CUDAError InsufficientDriver: I have driver 560.35", "driver-too-old", "driver", id="CUDA Python"
        ),
        pytest.param(
            "RuntimeError: jax: The cuSOLVER library was not found.", "cuda-libs-conflict", "LD_LIBRARY_PATH", id="JAX"
        ),
        pytest.param("It ends with a CUDA out-of-memory error", "out-of-memory", "batch", id="hyphens"),
        pytest.param("my OOM problem: who holds the memory?\n" + FULL, "out-of-memory", "nvidia-smi", id="held"),
        pytest.param(
            "I have a NVIDIA GPU, and pip list shows torch installed with `+rocm6.1`",
            "rocm-build-on-nvidia",
            "cu1",
            id="ROCm wheels",
        ),
        pytest.param(
            "Windows 11, RTX 3070, torch 2.1.0 by pip: torch.version.cuda returns None",
            "torch-cpu-build",
            "cu1",
            id="no CUDA version",
        ),
        pytest.param(
            "xFormers can't load C++/CUDA extensions. xFormers was built for: PyTorch 2.2.0+cu121 with CUDA 1201 (you "
            "have 2.2.0+cpu)",
            "torch-cpu-build",
            "2.2.0+cu121",
            id="an extension for CUDA beside a CPU build",
        ),
        pytest.param(
            "docker run --gpus all nvidia/cuda:11.4.3-base nvidia-smi works here. In the notebook:\n"
            "/bin/bash: nvidia-smi: command not found\n",
            "container-without-gpu",
            "--gpus all",
            id="another container than the one that was tried",
        ),
        pytest.param(
            "docker run -it my/image:2 sh: there nvidia-smi is not found. On the host:\n" + HOST,
            "container-without-gpu",
            "--gpus all",
            id="nvidia-smi is not found in it",
        ),
        pytest.param(
            "podman run --rm --gpus all ubuntu nvidia-smi\n"
            "Error: crun: executable file `nvidia-smi` not found in $PATH: No such file or directory",
            "container-without-gpu",
            "--device nvidia.com/gpu=all",
            id="an old Podman takes --gpus and does nothing",
        ),
        pytest.param(
            "nvidia-smi does not work in docker, and torch.cuda.is_available() is False there",
            "container-without-gpu",
            "--gpus all",
            id="nvidia-smi does not work in it",
        ),
        pytest.param(
            "docker run -it my/image:2\nERROR: nvidia-smi not found!! leaving",
            "container-without-gpu",
            "--gpus all",
            id="a start script looks for nvidia-smi",
        ),
        pytest.param("With fp16 on the V100 I see **NaN** losses from the start", "fp16-nan", "float32", id="NaN"),
        pytest.param(
            "CUDA error 802 on the H100 nodes: the image lacks nvidia-fabricmanager",
            "fabric-manager-not-running",
            "systemctl",
            id="no fabric manager",
        ),
        pytest.param(
            "/Library/Frameworks/Python.framework/Versions/3.10/bin/pip install torch==2.4.0\n"
            "ERROR: Could not find a version that satisfies the requirement torch==2.4.0 (from versions: 2.1.2, 2.2.2)",
            "python-version-no-wheel",
            "torch==2.2.2",
            id="a Mac with an Intel processor",
        ),
        pytest.param(
            f"Failed to import from vllm._C with ModuleNotFoundError(\"No module named 'vllm._C'\")\n{REFUSED}",
            "bf16-unsupported",
            "float16",
            id="only a warning about a part",
        ),
        pytest.param(
            "Found no NVIDIA driver on your system. That is my kubernetes deployment.",
            "container-without-gpu",
            "nvidia.com/gpu",
            id="a deployment of Kubernetes",
        ),
        pytest.param(
            "In WSL2: sudo apt install nvidia-driver-550. Now nvidia-smi crashes.",
            "wsl-driver-problem",
            "purge",
            id="a Linux driver in WSL",
        ),
        pytest.param(
            "NVIDIA GeForce RTX 5060 with CUDA capability sm_120 is not compatible",
            "torch-no-kernel-for-device",
            "cu12",
            id="a warning that is cut off",
        ),
        pytest.param("cuInit returns 802 on my HGX", "fabric-manager-not-running", "systemctl", id="802"),
        pytest.param(
            VLLM + f"object file')\n{REFUSED} GPU", "bf16-unsupported", "float16", id="only a warning of vLLM"
        ),
        pytest.param(VLLM + "object file')", "cuda-libs-conflict", "cudart", id="the warning of vLLM alone"),
    ],
)
def test_the_cause_and_what_helps(text: str, check: str, remedy: str) -> None:
    finding = first(text)
    assert finding is not None
    assert finding.check_id == check
    assert remedy in remedies(finding)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(HOST + "The kernel was upgraded last week.", id="a new kernel"),
        pytest.param(HOST + "Secure Boot is disabled. I ran mokutil --sb-state.", id="Secure Boot"),
        pytest.param(HOST + "Nothing here; on my Radeon torch.version.cuda is None with ROCm 6.1", id="ROCm"),
        pytest.param(HOST + "This guide is about OOM handling", id="out of memory as a subject"),
    ],
)
def test_passes(text: str) -> None:
    assert first(text) is None
