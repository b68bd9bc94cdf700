"""Facts that several checks read in the same way."""

import pytest

from gpudoctor.conclusions.error_codes import (
    NVML_UNKNOWN,
    NVML_VERSION_MISMATCH,
    SYSTEM_NOT_READY,
    UNKNOWN_ERROR,
    UNSUPPORTED_PTX,
    asks_for_cuda,
    cuda_error,
    gpu_nodes,
    nvml_error,
    too_old_reported,
    works,
)
from gpudoctor.model import (
    CudaVersion,
    Cupy,
    CupyRuntime,
    Device,
    DeviceFile,
    Driver,
    LibraryCall,
    Package,
    PackageVersion,
    Torch,
    TorchRuntime,
)

CUPY = Cupy(distributions=(Package(name="cupy-cuda12x", version=PackageVersion("14.2.0")),), platform="cuda")


@pytest.mark.parametrize(
    ("code", "driver", "torch_runtime", "cupy_runtime", "fact"),
    [
        (UNKNOWN_ERROR, Driver(cuda_init_code=999), None, None, "driver.cuda_init_code"),
        (UNKNOWN_ERROR, Driver(cuda_init_error="CUDA_ERROR_UNKNOWN"), None, None, "driver.cuda_init_error"),
        (UNKNOWN_ERROR, Driver(cuda_init_code=0, cuda_init_error=""), None, None, None),
        (
            SYSTEM_NOT_READY,
            None,
            TorchRuntime(warnings=("slow", "Error 802: system not yet initialized")),
            None,
            "torch_runtime.warnings[1]",
        ),
        (
            UNSUPPORTED_PTX,
            None,
            None,
            CupyRuntime(
                calls=(
                    LibraryCall(library="nvrtc", error="the provided PTX was compiled with an unsupported toolchain"),
                )
            ),
            "cupy_runtime.calls[0].error",
        ),
    ],
)
def test_a_cuda_error_is_found_wherever_it_stands(
    code: int,
    driver: Driver | None,
    torch_runtime: TorchRuntime | None,
    cupy_runtime: CupyRuntime | None,
    fact: str | None,
) -> None:
    assert cuda_error(code, driver, torch_runtime, cupy_runtime) == fact


def test_the_code_of_nvml_wins_over_its_text() -> None:
    driver = Driver(nvml_code=18, nvml_error="Unknown Error")
    assert nvml_error(NVML_VERSION_MISMATCH, driver) == "driver.nvml_code"
    assert nvml_error(NVML_UNKNOWN, driver) is None


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("driver on your system is too old (found version 11040)", CudaVersion(11, 4)),
        ("CUDA driver version is insufficient for CUDA runtime version", None),
    ],
)
def test_the_version_in_the_message(text: str, found: CudaVersion | None) -> None:
    runtime = TorchRuntime(availability_error=text)
    assert too_old_reported(runtime) == ("torch_runtime.availability_error", found)


@pytest.mark.parametrize(
    ("torch", "cupy", "asked"),
    [
        (Torch(build="cuda"), None, True),
        (Torch(build="cpu"), CUPY, True),
        (Torch(build="cpu"), Cupy(distributions=()), False),
        (Torch(installed=False), None, False),
        (Torch(), None, None),
        (None, None, None),
    ],
)
def test_who_asks_for_cuda(torch: Torch | None, cupy: Cupy | None, asked: bool | None) -> None:
    assert asks_for_cuda(torch, cupy) is asked


def test_nodes_that_cuda_opens() -> None:
    names = ("nvidiactl", "nvidia0", "nvidia12", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset", "dxg")
    driver = Driver(device_files=tuple(DeviceFile(path=f"/dev/{name}") for name in names))
    nodes = gpu_nodes(driver) or ()
    assert [node.path for node in nodes] == [
        "/dev/nvidiactl",
        "/dev/nvidia0",
        "/dev/nvidia12",
        "/dev/nvidia-uvm",
        "/dev/dxg",
    ]


@pytest.mark.parametrize(
    ("driver", "devices", "answer"),
    [
        (Driver(cuda_init_code=0, cuda_device_count=1), None, True),
        (Driver(nvml_code=0), (Device(nvml_index=0, uuid="GPU-1"),), True),
        (Driver(nvml_code=0), (Device(nvml_index=0, name="NVIDIA A10"),), False),  # as a report names its GPU
        (Driver(nvml_code=999), (Device(nvml_index=0),), False),
        (Driver(cuda_init_code=0, cuda_device_count=0), (), False),
        (None, None, False),
    ],
)
def test_whether_the_driver_answers(
    driver: Driver | None,
    devices: tuple[Device, ...] | None,
    answer: bool,
) -> None:
    assert works(driver, devices) is answer
