"""What PyTorch and its installers print, pasted alone: the finding that comes first."""

# ruff: noqa: E501 - a message stands on one line
from __future__ import annotations

import pytest

from gpudoctor.engine.runner import run_checks
from gpudoctor.model import Severity
from gpudoctor.readers.report import read_texts
from tests.own_checks import own_checks

OLD_LIST = """{} with CUDA capability sm_{} is not compatible with the current PyTorch installation.
The current PyTorch install supports CUDA capabilities {}.
"""
RANGE = """Found GPU0 {} which is of cuda capability {}.
Minimum and Maximum cuda capability supported by this version of PyTorch is
({}) - ({})
"""
NO_KERNEL = "RuntimeError: CUDA error: no kernel image is available for execution on the device"
MISSING = "ModuleNotFoundError: No module named 'torch'"
NMS = "RuntimeError: operator torchvision::nms does not exist"


def first(*texts: str) -> tuple[str, str]:
    """Return the id of the first finding that is more than advice, and all that its remedies say."""
    snapshot = read_texts([(f"text {n}", text.encode()) for n, text in enumerate(texts)])
    report = run_checks(own_checks(), snapshot)
    findings = [finding for finding in report.findings if finding.severity is not Severity.INFO]
    if not findings:
        return "", ""
    said = [text for remedy in findings[0].remedies for text in (remedy.summary, *remedy.commands)]
    return findings[0].check_id, "\n".join(said)


@pytest.mark.parametrize(
    ("check_id", "fix", "texts"),
    [
        ("torch-cpu-build", "--index-url", ["AssertionError: Torch not compiled with CUDA enabled"]),
        ("torch-cpu-build", "--index-url", ["错误: Torch not compiled\nwith CUDA enabled"]),
        ("torch-cpu-build", "--index-url", ["Torch is not able to use GPU; add --skip-torch-cuda-test"]),
        ("torch-cpu-build", "cu1", ["ValueError: Invalid CUDA 'device=0' requested. Use 'device=cpu'"]),
        ("torch-cpu-build", "cu1", ["deserialize object on a CUDA device but torch.cuda.is_available() is False"]),
        ("windows-pypi-cpu-wheel", "torch==2.2.1+cu121",
         ["Downloading torch-2.2.1-cp311-cp311-win_amd64.whl (198 MB)", "Torch not compiled with CUDA enabled"]),
        ("torch-no-kernel-for-device", "cu128", [OLD_LIST.format("NVIDIA GeForce RTX 5090", "120", "sm_80 sm_90")]),
        ("torch-no-kernel-for-device", "cu128", [OLD_LIST.format("NVIDIA RTX 5080", "120", "sm_86 sm_90 compute_37")]),
        ("torch-no-kernel-for-device", "cu126", [OLD_LIST.format("Tesla P40", "61", "sm_75 sm_80 sm_120")]),
        ("torch-no-kernel-for-device", "cu126", [RANGE.format("NVIDIA GeForce GTX 1080", "6.1", "7.0", "12.0")]),
        ("torch-no-kernel-for-device", "source", [("Found GPU0 GeForce GT 650M which is of cuda capability 3.0.\n"
         "PyTorch no longer supports this GPU because it is too old.")]),
        ("torch-no-kernel-for-device", "cu126", ["Found GPU0 Tesla V100 which is of compute capability (CC) 7.0."]),
        ("torch-no-kernel-for-device", "cu110", [OLD_LIST.format("A100-SXM4-40GB", "80", "sm_37 sm_70"), "torch==1.7.0"]),
        ("torch-no-kernel-for-device", "compute_cap", [NO_KERNEL]),
        ("torch-no-kernel-for-device", "compute_cap", ["THCudaCheck FAIL cuda runtime error (209) : no kernel image is"]),
        ("torch-no-kernel-for-device", "compute_cap", ["RuntimeError: CUDA error: invalid device function"]),
        ("torch-no-kernel-for-device", "TRITON_PTXAS_PATH",
         ["ptxas fatal   : Value 'sm_121a' is not defined for option 'gpu-name'", "torch 2.9.1+cu130"]),
        ("python-version-no-wheel", "python3.1", [("No matching distribution found for torch==1.13.1\n"
         "Could not find a version that satisfies the requirement torch==1.13.1 (from versions: 2.2.0, 2.3.0)")]),
        ("python-version-no-wheel", "3.6 to 3.9", [("Could not find a version that satisfies the requirement "
         "torch==1.9.1+cu111 (from versions: 0.1.2, 0.1.2.post1, 0.1.2.post2)")]),
        ("python-version-no-wheel", "3.8 to 3.11",
         ["ERROR: torch-2.1.2+cu121-cp311-cp311-win_amd64.whl is not a supported wheel on this platform."]),
        ("python-version-no-wheel", "uv venv --python 3.10", [("Because torch==1.12.0+cu113 has no wheels with a matching "
         "Python ABI tag (e.g., `cp311`)\nhint: You require CPython 3.11 (`cp311`), but we only found wheels for "
         "`torch` (v1.12.0+cu113) with the following Python ABI tags: `cp39`, `cp310`")]),
        ("python-version-no-wheel", "poetry env use", ["Unable to find installation candidates for torch (2.5.1)"]),
        ("python-version-no-wheel", "2.2.2", [("Because torch==2.6.0 has no wheels with a matching platform tag (e.g., "
         "`macosx_13_0_x86_64`)")]),
        ("wheel-index-wrong", "whl/cu121", ["No matching distribution found for torch==2.2.2+cu121"]),
        ("wheel-index-wrong", "conda-forge", ["nothing provides cuda 11.7.* needed by pytorch-cuda-11.7-h67b0de4_0"]),
        ("build-isolation-hides-torch", "--no-build-isolation", [f"Failed to build `flash-attn`\n{MISSING}"]),
        ("torch-not-installed", "activate", [f"Traceback (most recent call last):\n{MISSING}"]),
        ("torch-not-installed", "--no-build-isolation", [f"× python setup.py egg_info did not run\n{MISSING}"]),  # noqa: RUF001
        ("wrong-python-environment", "sys.executable",
         [f"Requirement already satisfied: torch in /home/a/.local/lib/python3.8/site-packages\n{MISSING}"]),
        ("torchvision-mismatch", "torch torchvision", [NMS]),
        ("torchvision-mismatch", "whl/cu121", [("Detected that PyTorch and torchvision were compiled with different CUDA "
         "versions. PyTorch has CUDA Version=12.1 and torchvision has CUDA Version=11.7.")]),
        ("torchvision-mismatch", "torchaudio", ["torchaudio/lib/libtorchaudio.so: undefined symbol: _ZN3c10"]),
        ("torchvision-mismatch", "torchaudio", ["torchaudio 2.0.2 requires torch==2.0.1, but you have torch 2.1.0"]),
        ("module-shadowed", "torch_renamed.py", [('File "/home/a/torch.py", line 1\nAttributeError: partially initialized '
         "module 'torch' has no attribute 'nn'")]),
        ("torch-import-failed", "VCRedist", ['OSError: [WinError 126] x. Error loading "C:\\v\\torch\\lib\\c10.dll" or']),
        ("torch-import-failed", "libomp140", ['Error loading "D:\\e\\torch\\lib\\fbgemm.dll" or one of its dependencies']),
        ("torch-import-failed", "mkl<2024.1",
         ["ImportError: /e/torch/lib/libtorch_cpu.so: undefined symbol: iJIT_NotifyEvent"]),
        ("torch-import-failed", "VCRedist", [('File "C:\\e\\torch\\__init__.py", line 76, in <module>\nfrom torch._C import *\n'
         "ImportError: DLL load failed: The specified module could not be found.")]),
        # The same things in other words, and cut off.
        ("torch-cpu-build", "--index-url", ["RuntimeError: PyTorch is unable to find CUDA", "Windows 11"]),
        ("torch-cpu-build", "--index-url", ["AssertionError: Invalid CUDA '--device 0' requested, use '--device cpu'"]),
        ("torch-cpu-build", "--index-url", ["我的系统是 Windows 10, torch.cuda.is_available() 一直是False"]),
        ("torch-cpu-build", "--index-url", ["YOLOv8 torch-2.2.0+cpu\npython detect.py --device 0"]),
        ("torch-cpu-build", "--index-url", ["nvcc: Cuda compilation tools, release 11.8, V11.8.89", "torch 2.1.0+cpu"]),
        ("torch-cpu-build", "--index-url", ["AssertionError: Torch not compiled wi"]),
        ("torch-cpu-build", "--index-url", ["torch 2.4.0+cpu", "nvidia-smi lists a Tesla V100"]),
        ("cuda-visible-devices-hides-gpu", "cuda:0",
         ["RuntimeError: Attempting to deserialize object on CUDA device 2 but torch.cuda.device_count() is 1"]),
        ("torch-cuda-unavailable", "CUDA_VISIBLE_DEVICES", ["RuntimeError: No CUDA GPUs are available"]),
        ("cuda-visible-devices-hides-gpu", "unset CUDA_VISIBLE_DEVICES",
         ["CUDA_VISIBLE_DEVICES=1\nGPU 0: NVIDIA GeForce RTX 3080\n>>> torch.cuda.device_count()\n0"]),
        ("torch-cuda-unavailable", "nvidia-smi", ["torch 2.3.0+cu121 on Ubuntu 22.04", "torch.cuda.is_available() is False"]),
        ("torch-cuda-unavailable", "nvidia-smi", [">>> torch.cuda.is_available()\nFalse\n>>> torch.__version__\n'2.3.0+cu118'"]),
        ("cuda-visible-devices-hides-gpu", "cuda:0",
         ["Invalid CUDA 'device=3' requested.\ntorch.cuda.is_available(): True\ntorch.cuda.device_count(): 2"]),
        ("conda-cpuonly-solved", "10.2", [("conda install pytorch=1.8.1 cudatoolkit=11.3 -c pytorch\n"
         "the list says pytorch=1.8.1=py3.7_cpu_0")]),
        ("conda-cpuonly-solved", "pytorch-gpu", ["conda install pytorch cudatoolkit=11.6 gives me the CPU version"]),
        ("conda-cpuonly-solved", "pytorch-gpu", ["although I have a GPU:\n pytorch-1.12.0     |cpu_py38h39c826d_0   50 MB"]),
        ("torch-no-kernel-for-device", "cu128",
         ["nvidia geforce rtx 5060 with cuda capabilities sm_120 is not compatible with the current pytorch install"]),
        ("torch-no-kernel-for-device", "cu12", ["'sm_120' is not a recognized processor for this target"]),
        ("torch-no-kernel-for-device", "cu126", [(">>> torch.cuda.get_arch_list()\n['sm_75', 'sm_80', 'sm_120']\n"
         ">>> torch.cuda.get_device_name(0), torch.cuda.get_device_capability(0)\n('Tesla P100-PCIE-16GB', (6, 0))"),
         "torch 2.8.0+cu129"]),
        ("torch-no-kernel-for-device", "cu128", ["GPU: RTX 5070\nPyTorch: 2.4.0+cu121\ntorch.cuda.is_available() is False"]),
        ("torchvision-mismatch", "torch torchvision", ["RuntimeError: operator torchvision::nms does"]),
        ("torchvision-mismatch", "torchvision", ["Detected that PyTorch and torchvision were compiled with different CUDA versions."]),
        ("torchvision-mismatch", "torchaudio", ["OSError: dlopen(/e/torchaudio/_torchaudio.so, 0x6): Symbol not found: _x"]),
        ("build-isolation-hides-torch", "--no-build-isolation",
         ["Preparing metadata (pyproject.toml) ... error\n  ModuleNotFoundError: No module named 'tor"]),
        ("build-isolation-hides-torch", "--no-build-isolation xformers",
         ["I ran pip install xformers and it says that there is no module named torch: No module named 'torch'"]),
        ("wrong-python-environment", "interpreter", [f">>> torch.__version__\n'2.1.0'\n$ ipython\nIn [1]: import torch\n{MISSING}"]),
        ("wrong-python-environment", "python_embed", [("Requirement already satisfied: cupy-cuda12x in c:\\py\\lib "
         "(13.3.0)"), "ModuleNotFoundError: No module named 'cupy'"]),
        ("cupy-missing", "cupy-cuda", ["ModuleNotFoundError: No module named 'cupy"]),
        ("python-version-no-wheel", "64-bit", [("Looking in links: https://download.pytorch.org/whl/torch_stable.html\nERROR: "
         "Could not find a version that satisfies the requirement torch==1.2.0+cpu (from versions: 0.1.2, 0.1.2.post1)")]),
    ],
)  # fmt: skip
def test_the_cause_and_its_fix(check_id: str, fix: str, texts: list[str]) -> None:
    found, said = first(*texts)
    assert found == check_id
    assert fix in said


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(RANGE.format("NVIDIA GB10", "12.1", "8.0", "12.0"), id="sm_120 runs on 12.1"),
        pytest.param("Collecting torch\nSuccessfully installed torch-2.5.1+cu124", id="an installation"),
        pytest.param(">>> torch.cuda.is_available()\nTrue\n>>> torch.__version__\n'2.5.1+cu124'", id="CUDA works"),
        pytest.param("File \"/v/site-packages/torch/nn/a.py\"\nNo module named 'torch._six'", id="an inner module"),
        pytest.param(
            "Getting requirements to build wheel ... done\nBuilding wheel for x (pyproject.toml) ... done", id="built"
        ),
        pytest.param(
            "File \"/v/site-packages/safetensors/torch.py\", line 9, in save\nKeyError: 'a'", id="a submodule"
        ),
    ],
)
def test_nothing_is_wrong(text: str) -> None:
    assert first(text, "torch 2.5.1+cu124") == ("", "")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("torch 2.5.1+cpu on Windows 11, it is slow but I have no GPU", id="a CPU build that fits"),
        pytest.param(
            "PyTorch version: 2.5.1+cu124\nIs CUDA available: False\nNvidia driver version: No CUDA", id="no wish"
        ),
        pytest.param(
            "conda install pytorch cpuonly -c pytorch\ninstalls the CPU version of PyTorch", id="as was asked"
        ),
        pytest.param(
            "torch 2.5.1+cu124\ntorch.cuda.is_available() or raise\nx = torch.ones(3, requires_grad=False)", id="code"
        ),
    ],
)
def test_nothing_to_complain_of(text: str) -> None:
    assert first(text) == ("", "")
