"""Which libraries of the driver a container was given."""

import pytest

from gpudoctor.model import (
    Container,
    Device,
    DeviceFile,
    Driver,
    DriverVersion,
    Environment,
    Outcome,
    Severity,
    Symptom,
    System,
    TorchRuntime,
)
from gpudoctor.readers import messages as reader
from gpudoctor.readers.text import clean_text
from gpudoctor.testing import run_check

DOCKER = System(os="linux", wsl=0, container="docker")
NODES = (DeviceFile(path="/dev/nvidiactl"), DeviceFile(path="/dev/nvidia0"))
NO_LIBCUDA = Driver(device_files=NODES, libcuda_path="", libcuda_files=(), nvml_code=0)


def granted(value: str) -> Environment:
    return Environment(variables={"NVIDIA_DRIVER_CAPABILITIES": value})


@pytest.mark.parametrize(
    ("environment", "state"),
    [
        pytest.param(granted("utility"), "NVIDIA_DRIVER_CAPABILITIES=utility", id="only utility"),
        pytest.param(Environment(), "NVIDIA_DRIVER_CAPABILITIES is unset", id="unset"),
    ],
)
def test_no_libcuda(environment: Environment, state: str) -> None:
    result = run_check("driver-capabilities-missing", system=DOCKER, driver=NO_LIBCUDA, environment=environment)
    finding = result.findings[0]
    assert finding.severity is Severity.ERROR
    assert finding.summary == f"The container has the GPU but not libcuda (compute): {state}"
    assert "NVIDIA_DRIVER_CAPABILITIES=compute,utility" in finding.remedies[0].commands[0]


def test_the_variable_is_enough_if_nothing_else_is_known() -> None:
    result = run_check("driver-capabilities-missing", system=DOCKER, environment=granted("utility,video"))
    assert result.findings[0].severity is Severity.ERROR


def test_no_nvml_is_a_warning() -> None:
    driver = Driver(device_files=NODES, libcuda_path="/usr/lib/libcuda.so.1", nvml_code=12)
    result = run_check("driver-capabilities-missing", system=DOCKER, driver=driver, environment=granted("compute"))
    assert result.findings[0].severity is Severity.WARNING
    assert "nvidia-smi (utility)" in result.findings[0].summary


def test_nvidia_smi_works_and_pytorch_finds_no_driver() -> None:
    result = run_check(
        "driver-capabilities-missing",
        system=DOCKER,
        driver=Driver(version=DriverVersion((580, 95, 5))),
        devices=(Device(nvml_index=0),),
        torch_runtime=TorchRuntime(availability_error="Found no NVIDIA driver on your system."),
    )
    assert result.outcome is Outcome.FOUND


@pytest.mark.parametrize(
    ("driver", "environment"),
    [
        pytest.param(Driver(libcuda_path="/usr/lib/libcuda.so.1", nvml_code=0), Environment(), id="unset, all there"),
        pytest.param(Driver(cuda_init_code=0), granted("utility"), id="CUDA works, as with CDI"),
        pytest.param(Driver(device_files=(), nvml_code=12), granted("utility"), id="no GPU at all"),
        pytest.param(Driver(libcuda_path="/usr/lib/libcuda.so.1"), granted("all"), id="all"),
    ],
)
def test_passes(driver: Driver, environment: Environment) -> None:
    result = run_check("driver-capabilities-missing", system=DOCKER, driver=driver, environment=environment)
    assert result.outcome is Outcome.PASSED


@pytest.mark.parametrize(
    ("system", "reason"),
    [
        pytest.param(System(container="", wsl=0), "this is not a container", id="no container"),
        pytest.param(System(), "system.container is unknown", id="container unknown"),
        pytest.param(DOCKER, "driver.libcuda_path is unknown", id="libcuda unknown"),
    ],
)
def test_skipped(system: System, reason: str) -> None:
    result = run_check("driver-capabilities-missing", system=system, driver=Driver())
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, reason)


def told(text: str) -> tuple[Symptom, ...]:
    symptoms: tuple[Symptom, ...] = reader.read(clean_text(text, "log"))["symptoms"]
    return symptoms


@pytest.mark.parametrize(
    "text",
    [
        "nvidia-smi works inside the container. RuntimeError: Found no NVIDIA driver on your system.",
        "Inside the container nvidia-smi works: libcuda.so.1: cannot open shared object file: No such file",
        "nvidia-smi shows the GPU in my container and still: Found no NVIDIA driver on your system.",
    ],
)
def test_words_of_a_report(text: str) -> None:
    (finding,) = run_check("driver-capabilities-missing", symptoms=told(text)).findings
    assert finding.severity is Severity.ERROR
    assert "NVIDIA_DRIVER_CAPABILITIES=compute,utility" in finding.remedies[0].commands[0]


def test_compose_gets_the_variable_first() -> None:
    symptoms = told("nvidia-smi works in the container. Found no NVIDIA driver on your system.")
    container = Container(engine="docker", compose=True)
    (finding,) = run_check("driver-capabilities-missing", symptoms=symptoms, container=container).findings
    assert "NVIDIA_DRIVER_CAPABILITIES: 'compute,utility'" in finding.remedies[0].summary


def test_a_device_without_libcuda_in_a_report() -> None:
    result = run_check(
        "driver-capabilities-missing",
        system=DOCKER,
        devices=(Device(nvml_index=0),),
        symptoms=told("ImportError: libcuda.so.1: cannot open shared object file: No such file or directory"),
    )
    assert result.outcome is Outcome.FOUND


@pytest.mark.parametrize(
    "text",
    [
        "nvidia-smi works in the container",
        "nvidia-smi works on the host. Found no NVIDIA driver on your system.",
        "nvidia-smi shows no devices in the container. Found no NVIDIA driver on your system.",
    ],
)
def test_other_words(text: str) -> None:
    assert run_check("driver-capabilities-missing", symptoms=told(text)).outcome is Outcome.SKIPPED


@pytest.mark.parametrize(
    ("container", "found"),
    [
        pytest.param(Container(engine="docker", gpus_requested=True), True, id="container"),
        pytest.param(None, False, id="a host, whose driver lacks a package"),
    ],
)
def test_no_library_for_video(container: Container | None, found: bool) -> None:
    told: tuple[Symptom, ...] = reader.read(clean_text("Cannot load libnvcuvid.so.1", "log"))["symptoms"]
    findings = run_check("driver-capabilities-missing", symptoms=told, container=container).findings
    assert ["video" in finding.remedies[0].commands[0] for finding in findings] == ([True] if found else [])
