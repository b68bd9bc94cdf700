"""The reader of words: what is stated of the machine is taken, what is said of another thing is not."""

from typing import Any

import pytest

from gpudoctor.data.gpu_names import capability_of
from gpudoctor.model import CudaVersion, DriverVersion, PackageVersion
from gpudoctor.readers.facts import Facts
from gpudoctor.readers.prose import read
from gpudoctor.readers.text import clean_text


def facts(text: str) -> Facts:
    return read(clean_text(text, "report.txt"))


def gpu(text: str) -> tuple[str, ...] | None:
    system = facts(text).get("system")
    found = system.pci_gpus if system is not None else None
    return None if found is None else tuple(item.name for item in found)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("- GPU: GTX 1080 Ti (Pascal)", "NVIDIA GeForce GTX 1080 Ti"),
        ("Graphics card: nvidia geforce rtx 3060", "NVIDIA GeForce RTX 3060"),
        ("Fedora 34, 2060 Super", "NVIDIA GeForce RTX 2060 SUPER"),
        ("WSL 2, RTX 2080 ti", "NVIDIA GeForce RTX 2080 Ti"),
        ("I train on an RTX 4060 laptop", "NVIDIA GeForce RTX 4060 Laptop GPU"),
        ("GPU: 3090", "NVIDIA GeForce RTX 3090"),
        ("we use A100", "NVIDIA A100"),
        ("Card: Tesla T4", "Tesla T4"),
        ("Radeon 5700XT", "AMD Radeon RX 5700 XT"),
        ("Linux, RX 6650 XT", "AMD Radeon RX 6650 XT"),
        ("Device: Jetson Orin Nano", "NVIDIA Jetson Orin Nano"),
        ("显卡: RTX 4090", "NVIDIA GeForce RTX 4090"),
    ],
)
def test_the_gpu_of_the_machine(text: str, name: str) -> None:
    assert gpu(text) == (name,)


@pytest.mark.parametrize(
    ("text", "name", "version"),
    [
        ("OS: Ubuntu 22.04", "ubuntu", "22.04"),
        ("OS: Debian GNU/Linux 12", "debian", "12"),
        ("OS: Red Hat Enterprise Linux 8.9", "rhel", "8.9"),
        ("OS: RHEL 9", "rhel", "9"),
        ("OS: Alma Linux 9.3", "almalinux", "9.3"),
        ("OS: Arch Linux", "arch", None),
        ("Arch, GTX 1080", "arch", None),
        ("on Arch, with a 1080", "arch", None),
        ("RTX 3060. sudo pacman -Syu replaced the driver", "arch", None),
        ("linux 6.18.2.arch2-1, driver 550", "arch", None),
        ("Manjaro, RTX 3060, pacman -Syu replaced the driver", "manjaro", None),
        ("Fedora 40 with an RTX 4070, dual boot with win 11", "fedora", "40"),
        ("OS: openSUSE Leap 15.5", "opensuse-leap", "15.5"),
        ("OS: Linux Mint 21.3", "linuxmint", "21.3"),
        ("OS: Pop!_OS 22.04", "pop", "22.04"),
        ("OS: Amazon Linux 2023", "amzn", "2023"),
    ],
)
def test_the_distribution(text: str, name: str, version: str | None) -> None:
    system = facts(text)["system"]
    assert (system.distribution, system.distribution_version) == (name, version)


@pytest.mark.parametrize(
    "text",
    [
        "It works on my 1080 but not on the RTX 3090 or A100.",
        "1080 Ti yields 9.85, while the A40 yields 9.86",
        "NVIDIA RTX 30 series or newer, e.g. RTX 3090, is supported",
        "resized to 3080 pixels, batch 2080",
        "see https://example.org/rtx-3090",
        "GTX 1080 and RTX 3090 in one sentence",
    ],
)
def test_a_gpu_that_may_be_another(text: str) -> None:
    assert gpu(text) is None


def test_a_label_is_believed_among_others() -> None:
    assert gpu("I compared with an A100\nGPU: RTX 3060\n") == ("NVIDIA GeForce RTX 3060",)


@pytest.mark.parametrize(
    "line",
    [
        *("driver 535.129.03", "cuda 11.8", "nvcc 11.8", "torch 2.1.0", "python 3.10.4", "gcc 11.4.0", "g++ 11.4.0"),
        *("no nvidia GPU", "it has only intel iris", "gfx1030", "2.1.0+cu118", "is_available() returns False"),
        *("device: NV136", "Windows 11", "W11 here", "on my MacBook Pro", "Apple silicon", "in WSL", "Linux, 4 GPUs"),
        *("M1 Max", "M2 Max", "M3 Max", "M4 Max", "M5 Max"),
        *("Ubuntu 22.04", "Debian 12", "Fedora 39", "CentOS 7", "RHEL 8.6", "Rocky 9.2", "AlmaLinux 9.2", "Arch Linux"),
        *("on Manjaro", "openSUSE 15.5", "Linux Mint 21", "Pop!_OS 22.04", "Gentoo, RTX 3060", "SLES 15", "Kali"),
    ],
)
def test_a_line_of_one_topic_is_read(line: str) -> None:
    assert facts(line)


def test_no_nvidia_gpu() -> None:
    assert gpu("a laptop without NVIDIA adapter (Intel)") == ("",)
    assert facts("a laptop without NVIDIA adapter (Intel)")["system"].pci_gpus[0].vendor == "intel"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("OS: Ubuntu 24.04.1 LTS", ("linux", "ubuntu", "24.04", None)),
        ("Windows 11, RTX 3060", ("windows", None, None, None)),
        ("Microsoft Windows [Version 10.0.19042]\nWSL 2, Ubuntu 20.04", ("linux", "ubuntu", "20.04", 2)),
        ("I run it inside WSL", ("linux", None, None, 2)),
        ("I run it inside WSL 1", ("linux", None, None, 1)),
        ("WSL 1 before, WSL 2 now", ("linux", None, None, 2)),
        ("Debian 13.1", ("linux", "debian", "13", None)),
        ("macOS 14.2 on M2", ("darwin", None, None, None)),
        ('File "C:\\work\\a.py", line 2, in torch', ("windows", None, None, None)),
        ('File "/Users/ann/a.py", line 2, in torch', ("darwin", None, None, None)),
        ('File "/home/ann/a.py", line 2, in torch', ("linux", None, None, None)),
        ("slow on my MacBook Pro", ("darwin", None, None, None)),
        ("win 11, RTX 3060", ("windows", None, None, None)),
        ("W11 with an RTX 4070", ("windows", None, None, None)),
        ("Win10 rtx 2060", ("windows", None, None, None)),
        ("an RTX 2060 on windows", ("windows", None, None, None)),
        ("WSL Ubuntu, RTX 3080", ("linux", "ubuntu", None, 2)),
        ("M3 Max, torch 2.5.1", ("darwin", None, None, None)),
    ],
)
def test_the_system(text: str, expected: tuple[Any, ...]) -> None:
    system = facts(text)["system"]
    assert (system.os, system.distribution, system.distribution_version, system.wsl) == expected


@pytest.mark.parametrize("text", ["fails on Windows 10 but not on Ubuntu 22.04", "both Ubuntu and Fedora"])
def test_several_systems_show_nothing(text: str) -> None:
    assert "system" not in facts(text)


@pytest.mark.parametrize(
    ("text", "section", "name", "value"),
    [
        ("nvidia drivers: 390.116", "driver", "version", DriverVersion((390, 116))),
        ("geforce driver version 470.76 installed on Windows", "driver", "version", DriverVersion((470, 76))),
        ("already updated the driver to 576.02", "driver", "version", DriverVersion((576, 2))),
        ("nvidia-driver-550", "driver", "version", DriverVersion((550,))),
        ("nvidia-smi =11.6", "driver", "cuda_version", CudaVersion(11, 6)),
        ("- cuda_12.1", "toolkit", "nvcc_version", CudaVersion(12, 1)),
        ("CUDA 11.7, Python 3.9", "toolkit", "nvcc_version", CudaVersion(11, 7)),
        ("python (version 3.8.10)", "python", "version", PackageVersion("3.8.10")),
        ("* Python version: 3.12.3", "python", "version", PackageVersion("3.12.3")),
        ("* Torch version: 2.5.1", "torch", "version", PackageVersion("2.5.1")),
        ("pytorch package (version 1.7.1)", "torch", "version", PackageVersion("1.7.1")),
        ("PyTorch 1.4", "torch", "version", PackageVersion("1.4")),
        ("trained with torch 1.10.0+cu102, yours is 2.6.0+cu124", "torch", "version", PackageVersion("2.6.0+cu124")),
        ("torch-1.13.1+cu116 CUDA:0", "torch", "version", PackageVersion("1.13.1+cu116")),
        ("torch>=2.8.0,<2.9.0 from the cu128 index", "torch", "version", PackageVersion("2.8+cu128")),
        ("is_available() returns False", "torch_runtime", "available", False),
        ("Image: nvidia/cuda:12.2.2-devel-ubuntu22.04", "container", "image_cuda_version", CudaVersion(12, 2)),
        ("- gcc 13.2", "toolkit", "host_compiler_version", (13, 2)),
    ],
)
def test_a_version(text: str, section: str, name: str, value: Any) -> None:
    assert getattr(facts(text)[section], name) == value


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("PyTorch 2.13\nPyTorch 2.13.0", "2.13.0"),
        ("PyTorch 2.13.0\nPyTorch 2.13", "2.13.0"),
        ("PyTorch 2.1\nPyTorch 2.13", None),
        ("PyTorch 2.13.0\nPyTorch 2.13.1", None),
    ],
)
def test_two_versions_of_which_one_may_say_less(text: str, version: str | None) -> None:
    torch = facts(text).get("torch")
    assert (str(torch.version) if torch else None) == version


@pytest.mark.parametrize(
    "text",
    [
        "see https://docs.nvidia.com/cuda/archive/12.1/ and /usr/local/cuda-11.8/lib64",
        "It requires CUDA 12.4 and driver 550.54 or newer, with PyTorch 2.4",
        "Changelog: PyTorch 2.3, CUDA 12.4, Python 3.12",
        "RuntimeError: The detected CUDA version (12.2) mismatches PyTorch (11.3)",
        "pip install torch==2.1.0 --index-url https://download.pytorch.org/whl/cu121",
        "The driver installed is version : 31.0.15.2686",
        "If you have CUDA 12.1, use torch 2.1",
        "The NVIDIA driver is too old (found version 11040)",
    ],
)
def test_what_is_no_version_of_this_machine(text: str) -> None:
    assert not {"driver", "toolkit", "python", "torch"} & facts(text).keys()


def test_a_paragraph_shows_what_its_sentences_state() -> None:
    said = facts(
        "I have driver 452.39 on Windows 10 and a GTX 1660. I installed torch 2.1 cu121 with pip install torch==1.0.0 "
        "and it fails. Please help, should I try Ubuntu 22.04? A friend said driver 525.60 is at least required. "
        + "Nothing of all this worked for me so far, and I really do not know what else to do now. "
        * 6
    )
    assert said["driver"].version == DriverVersion.parse("452.39")
    assert said["torch"].version == PackageVersion("2.1+cu121")
    assert said["system"].os == "windows"


def test_two_versions_of_one_thing_show_nothing() -> None:
    assert "driver" not in facts("driver version 470.57.02 before, driver version 535.54.03 now")


def test_the_cuda_version_of_the_driver_is_no_toolkit() -> None:
    assert "toolkit" not in facts("nvidia-smi\nCUDA Version: 12.8\n")


def test_two_cards_called_titan_x_are_distinguished() -> None:
    (maxwell,) = read(clean_text("GPU: GeForce GTX TITAN X", "x"))["system"].pci_gpus
    (pascal,) = read(clean_text("GPU: TITAN X (Pascal)", "x"))["system"].pci_gpus
    assert str(capability_of(maxwell.name)) == "5.2"
    assert str(capability_of(pascal.name)) == "6.1"


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("Ubuntu, nvidia driver 390, GTX 770", "390"),
        ("nvidia-driver: 535", "535"),
        ("nvidia driver 390.48", "390.48"),
    ],
)
def test_a_driver_by_its_branch(text: str, version: str) -> None:
    assert str(facts(text)["driver"].version) == version


def test_a_mac_by_its_chip() -> None:
    system = facts("Python 3.10\nApple M2")["system"]
    assert (system.os, system.machine) == ("darwin", "arm64")


def test_a_product_in_chinese() -> None:
    gpus = facts("产品:Tesla T4")["system"].pci_gpus
    assert [gpu.name for gpu in gpus] == ["Tesla T4"]


@pytest.mark.parametrize(
    ("told", "version"),
    [
        ("torch 2.5 and torch 2.5.1", "2.5.1"),
        ("torch 2.5, torch 2.5.1 and torch 2.5.0", None),
        ("torch 2.4 and torch 2.5.1", None),
    ],
)
def test_of_versions_that_agree_the_longest_counts(told: str, version: str | None) -> None:
    torch = facts(told).get("torch")
    assert (torch and torch.version and str(torch.version)) == version
