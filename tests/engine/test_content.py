# ruff: noqa: E501 - pasted texts
"""A healthy machine is known by what its owner pastes, whatever they ask about it; a complaint outweighs every output."""

import pytest

from gpudoctor.engine.runner import run_checks
from gpudoctor.readers.report import read_texts
from tests.own_checks import own_checks

HEALTHY = (
    ">>> import torch\n>>> torch.cuda.is_available()\nTrue\n>>> torch.cuda.get_device_name(0)\n'NVIDIA GeForce RTX 3060'\n\nworks fine here on Fedora 41. What batch size do you recommend for a 7B LoRA on 12 GB?",
    "Is my install ok?\n\nPyTorch 2.7.0+cu126, driver 565.90\n>>> torch.ones(2, device='cuda')\ntensor([1., 1.], device='cuda:0')\n\nnvcc says 11.5 and torch.version.cuda says 12.6. Do I have to worry about that?",
    "ollama ps\nNAME        ID    SIZE   PROCESSOR   UNTIL\nllama3.1:8b 42182419e950 6.7 GB 100% GPU 4 minutes from now\n\nGetting 80 tok/s on my 4080, what is the best quant for coding?",
    "llm_load_tensors: offloaded 33/33 layers to GPU\nllama_perf_context_print: eval time = 1000 ms / 50 runs ( 20 ms per token, 50 tokens per second)\n\nRTX 3090, llama.cpp b4000. Which sampler settings do you use for roleplay?",
    "GPU available: True (cuda), used: True\nTPU available: False, using: 0 TPU cores\nHPU available: False, using: 0 HPUs\nLOCAL_RANK: 0 - CUDA_VISIBLE_DEVICES: [0]\n\nHow do I log the learning rate to wandb with Lightning 2.4?",
    ">>> jax.devices()\n[CudaDevice(id=0)]\n>>> jnp.arange(5).devices()\n{CudaDevice(id=0)}\n\nWhat is the difference between jax.jit and pjit? RTX 4070",
    "torch.cuda.is_available() returned False, driver 470\n\nRTX 3070, ubuntu 20.04.\n\nEDIT: fixed by updating to driver 550, now\n\n>>> torch.cuda.is_available()\nTrue\n>>> torch.cuda.get_device_name()\n'NVIDIA GeForce RTX 3070'\nEverything works.",
    "Hi! MacBook Air M2, macOS 14.5\n>>> torch.backends.mps.is_available()\nTrue\n>>> torch.ones(1, device='mps')\ntensor([1.], device='mps:0')\nruns nicely. Would an M4 Pro be twice as fast?",
    "Ultralytics YOLOv8.2.0 Python-3.10.12 torch-2.3.0+cu121 CUDA:0 (Tesla T4, 15102MiB)\n      Epoch    GPU_mem   box_loss   cls_loss   dfl_loss  Instances       Size\n       1/50      2.61G      1.512      2.91      1.33         20        640: 100%|█| 100/100\n\nHow do I export to tflite afterwards?",
)
COMPLAINTS = (
    ">>> torch.cuda.is_available()\nTrue\nworks fine in the notebook, but when I start the same code from cron it runs on the processor",
    "ollama ps\nNAME        ID    SIZE   PROCESSOR   UNTIL\nllama3.1:8b 42182419e950 6.7 GB 100% GPU 4 minutes from now\n\n2 tok/s on a 4090, that can't be right?",
    ">>> torch.cuda.is_available()\nTrue\nVRAM stays at 300 MB and utilization never goes above 3%. RTX 3080",
    "llm_load_tensors: offloaded 33/33 layers to GPU\noutput is GGGGGGGG on my RX 6800",
    "GPU available: True (cuda), used: True\nloss becomes nan after step 200, precision 16-mixed, GTX 1660 Super",
    "Set vram state to: NORMAL_VRAM\nDevice: cuda:0 NVIDIA GeForce RTX 3090 : cudaMallocAsync\nPrompt executed in 420.1 seconds\n\n7 minutes for one 512x512 picture? On A1111 the same takes 4 s",
    "nvidia-smi shows 100% GPU-Util, torch is_available() True, yet my epoch time is the same as on my laptop without any gpu",
    "tensor([1.], device='cuda:0')\nHow do I make it use both cards? nvidia-smi shows the second one empty",
    "Device: cuda:0 NVIDIA GeForce RTX 3090 : cudaMallocAsync\nSet vram state to: LOW_VRAM\nDevice: cuda:0 NVIDIA GeForce RTX 3090 : cudaMallocAsync\npictures come out green since yesterday, what changed",
)


def proof(text: str) -> tuple[str, ...]:
    return run_checks(own_checks(), read_texts([("report.txt", text.encode())])).proof


@pytest.mark.parametrize("text", HEALTHY)
def test_a_question_next_to_working_output_is_no_complaint(text: str) -> None:
    assert proof(text)


@pytest.mark.parametrize("text", COMPLAINTS)
def test_a_complaint_next_to_working_output_is_one(text: str) -> None:
    assert not proof(text)


def test_a_but_needs_output_and_contentment() -> None:
    shown = "ollama ps\nNAME ID SIZE PROCESSOR UNTIL\nllama3 abc 6.7 GB 100% GPU 4 minutes from now\n"
    assert proof(shown + "super happy, but how do I raise the context?")
    assert not proof(shown + "but how do I raise the context?")


def test_only_a_post_marked_as_solved_is_read_from_its_end() -> None:
    told = ">>> torch.cuda.is_available()\nFalse\n\nNew wheel:\n>>> torch.cuda.is_available()\nTrue\nworks great\n"
    failed = told + "\n>>> torch.cuda.is_available()\nFalse\n"
    assert proof("[SOLVED] no GPU\n\n" + told)
    assert not proof("[SOLVED] no GPU\n\n" + failed)
