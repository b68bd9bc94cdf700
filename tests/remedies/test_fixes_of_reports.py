"""The fixes of pasted reports are for the machine that the report is of."""

import re

import pytest

from gpudoctor.engine.runner import run_checks
from gpudoctor.model import Finding, Severity
from gpudoctor.readers.report import read_texts
from tests.own_checks import own_checks

CPU_BUILD = "AssertionError: Torch not compiled with CUDA enabled\nRTX 3060\n"


def first(text: str) -> Finding | None:
    """Return the first finding that is more than advice."""
    report = run_checks(own_checks(), read_texts([("report.txt", text.encode())]))
    return next((finding for finding in report.findings if finding.severity is not Severity.INFO), None)


def commands_of(text: str) -> list[str]:
    """Return the commands of the first remedy of the first finding."""
    finding = first(text)
    assert finding is not None
    return list(finding.remedies[0].commands)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(CPU_BUILD + "Ubuntu 22.04, driver 550.54", id="nothing listed"),
        pytest.param(CPU_BUILD + "Windows 11", id="Windows"),
        pytest.param(CPU_BUILD + "pip list\ntorch 2.3.1+cpu\ntorchvision 0.18.1+cpu", id="one listed"),
        pytest.param(
            "RTX 5070 Ti, torch 2.5.1+cu121: no kernel image is available for execution on the device", id="new GPU"
        ),
    ],
)
def test_torch_comes_with_its_companions(text: str) -> None:
    commands = commands_of(text)
    assert "torchvision==" in commands[0]
    assert any("torchaudio==" in command for command in commands)


def test_conda_brings_the_companions_too() -> None:
    text = "conda list\npytorch 2.3.1 py3.11_cpu_0 pytorch\n" + CPU_BUILD
    assert any(
        "torchvision torchaudio" in command for command in commands_of(text) if command.startswith("conda install")
    )


@pytest.mark.parametrize(
    ("text", "removed"),
    [
        pytest.param(
            "I installed cupy-cuda11x, nvidia-smi says CUDA Version: 12.4\nImportError: libnvrtc.so.11.2: cannot open "
            "shared object file: No such file or directory",
            "cupy-cuda11x",
            id="no list",
        ),
        pytest.param(
            "CuPy failed to load libnvrtc.so.11.2: OSError: libnvrtc.so.11.2: cannot open", "cupy ", id="no name"
        ),
    ],
)
def test_an_old_cupy_goes_first(text: str, removed: str) -> None:
    remove, install, *_ = commands_of(text)
    assert re.search(r"pip uninstall -y .*" + removed, remove)
    assert "pip install" in install


@pytest.mark.parametrize(
    ("text", "has", "lacks"),
    [
        pytest.param(
            "Jetson Orin Nano, JetPack 6.1. pip install torch, torch.cuda.is_available() is False",
            "jetson-ai-lab",
            "download.pytorch.org/whl/cu|ubuntu-drivers",
            id="Jetson",
        ),
        pytest.param(
            "On my Jetson Nano nvidia-smi: command not found. NVIDIA-SMI has failed because it couldn't communicate "
            "with the NVIDIA driver",
            "nvidia-jetpack|reboot",
            "ubuntu-drivers|nvidia-driver|nvidia-smi",
            id="driver of a Jetson",
        ),
        pytest.param(
            "docker run dustynv/l4t-pytorch:r36.2.0 on Jetson Orin NX: torch.cuda.is_available() False",
            "--runtime nvidia dustynv/l4t-pytorch:r36.2.0",
            "--gpus all",
            id="container on a Jetson",
        ),
        pytest.param(
            "Intel Arc A770 on Windows 11, AssertionError: Torch not compiled with CUDA enabled",
            "whl/xpu",
            "whl/cu",
            id="Arc",
        ),
        pytest.param(
            "AMD RX 6800 XT on Windows 11: AssertionError: Torch not compiled with CUDA enabled",
            "torch-directml",
            "whl/rocm|whl/cu",
            id="AMD on Windows",
        ),
        pytest.param(
            "RX 580 ubuntu: RuntimeError: Found no NVIDIA driver on your system",
            "whl/cpu",
            "whl/rocm",
            id="an old AMD GPU",
        ),
        pytest.param(
            "RX 7800 XT, WSL2 Ubuntu 22.04, torch.cuda.is_available() is False, torch 2.3.0+cu121",
            "whl/rocm",
            "wsl --update",
            id="AMD in WSL",
        ),
        pytest.param(
            "EKS g5.xlarge node, Pod pending: 0/3 nodes are available: 3 Insufficient nvidia.com/gpu.",
            "kubectl describe nodes",
            "nvidia-ctk runtime",
            id="nodes of a cloud",
        ),
        pytest.param(
            "ollama uses cpu on my RX 6600 windows 11", "OLLAMA_VULKAN", "HSA_OVERRIDE|export", id="Ollama and AMD"
        ),
    ],
)
def test_the_first_fix_is_for_the_platform(text: str, has: str, lacks: str) -> None:
    commands = "\n".join(commands_of(text))
    assert re.search(has, commands)
    assert not re.search(lacks, commands)


REBOOTS = "Failed to initialize NVML: Driver/library version mismatch\nUbuntu 22.04, RTX 3090\n"
HANGS = "my training with 4 GPUs hangs at the first all_reduce, NCCL, 4x RTX 4090\n"


@pytest.mark.parametrize(
    ("text", "said", "command"),
    [
        pytest.param(REBOOTS, "I cannot reboot the server", "reboot", id="no reboot"),
        pytest.param(REBOOTS, "I already rebooted, no luck", "reboot", id="rebooted"),
        pytest.param(HANGS, "I already tried NCCL_P2P_DISABLE=1, it still hangs", "NCCL_P2P_DISABLE", id="NCCL"),
    ],
)
def test_what_was_tried_is_not_advised_first(text: str, said: str, command: str) -> None:
    assert any(command in line for line in commands_of(text))
    assert not any(command in line for line in commands_of(text + said))


@pytest.mark.parametrize(
    "text",
    [
        "jax: no kernel image is available for execution on the device, RTX 5080, jaxlib 0.4.30",
        "llama.cpp CUDA error: no kernel image is available for execution on the device, GTX 1060",
        "ollama windows 11 GTX 970: CUDA error: no kernel image is available for execution on the device",
    ],
)
def test_who_has_no_torch_installs_none(text: str) -> None:
    finding = first(text)
    assert finding is not None
    assert not any("torch==" in command for remedy in finding.remedies for command in remedy.commands)


CPU_TORCH = "torch 2.5.1+cpu, torch.cuda.is_available() is False, RTX 3060, driver 560.35.03"
CU124 = "https://download.pytorch.org/whl/cu124"


@pytest.mark.parametrize(
    ("text", "install", "verify"),
    [
        pytest.param(
            "$ uv add torch torchvision\n$ uv run train.py",
            f"uv add --index pytorch-cu124={CU124} torch==2.5.1+cu124",
            "uv run python -c",
            id="project of uv",
        ),
        pytest.param(
            "It comes back after every uv sync, uv.lock is committed",
            f"uv add --index pytorch-cu124={CU124} torch==2.5.1+cu124",
            "uv run python -c",
            id="uv sync puts it back",
        ),
        pytest.param(
            "$ uv venv && uv pip install torch", f"uv pip install --index-url {CU124}", "uv run --no-sync", id="uv venv"
        ),
        pytest.param(
            "/home/leo/chat/.venv/bin/python: No module named pip",
            f"uv pip install --python ~/chat/.venv/bin/python --index-url {CU124}",
            "~/chat/.venv/bin/python -c",
            id="no pip",
        ),
        pytest.param(
            "home = /usr/bin\nimplementation = CPython\nuv = 0.5.4\nversion_info = 3.12.7",
            f"uv pip install --index-url {CU124}",
            "uv run --no-sync",
            id="pyvenv.cfg",
        ),
        pytest.param(
            "$ poetry add torch",
            "poetry source add --priority=explicit pytorch-cu124",
            "poetry run python",
            id="Poetry",
        ),
        pytest.param("I unwrap the uv map with uv coordinates", "python -m pip install", "python -c", id="texture"),
        pytest.param("without uv", "python -m pip install", "python -c", id="without uv"),
    ],
)
def test_the_tool_of_the_environment_installs(text: str, install: str, verify: str) -> None:
    commands = commands_of(f"{text}\n{CPU_TORCH}")
    assert commands[0].startswith(install)
    assert commands[-1].startswith(verify)


@pytest.mark.parametrize(
    ("text", "command"),
    [
        pytest.param(
            "fedora 41, GTX 1080: RuntimeError: Found no NVIDIA driver on your system. Please check http://www.nvidia.com",
            "sudo dnf install -y akmod-nvidia-580xx xorg-x11-drv-nvidia-580xx-cuda",
            id="Fedora, old GPU, told beside the error",
        ),
        pytest.param(
            "inxi -G\nDevice-1: NVIDIA GA104 [GeForce RTX 3070] driver: nouveau v: kernel\nFedora 42\nFound no "
            "NVIDIA driver on your system",
            "sudo dnf install -y akmod-nvidia xorg-x11-drv-nvidia-cuda",
            id="inxi",
        ),
        pytest.param(
            "openSUSE Tumbleweed, RTX 3060\nFound no NVIDIA driver on your system",
            "sudo zypper --non-interactive install openSUSE-repos-Tumbleweed-NVIDIA",
            id="openSUSE",
        ),
        pytest.param(
            'EndeavourOS\ncould not select device driver "" with capabilities: [[gpu]]',
            "sudo pacman -S --noconfirm nvidia-container-toolkit",
            id="container toolkit of Arch",
        ),
        pytest.param(
            "Debian 12\nmodprobe: ERROR: could not insert 'nvidia_current': Key was rejected by service",
            "sudo mokutil --import /var/lib/dkms/mok.pub",
            id="Secure Boot on Debian",
        ),
    ],
)
def test_the_distribution_has_its_own_commands(text: str, command: str) -> None:
    assert command in commands_of(text)


@pytest.mark.parametrize(
    ("text", "command"),
    [
        pytest.param(
            "RTX 3090\ndocker run -d --name llm -v ollama:/root/.ollama -p 1:1 ollama/ollama\nlibrary=cpu",
            "docker run --gpus all -d --name llm -v ollama:/root/.ollama -p 1:1 ollama/ollama",
            id="the command with the GPU",
        ),
        pytest.param(
            "I ran docker run -it my/image:2 sh: there nvidia-smi is not found",
            "docker run --rm --gpus all ubuntu nvidia-smi",
            id="a command within words",
        ),
        pytest.param(
            "$ mamba list -n seg\npytorch 2.5.1 cpu_mkl_py312_h446997d_108 conda-forge\nA100, driver 560.35.05",
            "conda install --yes --name seg --channel conda-forge pytorch-gpu cuda-version=12 torchvision torchaudio",
            id="name of the conda environment",
        ),
        pytest.param(
            "ollama[12]: cuda driver library init failure: 999, after suspend",
            "sudo systemctl start ollama",
            id="Ollama",
        ),
        pytest.param(
            "docker exec train nvidia-smi\nFailed to initialize NVML: Unknown Error\n`docker restart train` fixes it",
            "sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml",
            id="restarted already",
        ),
        pytest.param(
            "Cannot dlopen some GPU libraries. Skipping registering GPU devices...",
            "python -m pip install --upgrade 'tensorflow[and-cuda]'",
            id="libraries of TensorFlow",
        ),
        pytest.param(
            "Windows 11, RTX 3060, venv at C:\\rag\\venv: llama_cpp, load_tensors: layer 0 assigned to device CPU",
            "C:\\rag\\venv\\Scripts\\python.exe -m pip install llama-cpp-python --upgrade --force-reinstall "
            "--no-cache-dir",
            id="llama-cpp-python without CUDA",
        ),
    ],
)
def test_the_command_is_for_what_the_report_shows(text: str, command: str) -> None:
    assert command in commands_of(text)


@pytest.mark.parametrize(
    ("gpu", "summary"),
    [
        pytest.param("two used Tesla K80", "Install PyTorch 2.4.1 built with CUDA 11.8", id="a wheel has its code"),
        pytest.param("a GTX 770", "No driver update helps: R470", id="no wheel has its code"),
    ],
)
def test_the_driver_of_an_old_gpu_is_not_updated_beyond_its_last_branch(gpu: str, summary: str) -> None:
    finding = first(
        f"I have {gpu}, driver 470.256.02\ntorch 2.4.1+cu121: The NVIDIA driver on your system is too old (found "
        "version 11040)"
    )
    assert finding is not None
    assert finding.remedies[0].summary.startswith(summary)
    assert not any("ubuntu-drivers" in command for remedy in finding.remedies for command in remedy.commands)


LOOP = (
    ">>> torch.cuda.is_available()\nTrue\nGPU at 0%\nmodel = Net()\nfor x, y in data:\n    loss = f(model(x), y)\n    "
)


@pytest.mark.parametrize(
    ("text", "check"),
    [
        pytest.param(f"{LOOP}loss.backward()", "runs-on-cpu", id="model never moved"),
        pytest.param(f"model.to(device)\n{LOOP}loss.backward()", "", id="model moved"),
        pytest.param(
            "In the terminal torch.cuda.is_available() is True, in the VS Code notebook it is False",
            "wrong-python-environment",
            id="notebook",
        ),
    ],
)
def test_the_cause_that_code_and_places_show(text: str, check: str) -> None:
    finding = first(text)
    assert (finding.check_id if finding is not None else "") == check


NO_WHEEL = "\nCould not find a version that satisfies the requirement torch==2.5.1 (from versions: none)"


@pytest.mark.parametrize(
    ("text", "check", "summary"),
    [
        pytest.param(
            "Python 3.11.9, Ubuntu 22.04 x86_64\npip install torch==2.5.1 --index-url https://pypi.corp.example/simple",
            "wheel-index-wrong",
            "Install PyTorch 2.5.1",
            id="a wheel exists: the index has none",
        ),
        pytest.param(
            "FROM python:3.12-alpine\nRUN pip install torch==2.5.1",
            "python-version-no-wheel",
            "Use a system",
            id="musl",
        ),
        pytest.param(
            "Windows 11 ARM, Python 3.12\npip install torch==2.5.1",
            "python-version-no-wheel",
            "Use a platform",
            id="ARM",
        ),
    ],
)
def test_why_an_installer_finds_no_wheel(text: str, check: str, summary: str) -> None:
    finding = first(text + NO_WHEEL)
    assert finding is not None
    assert finding.check_id == check
    assert finding.remedies[0].summary.startswith(summary)
