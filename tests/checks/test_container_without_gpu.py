"""A container that was started without the GPU."""

from dataclasses import replace

import pytest

from gpudoctor.model import (
    Container,
    CudaVersion,
    Cupy,
    Device,
    DeviceFile,
    Driver,
    Environment,
    Outcome,
    PciGpu,
    Severity,
    Symptom,
    System,
    Torch,
    TorchRuntime,
)
from gpudoctor.readers import messages as reader
from gpudoctor.readers.text import clean_text
from gpudoctor.testing import run_check

NVIDIA = PciGpu(address="0000:01:00.0", vendor="nvidia", device_id="2684", name="GeForce RTX 4090")
DOCKER = System(os="linux", wsl=0, container="docker", pci_gpus=(NVIDIA,))
BARE = Driver(installed=False, device_files=(), libcuda_path="", libcuda_files=(), nvml_code=12)
CUDA = Torch(installed=True, build="cuda", cuda_version=CudaVersion(13, 0))
CPU = Torch(installed=True, build="cpu")
NO_CUPY = Cupy(distributions=())
NO_DRIVER = TorchRuntime(available=False, availability_error="Found no NVIDIA driver on your system.")


def test_the_host_has_a_gpu() -> None:
    finding = run_check("container-without-gpu", system=DOCKER, driver=BARE, torch=CUDA).findings[0]
    assert finding.severity is Severity.ERROR
    assert finding.summary == (
        "This docker container has no NVIDIA device node, although the GPU of its host is GeForce RTX 4090"
    )
    assert "--gpus all" in finding.remedies[0].commands[0]


@pytest.mark.parametrize(
    ("torch", "driver", "severity"),
    [
        pytest.param(CPU, BARE, Severity.INFO, id="CPU build"),
        pytest.param(CUDA, BARE, Severity.WARNING, id="whether the host has one is unknown"),
        pytest.param(CUDA, replace(BARE, device_files=None), Severity.ERROR, id="pasted"),
    ],
)
def test_severity(torch: Torch, driver: Driver, severity: Severity) -> None:
    system = replace(DOCKER, pci_gpus=None)
    result = run_check("container-without-gpu", system=system, driver=driver, torch=torch, cupy=NO_CUPY)
    assert [finding.severity for finding in result.findings] == [severity]


def test_a_pasted_message_is_enough() -> None:
    result = run_check("container-without-gpu", system=System(container="docker"), torch_runtime=NO_DRIVER)
    assert result.outcome is Outcome.FOUND


def test_void_is_named() -> None:
    environment = Environment(variables={"NVIDIA_VISIBLE_DEVICES": "void"})
    finding = run_check("container-without-gpu", system=DOCKER, driver=BARE, environment=environment).findings[0]
    assert finding.summary.endswith("(NVIDIA_VISIBLE_DEVICES=void)")


@pytest.mark.parametrize(
    ("system", "driver", "devices"),
    [
        pytest.param(DOCKER, Driver(nvml_code=0), (Device(nvml_index=0),), id="NVML lists one"),
        pytest.param(replace(DOCKER, pci_gpus=()), BARE, (), id="the host has none"),
        pytest.param(
            DOCKER, Driver(device_files=(DeviceFile(path="/dev/nvidia0"),), nvml_code=999), (), id="nodes are there"
        ),
        pytest.param(
            replace(DOCKER, wsl=2, pci_gpus=()),
            Driver(device_files=(DeviceFile(path="/dev/dxg"),), nvml_code=12),
            (),
            id="the node of WSL is there",
        ),
    ],
)
def test_passes(system: System, driver: Driver, devices: tuple[Device, ...]) -> None:
    result = run_check("container-without-gpu", system=system, driver=driver, devices=devices, torch=CUDA)
    assert result.outcome is Outcome.PASSED


@pytest.mark.parametrize(
    ("system", "driver", "reason"),
    [
        pytest.param(replace(DOCKER, container=""), BARE, "this is not a container", id="no container"),
        pytest.param(System(), BARE, "system.container is unknown", id="container unknown"),
        pytest.param(DOCKER, Driver(), "driver.device_files is unknown", id="nodes unknown"),
    ],
)
def test_skipped(system: System, driver: Driver, reason: str) -> None:
    result = run_check("container-without-gpu", system=system, driver=driver, torch=CUDA)
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, reason)


def told(text: str) -> tuple[Symptom, ...]:
    symptoms: tuple[Symptom, ...] = reader.read(clean_text(text, "log"))["symptoms"]
    return symptoms


BANNER = "WARNING: The NVIDIA Driver was not detected.  GPU functionality will not be available."
FOUND_NONE = "RuntimeError: Found no NVIDIA driver on your system."
PLAIN = Container(engine="docker", image="pytorch/pytorch:2.6.0-cuda12.4-cudnn9-runtime", gpus_requested=False)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(BANNER + " Use 'nvidia-docker run' to start this container", id="old banner"),
        pytest.param(
            BANNER + " Use the NVIDIA Container Toolkit to start this container with GPU support", id="banner"
        ),
        pytest.param("NOTE: The NVIDIA Driver was not detected.  GPU functionality will not be available.", id="note"),
        pytest.param("Unsupported config option for services.app: 'runtime'", id="compose too old"),
        pytest.param("nvidia-container-cli: device error: 3: unknown device: unknown", id="a GPU that is not there"),
    ],
)
def test_a_message_is_enough_even_if_the_host_works(text: str) -> None:
    host = {"driver": Driver(cuda_init_code=0), "devices": (Device(nvml_index=0),)}
    (finding,) = run_check("container-without-gpu", symptoms=told(text), **host).findings
    assert finding.severity is Severity.ERROR
    assert any("--gpus all" in command for remedy in finding.remedies for command in remedy.commands)


@pytest.mark.parametrize(
    ("runtime", "text", "fact"),
    [
        pytest.param(NO_DRIVER, FOUND_NONE, "symptoms[1].text", id="PyTorch finds no driver"),
        pytest.param(TorchRuntime(available=False), "", "torch_runtime.available", id="not available"),
        pytest.param(None, "bash: nvidia-smi: command not found", "symptoms[0].text", id="no nvidia-smi"),
    ],
)
def test_a_command_without_the_gpu(runtime: TorchRuntime | None, text: str, fact: str) -> None:
    result = run_check("container-without-gpu", container=PLAIN, torch_runtime=runtime, symptoms=told(text))
    (finding,) = result.findings
    assert finding.summary == f"The container of {PLAIN.image} was started without the GPU"
    assert finding.facts == (fact, "container.gpus_requested")


def test_the_compose_reservation_comes_first() -> None:
    container = Container(engine="docker", compose=True)
    result = run_check("container-without-gpu", container=container, torch_runtime=NO_DRIVER, symptoms=told(FOUND_NONE))
    remedy = result.findings[0].remedies[0]
    assert "capabilities: [gpu]" in remedy.summary
    assert "NVIDIA_DRIVER_CAPABILITIES: 'compute,utility'" in remedy.summary


@pytest.mark.parametrize(
    ("container", "torch", "text"),
    [
        pytest.param(PLAIN, CPU, FOUND_NONE, id="a CPU build"),
        pytest.param(replace(PLAIN, gpus_requested=True), CUDA, FOUND_NONE, id="the GPU was asked for"),
        pytest.param(PLAIN, CUDA, "nvidia-smi works inside the container", id="nvidia-smi works inside"),
        pytest.param(PLAIN, CUDA, "", id="nothing failed"),
    ],
)
def test_a_report_without_that_cause(container: Container, torch: Torch, text: str) -> None:
    runtime = NO_DRIVER if text == FOUND_NONE else TorchRuntime()
    result = run_check(
        "container-without-gpu", container=container, torch=torch, torch_runtime=runtime, symptoms=told(text)
    )
    assert result.outcome is Outcome.SKIPPED


def test_no_nvidia_smi_in_the_container() -> None:
    symptoms = told("bash: nvidia-smi: command not found")
    result = run_check("container-without-gpu", system=System(container="docker"), symptoms=symptoms)
    assert result.findings[0].facts == ("system.container", "symptoms[0].text")


def from_report(text: str, **sections: Container) -> list[str]:
    told: tuple[Symptom, ...] = reader.read(clean_text(text, "log"))["symptoms"]
    found = run_check("container-without-gpu", symptoms=told, **sections).findings
    return [command for finding in found for command in finding.remedies[0].commands]


def test_an_option_in_one_word_with_its_value() -> None:
    commands = from_report("unknown flag: --gpus all")
    assert commands[0] == "docker run --rm --gpus all ubuntu nvidia-smi"


def test_a_host_without_a_driver_for_singularity() -> None:
    assert from_report("INFO: Could not find any nv files on this host!")[0] == "nvidia-smi"


@pytest.mark.parametrize(
    ("text", "container", "found"),
    [
        pytest.param("No CUDA GPUs are available", Container(engine="kubernetes"), True, id="a pod"),
        pytest.param("No CUDA GPUs are available", Container(engine="docker"), False, id="it may be hidden"),
        pytest.param("bash: nvidia-smi: command not found", Container(engine="docker"), True, id="no nvidia-smi"),
        pytest.param("no compatible GPUs were discovered", Container(gpus_requested=False), True, id="Ollama"),
        pytest.param("bash: nvidia-smi: command not found", Container(gpus_requested=True), False, id="asked for"),
    ],
)
def test_what_a_program_in_a_container_says(text: str, container: Container, found: bool) -> None:
    told: tuple[Symptom, ...] = reader.read(clean_text(text, "log"))["symptoms"]
    assert bool(run_check("container-without-gpu", symptoms=told, container=container).findings) is found
