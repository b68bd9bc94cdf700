"""Programs that say why they use no GPU, each in its own words: what is found in them, and what passes beside it."""

import pytest

from gpudoctor.engine.runner import run_checks
from gpudoctor.model import Finding
from gpudoctor.readers.report import read_texts
from tests.causes import causes_of
from tests.own_checks import own_checks

BUILD = "FROM nvidia/cuda:12.4.1-devel-ubuntu22.04\nRUN nvidia-smi\n$ docker build -t own .\n"
SCRIPT = "#!/bin/bash\n#SBATCH --time=02:00:00\n#SBATCH --cpus-per-task=4\n{line}python train.py\n"
REPLACED = """Installing collected packages: torch
    Found existing installation: torch 2.6.0+cu124
    Uninstalling torch-2.6.0+cu124:
Successfully installed helper-1.2 torch-2.7.1{local}
"""
COMPOSE = "services:\n  llm:\n    image: vllm/vllm-openai:v0.8.5\n    ports:\n      - 8000:8000\n{rest}"
RESERVED = "    deploy: {resources: {reservations: {devices: [{driver: nvidia, count: 1, capabilities: [gpu]}]}}}\n"


def findings(text: str) -> list[Finding]:
    """Return the causes, the root cause first."""
    report = run_checks(own_checks(), read_texts([("report.txt", text.encode())]))
    return causes_of(report)


@pytest.mark.parametrize(
    ("text", "check", "remedy"),
    [
        ("INFO | config | No supported Nvidia card found\nI own a 3070", "runs-on-cpu", "torch.version.cuda"),
        ("[Fatal] CUDA Tree Learner was not enabled in this build.", "runs-on-cpu", "cmake.define.USE_CUDA=ON"),
        ("please recompile with CMake option -DUSE_CUDAP=1", "runs-on-cpu", "cmake.define.USE_CUDA=ON"),
        ("storage.cc:40: Compile with USE_CUDA=1 to enable GPU usage", "runs-on-cpu", "mxnet-cu112"),
        ("DGLError: Check failed: allow_missing: Device API cuda is not enabled.", "runs-on-cpu", "data.dgl.ai"),
        ("OpenEncodeSessionEx failed: unsupported device (2): (no details)", "program-error", "libx264"),
        ("RuntimeError: Failed to infer device type", "runs-on-cpu", "VLLM_LOGGING_LEVEL=DEBUG"),
        ("No module named 'torch' in jupyter, in the terminal the import works", "torch-not-installed", "kernel"),
        (
            "5060 Ti: sm_120 is not compatible with the current PyTorch install",
            "torch-no-kernel-for-device",
            "whl/cu13",
        ),
        ("CUDA_VISIBLE_DEVICES=4 is set, is_available() False, 2x 3090", "cuda-visible-devices-hides-gpu", "unset"),
        ("fp16=True: the loss is 0.0 and then nan from step 1, fp32 is ok", "fp16-nan", "bf16"),
        ("onnxruntime: Cuda provider is not showing up, Tesla T4", "runs-on-cpu", "install onnxruntime-gpu"),
        ("You are using GPU version Paddle, but your CUDA device is not set properly.", "runs-on-cpu", "paddle"),
        ("thinc/util.py, in require_gpu\nValueError: No GPU devices detected", "cupy-missing", "cupy-cuda12x"),
        ("RuntimeError: soft_nms is not compiled with GPU support", "extension-abi-mismatch", "mim install mmcv"),
        ("roi_align_impl: implementation for device cuda:0 not found", "extension-abi-mismatch", "mim install mmcv"),
        ("RuntimeError: Not compiled with GPU support (ROIAlign_forward at", "extension-abi-mismatch", "detectron2"),
        (BUILD + "/bin/sh: nvidia-smi: not found\nERROR [2/2] RUN nvidia-smi", "container-without-gpu", "docker build"),
        ("nvidia-smi is missing while building the image with docker", "container-without-gpu", "docker build"),
        (SCRIPT.format(line="") + "RuntimeError: No CUDA GPUs are available", "no-nvidia-gpu", "srun --gres"),
        ("cuda.is_available() is False in my slurm job, I did not set --gres", "no-nvidia-gpu", "srun --gres"),
        ("pip on Windows 11\n" + REPLACED.format(local=""), "windows-pypi-cpu-wheel", "whl/cu"),
        ("pip on Ubuntu\n" + REPLACED.format(local="+cpu"), "torch-cpu-build", "whl/cu"),
        ("this requirement reinstalls torch without CUDA every time", "torch-cpu-build", "whl/cu"),
        (COMPOSE.format(rest="RuntimeError: Failed to infer device type"), "container-without-gpu", "--gpus"),
        ("The model needs more VRAM than my GTX 1650 has", "out-of-memory", "nvidia-smi"),
        ("not enough video memory on the RTX 3050 for one picture", "out-of-memory", "nvidia-smi"),
        ("The program doesn't seem to put any load on my GPU, an RTX 3080", "runs-on-cpu", "torch.version.cuda"),
        ("docker compose has no deploy block, so the container cannot see my GPU", "container-without-gpu", "--gpus"),
        ("compose: what do I add so that it uses the GPU? docker run works", "container-without-gpu", "compose up"),
        ("pods cannot start: Found no NVIDIA driver on your system", "container-without-gpu", "nvidia.com/gpu"),
        ("RX 7600, I installed the CUDA version of it, only the CPU works", "cuda-build-on-amd", "rocm"),
        ("is_available() is False; lsmod: nouveau 2306048 4", "driver-not-loaded", "nouveau"),
        ("is_available() is False. nvidia: disagrees about version of symbol foo", "driver-not-loaded", "dkms"),
        ("torch.cuda.is_available() False after suspend", "cuda-init-unknown-error-999", "nvidia_uvm"),
        ("Standard_D4s_v3: torch.cuda.is_available() False", "no-nvidia-gpu", "GPU"),
        ("ml.m5.xlarge: RuntimeError: No CUDA GPUs are available", "no-nvidia-gpu", "GPU"),
        ("triton: 0 active drivers ([]). There should only be one.", "torch-cpu-build", "whl/cu"),
        ("[get_accelerator] Setting accelerator to CPU.", "runs-on-cpu", "torch.version.cuda"),
        ("xgboost: Invalid Input: 'gpu_hist', valid values are", "runs-on-cpu", "xgboost"),
        ("cublas64_12.dll cannot be found, Windows 11", "cuda-libs-conflict", "cublas"),
        ("it replaces my torch with the cpu torch, pip does", "torch-cpu-build", "whl/cu"),
    ],
)
def test_the_cause_in_the_words_of_a_program(text: str, check: str, remedy: str) -> None:
    finding = findings(text)[0]
    shown = [line for fix in finding.remedies for line in (*fix.commands, fix.summary)]
    assert (finding.check_id, remedy in "\n".join(shown)) == (check, True)


@pytest.mark.parametrize(
    ("text", "check"),
    [
        pytest.param("XGBoost was compiled with GPU support", "runs-on-cpu", id="a build with support"),
        pytest.param("onnxruntime has only CUDAExecutionProvider listed", "runs-on-cpu", id="the provider is there"),
        pytest.param("No GPU devices detected", "cupy-missing", id="no word of spaCy"),
        pytest.param("cmake: nms was compiled with GPU support", "extension-abi-mismatch", id="operators for GPUs"),
        pytest.param(
            SCRIPT.format(line="#SBATCH --gres=gpu:1\n") + "RuntimeError: no GPU seen by the program",
            "no-nvidia-gpu",
            id="a script that asks for a GPU",
        ),
        pytest.param(BUILD + "docker run --gpus all own works", "container-without-gpu", id="a build that passes"),
        pytest.param("pip on Ubuntu\n" + REPLACED.format(local=""), "torch-cpu-build", id="the wheel for Linux"),
        pytest.param("Windows\n" + REPLACED.format(local="+cu126"), "torch-cpu-build", id="another CUDA build"),
        pytest.param(
            COMPOSE.format(rest=RESERVED) + "RuntimeError: Failed to infer device type",
            "container-without-gpu",
            id="a GPU is reserved",
        ),
        pytest.param("It works with docker run and with compose, the GPU is used", "container-without-gpu", id="prose"),
        pytest.param("docker run with --gpus all works on the GPU", "container-without-gpu", id="docker run with"),
        pytest.param("RTX 3060 and the CUDA version of it: all on the CPU", "cuda-build-on-amd", id="a GPU of NVIDIA"),
        pytest.param("is_available() is False; nouveau is blacklisted", "driver-not-loaded", id="no nouveau"),
        pytest.param("g5.xlarge, nvidia-smi fails", "no-nvidia-gpu", id="an instance with a GPU"),
        pytest.param("Batch 8 needs more VRAM than batch 4 on my RTX 3090, but it fits", "out-of-memory", id="it fits"),
        pytest.param("No GPU is used while building the image, by design", "container-without-gpu", id="on purpose"),
        pytest.param("I replaced the CPU build of torch, and now CUDA works", "torch-cpu-build", id="it is replaced"),
        pytest.param("The server has not enough memory on the disk", "out-of-memory", id="no memory of a GPU"),
    ],
)
def test_words_next_to_it_pass(text: str, check: str) -> None:
    assert check not in [finding.check_id for finding in findings(text)]
