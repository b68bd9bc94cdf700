"""The host's container engine and the GPU."""

from dataclasses import replace

import pytest

from gpudoctor.model import (
    Container,
    Device,
    Driver,
    DriverVersion,
    Outcome,
    PciGpu,
    Severity,
    Symptom,
    System,
)
from gpudoctor.readers import messages as reader
from gpudoctor.readers.text import clean_text
from gpudoctor.testing import run_check

NVIDIA = PciGpu(address="0000:01:00.0", vendor="nvidia", device_id="2684")
HOST = System(os="linux", distribution="ubuntu", wsl=0, container="", pci_gpus=(NVIDIA,))
DOCKER = Container(
    docker_installed=True,
    podman_installed=False,
    toolkit_installed=False,
    nvidia_runtime_configured=False,
    cdi_devices=(),
)


@pytest.mark.parametrize(
    ("container", "summary", "command"),
    [
        pytest.param(
            DOCKER, "Docker is installed without the NVIDIA Container Toolkit", "nvidia-container-toolkit", id="missing"
        ),
        pytest.param(
            replace(DOCKER, toolkit_installed=True),
            "docker is not configured for it",
            "nvidia-ctk runtime configure --runtime=docker",
            id="not configured",
        ),
        pytest.param(
            replace(DOCKER, docker_installed=False, podman_installed=True, toolkit_installed=True),
            "podman is not configured for it",
            "nvidia-ctk cdi generate",
            id="podman",
        ),
    ],
)
def test_it_is_advice(container: Container, summary: str, command: str) -> None:
    finding = run_check("nvidia-container-toolkit-missing", container=container, system=HOST).findings[0]
    assert finding.severity is Severity.INFO
    assert summary in finding.summary
    assert command in finding.remedies[0].commands[0]


@pytest.mark.parametrize(
    "container",
    [
        pytest.param(replace(DOCKER, toolkit_installed=True, nvidia_runtime_configured=True), id="configured"),
        pytest.param(replace(DOCKER, cdi_devices=("/etc/cdi/nvidia.yaml",)), id="CDI"),
    ],
)
def test_passes(container: Container) -> None:
    assert run_check("nvidia-container-toolkit-missing", container=container, system=HOST).outcome is Outcome.PASSED


@pytest.mark.parametrize(
    ("sections", "reason"),
    [
        pytest.param(
            {"system": replace(HOST, container="docker")}, "the host starts containers, not this container", id="inside"
        ),
        pytest.param({"system": replace(HOST, pci_gpus=())}, "there is no NVIDIA GPU", id="no GPU"),
        pytest.param({"driver": Driver(installed=False)}, "no driver is installed", id="no driver"),
        pytest.param(
            {"container": replace(DOCKER, docker_installed=False)}, "there is no container engine", id="no engine"
        ),
        pytest.param({"container": Container()}, "container.docker_installed is unknown", id="engine unknown"),
        pytest.param(
            {"container": replace(DOCKER, toolkit_installed=None)},
            "container.toolkit_installed is unknown",
            id="toolkit unknown",
        ),
    ],
)
def test_skipped(sections: dict[str, object], reason: str) -> None:
    result = run_check("nvidia-container-toolkit-missing", **{"container": DOCKER, "system": HOST, **sections})
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, reason)


def test_devices_count_if_the_bus_is_unknown() -> None:
    result = run_check(
        "nvidia-container-toolkit-missing",
        container=DOCKER,
        system=replace(HOST, pci_gpus=None),
        devices=(Device(nvml_index=0),),
    )
    assert result.outcome is Outcome.FOUND


def told(text: str) -> tuple[Symptom, ...]:
    symptoms: tuple[Symptom, ...] = reader.read(clean_text(text, "log"))["symptoms"]
    return symptoms


WORKS = {"driver": Driver(version=DriverVersion((550, 90, 7))), "devices": (Device(nvml_index=0),)}
HOOK = "error running hook: exit status 1, stderr: Auto-detected mode as 'legacy' nvidia-container-cli: "


@pytest.mark.parametrize(
    ("text", "summary"),
    [
        pytest.param(
            'Error response from daemon: could not select device driver "" with capabilities: [[gpu]].',
            "Docker is not set up for GPUs",
            id="no driver",
        ),
        pytest.param(
            'could not select device driver "nvidia" with\ncapabilities: [[gpu utility]]',
            "Docker is not set up for GPUs",
            id="compose, wrapped",
        ),
        pytest.param("unknown or invalid runtime name: nvidia", "not configured with the nvidia runtime", id="runtime"),
        pytest.param(
            "Unknown runtime specified nvidia.", "not configured with the nvidia runtime", id="runtime, older docker"
        ),
        pytest.param(
            'no runtime for "nvidia" is configured', "not configured with the nvidia runtime", id="containerd"
        ),
        pytest.param("failed to discover GPU vendor from CDI: no known GPU vendor found", "no CDI", id="docker 29"),
        pytest.param('exec: "nvidia-container-runtime-hook": executable file not found in $PATH', "missing", id="hook"),
        pytest.param(
            "nvidia-container-runtime did not terminate successfully: exit status 127", "missing", id="runtime"
        ),
        pytest.param("bash: nvidia-ctk: command not found", "missing", id="no command"),
        pytest.param(
            HOOK + "initialization error: load library failed: libnvidia-ml.so.1: cannot open shared object file",
            "libnvidia-ml.so.1 is missing",
            id="libraries",
        ),
        pytest.param(
            HOOK + "initialization error: driver error: failed to process request", "does not answer", id="driver"
        ),
        pytest.param(
            "nvidia-container-cli.real: mount error: failed to add device rules: bpf_prog_query",
            "cgroups",
            id="device rules",
        ),
        pytest.param("Error: setting up CDI devices: unresolvable CDI devices nvidia.com/gpu=all", "CDI", id="podman"),
        pytest.param("0/3 nodes are available: 3 Insufficient nvidia.com/gpu.", "No node", id="Kubernetes"),
        pytest.param("Incompatible platform detected", "device plugin", id="device plugin"),
        pytest.param("unknown flag: --gpus", "older than 19.03", id="old docker"),
    ],
)
def test_a_message_is_an_error(text: str, summary: str) -> None:
    (finding,) = run_check("nvidia-container-toolkit-missing", symptoms=told(text)).findings
    assert finding.severity is Severity.ERROR
    assert summary in finding.summary
    assert finding.remedies


def remedies(text: str, **sections: object) -> str:
    (finding,) = run_check("nvidia-container-toolkit-missing", symptoms=told(text), **sections).findings
    return " ".join(f"{remedy.summary} {' '.join(remedy.commands)}" for remedy in finding.remedies[:1])


NO_DRIVER = 'could not select device driver "" with capabilities: [[gpu]]'
NO_LIBRARY = HOOK + "initialization error: load library failed: libnvidia-ml.so.1"


@pytest.mark.parametrize(
    ("text", "sections", "remedy"),
    [
        pytest.param(NO_DRIVER, {"system": HOST}, "apt-get install -y nvidia-container-toolkit", id="Ubuntu"),
        pytest.param(NO_DRIVER, {}, "nvidia-ctk runtime configure --runtime=docker", id="distribution unknown"),
        pytest.param(NO_DRIVER, {"container": Container(docker_snap=True)}, "snap remove docker", id="snap"),
        pytest.param(NO_DRIVER, {"container": Container(docker_desktop=True)}, "context use default", id="desktop"),
        pytest.param(NO_DRIVER, {"system": System(os="windows")}, "WSL 2", id="Windows"),
        pytest.param(NO_DRIVER, {"container": Container(rootless=True)}, "no-cgroups", id="rootless"),
        pytest.param(NO_LIBRARY, WORKS, "docker context use default", id="the driver works on the host"),
        pytest.param(NO_LIBRARY, {}, "nvidia-smi", id="whether it works is not known"),
        pytest.param("unresolvable CDI devices nvidia.com/gpu=all", {}, "nvidia-ctk cdi generate", id="CDI"),
        pytest.param("2 Insufficient nvidia.com/gpu", {}, "--runtime=containerd", id="Kubernetes"),
    ],
)
def test_the_remedy_is_that_of_the_engine(text: str, sections: dict[str, object], remedy: str) -> None:
    assert remedy in remedies(text, **sections)


def test_the_host_driver_is_named() -> None:
    (finding,) = run_check("nvidia-container-toolkit-missing", symptoms=told(NO_DRIVER), **WORKS).findings
    assert finding.summary == "Docker is not set up for GPUs, although driver 550.90.07 works"


def test_a_report_without_such_a_message() -> None:
    result = run_check("nvidia-container-toolkit-missing", symptoms=told("docker run hello-world works"))
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, "container.docker_installed is unknown")


NO_LIBCUDA = told("nvidia-container-cli: detection error: load library failed: libcuda.so.1: cannot open shared")
ANSWERING = (Device(nvml_index=0, name="NVIDIA L4", temperature_celsius=40),)


def test_libcuda_alone_that_is_missing_on_the_host_is_another_cause() -> None:
    driver = Driver(installed=True, version=DriverVersion((550, 54, 14)))
    result = run_check("nvidia-container-toolkit-missing", symptoms=NO_LIBCUDA, driver=driver, devices=ANSWERING)
    assert result.findings == ()


def test_libcuda_that_is_missing_if_nothing_is_known_of_the_host() -> None:
    (finding,) = run_check("nvidia-container-toolkit-missing", symptoms=NO_LIBCUDA).findings
    assert finding.severity is Severity.ERROR
    assert "libcuda.so.1" in finding.summary


def test_an_image_with_driver_libraries_of_its_own() -> None:
    text = "nvidia-container-cli: mount error: file creation failed: /m/usr/lib/libnvidia-ml.so.1: file exists: unknown"
    (finding,) = run_check("nvidia-container-toolkit-missing", symptoms=told(text)).findings
    assert finding.remedies[0].commands[1].startswith("docker run --rm --entrypoint sh IMAGE ")


def test_docker_that_was_not_restarted() -> None:
    running, written = " Runtimes: io.containerd.runc.v2 runc\n Default Runtime: runc", '{"runtimes": {"nvidia": {}}}'
    (finding,) = run_check("nvidia-container-toolkit-missing", symptoms=told(f"{running}\n{written}")).findings
    assert finding.severity is Severity.ERROR
    assert "sudo systemctl restart docker" in finding.remedies[0].commands
    for text in (running, written):
        assert run_check("nvidia-container-toolkit-missing", symptoms=told(text)).findings == ()


@pytest.mark.parametrize(
    ("host", "where"),
    [(WORKS, "elsewhere, without the driver"), ({}, "on a machine without a loaded driver")],
    ids=["works", "unknown"],
)
def test_where_the_engine_runs(host: dict[str, object], where: str) -> None:
    (finding,) = run_check("nvidia-container-toolkit-missing", symptoms=told(NO_LIBRARY), **host).findings
    assert finding.summary.endswith(f"the engine runs {where}")
