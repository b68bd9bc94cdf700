"""Causes in reports that name them in passing: in several wordings, and what passes beside them."""

from __future__ import annotations

import pytest

from gpudoctor.engine.runner import run_checks
from gpudoctor.model import Finding
from gpudoctor.readers.report import read_texts
from tests.causes import causes_of
from tests.own_checks import own_checks


def first(text: str) -> Finding | None:
    """Return the first cause."""
    report = run_checks(own_checks(), read_texts([("report.txt", text.encode())]))
    return next(iter(causes_of(report)), None)


@pytest.mark.parametrize(
    ("check", "texts"),
    [
        pytest.param(
            "container-nvml-lost",
            [
                (
                    "It works in my docker container until it dies with CUDA_ERROR_NO_DEVICE. The fix is "
                    "restarting the container"
                ),
                (
                    "Docker: the encoder runs some hours, then no CUDA-capable device is detected. Restarting the "
                    "container helps"
                ),
                (
                    "The container runs fine for a while, then it does not see the GPU. The only cure is "
                    "to restart the container"
                ),
                (
                    "Transcoding works for days. But then it breaks: CUDA_ERROR_NO_DEVICE. The workaround is "
                    "to restart the container"
                ),
                "plex in docker runs for a day, then NVML cannot be initialized. Restarting the container fixes that",
            ],
            id="a container dies until it is restarted",
        ),
        pytest.param(
            "rocm-unsupported-gfx",
            [
                "The GPU of my Ryzen 5 4600G is gfx90c, which is not supported by ROCm",
                "rocm and a gfx902 APU: segmentation fault at the first kernel",
                "ROCm on a laptop with gfx90c: invalid device function",
                "Ryzen 4800H (gfx90c). ROCm fails at once",
                "torch for rocm crashes on my gfx909",
            ],
            id="the GPU of a Ryzen",
        ),
        pytest.param(
            "rocm-unsupported-gfx",
            [
                "ComfyUI on Ubuntu 22.04, RX 6600: Segmentation fault when the first image starts",
                "RX 6700 XT, Fedora 39, stable diffusion ends with a segfault",
                "On Linux fooocus dies, segmentation fault (core dumped). RX 5700 XT",
                "invokeai, arch, Radeon RX 6650 XT: core dumped",
                "debian, RX 6500 XT, torch segfaults as soon as a tensor goes to the card",
            ],
            id="a segmentation fault on an AMD GPU",
        ),
        pytest.param(
            "cudnn-missing-or-mismatch",
            [
                "It says that cudnn_ops_infer64_8.dll should be in the library path",
                "cudnn64_7.dll is missing, RTX 2060",
                "error: cudnn_cnn_infer64_8.dll not found, faster-whisper on windows",
                "the program can not find cudnn_ops64_9.dll",
                "whisper cannot load cudnn_ops_infer64_8.dll on my laptop",
            ],
            id="a cuDNN file",
        ),
        pytest.param(
            "out-of-memory",
            [
                "My RTX 2060 has 6 GB and the memory is not enough",
                "GTX 1060: the VRAM is not sufficient for this model",
                "the model does not load on the 3060, memory is simply not enough",
                "For training on my GPU the memory was not enough",
                "batch size 4, VRAM is just not enough",
            ],
            id="memory that is not enough",
        ),
        pytest.param(
            "conda-cpuonly-solved",
            [
                "With conda a package named cpuonly comes along and the training cannot use the GPU",
                "I installed pytorch 1.9 with conda, and cpuonly is always installed, so my GPU is not used",
                "Removing cpuonly does not help, my RTX 3090 is not used by torch",
                "Somehow the conda environment file installs pytorch-cpu. Why? Linux with a GPU",
                "conda keeps the package cpuonly in the environment and I can not train on my GPU",
            ],
            id="cpuonly",
        ),
        pytest.param(
            "torch-cpu-build",
            [
                "xFormers says it was built for 2.0.1+cu118 and that I have 2.0.1+cpu. My 4090 is not used",
                "the log says you have PyTorch 2.1.0+cpu, RTX 3060 is not used",
                "my venv has torch 2.5.1+cpu and no GPU is used",
                "it seems I got torch 2.3.0+cpu, the 4070 is idle",
                "we have torch 2.2.2+cpu on the workstation, it is slow, RTX A4000",
            ],
            id="a CPU build in passing",
        ),
        pytest.param(
            "cupy-missing",
            [
                "The gpu option ends with an error, because there is no module called cupy. GTX 1650",
                "no module called 'cupy'",
            ],
            id="no module called CuPy",
        ),
        pytest.param(
            "runs-on-cpu",
            [
                (
                    "06/11/2021 - WARNING - Process rank: -1, device: cpu, n_gpu: 0, distributed training: False\n"
                    "I tensorflow/stream_executor/dso_loader.cc:49] Successfully opened dynamic library "
                    "cudart64_110.dll\n"
                    "GTX 1080, windows 10"
                ),
            ],
            id="a training script of Transformers, beside a library that TensorFlow has found",
        ),
    ],
)
def test_cause(check: str, texts: list[str]) -> None:
    found = [finding.check_id if (finding := first(text)) else None for text in texts]
    assert found == [check] * len(texts)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            "GPU available: True, used: False\nUserWarning: GPU available but not used. Set the gpus flag in "
            "your trainer "
            "`Trainer(gpus=1)` or script `--gpus=1`\nThe training runs on the CPU, although I moved the model to "
            "the GPU",
            id="Lightning sees the GPU",
        ),
        pytest.param(
            "训练的时候显存是占满的,可是 GPU 占用率一直显示 0, PyTorch 能正常调用 GPU", id="the memory is full"
        ),
        pytest.param(
            "I restart the container after each change of the code, and it works until the tests end", id="a habit"
        ),
        pytest.param("My gfx90c is supported by ROCm with the override, training works", id="it works"),
        pytest.param("Successfully opened dynamic library cudart64_110.dll. How do I hide these lines?", id="opened"),
    ],
)
def test_no_cause(text: str) -> None:
    assert first(text) is None


def test_lightning_sees_the_gpu_and_its_trainer_does_not_ask_for_it() -> None:
    text = "GPU available: True (cuda), used: False\nWhy is my GPU not used?"
    report = run_checks(own_checks(), read_texts([("report.txt", text.encode())]))
    assert report.verdict == "unknown"
    assert [finding.check_id for finding in report.findings] == ["program-error"]
    assert "Trainer" in report.findings[0].remedies[0].summary


def test_an_old_gpu_gets_no_cupy_that_does_not_compile_for_it() -> None:
    text = (
        "import cupy\nNVRTC compilation error: nvrtc: error: invalid value for --gpu-architecture (-arch)\n"
        "Options: -I/opt/cupy/core/include -arch=compute_21\nNVRTCError: NVRTC_ERROR_INVALID_OPTION (5)\n"
    )
    found = first(text)
    assert found is not None
    assert found.check_id == "cupy-arch-unsupported"
    assert not any("pip install" in command for remedy in found.remedies for command in remedy.commands)
    assert "CUDA 8.0 is the last toolkit" in found.remedies[0].summary
