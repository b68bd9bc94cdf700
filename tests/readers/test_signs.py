"""A text is handed to a reader for one word in it: each such word, alone, lets its texts in."""

import pytest

from gpudoctor.readers.report import READERS
from gpudoctor.readers.text import clean_text

# By reader: texts with one of its words each.
SHORT = {
    "cupy.show_config()": (
        "CuPy Version : 13.3.0\nThrust Version : 200600\n",
        "CUDA Build Version : 12060\nThrust Version : 200600\n",
        "cuFFT Version : 11203\nThrust Version : 200600\n",
        "cuRAND Version : 10307\nThrust Version : 200600\n",
        "cuSOLVER Version : (11, 7, 2)\nThrust Version : 200600\n",
        "cuSPARSE Version : (12, 6)\nThrust Version : 200600\n",
        "NVRTC Version : (12, 6)\nThrust Version : 200600\n",
    ),
    "collect_env": (
        "PyTorch version: 2.9.0\n",
        "CUDA runtime version: 12.4.131\ncuDNN version: 9.1.0\n",
        "Nvidia driver version: 580.95.05\ncuDNN version: 9.1.0\n",
        "Is XNNPACK available: True\nLibc version: glibc-2.35\nGCC version: 13.2.0\n[pip3] torch==2.9.0\n",
    ),
    "nvidia-smi -q": (
        "==============NVSMI LOG==============\nDriver Version : 580.95.05\nGPU 00000000:2D:00.0\n",
        "Attached GPUs : 1\nGPU 00000000:01:00.0\n    Product Name : NVIDIA L4\n",
        "    Performance State : P0\n    Clocks Throttle Reasons\n        SW Power Cap : Active\n",
        "    Performance State : P0\n    Clocks Event Reasons\n        SW Power Cap : Active\n",
        "    Fabric\n        State : Completed\n    Fabric State : Completed\n",
        "    ECC Errors\n        Volatile\n            SRAM Uncorrectable : 0\n",
        "    Retired Pages\n        Double Bit ECC : 1\n        Pending Page Blacklist : Yes\n",
        "    Remapped Rows\n        Uncorrectable Error : 1\n        Pending : Yes\n",
        "    FB Memory Usage\n        Total : 24564 MiB\n        Used : 5 MiB\n",
        "    GPU Reset Status\n        Reset Required : Yes\n        Drain and Reset Recommended : Yes\n",
    ),
    "nvidia-smi": (
        "| NVIDIA-SMI 352.79     Driver Version: 352.79         |\n",
        (
            "|   0  Tesla P100-PCIE...  On   | 00000000:03:00.0 Off |  0 |\n"
            "| N/A   40C    P0   ERR! / 250W |  10MiB / 16280MiB |\n"
        ),
        "No devices were found\n",
        (
            "| GPU  Name       Persistence-M | Bus-Id        Disp.A | Volatile Uncorr. ECC |\n"
            "|   0  Orin (nvgpu)         N/A  | N/A              N/A |                  N/A |\n"
            "| N/A   N/A  N/A          N/A /  N/A | Not Supported        |     N/A          N/A |\n"
        ),
    ),
    "nvidia-smi -L": (
        "GPU 0: NVIDIA A30 (UUID: GPU-3f9d2c1a-0b7e-5d44-8a61-9be0c77d1f20)\n",
        "$ nvidia-smi -L\nGPU 0: NVIDIA A30\n",
        "$ nvidia-smi --list-gpus\nGPU 0: NVIDIA A30\n",
        "        GPU0    GPU1    CPU Affinity\nGPU0     X      NV18    0-47\n",
        "nvidia-smi --query-gpu=name --format=csv,noheader\nNVIDIA L4\n",
        "name, driver_version\nNVIDIA L4, 580.95.05\n",
        "name, compute_cap\nNVIDIA L4, 8.9\n",
        "uuid, name\nGPU-3f9d2c1a-0b7e-5d44-8a61-9be0c77d1f20, NVIDIA L4\n",
        "name, uuid\nNVIDIA L4, GPU-3f9d2c1a-0b7e-5d44-8a61-9be0c77d1f20\n",
        "name, pstate\nNVIDIA L4, P8\n",
        "name, pci.bus_id\nNVIDIA L4, 00000000:01:00.0\n",
        "name, memory.total [MiB]\nNVIDIA L4, 23034 MiB\n",
        "name, temperature.gpu\nNVIDIA L4, 34\n",
    ),
    "kernel log": (
        "NVRM: GPU 0000:01:00.0: RmInitAdapter failed! (0x26:0x56:1474)\n",
        "XID error 79\n",
        "[    5.123456] nvidia: module verification failed: signature and/or required key missing - tainting kernel\n",
    ),
    "ds_report": (
        "torch version .................... 2.1.2+cu118\n",
        "deepspeed info ................... 0.13.1, x, y\n",
    ),
    "environment table": (
        "sys.platform    linux\nPython    3.9.18\nGPU available    True\n",
        "GPU 0,1    NVIDIA RTX A5000 (arch=8.6)\nDriver version    535.104.05\nCUDA_HOME    /usr/local/cuda\n",
        "PyTorch built with:\n  - CUDA Runtime 11.3\n",
        "YOLOv8 torch-2.2.0+cpu\n",
        "Ultralytics 8.3.40 Python-3.11.9 torch-2.5.1+cu124 CUDA:0 (NVIDIA GeForce RTX 4070, 12282MiB)\n",
        "OS   Linux\nGPU    NVIDIA GeForce RTX 4070, 12282MiB\nGPU count    2\nCUDA    12.4\n",
        "* CUDA:\n\t- GPU:\n\t\t- NVIDIA L4\n\t- available: True\n\t- version: 12.1\n* Lightning:\n\t- torch: 2.2.0\n",
        "jaxlib: 0.4.30\n",
    ),
    "nvcc": (
        "nvcc: command not found\n",
        "Cuda compilation tools, release 12.2\n",
        "Build cuda_12.3.r12.3/compiler.33567101_0\n",
    ),
    "docker": (
        "Docker version 27.3.1, build ce12230\n",
        "ii nvidia-container-toolkit 1.17.0-1 amd64\n",
        "bash: nvidia-ctk: command not found\n",
        "Found 0 CDI devices\n",
        "Runtimes: nvidia runc\n",
        "services:\n  web:\n    image: x\n    runtime: nvidia\n",
        '{\n "log-driver": "local"\n}\n',
        '{\n "data-root": "/x"\n}\n',
        "cli-version: 1.17.0\n",
    ),
    "paths": ("python3 -m pip\n", "venv at /opt/x\n", "C:\\work\\env\\Lib\\site-packages\n", "ComfyUI portable\n"),
    "words on containers": (
        "docker run img\n",
        "inside the container\n",
        "runs in my pod\n",
        "on kubernetes\n",
        "on k8s\n",
        "on k3s\n",
        "on k0s\n",
        "on minikube\n",
        "on openshift\n",
        "runtimeClassName: nvidia\n",
        '"runArgs": ["--gpus", "all"]\n',
        '"hostRequirements": {"gpu": true}\n',
        "app-1  | loading\napp-1  | RuntimeError\napp-1 exited with code 1\n",
        "进入容器内\n",
        "コンテナ内\n",
    ),
}

_BY_NAME = {reader.name: reader for reader in READERS}


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, texts in SHORT.items() for text in texts])
def test_one_word_lets_a_text_in(name: str, text: str) -> None:
    reader, cleaned = _BY_NAME[name], clean_text(text, "report.txt")
    assert sum(sign in cleaned.lowered for sign in reader.signs) == 1
    assert reader.read(cleaned)


@pytest.mark.parametrize("name", SHORT)
def test_every_word_has_its_text(name: str) -> None:
    lowered = [clean_text(text, "report.txt").lowered for text in SHORT[name]]
    assert not [sign for sign in _BY_NAME[name].signs if not any(sign in text for text in lowered)]
