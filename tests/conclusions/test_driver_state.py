"""Whether the driver works, and what says that it does not."""

import pytest

from gpudoctor.conclusions import Facts
from gpudoctor.model import (
    ComputeCapability,
    CudaVersion,
    CupyRuntime,
    Device,
    Driver,
    DriverState,
    DriverVersion,
    LibraryCall,
    Snapshot,
    Symptom,
    System,
    TorchRuntime,
)
from gpudoctor.symptoms.facts import with_symptoms

R580 = Driver(version=DriverVersion((580, 95, 5)))
PASCAL = Device(nvml_index=0, compute_capability=ComputeCapability(6, 1))
NVENC = Symptom(kind="nvenc-driver-too-old", text="x", code="cuda-35")


def state_of(snapshot: Snapshot) -> DriverState:
    found = Facts(with_symptoms(snapshot)).get("driver_state")
    assert isinstance(found, DriverState)
    return found


@pytest.mark.parametrize(
    ("driver", "devices", "answer"),
    [
        (Driver(cuda_init_code=0, cuda_device_count=1), None, True),
        (Driver(nvml_code=0), (Device(nvml_index=0, uuid="GPU-1"),), True),
        (Driver(nvml_code=0), (Device(nvml_index=0, name="NVIDIA A10"),), False),  # as a report names its GPU
        *(
            (Driver(nvml_code=0), (device,), True)
            for device in (
                Device(nvml_index=0, memory_total_bytes=1),
                Device(nvml_index=0, memory_used_bytes=0),
                Device(nvml_index=0, pci_address="00000000:01:00.0"),
                Device(nvml_index=0, mig_enabled=False),
                Device(nvml_index=0, temperature_celsius=0),
                Device(nvml_index=0, performance_state=0),
            )
        ),
        (R580, (Device(nvml_index=0, name="NVIDIA A10"),), True),
        (Driver(nvml_code=999), (Device(nvml_index=0, uuid="GPU-1"),), False),
        (Driver(cuda_init_code=0, cuda_device_count=0), (), False),
        (None, None, False),
    ],
)
def test_whether_the_driver_works(driver: Driver | None, devices: tuple[Device, ...] | None, answer: bool) -> None:
    assert state_of(Snapshot(driver=driver, devices=devices)).works is answer


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        pytest.param("Found no NVIDIA driver on your system.", "torch_runtime.availability_error", id="no libcuda"),
        pytest.param("No CUDA GPUs are available", None, id="no device"),
    ],
)
def test_no_driver_is_found(text: str, fact: str | None) -> None:
    symptom = state_of(Snapshot(torch_runtime=TorchRuntime(availability_error=text))).not_found
    assert (symptom.fact if symptom else None) == fact


@pytest.mark.parametrize(
    ("text", "found"),
    [
        pytest.param(
            "The NVIDIA driver on your system is too old (found version 11040)", CudaVersion(11, 4), id="with a version"
        ),
        pytest.param("CUDA driver version is insufficient for CUDA runtime version", None, id="without"),
    ],
)
def test_the_driver_is_called_too_old(text: str, found: CudaVersion | None) -> None:
    state = state_of(Snapshot(torch_runtime=TorchRuntime(availability_error=text)))
    assert state.too_old is not None
    assert (state.too_old.fact, state.cuda_version) == ("torch_runtime.availability_error", found)


def test_nvenc_without_its_library_does_not_speak_of_the_driver() -> None:
    library = Symptom(kind="container-video-library", text="x")
    assert state_of(Snapshot(symptoms=(NVENC, library))).too_old is None
    assert state_of(Snapshot(symptoms=(NVENC,))).too_old is not None


def test_a_call_of_cupy_counts() -> None:
    call = LibraryCall(library="nvrtc", error="CUDA driver version is insufficient for CUDA runtime version")
    state = state_of(Snapshot(cupy_runtime=CupyRuntime(calls=(call,))))
    assert state.too_old is not None
    assert state.too_old.fact == "cupy_runtime.calls[0].error"


@pytest.mark.parametrize(
    ("driver", "offered"),
    [
        pytest.param(Driver(cuda_version=CudaVersion(12, 2)), CudaVersion(12, 2), id="libcuda"),
        pytest.param(R580, CudaVersion(13, 0), id="branch"),
        pytest.param(Driver(), None, id="unknown"),
    ],
)
def test_what_it_offers(driver: Driver, offered: CudaVersion | None) -> None:
    assert state_of(Snapshot(driver=driver)).cuda_version == offered


@pytest.mark.parametrize(
    ("system", "devices", "stays"),
    [
        pytest.param(System(container=""), (), False, id="own machine"),
        pytest.param(System(container="docker"), (), True, id="container"),
        pytest.param(System(user_is_root=False), (), True, id="not root"),
        pytest.param(System(), (PASCAL,), True, id="last branch of the GPU"),
    ],
)
def test_whether_it_stays(system: System, devices: tuple[Device, ...], stays: bool) -> None:
    assert state_of(Snapshot(driver=R580, system=system, devices=devices)).stays is stays


def test_a_branch_before_the_last_can_be_updated() -> None:
    assert not state_of(Snapshot(driver=Driver(version=DriverVersion((570, 1))), devices=(PASCAL,))).stays
