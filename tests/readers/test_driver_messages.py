"""What the messages of the driver, of CUDA and of WSL give: their kinds, what they name, and the facts."""

from __future__ import annotations

import pytest

from gpudoctor.model import CudaVersion, DriverVersion, Snapshot
from gpudoctor.readers.report import read_texts


def read(text: str) -> Snapshot:
    return read_texts([("report.txt", text.encode())])


def kinds(text: str) -> set[str]:
    return {message.kind for message in read(text).symptoms or ()}


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Failed to initialize NVML: Driver/library version mismatch", "nvml-version-mismatch"),
        ("nvmlInit_v2() failed 18", "nvml-version-mismatch"),
        ("NVMLError_LibRmVersionMismatch: RM has detected an NVML/RM version mismatch.", "nvml-version-mismatch"),
        (
            "NVIDIA-SMI has failed because it couldn\u2018t communicate with\nthe NVIDIA driver.",
            "nvml-driver-not-loaded",
        ),
        ("NVIDIA-SMI 已失败,因为它无法与 NVIDIA 驱动程序通信。", "nvml-driver-not-loaded"),
        ("nvidia-smi: command not found", "nvidia-smi-not-found"),
        ("zsh: command not found: nvidia-smi", "nvidia-smi-not-found"),
        ("'nvidia-smi' is not recognized as an internal or external command,", "nvidia-smi-not-found"),
        ("Command 'nvidia-smi' not found, but can be installed with:", "nvidia-smi-not-found"),
        ("modprobe: ERROR: could not insert 'nvidia': Key was rejected by service", "kernel-module-key-rejected"),
        ("modprobe: ERROR: could not insert 'nvidia': Required key not available", "kernel-module-key-rejected"),
        ("modprobe: ERROR: could not insert 'nvidia': No such device", "kernel-module-not-inserted"),
        ("modprobe: ERROR: could not insert 'nvidia_uvm': Operation not permitted", "kernel-module-not-inserted"),
        (
            "modprobe: FATAL: Module nvidia not found in directory /lib/modules/6.8.0-50-generic",
            "kernel-module-not-found",
        ),
        ("Error! Bad return status for module build on kernel: 6.5.0-14-generic (x86_64)", "dkms-build-failed"),
        ("nvidia/550.54.14: added", "dkms-not-built"),
        ("ERROR: The Nouveau kernel driver is currently in use by your system.", "nouveau-in-use"),
        ("Graphics: NV132", "nouveau-in-use"),
        ("failed call to cuInit: UNKNOWN ERROR (303)", "libcuda-not-found"),
        ("failed call to cuInit: CUDA_ERROR_UNKNOWN: unknown error", "cuda-unknown-error"),
        ("RuntimeError: cuda runtime error (30) : unknown error at THCGeneral.cpp:70", "cuda-unknown-error"),
        ("THCudaCheck FAIL file=Module.cpp line=109 error=38 : no CUDA-capable device is detected", "cuda-no-device"),
        ("FAILED_PRECONDITION: No visible GPU devices.", "cuda-no-device"),
        ("CUDA failure 35: CUDA driver version is insufficient for CUDA runtime version", "cuda-insufficient-driver"),
        ("RuntimeError: CUDA error: invalid device ordinal", "cuda-invalid-device"),
        ("Failed to initialize NVML: GPU access blocked by the operating system", "nvml-blocked-by-os"),
    ],
)
def test_kind(text: str, kind: str) -> None:
    assert kind in kinds(text)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (
            "Please check that you have an NVIDIA GPU and installed a driver. Found no NVIDIA driver.",
            "no-nvidia-gpu-reported",
        ),
        ("If you do not have an NVIDIA GPU, ignore this. nvidia-smi: not found", "no-nvidia-gpu-reported"),
        ("driver: nvidia v: 535 alternate: nouveau,nvidia_drm\nnvidia-smi: not found", "nouveau-in-use"),
        ("pixel format NV12\nnvidia-smi: not found", "nouveau-in-use"),
        ("changing env variable CUDA_VISIBLE_DEVICES after program start. CUDA unknown error", "cuda-visible-devices"),
        ("failed call to cuInit: UNKNOWN ERROR (303)", "cuda-unknown-error"),
        ("Are you using WSL 1 or WSL 2?\nNVML: GPU access blocked by the operating system", "wsl-1"),
        ("could not insert 'vboxdrv': Required key not available\nnvidia-smi: not found", "kernel-module-key-rejected"),
    ],
)
def test_kind_that_it_is_not(text: str, kind: str) -> None:
    assert kind not in kinds(text)


def test_versions_that_a_mismatch_names() -> None:
    driver = read(
        "[    9.1] NVRM: API mismatch: the client has the version 550.90.07, but\n"
        "[    9.1] NVRM: this kernel module has the version 550.54.15.  Please\n"
    ).driver
    assert driver is not None
    assert (driver.library_version, driver.module_version) == (
        DriverVersion.parse("550.90.07"),
        DriverVersion.parse("550.54.15"),
    )


def test_the_driver_in_the_notation_of_windows() -> None:
    driver = read("WSL2\nGPU access blocked by the operating system\nDriver: 31.0.15.3598").driver
    assert driver is not None
    assert driver.version == DriverVersion.parse("535.98")


@pytest.mark.parametrize(
    ("text", "wsl", "kernel"),
    [
        ("5.10.16.3-microsoft-standard-WSL2", 2, "5.10.16.3"),
        ("WSL 2, kernel 4.19.128", 2, "4.19.128"),
        ("Linux PC 4.4.0-19041-Microsoft", 1, None),
        ("- [x] WSL 2\n- [ ] WSL 1", 2, None),
        ("- [ ] WSL 2\n- [x] WSL 1", 1, None),
    ],
)
def test_wsl(text: str, wsl: int, kernel: str | None) -> None:
    system = read(f"{text}\nRuntimeError: Found no NVIDIA driver on your system.").system
    assert system is not None
    assert (system.wsl, system.kernel) == (wsl, kernel)


def test_too_old_a_driver_names_its_cuda_version() -> None:
    runtime = read(
        "UserWarning: CUDA initialization: The NVIDIA driver on your system is too old (found version 11040)."
    )
    assert runtime.driver is not None
    assert runtime.driver.cuda_version == CudaVersion(11, 4)
    assert runtime.torch_runtime is not None
    assert runtime.torch_runtime.available is False


TRACEBACK = """Traceback (most recent call last):
  File "train.py", line 3, in <module>
    model(batch)
"""


def test_an_unknown_error_is_one_message() -> None:
    text = f"{TRACEBACK}KeyError: 'first'\n{TRACEBACK}my.package.StrangeError: the flux is inverted\n"
    found = [message for message in read(text).symptoms or () if message.kind == "unknown-error"]
    assert [(message.text, message.names["error"]) for message in found] == [
        ("my.package.StrangeError: the flux is inverted", "my.package.StrangeError")
    ]


@pytest.mark.parametrize(
    "error", ["RuntimeError: CUDA error: invalid device ordinal", "RuntimeError:\nNo CUDA GPUs are\navailable"]
)
def test_a_known_error_is_no_unknown_one(error: str) -> None:
    assert "unknown-error" not in kinds(TRACEBACK + error)


def test_an_error_without_a_traceback_is_left() -> None:
    assert "unknown-error" not in kinds("StrangeError: the flux is inverted\nnvidia-smi: command not found")
