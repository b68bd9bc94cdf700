"""The host's container engine and the GPU."""

from dataclasses import replace

import pytest

from gpudoctor.model import Container, Device, Driver, Outcome, PciGpu, Severity, System
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
            {"system": replace(HOST, container="docker")}, "containers are started by this one's host", id="inside"
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


def test_devices_count_where_the_bus_is_unknown() -> None:
    result = run_check(
        "nvidia-container-toolkit-missing",
        container=DOCKER,
        system=replace(HOST, pci_gpus=None),
        devices=(Device(nvml_index=0),),
    )
    assert result.outcome is Outcome.FOUND
