"""The reader of the tables that OpenMMLab, Detectron2, Ultralytics, Lightning and JAX print."""

import pytest

from gpudoctor.model import ComputeCapability, CudaVersion, DriverVersion
from gpudoctor.readers.environment_tables import read
from gpudoctor.readers.facts import Facts
from gpudoctor.readers.text import clean_text

MMDET = """\
sys.platform: linux
Python: 3.8.16 (default, Mar  2 2023, 03:21:46) [GCC 11.2.0]
CUDA available: True
GPU 0,1: NVIDIA GeForce RTX 3090
CUDA_HOME: /usr/local/cuda-11.3
NVCC: Cuda compilation tools, release 11.3, V11.3.58
GCC: gcc (Ubuntu 9.4.0-1ubuntu1~20.04.1) 9.4.0
PyTorch: 1.12.1
PyTorch compiling details: PyTorch built with:
  - GCC 9.3
  - C++ Version: 201402
  - CUDA Runtime 11.3
  - NVCC architecture flags: -gencode;arch=compute_70,code=sm_70;-gencode;arch=compute_86,code=compute_86
  - CuDNN 8.3.2  (built against CUDA 11.5)
  - Magma 2.5.2

TorchVision: 0.13.1
OpenCV: 4.7.0
MMCV: 1.7.1
MMCV Compiler: GCC 9.3
MMCV CUDA Compiler: 11.3
MMDetection: 2.28.2+
"""

DETECTRON2 = """\
-------------------------------  ------------------------------------------------------------
sys.platform                     linux
Python                           3.9.18 (main, Sep 11 2023, 13:41:44) [GCC 11.2.0]
numpy                            1.26.0
detectron2                       0.6 @/home/user/detectron2/detectron2
Compiler                         GCC 9.3
CUDA compiler                    CUDA 11.8
detectron2 arch flags            8.6
DETECTRON2_ENV_MODULE            <not set>
PyTorch                          2.0.1+cu118 @/home/user/env/lib/python3.9/site-packages/torch
PyTorch debug build              False
torch._C._GLIBCXX_USE_CXX11_ABI  False
GPU available                    Yes
GPU 0,1,2                        NVIDIA RTX A5000 (arch=8.6)
Driver version                   535.104.05
CUDA_HOME                        /usr/local/cuda
torchvision                      0.15.2+cu118 @/home/user/env/lib/python3.9/site-packages/torchvision
-------------------------------  ------------------------------------------------------------
"""

ULTRALYTICS = """\
Ultralytics 8.3.40 🚀 Python-3.11.9 torch-2.5.1+cu124 CUDA:0 (NVIDIA GeForce RTX 4070, 12282MiB)
                                                      CUDA:1 (NVIDIA GeForce RTX 4060, 8188MiB)
Setup complete ✅ (16 CPUs, 31.2 GB RAM, 200.1/475.7 GB disk)

OS                  Windows-10-10.0.22631-SP0
Environment         Windows
Python              3.11.9
Install             pip
RAM                 31.20 GB
CPU                 AMD Ryzen 7 7700X 8-Core Processor
CPU count           16
GPU                 NVIDIA GeForce RTX 4070, 12282MiB
GPU count           2
CUDA                12.4

numpy               ✅ 1.26.4<=2.1.1,>=1.23.0
torch               ✅ 2.5.1+cu124>=1.8.0
torchvision         ✅ 0.20.1+cu124>=0.9.0
"""

LIGHTNING = """\
* CUDA:
\t- GPU:
\t\t- Tesla V100-SXM2-16GB
\t\t- Tesla V100-SXM2-16GB
\t- available:         True
\t- version:           11.7
* Lightning:
\t- pytorch-lightning: 2.0.2
\t- torch:             2.0.1
\t- torchvision:       0.15.2
* System:
\t- OS:                Linux
\t- architecture:
\t\t- 64bit
\t\t- ELF
\t- processor:         x86_64
\t- python:            3.10.11
"""

JAX = """\
jax:    0.4.30
jaxlib: 0.4.30
numpy:  1.26.4
python: 3.11.9 (main, Apr  6 2024, 17:59:24) [GCC 11.4.0]
device info: NVIDIA L4-2, 2 local devices"
process_count: 1
platform: uname_result(system='Linux', node='host', release='6.5.0', version='#1 SMP', machine='x86_64')
"""


def facts_of(text: str) -> Facts:
    return read(clean_text(text, "report.txt"))


def test_openmmlab() -> None:
    facts = facts_of(MMDET)
    torch = facts["torch"]
    assert (str(torch.version), torch.build, torch.cuda_version) == ("1.12.1", "cuda", CudaVersion(11, 3))
    assert torch.architectures == ("sm_70", "compute_86")
    assert (facts["torch_runtime"].available, facts["torch_runtime"].cudnn_version) == (True, 8302)
    assert [d.name for d in facts["devices"]] == ["NVIDIA GeForce RTX 3090"] * 2
    toolkit = facts["toolkit"]
    assert (toolkit.nvcc_version, toolkit.host_compiler_version) == (CudaVersion(11, 3), (9, 4, 0))
    assert facts["system"].os == "linux"


def test_openmmlab_without_cuda() -> None:
    text = (
        "sys.platform: win32\nCUDA available: False\nMUSA available: False\nNVCC: Not Available\nPyTorch: 2.1.0+cpu\n"
    )
    facts = facts_of(text)
    assert (facts["system"].os, facts["torch"].build, facts["torch_runtime"].available) == ("windows", "cpu", False)
    assert "toolkit" not in facts


def test_detectron2() -> None:
    facts = facts_of(DETECTRON2)
    torch = facts["torch"]
    assert (str(torch.version), torch.cxx11_abi) == ("2.0.1+cu118", False)
    assert facts["driver"].version == DriverVersion.parse("535.104.05")
    assert [d.compute_capability for d in facts["devices"]] == [ComputeCapability(8, 6)] * 3
    assert "toolkit" not in facts  # "CUDA compiler" is what Detectron2 was built with


def test_ultralytics() -> None:
    facts = facts_of(ULTRALYTICS)
    assert (str(facts["torch"].version), facts["torch"].cuda_version) == ("2.5.1+cu124", CudaVersion(12, 4))
    assert [d.name for d in facts["devices"]] == ["NVIDIA GeForce RTX 4070", "NVIDIA GeForce RTX 4060"]
    assert (facts["torch_runtime"].available, facts["system"].os) == (True, "windows")


@pytest.mark.parametrize(
    ("banner", "version", "devices", "available"),
    [
        (
            "Ultralytics YOLOv8.0.45 Python-3.9.16 torch-1.13.1+cu116 CUDA:0 (NVIDIA T500, 4096MiB)",
            "1.13.1+cu116",
            ["NVIDIA T500"],
            True,
        ),
        ("YOLOv5 v6.1-1-g5f8 torch 1.10.0+cu111 CUDA:0 (Tesla T4, 15109.75MB)", "1.10.0+cu111", ["Tesla T4"], True),
        ("Ultralytics 8.2.0 Python-3.12.3 torch-2.3.0+cpu CPU (Intel Core(TM) i7)", "2.3.0+cpu", [], None),
        ("YOLOv8.1 Python-3.11.5 torch-2.2.0 MPS (Apple M2)", "2.2.0", [], None),
    ],
)
def test_the_banner_alone(banner: str, version: str, devices: list[str], available: bool | None) -> None:
    facts = facts_of(f"{banner}\nModel summary: 168 layers\n")
    assert str(facts["torch"].version) == version
    assert [d.name for d in facts.get("devices", ())] == devices
    assert (facts["torch_runtime"].available if "torch_runtime" in facts else None) is available


def test_lightning() -> None:
    facts = facts_of(LIGHTNING)
    torch = facts["torch"]
    assert (str(torch.version), torch.cuda_version) == ("2.0.1", CudaVersion(11, 7))
    assert len(facts["devices"]) == 2
    assert (facts["torch_runtime"].available, facts["system"].os) == (True, "linux")


def test_lightning_without_cuda() -> None:
    text = LIGHTNING.replace("- available:         True", "- available:         False").replace("11.7", "None")
    facts = facts_of(text.replace("Tesla V100-SXM2-16GB", "None"))
    assert (facts["torch"].build, facts["torch_runtime"].available) == ("cpu", False)
    assert "devices" not in facts


def test_jax() -> None:
    facts = facts_of(JAX)
    assert [d.name for d in facts["devices"]] == ["NVIDIA L4", "NVIDIA L4"]
    assert {p.name: str(p.version) for p in facts["python"].packages}["jaxlib"] == "0.4.30"
    assert (facts["system"].os, facts["system"].machine) == ("linux", "x86_64")


@pytest.mark.parametrize("report", [MMDET, DETECTRON2, ULTRALYTICS, LIGHTNING, JAX])
def test_a_text_cut_off_anywhere_shows_nothing_else(report: str) -> None:
    whole = facts_of(report)
    for end in range(0, len(report), 3):
        facts = facts_of(report[:end])
        torch = facts.get("torch")
        if torch is not None and torch.version is not None:
            assert str(whole["torch"].version).startswith(str(torch.version)), report[:end][-40:]
            assert torch.build in (None, "cuda"), report[:end][-40:]
            assert torch.cuda_version in (None, whole["torch"].cuda_version), report[:end][-40:]
        driver = facts.get("driver")
        assert driver is None or driver.version.branch == whole["driver"].version.branch


@pytest.mark.parametrize("around", ["> {}", "{}\r"])
@pytest.mark.parametrize("report", [MMDET, DETECTRON2, LIGHTNING, JAX])
def test_what_is_around_changes_nothing(around: str, report: str) -> None:
    pasted = "\n".join(around.format(line) for line in report.splitlines())
    assert facts_of(pasted) == facts_of(report)


def test_other_texts_hold_none() -> None:
    assert facts_of("Python: 3.10\nGCC: 9.4\nThe available: yes") == {}


@pytest.mark.parametrize(
    ("text", "read_as_table"),
    [
        ("sys.platform: linux\nPyTorch: 2.1.0+cpu\n", True),
        ("sys.platform: linux\nPython: 3.10.1\nnumpy: 1.26.4\n", False),
        ("sys.platform: linux\n", False),
    ],
)
def test_two_fields_that_others_do_not_have_make_a_table(text: str, read_as_table: bool) -> None:
    assert ("system" in facts_of(text)) is read_as_table


def test_the_python_of_a_banner() -> None:
    with_python, without = "Ultralytics 8.2.0 Python-3.12.3 torch-2.3.0 CPU", "Ultralytics 8.2.0 torch-2.3.0 CPU"
    assert str(facts_of(f"{with_python}\nModel\n")["python"].version) == "3.12.3"
    assert "python" not in facts_of(f"{without}\nModel\n")
