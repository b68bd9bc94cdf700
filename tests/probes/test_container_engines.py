"""Container engines, as files tell."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gpudoctor.model import Container
from gpudoctor.probes.container_engines import parse_container
from gpudoctor.probes.host import ProbeContext
from tests.probes.asked import asked

DAEMON = '{"runtimes": {"nvidia": {"path": "nvidia-container-runtime"}}}'
CDI = 'devices:\n- name: "0"\n- name: all\nkind: nvidia.com/gpu\n'
COMMANDS = ("docker", "podman", "nvidia-ctk", "nvidia-container-cli", "nvidia-container-runtime")


def machine(
    files: dict[str, str], *commands: str, target: str = "/usr/bin/x", platform: str = "linux"
) -> dict[str, Any]:
    """Return the answer of a machine with these files (a text that starts with "E" is an error) and commands."""
    return {
        "files": {path: {"error" if text.startswith("E") else "text": text} for path, text in files.items()},
        "which": {
            name: {"path": f"/usr/bin/{name}", "target": target} if name in commands else None for name in COMMANDS
        },
        "values": {"platform": {"value": platform}},
    }


def test_question_reads_the_daemon_of_the_user() -> None:
    question = asked("container", ProbeContext(environ={}, directory=Path(), home="/home/ann"))
    assert "/home/ann/.config/docker/daemon.json" in question.arguments["files"]


def test_nothing_there() -> None:
    assert parse_container(machine({"/etc/docker/daemon.json": "ENOENT No such file"})) == Container(
        docker_installed=False,
        podman_installed=False,
        toolkit_installed=False,
        nvidia_runtime_configured=False,
        cdi_devices=(),
    )


def test_all_set_up() -> None:
    container = parse_container(
        machine({"/etc/docker/daemon.json": DAEMON, "/etc/cdi/nvidia.yaml": CDI}, *COMMANDS[:3])
    )
    assert (container.docker_installed, container.podman_installed, container.toolkit_installed) == (True, True, True)
    assert container.nvidia_runtime_configured is True
    assert container.cdi_devices == ("nvidia.com/gpu=0", "nvidia.com/gpu=all")


@pytest.mark.parametrize(
    ("files", "configured"),
    [
        pytest.param({"~/.config/docker/daemon.json": DAEMON}, True, id="daemon without root"),
        pytest.param({"/etc/docker/daemon.json": "{}"}, False, id="another configuration"),
        pytest.param({"/etc/docker/daemon.json": "{broken"}, None, id="broken"),
        pytest.param({"/etc/docker/daemon.json": "EACCES Permission denied"}, None, id="not readable"),
        pytest.param({"/etc/containerd/config.toml": "[x.runtimes.nvidia]\n"}, True, id="containerd"),
        pytest.param(
            {"/etc/docker/daemon.json": "{broken", "/etc/crio/crio.conf": "[x.runtimes.nvidia]"}, True, id="CRI-O"
        ),
        pytest.param({"/etc/cdi/nvidia.yaml": CDI + "# nvidia-container-runtime\n"}, False, id="CDI is no runtime"),
    ],
)
def test_runtime(files: dict[str, str], configured: bool | None) -> None:
    assert parse_container(machine(files, "docker")).nvidia_runtime_configured is configured


def test_docker_desktop_keeps_its_configuration_elsewhere() -> None:
    facts = machine({}, "docker", target="/mnt/wsl/docker-desktop/cli-tools/usr/bin/docker")
    assert parse_container(facts).nvidia_runtime_configured is None


@pytest.mark.parametrize(
    ("text", "devices"),
    [("kind: amd.com/gpu\ndevices:\n- name: all\n", ()), ("broken", None), ("EACCES Permission denied", None)],
)
def test_cdi(text: str, devices: tuple[str, ...] | None) -> None:
    assert parse_container(machine({"/var/run/cdi/x.yaml": text})).cdi_devices == devices


def test_another_system() -> None:
    container = parse_container(machine({}, "docker", platform="darwin"))
    assert (container.docker_installed, container.nvidia_runtime_configured, container.cdi_devices) == (
        True,
        None,
        None,
    )


def test_nothing_answered() -> None:
    assert parse_container({}) == Container()


@pytest.mark.parametrize("command", COMMANDS[2:])
def test_each_command_of_the_toolkit_shows_it(command: str) -> None:
    assert parse_container(machine({}, command)).toolkit_installed is True
    question = asked("container", ProbeContext(environ={}, directory=Path()))
    assert command in question.arguments["which"]
