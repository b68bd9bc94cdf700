"""The same failures of driver and CUDA as other programs, other languages and cut-off texts put them."""

from __future__ import annotations

import pytest

from gpudoctor.engine.runner import run_checks
from gpudoctor.model import DriverVersion, Report
from gpudoctor.readers.report import read_texts
from tests.own_checks import own_checks


def diagnosed(*texts: str) -> Report:
    named = [(f"report-{number}.txt", text.encode()) for number, text in enumerate(texts)]
    return run_checks(own_checks(), read_texts(named))


def first(*texts: str) -> str | None:
    """Return the check of the first finding that is no advice."""
    return next((f.check_id for f in diagnosed(*texts).findings if f.severity.name != "INFO"), None)


@pytest.mark.parametrize(
    ("text", "check"),
    [
        ("cudaSetDevice err: 35", "driver-too-old"),
        ("Abort: CUDA error 35", "driver-too-old"),
        ("gpu.go: nvcuda init failure: 35", "driver-too-old"),
        ("Check failed: error == cudaSuccess (35 vs. 0)", "driver-too-old"),
        ("libcuda.so.450.51.05: undefined symbol: cuMemCreateFoo_v2", "driver-too-old"),
        ("RuntimeError: CUDA driver version is insuff", "driver-too-old"),
        ("cuInit err: 999", "cuda-init-unknown-error-999"),
        ("level=DEBUG cudart init failure: 999", "cuda-init-unknown-error-999"),
        ("CUDA error (999) in kernel.cu", "cuda-init-unknown-error-999"),
        ("cuInit(0) gives CUDA_ERROR_OPERATING_SYSTEM", "cuda-init-unknown-error-999"),
        ("CUDA stops working whenever I wake it from suspend: CUDA fails after resume", "cuda-init-unknown-error-999"),
        ("CUDA Runtime Error(46) in solver.cu", "device-busy"),
        ("cudaErrorDevicesUnavailable", "device-busy"),
        ("Check failed: status == cudaSuccess (46 vs. 0)", "device-busy"),
        ("all CUDA-capable devices are busy or", "device-busy"),
        ("cudaErrorMpsConnectionFailed", "mps-daemon-unreachable"),
        ("cuCtxCreate returned 805", "mps-daemon-unreachable"),
        ("MPS server is not ready to accept new MPS client requests", "mps-daemon-unreachable"),
        ("Failed to initialize NVML: Driver/library ver", "driver-library-mismatch"),
        ("NVIDIA-SMI has failed because it couldn't communi", "driver-not-loaded"),
        ("ls: cannot access '/dev/nvidia*': No such file or directory", "driver-not-loaded"),
        ('error gathering device information: stat "/dev/nvidia-uvm": no such file or directory', "driver-not-loaded"),
        ("==> ERROR: module not found: 'nvidia_drm'", "driver-not-loaded"),
        (
            "NVRM: GPU (PCI ID: 10de:2b85)\nNVRM: installed in this system is not supported by the 470.57.02 NVIDIA",
            "driver-not-loaded",
        ),
        ("RuntimeError: Found no NVIDIA driver on", "driver-missing"),
        ("Error: Unable to query CUDA driver version", "driver-missing"),
        ("bash: nvidia-smi: Kommando nicht gefunden.", "driver-missing"),
        ("bash: nvidia-smi: commande introuvable", "driver-missing"),
        ("bash: nvidia-smi: orden no encontrada", "driver-missing"),
        ("bash: nvidia-smi: команда не найдена", "driver-missing"),
        ('nvidia-smi : Die Benennung "nvidia-smi" wurde nicht als Name eines Cmdlet erkannt.', "driver-missing"),
        ("nvidia-smi : 无法将“nvidia-smi”项识别为 cmdlet、函数的名称。", "driver-missing"),
        ("NVIDIA kernel module missing. Falling back to nouveau.", "driver-not-loaded"),
        ("API mismatch: client version 550.90.07, kernel module version 550.54.14", "driver-library-mismatch"),
        ("every CUDA device is taken: all CUDA devices are busy or unavailable", "device-busy"),
        (
            "W xla: The NVIDIA driver's CUDA version is 12.4 which is older than the PTX compiler version (12.9.86).",
            "driver-too-old",
        ),
        ("bash: nvidia-smi: コマンドが見つかりません", "driver-missing"),
        ("pynvml cannot start: NVML: Insufficient Permissions", "device-permissions-missing"),
        ("Unable to determine the device handle for GPU 0000:3B:00.0: Insufficient Permissions", None),
    ],
)
def test_first_finding(text: str, check: str | None) -> None:
    assert first(text) == (check or "device-permissions-missing")


@pytest.mark.parametrize(
    ("text", "check"),
    [
        ("CUDA driver version is insufficient\nthe laptop has an integrated Intel GPU", "no-nvidia-gpu"),
        ("Found no NVIDIA driver on your system\nVGA compatible controller: Intel Corporation Iris", "no-nvidia-gpu"),
        ("NVRM: No NVIDIA graphics adapter found!", "no-nvidia-gpu"),
        (
            "NVRM: No NVIDIA GPU found.\nnouveau: the NVIDIA probe routine was not called for 1 device",
            "driver-not-loaded",
        ),
        (
            "supported through the NVIDIA 390.xx Legacy drivers\nNVRM: No NVIDIA GPU found.",
            "driver-not-loaded",
        ),
        ("CUDA driver version is insufficient\nGPUs: Intel UHD Graphics 630, GeForce GTX 1650", "driver-too-old"),
    ],
)
def test_another_gpu_or_none(text: str, check: str) -> None:
    assert first(text) == check


@pytest.mark.parametrize(
    "text",
    [
        "torch 2.9.0+cpu\nIntel UHD Graphics 630",
        "torch.cuda.is_available() = True\nIntel Iris Xe Graphics",
        "OK: nvidia-smi on WSL 2, torch.cuda.is_available() returns True, Tesla P40 in TCC mode",
        "the suspend button works, torch.cuda.is_available() returns True after resume",
        "epoch 46: error 46.2 %, 35 of 100 images",
        "$ ls /dev/nvidia*\n/dev/nvidia0  /dev/nvidiactl  /dev/nvidia-uvm\ntorch.cuda.is_available() returns True",
    ],
)
def test_no_alarm(text: str) -> None:
    python = "Python 3.11.4 (main, Jul  5 2023, 13:45:01) [GCC 11.2.0] on linux\n"
    assert first(python + text) is None


LEGACY = """NVRM: The NVIDIA Quadro K600 GPU installed in this system is
NVRM:  supported through the NVIDIA 470.xx Legacy drivers. Please
NVRM: No NVIDIA GPU found."""


def test_the_legacy_branch_is_named() -> None:
    (finding, *_) = diagnosed(LEGACY).findings
    assert "R470" in finding.summary


def test_packages_newer_than_the_loaded_module() -> None:
    loaded = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  560.28.03  Thu Jul 18 20:00:00 UTC 2024"
    listed = "ii  libnvidia-compute-560:amd64  560.35.03-0ubuntu1  amd64"
    report = diagnosed(f"$ cat /proc/driver/nvidia/version\n{loaded}", f"{listed}\ntorch.cuda.is_available() = False")
    assert report.snapshot.driver is not None
    assert report.snapshot.driver.module_version == DriverVersion.parse("560.28.03")
    assert report.findings[0].check_id == "driver-library-mismatch"
    assert "560.28.03" in report.findings[0].summary
    assert "560.35.03" in report.findings[0].summary


VERSIONS = """E failed call to cuInit: CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected
I libcuda reported version is: {library}
I kernel reported version is: {module}"""


@pytest.mark.parametrize(
    ("library", "module", "differ"),
    [("470.82.1", "460.91.3", True), ("470.82.1", "470.82.1", False), ("418.67.0", "418.67.0", False)],
)
def test_the_versions_that_tensorflow_prints(library: str, module: str, differ: bool) -> None:
    checks = [finding.check_id for finding in diagnosed(VERSIONS.format(library=library, module=module)).findings]
    assert ("driver-library-mismatch" in checks) is differ


def test_the_same_versions_are_no_mismatch() -> None:
    loaded = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  560.35.03  Release Build"
    assert first(f"{loaded}\nii  libnvidia-compute-560:amd64  560.35.03-0ubuntu1  amd64") is None


def test_the_prompt_of_root() -> None:
    packages = "akmod-nvidia-550.78-1.fc40.x86_64"
    assert first(f"# lsmod | grep nvidia\n# rpm -qa | grep nvidia\n{packages}\n") == "driver-not-loaded"


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("GPU access is blocked in WSL 2. Tesla T4 in TCC mode", "nvidia-smi -dm 0"),
        ("WSL 2: nvidia-smi does not work, the A2 is in Data Center mode", "nvidia-smi -dm 0"),
        ("under WSL 2:\nnvidia-container-cli: WSL environment detected but no adapters were found", "wsl --update"),
        ("on WSL1: nvidia-container-cli: WSL environment detected but no adapters were found", "set-version"),
        (
            "in WSL 2 nvidia-smi prints\n| NVIDIA-SMI 550.40  Driver Version: 551.61  CUDA Version: ERR! |",
            "wsl --update",
        ),
        ("WSL 2 on Windows 11\n$ nvidia-smi\nSegmentation fault nvidia-smi", "wsl --update"),
    ],
)
def test_wsl(text: str, word: str) -> None:
    (finding, *_) = diagnosed(text).findings
    assert finding.check_id == "wsl-driver-problem"
    assert any(word in command for remedy in finding.remedies for command in remedy.commands)
