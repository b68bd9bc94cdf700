"""What the words of people suggest where no message and no fact decides."""

from __future__ import annotations

import functools
import json
import re
from typing import Any

import pytest

from gpudoctor.conclusions import Facts
from gpudoctor.conclusions.inferred import with_inferred
from gpudoctor.data.tables import load_table
from gpudoctor.engine.runner import run_checks
from gpudoctor.model import Fix, Report, Resemblance, Severity, Symptom
from gpudoctor.readers.report import read_texts
from gpudoctor.remedies.fixes import remedies_of
from gpudoctor.symptoms.matching import MOST_WORDS, recognise
from gpudoctor.symptoms.tables import FailureMessage, failure_messages
from gpudoctor.triage.likely_cause import (
    CERTAIN,
    GUESSED,
    LEAST_SHARE,
    LEAST_WORDS,
    NOT_SHOWN,
    UNCERTAIN,
    by_words,
    complains,
    guess_of,
    least_named,
    likeliest,
    probable,
    uses_gpu,
)
from tests.causes import causes_of
from tests.own_checks import own_checks

CHECKS = own_checks()
GUESSES = [pytest.param(row, id=row.id) for row in failure_messages() if row.guess]
MACHINES = ("Windows 11, RTX 4090", "Ubuntu 22.04, in docker", "a Kubernetes pod", "WSL2", "macOS")


def diagnosed(text: str, ignored: dict[str, str] | None = None) -> Report:
    return run_checks(CHECKS, read_texts([("report.txt", text.encode())]), ignored)


@functools.cache
def facts_of(machine: str) -> Facts:
    return Facts(with_inferred(read_texts([("report.txt", machine.encode())])))


def first_of(report: Report) -> str:
    return next((finding.check_id for finding in causes_of(report)), "")


@pytest.mark.parametrize(
    ("text", "accepted"),
    [
        (
            "my jellyfin in podman can't see the quadro p2200, on the host it's fine",
            ("container-without-gpu", "nvidia-container-toolkit-missing"),
        ),
        (
            "inside compose the 4070 is not detected, outside docker all ok",
            ("container-without-gpu", "nvidia-container-toolkit-missing"),
        ),
        ("GPU isnt available in my devcontainer", ("container-without-gpu", "nvidia-container-toolkit-missing")),
        ("docker 里面检测不到显卡", ("container-without-gpu", "nvidia-container-toolkit-missing")),
        ("after todays kernel upgrade on debian the nvidia driver wont load anymore", ("driver-not-loaded",)),
        (
            "Manjaro update -> nvidia module missing, lsmod shows nothing. nvidia driver not loading",
            ("driver-not-loaded",),
        ),
        ("secure boot is enabled and my driver doesnt load, 3060 laptop", ("driver-not-loaded",)),
        (
            "Rebooted the server yesterday, since then drivers are not working, dkms status is empty. Tesla T4",
            ("driver-missing", "driver-not-loaded"),
        ),
        ("nvidia-smi can't talk to the driver since ubuntu installed a new kernel", ("driver-not-loaded",)),
        (
            "whenever my thinkpad wakes up from sleep pytorch says no gpu, only a reboot helps",
            ("cuda-init-unknown-error-999",),
        ),
        ("cuda is broken after resume, Fedora 41, RTX 4060", ("cuda-init-unknown-error-999",)),
        (
            "if i leave the workstation overnight cuda is not available in the morning until restart",
            ("container-nvml-lost", "cuda-init-unknown-error-999"),
        ),
        ("closing the lid and opening again makes torch not detect the gpu", ("cuda-init-unknown-error-999",)),
        (
            "GPU lost after hibernation, torch.cuda.is_available() False, restart fixes it",
            ("cuda-init-unknown-error-999",),
        ),
        ("just got a 5070 ti and nothing works, says not supported by pytorch", ("torch-no-kernel-for-device",)),
        ("Does this repo support Blackwell? it fails, incompatible with my 5080", ("torch-no-kernel-for-device",)),
        ("sm_120 unsupported, RTX PRO 6000, how to install?", ("torch-no-kernel-for-device",)),
        ("你好 5090 不支持 吗 运行报错", ("torch-no-kernel-for-device",)),
        ("RTX 50 series incompatibility with bundled torch", ("torch-no-kernel-for-device",)),
        ("pytorch dropped support for my gtx 1080?", ("compute-capability-unsupported", "torch-no-kernel-for-device")),
        (
            "Tesla M40 not supported anymore, which version should I use",
            ("compute-capability-unsupported", "torch-no-kernel-for-device"),
        ),
        ("Quadro K620 too old for torch 2?", ("compute-capability-unsupported", "torch-no-kernel-for-device")),
        (
            "my card is a GeForce 940MX and it says the gpu is no longer supported",
            ("compute-capability-unsupported", "torch-no-kernel-for-device"),
        ),
        (
            "compute capability 3.5 unsupported in the new wheels",
            ("compute-capability-unsupported", "torch-no-kernel-for-device"),
        ),
        ("my PC instantly reboots when I start training on the 4090", ("gpu-hardware-xid-ecc",)),
        ("whole system freezes and crashes hard as soon as the GPU is under load", ("gpu-hardware-xid-ecc",)),
        ("computer shuts down after a few minutes of rendering, 3080 Ti, 750 W PSU", ("gpu-hardware-xid-ecc",)),
        ("Workstation suddenly powers off during inference", ("gpu-hardware-xid-ecc",)),
        ("hard crash + reboot of the desktop when I use cuda", ("gpu-hardware-xid-ecc",)),
        ("dataloader workers crash, I guess shared memory is too small? running in docker", ("shm-too-small",)),
        ("bus error, shm full in my pod", ("shm-too-small",)),
        ("How to increase shared memory for the dataloader in kubernetes", ("shm-too-small",)),
        ("num_workers=8 runs out of shared memory", ("shm-too-small",)),
        ("container shm limit error with nccl", ("shm-too-small",)),
        ("gpu memory is not released after I kill the script", ("gpu-memory-held-by-others", "out-of-memory")),
        ("zombie python process keeps holding vram", ("gpu-memory-held-by-others", "out-of-memory")),
        ("after ctrl-c the memory of the GPU is still occupied", ("gpu-memory-held-by-others", "out-of-memory")),
        ("training gives OOM on my 8gb card", ("out-of-memory",)),
        ("I always get an out of memory error when loading the model on the GPU", ("out-of-memory",)),
        ("I only have an intel iris xe graphics card, can I run this?", ("no-nvidia-gpu",)),
        ("my laptop has integrated graphics only, error about cuda", ("no-nvidia-gpu",)),
        ("I don't have an nvidia gpu, how to run", ("no-nvidia-gpu",)),
        ("My graphics card is not nvidia, cuda error", ("cuda-build-on-amd", "no-nvidia-gpu")),
        ("there is no CUDA-capable GPU in this box, what now", ("no-nvidia-gpu",)),
        ("mi tarjeta gráfica es Intel UHD, ¿se puede ejecutar?", ("no-nvidia-gpu",)),
        ("an AMD card instead of nvidia is what I have here, CUDA fails", ("no-nvidia-gpu",)),
        (
            "YOLO in a docker container: the dataloader gives up with No space left on device, the disk is empty",
            ("shm-too-small",),
        ),
        (
            (
                'ollama in docker computes on the CPU. Conflict. The container name "/ollama" is already in use by '
                'container "5be0", when I add --gpus=all. How do I use my graphics card?'
            ),
            ("container-without-gpu",),
        ),
        ("M1 Mac, ComfyUI works but it is in CPU mode and far too slow", ("runs-on-cpu", "mps-issues")),
        ("pip only ever gives me the thing for CPU, RTX 4060 Ti", ("torch-cpu-build",)),
        ("J'ai une RTX 3060 mais c'est la version CPU de torch qui a été prise", ("torch-cpu-build",)),
        ("Entrenando con TensorFlow el PC se apaga de golpe, GTX 980 Ti", ("gpu-hardware-xid-ecc",)),
        ("The device plugin marks a GPU of the node as unhealthy, why?", ("gpu-hardware-xid-ecc",)),
        ("混元视频 fp16 跑完 mp4 从头到尾全是黑的", ("fp16-nan",)),
        ("Panel Cleaner keeps cleaning the pages on cpu, cuda is never taken", ("runs-on-cpu", "torch-cpu-build")),
        ("CUDA nicht verfügbar, es rechnet die Segmentierung auf der CPU, Nvidia GT 730", ("runs-on-cpu",)),
        ("训练结束后进程没了, 显存却一直不放, 变成了僵尸进程", ("out-of-memory", "gpu-memory-held-by-others")),
        ("yolov5 training is much slower than it should be on my GTX 1660 Ti", ("amp-unsupported",)),
        ("cudaMemcpyPeer gives zeros and the journal fills with IO_PAGE_FAULT", ("nccl-p2p-problem",)),
        ("Laptop with an RTX 4060, Windows. torch says is_available is False", ("torch-cpu-build",)),
        ("InvokeAI auf einem Mac: mit SDXL bekomme ich jedes Mal ein völlig schwarzes Bild", ("fp16-nan",)),
        (
            "Which tensorflow-gpu goes with CUDA 12.1 on Windows? The table ends much earlier",
            ("tensorflow-no-gpu-build",),
        ),
        (
            "inside the docker image the build stops: No CUDA runtime is found, using CUDA_HOME='/usr/local/cuda'",
            ("container-without-gpu",),
        ),
        (
            "NixOS: in Julia I get No system CUDA driver found, other programs use the card",
            ("libcuda-not-on-linker-path",),
        ),
        ("Con dos RTX A6000 y nproc_per_node=2 se queda parado para siempre", ("nccl-p2p-problem",)),
        ("Bei zwei Karten bleibt torchrun hängen, mit einer geht es", ("nccl-p2p-problem",)),
        ("整合包全在用 CPU, 显卡 2070 SUPER", ("runs-on-cpu", "torch-cpu-build")),
        ("RX 580 8 GB, but ollama goes on with the processor", ("rocm-unsupported-gfx",)),
        ("ddp on 2 cards gets stuck in the first step, one card is fine", ("nccl-p2p-problem",)),
        ("Training on four GPUs makes no progress, all at 100 %", ("nccl-p2p-problem",)),
        ("It stops after 'rank 3 ready' and nothing happens, 8 A100 GPUs", ("nccl-p2p-problem",)),
        ("zwei GPUs: das Training hängt, 2 GPUs", ("nccl-p2p-problem",)),
        ("fsdp run stucks with three GPUs", ("nccl-p2p-problem",)),
        ("windows crashes and then reboots whenever the 3090 is under load", ("gpu-hardware-xid-ecc",)),
        ("the server panics as soon as an epoch begins", ("gpu-hardware-xid-ecc",)),
        ("restarting the instance leaves it without the nvidia driver", ("driver-not-loaded",)),
        *(
            (text, ("torch-cpu-build",))
            for text in (
                "Jetson Orin Nano, pip install torch went fine but cuda is not available",
                "torch on my xavier NX with JetPack 5 says no CUDA",
                "JetPack 6.0: is_available() gives False with the torch of pip",
                "ultralytics finds CUDA unavailable on the Jetson, cuda: not available",
                "L4T R36, pytorch was installed and doesn't detect the GPU",
            )
        ),
        *(
            (text, ("nvidia-container-toolkit-missing",))
            for text in (
                "my k3s deployment of whisper doesn't find the GPU, on the node itself it works",
                "Pods on our kubernetes do not see the RTX 4000",
                "rke2: the GPU isn't detected by the inference service",
                "k8s, video card not visible to the jobs",
                "The pod can't access the GPU of its node",
                "I pass --gpus all and the 3080 is still not found",
                "compose file has capabilities: [gpu], yet the GPU doesn't work",
                "with runtime: nvidia set, the graphics card isn't recognised",
                "started with --runtime=nvidia; the GPU is invisible",
                "capabilities: [gpu] is there but the T4 can not be seen",
            )
        ),
        *(
            (text, ("tensorflow-no-gpu-build",))
            for text in (
                "I cannot find tensorflow-gpu for python 3.11",
                "there is no version of tensorflow-gpu for CUDA 12",
                "tensorflow-gpu is not available any more?",
                "couldn't install tensorflow-gpu",
                "no matching tensorflow_gpu for my laptop",
            )
        ),
        *(
            (text, ("rocm-unsupported-gfx",))
            for text in (
                "6700 XT, ROCm 6, segfault as soon as a tensor goes to the card",
                "RX 6600 does not work with rocm",
                "HIP crashes on my RX 5700 XT",
                "Using ROCm on gfx1031: core dumped",
                "rocm with an RX 6750 XT: the first kernel hangs",
            )
        ),
        *(
            (text, ("torch-cpu-build",))
            for text in (
                "I can't run it on cuda, please help",
                "cuda isn't detected by the upscaler, RTX 3060",
                "Why does the app say CUDA unavailable?",
                "CUDA is installed but never used by this tool",
                "cuda was not found after the setup",
            )
        ),
        *(
            (text, ("runs-on-cpu",))
            for text in (
                "the application doesn't see my graphics card",
                "My RTX 4060 is not recognized by the converter",
                "GPU undetected after installing version 2",
                "It cannot find the GPU of my PC",
                "программа не видит видеокарту",
            )
        ),
        *(
            (text, ("cuda-libs-conflict",))
            for text in (
                "After exporting LD_LIBRARY_PATH=/opt/conda/lib nvidia-smi no longer works",
                "torch stopped seeing the GPU since I added my own folder to LD_LIBRARY_PATH",
                "if I unset LD_LIBRARY_PATH the gpu is found, otherwise jax fails",
            )
        ),
        *(
            (text, ("driver-too-old",))
            for text in (
                "win7 with a 1060, the app fails with a cuda error",
                "On Windows 8.1 my GTX 1650 is not detected by Topaz",
                "Windows 7 64 bit, GTX 970: no CUDA device found",
                "vLLM tells me my drivers are outdated, and I can't change them",
                "it says that our NVIDIA driver is not new enough for CUDA 12.4",
            )
        ),
        (
            "After 50 pictures the card disappears from the bus, and is back only when I reboot. What is it?",
            ("gpu-hardware-xid-ecc",),
        ),
        *(
            (text, ("cuda-visible-devices-hides-gpu",))
            for text in (
                "It took the iGPU, so I set HIP_VISIBLE_DEVICES=1. RuntimeError: No HIP GPUs are available",
                "YOLOv5: after select_device('cpu') torch.cuda.device_count() returns 0, my devices disappear",
            )
        ),
        *(
            (text, ("container-without-gpu",))
            for text in (
                "My mac mini M2 in docker compose: the server does not find a GPU",
                "How can I use the Metal GPU of my MacBook inside a Docker container?",
                "podman on macOS: whisper uses CPU only",
            )
        ),
        (
            'docker compose up on macOS: could not select device driver "" with capabilities: [[gpu]]',
            ("no-nvidia-gpu",),
        ),
        *(
            (text, ("cuda-visible-devices-hides-gpu",))
            for text in (
                "2x A5000, .bashrc has export CUDA_VISIBLE_DEVICES=2,3 and my script picks cpu",
                "dual 3090 box, CUDA_VISIBLE_DEVICES is set to 2 by the queue: it runs on the CPU",
                "The job uses the CPU. CUDA_VISIBLE_DEVICES=3, two GPUs in the machine",
                "both cards are idle, only CPU is used, CUDA_VISIBLE_DEVICES: 4",
                "with CUDA_VISIBLE_DEVICES='2' the two V100 are not found",
            )
        ),
        *(
            (text, ("wsl-driver-problem",))
            for text in (
                "WSL2 ubuntu: did sudo apt install nvidia-driver-550, since then nvidia-smi inside wsl fails",
                "I installed the linux driver in WSL and now cuda is not found",
                "after installing cuda-drivers in wsl 2 the GPU isn't detected",
                "nvidia-utils-535: installed nvidia-utils-535 inside WSL, nvidia-smi fails",
                "wsl broke: nvidia-smi fails after I had installed nvidia-driver-535-server",
            )
        ),
        *(
            (text, ("cuda-no-device",))
            for text in (
                "RuntimeError: CUDA error: no CUDA-capable device is detected",
                "cudaGetDeviceCount returned 100",
                "cuInit failed with error 100",
                "what(): CUDA_ERROR_NO_DEVICE",
                "deviceQuery says no CUDA-capable device is detected since this morning",
            )
        ),
        *(
            (text, ("nvidia-container-toolkit-missing",))
            for text in (
                "the following directives are specified both as a flag and in the configuration file: runtimes",
                "the following directives are specified as a flag and in the configuration file: runtimes: (from flag",
                "ExecStart=/usr/bin/dockerd --add-runtime=nvidia=/usr/bin/nvidia-container-runtime (code=exited",
            )
        ),
        ("RuntimeError: Failed to infer device type", ("runs-on-cpu",)),
        ("CUBLAS_STATUS_ARCH_MISMATCH when calling `cublasGemmEx`", ("compute-capability-unsupported",)),
        ("5070 Ti: kernel error in every render, comfy portable", ("torch-no-kernel-for-device",)),
        ("any pytorch for a GPU with 3.0 compute capability? it does not run", ("torch-no-kernel-for-device",)),
        ("Only one MIG instance is used by vllm, the A100 has 4 slices", ("mig-misconfigured",)),
        (
            "After hibernation the jellyfin container uses the CPU until I reboot the host",
            ("cuda-init-unknown-error-999",),
        ),
        *(
            (text, ("cudnn-missing-or-mismatch",))
            for text in (
                "cuDNN not found on my system although CUDA 11.8 is installed",
                "where do I have to put the cudnn dlls? faster-whisper can't load them",
                "wrong cudnn version, got 8.2 but needs 8.9",
            )
        ),
        *(
            (text, ("cuda-libs-conflict",))
            for text in (
                "libcublas is not on the LD_LIBRARY_PATH, whisperx dies",
                "cuBLAS library could not be found by my program",
                "cudart not found, koboldcpp on windows",
            )
        ),
        *(
            (text, ("cupy-numpy-incompatible",))
            for text in ("cupy fails to import since numpy 2.0 was installed", "numpy 2.1 broke cupy 12")
        ),
        *(
            (text, ("rocm-unsupported-gfx",))
            for text in ("9070 XT and ROCm 5.2: fails with invalid argument", "RX 7800 XT on rocm 5.3: segfault")
        ),
        *(
            (text, ("driver-not-loaded",))
            for text in (
                "Ubuntu, secure boot is enabled, torch.cuda.is_available() is False",
                "Fedora 40, Secure Boot on, the RTX 4070 is not detected by torch",
                "MOK enrollment was skipped; No CUDA GPUs are available",
            )
        ),
        *(
            (text, ("container-without-gpu",))
            for text in (
                "Pod with runtimeClassName: nvidia, torch.cuda.is_available() False inside",
                "k3s deployment, I set runtimeClassName nvidia but jellyfin has no gpu",
            )
        ),
        *(
            (text, ("build-isolation-hides-torch",))
            for text in (
                "pip install xformers dies because it says it needs torch to be installed, but torch is installed",
                "detectron2's setup says torch is not installed although it is there. I ran pip install detectron2",
            )
        ),
        ("my venv has torch, yet kohya reports torch could not be found", ("wrong-python-environment",)),
        (
            'Creating venv in directory /a/stable-diffusion-webui/venv using python "/usr/bin/python3.12"',
            ("python-version-no-wheel",),
        ),
        ("radeon rx 6600: paddlepaddle-gpu is installed and the GPU isn't detected", ("cuda-build-on-amd",)),
        ("CUDA extension not installed. (auto_gptq 0.7.1, pip install auto-gptq)", ("extension-abi-mismatch",)),
        ("The driver only supports CUDA 11.4, the app wants 12", ("driver-too-old",)),
        ("DGX: after the driver update fabric manager has the wrong version", ("fabric-manager-not-running",)),
        ("thermal limit hit at 83 C, the fps falls by 40 %", ("gpu-throttled",)),
        ("Ubuntu: the nvidia driver was updated last night, the training crashes", ("driver-library-mismatch",)),
        ("unattended-upgrades replaced nvidia packages and cuda fails", ("driver-library-mismatch",)),
        ("when I render the desktop loses power, 3090", ("gpu-hardware-xid-ecc",)),
        ("630 GT: is there any version for this card?", ("torch-no-kernel-for-device",)),
        ("[E] Target GPU SM 61 is not supported by this TensorRT release.", ("torch-no-kernel-for-device",)),
        ("[TRT] CUDA initialization failure with error: 35", ("driver-too-old",)),
        (
            (
                "my container works in the morning, by the evening nvidia-smi in it says unknown "
                "error. docker restart fixes it for some hours"
            ),
            ("container-nvml-lost",),
        ),
        (
            "GPU disappears from running docker containers each time we run systemctl daemon-reload",
            ("container-nvml-lost",),
        ),
        (
            "Our jupyterhub pods suddenly lose access to the gpu after a day or so, recreating the pod helps",
            ("container-nvml-lost",),
        ),
        (
            "ffmpeg nvenc does not work in my container, only compute and utility are in NVIDIA_DRIVER_CAPABILITIES",
            ("driver-capabilities-missing",),
        ),
        (
            (
                "nvidia-smi missing in the container but torch can use the gpu, I set "
                "NVIDIA_DRIVER_CAPABILITIES to compute"
            ),
            ("driver-capabilities-missing",),
        ),
        ("The laptop gpu gets very hot, 90 degrees, and after a few minutes training is 3x slower", ("gpu-throttled",)),
        (
            "cannot pip install flash-attn, it says torch is not found but torch is there for sure",
            ("build-isolation-hides-torch",),
        ),
        ("on my m2 the model crashes since some aten op isn't supported on mps yet", ("mps-op-not-implemented",)),
        ("jax.devices() only shows cpu, A100 machine", ("jax-cpu-build",)),
        (
            "torchvision ops / my compiled extension gives undefined symbol after I upgraded torch",
            ("extension-abi-mismatch",),
        ),
        ("flash_attn import broken after torch upgrade, some undefined symbol c10", ("extension-abi-mismatch",)),
        ("cuda works only with sudo, as a normal user no gpu is found", ("device-permissions-missing",)),
        (
            "rocm: rocminfo works as root but not as user, torch sees nothing. do I need the render group",
            ("device-permissions-missing",),
        ),
        (
            "apt upgraded the nvidia driver while running, now nvidia-smi reports a mismatch and training won't start",
            ("driver-library-mismatch",),
        ),
        (
            "docker run of the new cuda 12.6 image refuses: please update your driver to a newer version",
            ("container-image-needs-newer-driver",),
        ),
        ("we have cuda 12 but cupy-cuda11x is installed and it fails", ("cupy-wrong-cuda-package",)),
        ("new debian install, gtx 1660, nvidia-smi isn't there, no gpu in pytorch", ("driver-missing",)),
        ("tensorflow sees no gpu on win11, tf.test.is_gpu_available False, version 2.13", ("tensorflow-no-gpu-build",)),
        ("import torch fails with OSError WinError 126, error loading fbgemm.dll", ("torch-import-failed",)),
        ("DLL load failed while importing torch on windows server", ("torch-import-failed",)),
        ("after pip upgraded numpy to 2.0 torch 2.0 warns and numpy() is not available", ("numpy-abi-mismatch",)),
        ("my second gpu sits on a x1 riser and is extremely slow at loading data", ("pcie-link-degraded",)),
        (
            "I set os.environ['CUDA_VISIBLE_DEVICES']='1' but there is just one card, and torch finds none",
            ("cuda-visible-devices-hides-gpu",),
        ),
        ("job script exports CUDA_VISIBLE_DEVICES= (empty), so no gpu", ("cuda-visible-devices-hides-gpu",)),
        ("poetry installs torch cpu only, how to get gpu", ("torch-cpu-build", "runs-on-cpu")),
        ("torchvision has cpu version while torch is cu121, nms fails on cuda", ("torchvision-mismatch",)),
        ("I have an amd gpu and installed normal torch, no gpu found", ("cuda-build-on-amd",)),
        ("torch.cuda.is_available() is False in docker but True on host", ("container-without-gpu",)),
        ("dataloader crashes in docker with bus error", ("shm-too-small",)),
    ],
)
def test_words_suggest_a_cause(text: str, accepted: tuple[str, ...]) -> None:
    report = diagnosed(text)
    assert first_of(report) in accepted
    assert report.findings[0].remedies


@pytest.mark.parametrize(
    "text",
    [
        "Which GPU should I buy for training, 4090 or two 3090?",
        "Works great on my RTX 3060, thanks! How do I change the batch size?",
        "Does it support multi gpu? I would like to use both of my A100",
        "GPU utilization is only 40 %, dataloader is the bottleneck. RTX 4090",
        "Feature request: add support for ROCm",
        "How much VRAM do I need for the 7B model?",
        "I run it in docker with --gpus all on an RTX 3090 and it works fine. Is there an arm64 image?",
        "Training works on my V100. What learning rate did you use in the paper?",
        "The README says CUDA 11.8, I use 12.1 and it works. Please update",
        "docker image is too large, 12 GB. Can you make a smaller one for GPU users?",
        "Loss is not decreasing after 10 epochs on two GPUs",
        "How do I stop the server process gracefully? It uses the GPU fine",
        "Is Python 3.12 supported? I have torch 2.3 with CUDA and a 4080, works on 3.11",
        "Installed the driver, nvidia-smi shows my card, torch.cuda.is_available() is True. What next?",
        "Thanks for the fast fix, GPU works again after the update",
        "Please add a CPU version of the docker image",
        "Model accuracy differs from the paper, trained on 4 V100s",
        "Does the pod need a GPU? On kubernetes with the GPU operator all is well, 12 pods",
        "Jetson Orin runs it at 30 FPS, torch 2.1.0a0+nv23.06 and CUDA, thanks. Can yolo export to int8?",
        "--gpus all works here, 4090 at 99 %. How do I name the container?",
        "RX 6700 XT with HSA_OVERRIDE_GFX_VERSION=10.3.0 on rocm works now, no crash any more",
        "Which tensorflow-gpu did you use for the paper? 2.9 works for me",
        "I have no GPU. Will the app run without CUDA?",
        "LD_LIBRARY_PATH=/usr/local/cuda/lib64 is set and everything runs fine on the 4090",
        "Windows 7 works great with my GTX 1080, thank you",
        "The docker image builds fine on my macOS laptop. How large is it?",
        "I suspend the container with docker pause, is the GPU memory freed?",
        "I have not installed cudnn, is it necessary?",
        "cupy 13 works with numpy 2, nice",
        "RX 7900 XTX with rocm6.2 works great, thanks",
        "I signed the modules for secure boot and the 3090 works. CUDA available: True",
        "No GPU is used while building the image, as expected. The container runs on the GPU",
        "Is my driver too old for CUDA 12? nvidia-smi shows 535.54, torch.cuda.is_available() is True",
        "I updated the nvidia drivers and everything works now",
        "CUDA_VISIBLE_DEVICES=2,3 on the box with 8 A100 works as it should",
        "A docker image that is CPU-only would be nice for our CI; my GPU is not used there",
        "how do I use two GPUs at once with DDP? one works perfectly",
        "gpu works, cuda available True, I only wonder which batch size is good",
        "Which GPU should I buy for stable diffusion, 4070 or 4080?",
        "nvidia-smi shows 97% GPU utilisation during training, is that too much?",
        "docker with --gpus all works great, torch sees both cards. How can I limit memory?",
        "the gpu reaches 83C under load, clocks are stable at 1900MHz, everything is fast. fine?",
        "numpy 2.1: np.Inf was removed, so the unit tests fail on the GPU runner with the T4",
        "nccl-tests, 8 ranks, avg bus bandwidth 185. Is that reasonable for 8 A100? No hang, no warning",
        "Node type not found IPAdapterAdvanced. GPU is a 4070 Super, everything else renders fine",
        "The container on our GPU node is unable to access github.com: could not resolve host",
        "ClusterQueues with nvidia.com/gpu quota work as documented. What we are missing is decay of past usage",
        "It never causes an out of memory, but what is the rest on the GPU? The CUDA context?",
        "Is the RX 9070 XT supported yet? I have a 6900 XT that works well with pytorch",
        "Do I need to rebuild the containers if I upgrade the driver from 535 to 550?",
        "In 3.0 we are going to drop support for compute capability 5.x. Objections?",
    ],
)
def test_what_healthy_people_say_is_no_fault(text: str) -> None:
    assert first_of(diagnosed(text)) == ""


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("fallen off? my GPU is odd since I changed the PSU of the machine", "gpu-hardware-xid-ecc"),
        ("I think cudnn is to blame", "cudnn-missing-or-mismatch"),
        ("Is it the secure boot of my notebook?", "driver-not-loaded"),
        ("pip install fails for the requirements.txt, something about wheels", "python-version-no-wheel"),
        ("cannot import the extension", "extension-abi-mismatch"),
        ("something with the interpreter of PyCharm is wrong", "wrong-python-environment"),
    ],
)
def test_a_single_word_puts_a_cause_among_the_possible_ones(text: str, cause: str) -> None:
    triage = diagnosed(text).triage
    assert triage is not None
    assert cause in [possible.check for possible in triage.possible]


def test_a_guess_is_a_warning_that_is_not_certain() -> None:
    finding = diagnosed("shm of my pod is full, error from the dataloader").findings[0]
    assert (finding.check_id, finding.severity, finding.certain) == ("shm-too-small", Severity.WARNING, False)
    assert "probably" in finding.summary


@pytest.mark.parametrize("text", ["the driver does not load, kernel 6.8", "kernel 6.8: the driver does not load"])
def test_the_order_of_words_does_not_matter(text: str) -> None:
    assert first_of(diagnosed(text)) == "driver-not-loaded"


def test_the_more_specific_words_count() -> None:
    """Of a machine that slept the driver is said not to work, too."""
    assert first_of(diagnosed("nvidia driver not working after sleep until I reboot")) == "cuda-init-unknown-error-999"


def test_a_message_decides_against_words() -> None:
    message = "Failed to initialize NVML: Driver/library version mismatch"
    assert first_of(diagnosed(f"nvidia driver not working since the kernel update: {message}")) == (
        "driver-library-mismatch"
    )


def test_words_do_not_explain_the_error_of_a_traceback() -> None:
    traceback = 'Traceback (most recent call last):\n  File "train.py", line 3\nFrobnicateError: nothing left'
    text = f"my 1080 is no longer supported\n{traceback}\n"
    assert first_of(diagnosed(text)) == ""


def test_an_ignored_check_does_not_guess() -> None:
    text = "my 1080 is no longer supported by this program"
    assert first_of(diagnosed(text)) == "torch-no-kernel-for-device"
    assert first_of(diagnosed(text, {"torch-no-kernel-for-device": "not now"})) == ""


def test_what_else_makes_the_words_mean_something_else() -> None:
    text = "my container does not see the GPU"
    assert first_of(diagnosed(text)) == "container-without-gpu"
    assert first_of(diagnosed(f"{text}, started with --gpus all")) != "container-without-gpu"


def test_words_count_at_the_beginning_and_not_in_facts() -> None:
    words = "my container does not see the GPU"
    assert [found.row.id for found in recognise(words) if found.row.guess] == ["guess-container"]
    assert not [found for found in recognise(f"{'x ' * MOST_WORDS}{words}") if found.row.guess]
    assert not [found for found in recognise(words, fact="torch_runtime.error") if found.row.guess]
    assert guess_of(()) is None


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("row", GUESSES)
def test_every_guess_has_fixes_for_every_machine(row: FailureMessage, machine: str) -> None:
    facts = facts_of(machine)
    fixes = [dict(fix) for fix in row.guess["fixes"]]
    made = [remedies_of((Fix(fix.pop("fix"), **fix),), facts) for fix in json.loads(json.dumps(fixes))]
    assert any(made)
    shown = " ".join(
        text for remedies in made for remedy in remedies for text in (remedy.summary or "", *remedy.commands)
    )
    given = any("{" in str(value) for fix in row.guess["fixes"] for value in fix.values())
    assert given or not re.search(r"\{[a-z_]+\}", shown), "a fix is not given what its text names"
    assert row.guess["check"] in {check.id for check in CHECKS}
    assert "probably" in row.guess["summary"]


def test_words_name_the_cause_behind_a_message() -> None:
    """Confirmed reports with "sudo" and a missing module were of another interpreter."""
    text = (
        "train.py uses the GPU if I start it as myself. With sudo python train.py, which I need for the port: "
        "ModuleNotFoundError: No module named 'torch'. which python is the conda env of the project, "
        "sudo which python is /usr/bin/python. RTX 3080"
    )
    first, *others = (f for f in diagnosed(text).findings if f.severity or f.caused_by)
    assert (first.check_id, first.certain) == ("wrong-python-environment", False)
    assert first.facts[-1] == "resemblance.words"
    assert [(f.check_id, f.caused_by) for f in others] == [("torch-not-installed", "wrong-python-environment")]


@pytest.mark.parametrize(
    "text",
    [
        "torch 2.5.1+cpu on Windows 11, slow",  # a line is not judged by its words
        "GPU available: True (cuda), used: True. My loss does not go down, the learning rate is 1e-3, batch size is 64",
    ],
)
def test_words_alone_are_not_enough(text: str) -> None:
    assert all("resemblance.words" not in finding.facts for finding in diagnosed(text).findings)


def likeliest_of(shares: dict[str, float], *features: str, **found: float) -> str:
    times = {cause.replace("_", "-"): factor for cause, factor in found.items()}
    return likeliest(shares, frozenset(features), times)[0]


@pytest.mark.parametrize("factor", [CERTAIN, UNCERTAIN, GUESSED])
def test_what_was_found_counts_more_than_words_up_to_a_factor(factor: float) -> None:
    less, more = (factor * (0.001 + LEAST_SHARE) * n - LEAST_SHARE for n in (0.9, 1.1))
    little_less, little_more = ({"driver-too-old": share, "driver-missing": 0.001} for share in (less, more))
    assert likeliest_of(little_less, driver_missing=factor) == "driver-missing"
    assert likeliest_of(little_more, driver_missing=factor) == "driver-too-old"


def test_what_excludes_a_cause_counts_only_if_nothing_found_it() -> None:
    shares = {"driver-too-old": 0.9, "mps-issues": 0.1}
    assert likeliest_of(shares, "os:darwin") == "mps-issues"
    assert likeliest_of(shares, "os:darwin", driver_too_old=CERTAIN) == "driver-too-old"


def test_a_cause_of_which_the_report_shows_nothing_is_less_likely() -> None:
    shares = {"container-without-gpu": 0.6, "driver-missing": 0.6 * (NOT_SHOWN + 0.1)}
    assert likeliest_of(shares) == "driver-missing"
    assert likeliest_of(shares, "place:docker") == "container-without-gpu"


def test_a_cause_that_only_a_check_knows_is_likely_if_the_words_name_no_other() -> None:
    assert likeliest_of({"driver-too-old": 0.1}, cublas_missing=CERTAIN) == "cublas-missing"
    assert likeliest_of({"driver-too-old": 0.9}, cublas_missing=CERTAIN) == "driver-too-old"
    assert likeliest({}, frozenset(), {}) == ("", 0.0)


def test_a_program_that_uses_the_gpu_says_nothing_of_another_that_misses_it() -> None:
    assert uses_gpu(frozenset({"symptom:gpu-listed-by-tensorflow"}))
    assert not uses_gpu(frozenset({"symptom:gpu-listed-by-tensorflow", "asks:tensorflow-list-empty"}))


def test_a_program_that_uses_the_gpu() -> None:
    assert uses_gpu(frozenset({"error", "symptom:gpu-used-by-ollama"}))
    assert not uses_gpu(frozenset({"error", "symptom:gpu-unused-reported"}))


@pytest.mark.parametrize(
    ("symptoms", "words", "features", "expected"),
    [
        pytest.param((), ("the",), (), False, id="no complaint"),
        pytest.param((), ("não",), (), True, id="another language"),
        pytest.param((Symptom(kind="asks-slow", text="slow"),), ("the",), (), True, id="a complaint"),
        pytest.param((), ("the",), ("error",), True, id="an error"),
        pytest.param((Symptom(kind="unknown-error", text="OddError"),), (), (), True, id="an error that is not known"),
    ],
)
def test_a_report_that_complains(
    symptoms: tuple[Symptom, ...], words: tuple[str, ...], features: tuple[str, ...], expected: bool
) -> None:
    assert complains(symptoms, words, frozenset(features)) is expected


def test_words_must_show_more_if_there_is_an_error_that_is_not_known() -> None:
    assert least_named((Symptom(kind="unknown-error", text="OddError"),)) > least_named(())


def test_a_text_with_few_words_says_nothing() -> None:
    shares = {"driver-too-old": 1.0}
    assert by_words(Resemblance(shares=shares, known=LEAST_WORDS)) == shares
    assert by_words(Resemblance(shares=shares, known=LEAST_WORDS - 1)) == by_words(Resemblance()) == {}


@pytest.mark.parametrize("row", load_table("possible_causes")["causes"], ids=lambda row: str(row["check"]))
def test_every_possible_cause_can_be_a_likely_one(row: dict[str, Any]) -> None:
    likely = probable(row["check"])
    assert "probably" in likely.summary
    for machine in MACHINES:
        assert remedies_of(likely.fixes, facts_of(machine))
