"""Fixes of a container engine that cannot give the GPU to a container."""

import pytest

from gpudoctor.model import Container, Fix, Remedy, System
from tests.remedies.made import made, made_one, pasted_one

UBUNTU = System(os="linux", distribution="ubuntu")
INSTALL = "sudo apt-get install -y nvidia-container-toolkit"
CONFIGURE = "sudo nvidia-ctk runtime configure --runtime=docker"
LIST = (
    "docker run --rm --entrypoint sh IMAGE -c "
    "'ls -l /usr/lib/x86_64-linux-gnu/libcuda.so* /usr/lib/x86_64-linux-gnu/libnvidia-*.so*'"
)
SNAP, LOOK_FOR_SNAP = "sudo snap remove docker", "snap list docker"
DESKTOP = "docker context use default"
CDI = "sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml"


def shown(remedies: tuple[Remedy, ...]) -> list[str]:
    """Return what each remedy is known by."""
    known = (INSTALL, SNAP, DESKTOP, CDI, CONFIGURE)
    return [
        next((command for command in known if command in remedy.commands), (remedy.commands or (remedy.summary,))[0])
        for remedy in remedies
    ]


@pytest.mark.parametrize(
    ("fault", "container", "expected"),
    [
        pytest.param("not-installed", None, [INSTALL, CONFIGURE, LOOK_FOR_SNAP], id="nothing is known"),
        pytest.param(
            "not-installed", Container(toolkit_installed=False), [INSTALL, CONFIGURE, LOOK_FOR_SNAP], id="missing"
        ),
        pytest.param("not-installed", Container(toolkit_installed=True), [CONFIGURE, LOOK_FOR_SNAP], id="installed"),
        pytest.param("misconfigured", None, [CONFIGURE, INSTALL, LOOK_FOR_SNAP], id="misconfigured"),
        pytest.param("not-installed", Container(docker_snap=True), [SNAP, INSTALL], id="snap"),
        pytest.param("ldconfig", Container(docker_snap=True), [SNAP, INSTALL], id="a snap, whatever the fault"),
        pytest.param("not-installed", Container(docker_desktop=True), [DESKTOP, INSTALL], id="Docker Desktop"),
        pytest.param(
            "refused",
            None,
            ["docker run --rm --security-opt=label=disable --gpus all ubuntu nvidia-smi", CONFIGURE, INSTALL],
            id="SELinux",
        ),
        pytest.param(
            "ldconfig", None, ["grep ldconfig /etc/nvidia-container-runtime/config.toml", INSTALL], id="ldconfig"
        ),
        pytest.param("engine-too-old", None, ["Update Docker: --gpus needs 19.03 or newer", INSTALL], id="old Docker"),
        pytest.param(
            "driver-in-image",
            None,
            [LIST, INSTALL],
            id="libraries in the image",
        ),
    ],
)
def test_an_engine_that_knows_no_gpu(fault: str, container: Container | None, expected: list[str]) -> None:
    assert shown(made(Fix("let-engine-use-gpu", fault=fault), container=container, system=UBUNTU)) == expected


@pytest.mark.parametrize(
    ("driver_works", "container", "system", "expected"),
    [
        pytest.param(True, None, UBUNTU, [DESKTOP, "nvidia-smi", INSTALL], id="the driver works"),
        pytest.param(False, Container(docker_snap=True), UBUNTU, [SNAP, INSTALL], id="snap"),
        pytest.param(False, Container(docker_desktop=True), UBUNTU, [DESKTOP, INSTALL], id="Docker Desktop"),
        pytest.param(False, None, System(os="windows"), ["wsl --update"], id="Windows"),
    ],
)
def test_an_engine_that_sees_no_driver(
    driver_works: bool, container: Container | None, system: System, expected: list[str]
) -> None:
    fix = Fix("let-engine-see-driver", driver_works=driver_works)
    assert shown(made(fix, container=container, system=system)) == expected


def test_a_host_whose_driver_may_be_missing() -> None:
    look, update, *others = made(Fix("let-engine-see-driver"), system=UBUNTU)
    assert look.commands == (
        "nvidia-smi",
        "docker context ls",
        "snap list docker",
        "sudo nvidia-container-cli -k -d /dev/tty info",
    )
    assert "sudo reboot" in update.commands
    assert shown(tuple(others)) == [DESKTOP, INSTALL]


@pytest.mark.parametrize(("engine", "expected"), [("podman", [CDI]), ("docker", [INSTALL, CDI])])
def test_a_cdi_specification(engine: str, expected: list[str]) -> None:
    assert shown(made(Fix("write-cdi-specification"), container=Container(engine=engine), system=UBUNTU)) == expected


def test_docker_needs_a_restart_for_cdi() -> None:
    write, _ = made(Fix("write-cdi-specification-for-docker"), system=UBUNTU)
    assert write.commands == (
        CDI,
        "nvidia-ctk cdi list",
        "sudo systemctl restart docker",
        "docker run --rm --device nvidia.com/gpu=all ubuntu nvidia-smi",
    )


@pytest.mark.parametrize(
    ("where", "commands"),
    [
        ("kubernetes", ("kubectl delete pod web",)),
        ("podman", ("podman restart web", "podman exec web nvidia-smi")),
        ("docker", ("docker restart web", "docker exec web nvidia-smi")),
    ],
)
def test_a_container_gets_the_gpu_back(where: str, commands: tuple[str, ...]) -> None:
    container, fix = Container(name="web"), Fix("restart-container-from-host")
    assert pasted_one(fix, system=System(container=where), container=container).commands == commands
    unknown = pasted_one(fix, system=System(container=where))
    assert len(unknown.commands) == len(commands) + 1
    assert " ps " in unknown.commands[0] or " get pods" in unknown.commands[0]
    assert "Replace " in unknown.summary


def test_what_survives_a_daemon_reload() -> None:
    fix = Fix("start-container-with-cdi")
    assert pasted_one(fix, system=System(container="podman")).commands[-1].startswith("podman run")
    assert made_one(fix).commands == (
        CDI,
        "docker run --device nvidia.com/gpu=all IMAGE nvidia-smi",
    )
    assert (
        made_one(Fix("link-device-nodes")).commands[0] == "sudo nvidia-ctk system create-dev-char-symlinks --create-all"
    )
    assert made_one(Fix("use-cgroupfs-in-docker")).commands == (
        "sudo systemctl restart docker",
        "docker info --format '{{.CgroupDriver}}'",
    )


def test_k3s_runs_its_own_containerd() -> None:
    node, *others = made(Fix("let-kubernetes-use-gpu"), container=Container(engine="kubernetes", cluster="k3s"))
    assert "runtimeClassName: nvidia" in node.summary
    assert not any("containerd" in command for command in node.commands)
    assert not any("GKE" in other.summary for other in others)


def test_kubernetes() -> None:
    node, *_, pod = made(Fix("let-kubernetes-use-gpu"))
    assert "sudo nvidia-ctk runtime configure --runtime=containerd --set-as-default" in node.commands
    assert "limits: nvidia.com/gpu: 1" in pod.summary
