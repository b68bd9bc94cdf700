"""What PyTorch and its installers print, pasted alone: the finding that comes first."""

# ruff: noqa: E501 - a message stands on one line
from __future__ import annotations

import pytest

from gpudoctor.model import Severity
from gpudoctor.readers.report import read_texts
from gpudoctor.registry import load_checks
from gpudoctor.runner import run_checks

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
    report = run_checks(load_checks(), snapshot)
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
