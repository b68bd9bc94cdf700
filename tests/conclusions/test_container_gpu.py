"""Whether the container that the facts are of has the GPU."""

from typing import Any

import pytest

from gpudoctor.conclusions import Facts
from gpudoctor.model import (
    Container,
    ContainerGpu,
    DeviceFile,
    Driver,
    DriverVersion,
    Snapshot,
    Symptom,
    System,
    Torch,
    TorchRuntime,
)

NODE = DeviceFile(path="/dev/nvidia0")
FOUND_NONE = Symptom(kind="torch-no-driver", text="Found no NVIDIA driver", fact="symptoms[0].text")
NO_SMI = Symptom(kind="nvidia-smi-not-found", text="nvidia-smi: command not found", fact="symptoms[0].text")
NO_LIBCUDA = Symptom(kind="libcuda-not-found", text="Cannot load libcuda.so.1", fact="symptoms[0].text")
SMI_WORKS = Symptom(kind="container-nvidia-smi-works", text="nvidia-smi works", fact="symptoms[1].text")
PLAIN = Container(image="train:1", gpus_requested=False)


def concluded(**sections: Any) -> ContainerGpu:
    found: ContainerGpu = Facts(Snapshot(**sections)).get("container_gpu")
    return found


@pytest.mark.parametrize(
    ("driver", "symptoms", "present"),
    [
        pytest.param(Driver(device_files=(NODE,)), (), True, id="a node"),
        pytest.param(Driver(device_files=()), (), False, id="no node"),
        pytest.param(Driver(device_files=(DeviceFile(path="/dev/nvidia-modeset"),)), (), False, id="no node for CUDA"),
        pytest.param(Driver(device_files=(), nvml_code=0), (), True, id="NVML answers"),
        pytest.param(Driver(libcuda_path="/usr/lib/libcuda.so.1"), (), True, id="libcuda, nodes unknown"),
        pytest.param(Driver(device_files=(), libcuda_path="/usr/lib/libcuda.so.1"), (), False, id="libcuda, no node"),
        pytest.param(Driver(), (), None, id="unknown"),
        pytest.param(Driver(), (NO_SMI,), False, id="nodes unknown, no nvidia-smi"),
        pytest.param(Driver(installed=False), (), False, id="nodes unknown, no driver"),
    ],
)
def test_present(driver: Driver, symptoms: tuple[Symptom, ...], present: bool | None) -> None:
    assert concluded(driver=driver, symptoms=symptoms).present is present


@pytest.mark.parametrize(
    ("sections", "without", "facts"),
    [
        pytest.param(
            {"container": PLAIN, "symptoms": (FOUND_NONE,)},
            "The container of train:1 was started without the GPU",
            ("symptoms[0].text", "container.gpus_requested"),
            id="left out",
        ),
        pytest.param(
            {"container": Container(engine="docker"), "symptoms": (NO_SMI,)},
            "The container has no NVIDIA driver: it was started without the GPU",
            ("symptoms[0].text",),
            id="no nvidia-smi",
        ),
        pytest.param(
            {"container": PLAIN, "torch_runtime": TorchRuntime(available=False)},
            "The container of train:1 was started without the GPU",
            ("torch_runtime.available", "container.gpus_requested"),
            id="not available",
        ),
        pytest.param(
            {"container": Container(image="linuxserver/ffmpeg:6-nvidia"), "symptoms": (NO_LIBCUDA,)},
            "The container of linuxserver/ffmpeg:6-nvidia has no NVIDIA driver: it was started without the GPU",
            ("symptoms[0].text",),
            id="an image for GPUs without libcuda",
        ),
        pytest.param(
            {"container": Container(image="debian:12"), "symptoms": (NO_LIBCUDA,)}, "", (), id="an image for anything"
        ),
        pytest.param({"container": PLAIN}, "", (), id="nothing failed"),
        pytest.param(
            {"container": Container(gpus_requested=True), "symptoms": (FOUND_NONE,)}, "", (), id="it was asked for"
        ),
        pytest.param(
            {"container": PLAIN, "symptoms": (FOUND_NONE,), "torch": Torch(installed=True, build="cpu")},
            "",
            (),
            id="a CPU build looks for no driver",
        ),
        pytest.param({"container": PLAIN, "symptoms": (FOUND_NONE, SMI_WORKS)}, "", (), id="nvidia-smi works in it"),
        pytest.param({"symptoms": (FOUND_NONE,)}, "", (), id="no container"),
        pytest.param(
            {"system": System(container="docker"), "symptoms": (FOUND_NONE,)},
            "",
            (),
            id="how it was started is unknown",
        ),
    ],
)
def test_a_report_of_a_start_without_the_gpu(sections: dict[str, Any], without: str, facts: tuple[str, ...]) -> None:
    found = concluded(contradictions=(), **sections)
    assert (found.without, found.without_facts) == (without, facts)
    assert concluded(**sections).without == ""  # on a live machine its own facts decide


def test_nvidia_smi_alone() -> None:
    assert concluded(symptoms=(FOUND_NONE, SMI_WORKS)).smi_alone == ("symptoms[0].text", "symptoms[1].text")
    assert concluded(symptoms=(SMI_WORKS,)).smi_alone == ()
    without_cuda = Symptom(kind="nvidia-smi-without-cuda", text="CUDA Version: N/A", fact="symptoms[0].text")
    assert concluded(symptoms=(without_cuda,), container=PLAIN).smi_alone == ("symptoms[0].text",)
    assert concluded(symptoms=(without_cuda,)).smi_alone == ()


@pytest.mark.parametrize(
    ("driver", "fact"),
    [
        pytest.param(Driver(device_files=(NODE,), libcuda_path=""), "driver.libcuda_path", id="not on the path"),
        pytest.param(Driver(device_files=(NODE,), libcuda_path="", libcuda_files=("/a/libcuda.so.1",)), "", id="there"),
        pytest.param(Driver(device_files=(NODE,), libcuda_path="/usr/lib/libcuda.so.1"), "", id="found"),
        pytest.param(Driver(device_files=(NODE,), cuda_init_code=0, libcuda_path=""), "", id="CUDA works"),
        pytest.param(Driver(libcuda_path=""), "", id="no GPU"),
        pytest.param(Driver(version=DriverVersion((550, 54)), libcuda_path=""), "driver.libcuda_path", id="a driver"),
    ],
)
def test_libcuda_alone_is_missing(driver: Driver, fact: str) -> None:
    assert concluded(driver=driver).no_libcuda == fact


def test_a_driver_of_the_host_shows_no_gpu_in_a_container_that_was_started_without() -> None:
    host = {"driver": Driver(version=DriverVersion((550, 144, 3))), "symptoms": (FOUND_NONE,), "contradictions": ()}
    assert concluded(**host).no_libcuda == "symptoms[0].text"
    assert concluded(container=PLAIN, **host).no_libcuda == ""


@pytest.mark.parametrize("kind", ["torch-no-driver", "libcuda-not-found", "cuda-no-device", "torch-no-gpus"])
def test_a_program_that_fails_next_to_an_nvidia_smi_that_works(kind: str) -> None:
    failed = Symptom(kind=kind, text="failed", fact="symptoms[0].text")
    assert concluded(symptoms=(failed, SMI_WORKS)).smi_alone == ("symptoms[0].text", "symptoms[1].text")


@pytest.mark.parametrize(
    ("build", "without"),
    [("cuda", True), (None, True), ("cpu", False), ("rocm", False)],
)
def test_a_build_that_needs_no_driver_shows_nothing_of_it(build: str | None, without: bool) -> None:
    torch = None if build is None else Torch(installed=True, build=build)
    found = concluded(container=PLAIN, torch=torch, symptoms=(FOUND_NONE,), contradictions=())
    assert bool(found.without) is without
