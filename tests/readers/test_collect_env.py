"""The reader of collect_env: its layouts since 2018, vLLM's, what people do to them, and texts that are cut off."""

from typing import Any

import pytest

from gpudoctor.model import CudaVersion, DriverVersion, PackageVersion, Torch
from gpudoctor.readers.collect_env import read
from gpudoctor.readers.facts import Facts
from gpudoctor.readers.text import clean_text

OF_2019 = """\
Collecting environment information...
PyTorch version: 1.2.0
Is debug build: No
CUDA used to build PyTorch: 10.0.130

OS: Ubuntu 18.04.2 LTS
GCC version: (Ubuntu 7.4.0-1ubuntu1~18.04.1) 7.4.0
CMake version: version 3.14.4

Python version: 3.7
Is CUDA available: Yes
CUDA runtime version: 9.1.85
GPU models and configuration:
GPU 0: GeForce RTX 2080 Ti
GPU 1: Quadro P5000

Nvidia driver version: 430.26
cuDNN version: /usr/lib/x86_64-linux-gnu/libcudnn.so.7.6.0

Versions of relevant libraries:
[pip3] numpy==1.16.4
[pip3] torch==1.2.0
[pip3] torchvision==0.4.0
[conda] blas                      1.0                         mkl
[conda] pytorch                   1.2.0           py3.7_cuda10.0.130_cudnn7.6.2_0    pytorch
[conda] torchvision               0.4.0                py37_cu100    pytorch
"""

OF_2024 = """\
PyTorch version: 2.4.1+cu121
Is debug build: False
CUDA used to build PyTorch: 12.1
ROCM used to build PyTorch: N/A

OS: Debian GNU/Linux 12 (bookworm) (x86_64)
GCC version: (Debian 12.2.0-14) 12.2.0
Clang version: Could not collect
CMake version: version 3.30.2
Libc version: glibc-2.36

Python version: 3.11.9 | packaged by conda-forge | (main, Apr 19 2024, 18:36:13) [GCC 12.3.0] (64-bit runtime)
Python platform: Linux-6.1.0-25-amd64-x86_64-with-glibc2.36
Is CUDA available: True
CUDA runtime version: 12.4.131
CUDA_MODULE_LOADING set to: LAZY
GPU models and configuration: GPU 0: NVIDIA L40S
Nvidia driver version: 550.90.07
cuDNN version: Probably one of the following:
/usr/lib/x86_64-linux-gnu/libcudnn.so.9.3.0
/usr/lib/x86_64-linux-gnu/libcudnn_adv.so.9.3.0
HIP runtime version: N/A
MIOpen runtime version: N/A
Is XNNPACK available: True

CPU:
Architecture:                       x86_64
CPU op-mode(s):                     32-bit, 64-bit
Model name:                         AMD EPYC 9354 32-Core Processor

Versions of relevant libraries:
[pip3] numpy==1.26.4
[pip3] nvidia-cudnn-cu12==9.1.0.70
[pip3] torch==2.4.1+cu121
[pip3] torchvision==0.19.1+cu121
[pip3] triton==3.0.0
[conda] numpy                     1.26.4                   pypi_0    pypi
[conda] torch                     2.4.1+cu121              pypi_0    pypi
"""

VLLM = """\
==============================
        System Info
==============================
OS                           : Rocky Linux 9.4 (Blue Onyx) (x86_64)
GCC version                  : (GCC) 11.4.1 20231218 (Red Hat 11.4.1-3)
Clang version                : Could not collect
CMake version                : version 4.0.2
Libc version                 : glibc-2.34

==============================
       PyTorch Info
==============================
PyTorch version              : 2.7.0+cu126
Is debug build               : False
CUDA used to build PyTorch   : 12.6
ROCM used to build PyTorch   : N/A

==============================
      Python Environment
==============================
Python version               : 3.12.10 (main, Apr  9 2025, 04:03:51) [Clang 20.1.0 ] (64-bit runtime)
Python platform              : Linux-5.14.0-427.el9.x86_64-x86_64-with-glibc2.34

==============================
       CUDA / GPU Info
==============================
Is CUDA available            : True
CUDA runtime version         : 12.8.93
CUDA_MODULE_LOADING set to   : LAZY
GPU models and configuration :
GPU 0: NVIDIA H100 80GB HBM3
GPU 1: NVIDIA H100 80GB HBM3

Nvidia driver version        : 550.144.03
cuDNN version                : Could not collect

==============================
Versions of relevant libraries
==============================
[pip3] torch==2.7.0
[pip3] transformers==4.52.3
[conda] Could not collect

==============================
         vLLM Info
==============================
ROCM Version                 : Could not collect
vLLM Version                 : 0.9.0.1
vLLM Build Flags:
  CUDA Archs: Not Set; ROCm: Disabled; Neuron: Disabled
GPU Topology:
        GPU0    GPU1    CPU Affinity
GPU0     X      NV18    0-47
GPU1    NV18     X      48-95

==============================
     Environment Variables
==============================
NVIDIA_VISIBLE_DEVICES=all
NVIDIA_REQUIRE_CUDA=cuda>=12.8 brand=tesla,driver>=550,driver<551
LD_LIBRARY_PATH=/usr/local/nvidia/lib:/usr/local/nvidia/lib64
VLLM_WORKER_MULTIPROC_METHOD=spawn
"""

LAYOUTS = {"2019": OF_2019, "2024": OF_2024, "vllm": VLLM}


def facts_of(text: str) -> Facts:
    return read(clean_text(text, "report.txt"))


def values(record: Any, *names: str) -> tuple[Any, ...]:
    return tuple(getattr(record, name) for name in names)


def test_the_layout_of_2019() -> None:
    facts = facts_of(OF_2019)
    torch = facts["torch"]
    assert values(torch, "installed", "build", "conda_cpuonly") == (True, "cuda", False)
    assert (str(torch.version), torch.cuda_version) == ("1.2.0", CudaVersion(10, 0))
    assert torch.conda_build == "py3.7_cuda10.0.130_cudnn7.6.2_0"
    assert facts["torch_runtime"].available is True
    assert [(d.nvml_index, d.name) for d in facts["devices"]] == [(0, "GeForce RTX 2080 Ti"), (1, "Quadro P5000")]
    assert facts["driver"].version == DriverVersion.parse("430.26")
    assert values(facts["system"], "os", "distribution", "distribution_version") == ("linux", "ubuntu", "18.04")
    toolkit = facts["toolkit"]
    assert values(toolkit, "nvcc_version", "host_compiler") == (CudaVersion(9, 1), "gcc")
    assert toolkit.host_compiler_version == (7, 4, 0)
    assert [(p.name, str(p.version), p.installer) for p in facts["python"].packages] == [
        ("numpy", "1.16.4", ""),
        ("torch", "1.2.0", "conda"),
        ("torchvision", "0.4.0", "conda"),
    ]


def test_the_layout_of_2024() -> None:
    facts = facts_of(OF_2024)
    assert values(facts["torch"], "build", "cuda_version", "conda_build") == ("cuda", CudaVersion(12, 1), None)
    names = ("distribution", "distribution_version", "glibc", "kernel", "machine", "wsl")
    assert values(facts["system"], *names) == ("debian", "12", "2.36", "6.1.0-25-amd64", "x86_64", None)
    assert values(facts["python"], "version", "environment") == (PackageVersion("3.11.9"), "conda")
    assert [d.name for d in facts["devices"]] == ["NVIDIA L40S"]
    assert facts["environment"].variables == {"CUDA_MODULE_LOADING": "LAZY"}
    torch = next(p for p in facts["python"].packages if p.name == "torch")
    assert (str(torch.version), torch.installer) == ("2.4.1+cu121", "pip")


def test_vllm_puts_the_system_first_and_variables_last() -> None:
    facts = facts_of(VLLM)
    assert (str(facts["torch"].version), facts["torch"].cuda_version) == ("2.7.0+cu126", CudaVersion(12, 6))
    assert values(facts["system"], "distribution", "glibc", "kernel") == ("rocky", "2.34", "5.14.0-427.el9.x86_64")
    assert facts["driver"].version == DriverVersion.parse("550.144.03")
    assert len(facts["devices"]) == 2
    assert facts["environment"].variables == {
        "NVIDIA_VISIBLE_DEVICES": "all",
        "NVIDIA_REQUIRE_CUDA": "cuda>=12.8 brand=tesla,driver>=550,driver<551",
        "LD_LIBRARY_PATH": "/usr/local/nvidia/lib:/usr/local/nvidia/lib64",
        "CUDA_MODULE_LOADING": "LAZY",
    }
    assert {p.name: str(p.version) for p in facts["python"].packages}["vllm"] == "0.9.0.1"


@pytest.mark.parametrize(
    "pasted",
    [
        pytest.param(OF_2019.replace("\n", "\r\n"), id="Windows line ends"),
        pytest.param("".join(f"> {line}\n" for line in OF_2019.splitlines()), id="quoted"),
        pytest.param(f"(env) lee@lab:~$ python -m torch.utils.collect_env\n{OF_2019}", id="after a prompt"),
        pytest.param(f"```\n{OF_2019}```", id="fenced"),
        pytest.param(" ".join(OF_2019.split()), id="in one line"),
        pytest.param(OF_2019.replace(": ", ": "), id="full-width colons"),
        pytest.param(OF_2019.replace("version: ", "version "), id="without colons"),
        pytest.param(OF_2019.upper().replace("PYTORCH   ", "pytorch   "), id="upper case"),
        pytest.param(
            "".join(f" - {line}\n" if line[:1].isupper() else f"{line}\n" for line in OF_2019.splitlines()), id="a list"
        ),
        pytest.param(
            "".join(f"2024-05-06T23:29:13.1633470Z {line}\n" for line in OF_2019.splitlines() if "GPU 1" not in line),
            id="a log of CI",
        ),
    ],
)
def test_what_is_around_changes_nothing(pasted: str) -> None:
    facts = facts_of(pasted)
    assert str(facts["torch"].version) == "1.2.0"
    assert values(facts["torch"], "build", "cuda_version") == ("cuda", CudaVersion(10, 0))
    assert facts["driver"].version == DriverVersion.parse("430.26")
    assert facts["torch_runtime"].available is True
    assert facts["toolkit"].nvcc_version == CudaVersion(9, 1)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_text_cut_off_anywhere_shows_less_and_nothing_else(layout: str) -> None:
    text = LAYOUTS[layout]
    whole = facts_of(text)
    for end in range(len(text)):
        facts = facts_of(text[:end])
        torch, driver = facts.get("torch"), facts.get("driver")
        if torch is not None and torch.version is not None:
            assert whole["torch"].version.text.startswith(torch.version.text), text[:end][-60:]
            assert torch.version.release[:2] == whole["torch"].version.release[:2], text[:end][-60:]
            assert torch.build in (None, "cuda"), text[:end][-60:]
            assert torch.cuda_version in (None, whole["torch"].cuda_version)
        assert driver is None or driver.version.branch == whole["driver"].version.branch
        assert facts.get("torch_runtime") in (None, whole["torch_runtime"])
        packages = {p.name: str(p.version) for p in whole["python"].packages}
        for package in (facts["python"].packages or ()) if "python" in facts else ():
            assert packages[package.name].startswith(str(package.version)), text[:end][-60:]
            assert str(package.version).count(".") > 1, text[:end][-60:]


CPU_BUILD = OF_2024.replace("2.4.1+cu121", "2.4.1").replace("PyTorch: 12.1", "PyTorch: Could not collect")


@pytest.mark.parametrize(
    ("text", "build"),
    [
        pytest.param(CPU_BUILD, "cpu", id="Could not collect"),
        pytest.param(CPU_BUILD.replace("PyTorch: Could not collect", "PyTorch: None"), "cpu", id="None"),
        pytest.param(CPU_BUILD.replace("PyTorch: Could not collect\n", "PyTorch: "), None, id="line cut off"),
        pytest.param(CPU_BUILD.replace("PyTorch: Could not collect", "PyTorch: N/A"), None, id="N/A"),
        pytest.param(
            CPU_BUILD.replace("PyTorch: Could not collect", "PyTorch: N/A").replace(
                "ROCM used to build PyTorch: N/A", "ROCM used to build PyTorch: 6.1.40091-a8dbc0c19"
            ),
            "rocm",
            id="ROCm",
        ),
        pytest.param(CPU_BUILD.replace("HIP runtime", "Is XPU available: True\nHIP runtime"), "xpu", id="XPU"),
        pytest.param(
            "PyTorch version: 2.3.0\nCUDA used to build PyTorch: None\nOS: macOS 14.5 (arm64)\n"
            "Python platform: macOS-14.5-arm64-arm-64bit\nGPU models and configuration: No CUDA\n",
            "mps",
            id="Apple silicon",
        ),
    ],
)
def test_a_build_without_cuda(text: str, build: str | None) -> None:
    assert facts_of(text)["torch"].build == build


def test_of_an_amd_gpu_no_device_is_made() -> None:
    text = OF_2024.replace("GPU 0: NVIDIA L40S", "AMD Instinct MI300X (gfx942:sramecc+:xnack-)")
    facts = facts_of(text)
    assert "devices" not in facts
    assert facts["system"].amd_gfx_targets == ("gfx942",)


CONDA_CPU = """\
PyTorch version: 2.2.2
Is debug build: False
CUDA used to build PyTorch: None
[pip3] torch==2.2.2
[conda] cpuonly                   2.0                           0    pytorch
[conda] pytorch                   2.2.2               py3.11_cpu_0    pytorch
[conda] pytorch-mutex             1.0                         cpu    pytorch
"""


@pytest.mark.parametrize("name", ["pytorch", "pytorch-gpu", "pytorch-cpu"])
def test_condas_packages_of_pytorch(name: str) -> None:
    text = CONDA_CPU.replace("[conda] pytorch                   2.2.2 ", f"[conda] {name}       2.2.2 ")
    packages = facts_of(text.replace("[pip3] torch==2.2.2\n", ""))["python"].packages
    assert "torch" in [package.name for package in packages]


def test_conda_chose_the_cpu_build() -> None:
    torch = facts_of(CONDA_CPU)["torch"]
    assert values(torch, "build", "conda_build", "conda_cpuonly") == ("cpu", "py3.11_cpu_0", True)


NOT_THERE = """\
PyTorch version: N/A
Is debug build: N/A
CUDA used to build PyTorch: N/A
Is CUDA available: N/A
GPU models and configuration: GPU 0: NVIDIA GeForce RTX 3060
Nvidia driver version: 535.183.01
"""


@pytest.mark.parametrize(
    ("listed", "installed", "fails"),
    [
        pytest.param("[pip3] numpy==1.26.4\n[conda] Could not collect\n", False, False, id="pip lists others"),
        pytest.param("[pip3] numpy==1.26.4\n[pip3] torch==2.1.0\n[conda] x\n", True, True, id="it is listed"),
        pytest.param("[pip3] numpy==1.26.4", None, True, id="the list is cut off"),
        pytest.param("[pip3] Could not collect\n[conda] Could not collect\n", None, True, id="no list"),
    ],
)
def test_a_pytorch_that_cannot_be_imported(listed: str, installed: bool | None, fails: bool) -> None:
    facts = facts_of(NOT_THERE + listed)
    assert facts.get("torch", Torch()).installed is installed
    assert ("torch_runtime" in facts) is fails
    assert [d.name for d in facts["devices"]] == ["NVIDIA GeForce RTX 3060"]


@pytest.mark.parametrize(
    ("platform", "expected"),
    [
        ("Linux-5.15.153.1-microsoft-standard-WSL2-x86_64-with-glibc2.35", ("linux", "x86_64", 2)),
        ("Linux-4.4.0-19041-Microsoft-x86_64-with-glibc2.29", ("linux", "x86_64", 1)),
        ("Linux-6.8.0-45-generic-aarch64-with-glibc2.39", ("linux", "aarch64", None)),
        ("Linux-6.8.0-45-generic-ppc64le-with-glibc2.39", ("linux", "ppc64le", None)),
        ("Windows-10-10.0.22631-SP0", ("windows", None, None)),
        ("Darwin-20.6.0-x86_64-i386-64bit", ("darwin", "x86_64", None)),
    ],
)
def test_platforms(platform: str, expected: tuple[Any, ...]) -> None:
    facts = facts_of(f"PyTorch version: 2.4.1\nPython version: 3.11.4\nPython platform: {platform}\n")
    assert values(facts["system"], "os", "machine", "wsl") == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Microsoft Windows 11 Pro (10.0.22631 64-bit)", ("windows", None, None)),
        ("Microsoft Windows 10 专业版", ("windows", None, None)),
        ("CentOS Linux release 7.9.2009 (Core) (x86_64)", ("linux", "centos", "7")),
        ("Red Hat Enterprise Linux 8.6 (Ootpa) (x86_64)", ("linux", "rhel", "8.6")),
        ("Pop!_OS 22.04 LTS (x86_64)", ("linux", "pop", "22.04")),
        ("Arch Linux (x86_64)", ("linux", "arch", None)),
        ("Mac OSX 10.15.7", ("darwin", None, None)),
    ],
)
def test_operating_systems(name: str, expected: tuple[Any, ...]) -> None:
    facts = facts_of(f"PyTorch version: 1.9.0\nOS: {name}\nGCC version: Could not collect\n")
    assert values(facts["system"], "os", "distribution", "distribution_version") == expected


def test_mingw_on_windows_is_not_the_host_compiler() -> None:
    text = "PyTorch version: 1.9.0\nOS: Microsoft Windows 10 Home\nGCC version: (MinGW.org GCC-6.3.0-1) 6.3.0\n"
    assert "toolkit" not in facts_of(text)


def test_the_oldest_glibc_that_old_pythons_give_is_not_believed() -> None:
    text = "PyTorch version: 1.9.0\nLibc version: glibc-2.10\nPython version: 3.7 (64-bit runtime)\n"
    assert "system" not in facts_of(text)


@pytest.mark.parametrize(("python", "glibc"), [("3.7", None), ("3.8", "2.31"), ("3.12", "2.31")])
def test_the_glibc_that_pythons_give(python: str, glibc: str | None) -> None:
    text = f"PyTorch version: 1.9.0\nOS: Debian\nLibc version: glibc-2.31\nPython version: {python} (64-bit runtime)\n"
    assert facts_of(text)["system"].glibc == glibc


@pytest.mark.parametrize(
    ("row", "installer"),
    [
        ("torchvision  0.17.2  py311_cpu  pytorch", "conda"),
        ("torchvision  0.17.2  py311_cpu", "conda"),
        ("torchvision  0.17.2  pypi_0  pypi", "pip"),
        ("torchvision  0.17.2  py3.11-1  pypi", "pip"),
        ("torchvision  0.17.2  <pip>", "pip"),
        ("torchvision  0.17.2  py3.11-1  pytorch", None),
        ("torchvision  0.17.2", None),
        ("torchvision  latest  py311_cpu", None),
    ],
)
def test_a_row_of_conda(row: str, installer: str | None) -> None:
    facts = facts_of(f"PyTorch version: 2.2.2\nIs debug build: False\n[conda] {row}\n[conda] numpy  1.26.4  py311_0\n")
    packages = {package.name: package.installer for package in facts["python"].packages}
    assert packages == {"numpy": "conda", **({"torchvision": installer} if installer else {})}


@pytest.mark.parametrize(
    ("text", "is_report"),
    [
        ("CUDA used to build PyTorch: 12.1\nOS: Debian\n", True),
        ("GPU models and configuration: GPU 0: NVIDIA L4\nIs debug build: False\n", True),
        ("GPU models and configuration: GPU 0: NVIDIA L4\n", False),
        ("Is debug build: False\nOS: Ubuntu 22.04\nCPU: x\nArchitecture: x86_64\n", False),
        ("GCC version: (Debian 12.2.0-14) 12.2.0\nPython version: 3.11.4\n", False),
    ],
)
def test_how_many_fields_make_a_report(text: str, is_report: bool) -> None:
    assert bool(facts_of(text)) is is_report


@pytest.mark.parametrize(
    ("shown", "version"),
    [("2.4.1+cu121", "2.4.1+cu121"), ("2.4.1+c", "2.4.1"), ("2.4.1+cpu", "2.4.1+cpu"), ("2.", None), ("2", None)],
)
def test_a_version_at_the_end_of_the_text_may_be_cut_off(shown: str, version: str | None) -> None:
    torch = facts_of(f"Is debug build: False\nIs XNNPACK available: True\nPyTorch version: {shown}").get(
        "torch", Torch()
    )
    assert (str(torch.version) if torch.version else None) == version


def test_labels_that_other_texts_have_too_end_a_field() -> None:
    text = "PyTorch version: 2.4.1\nGPU models and configuration: GPU 0: NVIDIA L4\n{}:\nGPU 1: NVIDIA A10\n"
    for label in ("GPU Topology", "Architecture", "CPU"):
        assert [d.name for d in facts_of(text.format(label))["devices"]] == ["NVIDIA L4"]
    assert facts_of("PyTorch version: 2.4.1\nArchitecture: aarch64\n")["system"].machine == "aarch64"


def test_the_last_whole_report_counts() -> None:
    facts = facts_of(f"before:\n{OF_2019}\nafter the update:\n{OF_2024}\nPyTorch version: 9.9.9")
    assert str(facts["torch"].version) == "2.4.1+cu121"
    assert facts["driver"].version == DriverVersion.parse("550.90.07")


def test_a_command_after_the_report_sets_no_variable() -> None:
    facts = facts_of(f"{OF_2019}\nCUDA_VISIBLE_DEVICES=0 python train.py\n")
    assert "environment" not in facts


def test_a_requirement_of_the_image_that_is_cut_off_is_not_believed() -> None:
    start, _, _ = VLLM.partition(",driver<551")
    assert "NVIDIA_REQUIRE_CUDA" not in facts_of(start)["environment"].variables


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Python Version : 3.10.12\nCUDA Runtime Version : 12060\nCuPy Version : 13.3.0\n",
        "I have a GPU and CUDA, and it is slow.",
    ],
)
def test_other_texts_hold_none(text: str) -> None:
    assert facts_of(text) == {}


def test_fields_that_other_reports_have_too_are_no_report() -> None:
    shared = ("Python version: 3.11.7", "CUDA runtime version: 12.4", "GCC version: 12.2.0", "CMake version: 3.28.1")
    assert read(clean_text("\n".join(shared), "report")) == {}
    assert read(clean_text("\n".join((*shared, "Is debug build: False")), "report")) != {}
