"""Commands for GPUs in containers, by engine and distribution."""

import pytest

from gpudoctor.model import Container, Fix, System
from gpudoctor.remedies.containers import engine_of
from tests.remedies.made import made, made_one

UBUNTU = System(os="linux", distribution="ubuntu")
ROOT = System(os="linux", distribution="ubuntu", user_is_root=True)
TRY = "docker run --rm --gpus all ubuntu nvidia-smi"
CONFIGURE = ("sudo nvidia-ctk runtime configure --runtime=docker", "sudo systemctl restart docker", TRY)


@pytest.mark.parametrize(
    ("distribution", "first"),
    [
        ("ubuntu", "curl -fsSL https://nvidia.github.io/libnvidia-container/gpgkey | sudo gpg --dearmor -o "),
        ("raspbian", "curl -fsSL https://nvidia.github.io/libnvidia-container/gpgkey | sudo gpg --dearmor -o "),
        (
            "fedora",
            "curl -fsSL https://nvidia.github.io/libnvidia-container/stable/rpm/nvidia-container-toolkit.repo | ",
        ),
        ("amzn", "curl -fsSL https://nvidia.github.io/libnvidia-container/stable/rpm/nvidia-container-toolkit.repo | "),
        ("sled", "sudo zypper addrepo https://nvidia.github.io/libnvidia-container/stable/rpm/"),
        ("opensuse-leap", "sudo zypper addrepo https://nvidia.github.io/libnvidia-container/stable/rpm/"),
        ("arch", "sudo pacman -S --noconfirm nvidia-container-toolkit"),
        ("cachyos", "sudo pacman -S --noconfirm nvidia-container-toolkit"),
    ],
)
def test_installing_the_toolkit(distribution: str, first: str) -> None:
    remedy = made_one(Fix("install-container-toolkit"), system=System(os="linux", distribution=distribution))
    assert remedy.commands[0].startswith(first)
    assert remedy.commands[-3:] == CONFIGURE
    assert remedy.needs == ("root", "restart")


@pytest.mark.parametrize("distribution", ["void", "nixos"])
def test_a_distribution_that_the_guide_leaves_out_has_no_commands(distribution: str) -> None:
    assert (
        made_one(Fix("install-container-toolkit"), system=System(os="linux", distribution=distribution)).commands == ()
    )


def test_docker_is_configured_and_restarted() -> None:
    assert made_one(Fix("configure-engine"), system=UBUNTU, container=None).commands == CONFIGURE
    assert made_one(Fix("configure-engine"), system=ROOT, container=None).commands[0] == CONFIGURE[0].removeprefix(
        "sudo "
    )


def test_rootless_docker_has_a_file_and_a_service_of_its_own() -> None:
    assert made_one(Fix("configure-engine"), system=UBUNTU, container=Container(rootless=True)).commands == (
        "nvidia-ctk runtime configure --runtime=docker --config=$HOME/.config/docker/daemon.json",
        "sudo nvidia-ctk config --set nvidia-container-cli.no-cgroups --in-place",
        "systemctl --user restart docker",
        TRY,
    )


def test_podman_reads_a_cdi_specification() -> None:
    assert made_one(
        Fix("configure-engine", engine="podman"), system=UBUNTU, container=Container(rootless=True)
    ).commands == (
        "sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml",
        "nvidia-ctk cdi list",
        "podman run --rm --device nvidia.com/gpu=all ubuntu nvidia-smi",
    )


def test_other_engines_of_docker() -> None:
    *save, remove, _, _, _ = (replace := made_one(Fix("replace-docker-snap"), system=UBUNTU)).commands
    assert (remove, *replace.commands[-3:]) == ("sudo snap remove docker", *CONFIGURE)
    assert "sudo snap save docker" in save  # removing the snap deletes images and volumes
    assert made_one(Fix("leave-docker-desktop")).commands == ("docker context use default", TRY)
    assert made_one(Fix("reserve-gpu-in-compose")).commands == ("docker compose up --detach --force-recreate",)


@pytest.mark.parametrize(
    ("engine", "commands"),
    [
        ("docker", (TRY,)),
        ("podman", ("podman run --rm --device nvidia.com/gpu=all ubuntu nvidia-smi",)),
        ("singularity", ("singularity exec --nv docker://ubuntu nvidia-smi",)),
        ("kubernetes", ()),
        ("other", (TRY,)),
    ],
)
def test_starting_again_with_the_gpu(engine: str, commands: tuple[str, ...]) -> None:
    remedy = made_one(Fix("start-container-with-gpu"), system=System(container=engine))
    assert remedy.commands == commands
    assert ("before Podman 5" in remedy.summary) == (engine == "podman")


def test_own_options_are_kept() -> None:
    remedy = made_one(Fix("start-container-with-gpu", options="--shm-size=8g"), system=System(container="podman"))
    assert remedy.commands == ("podman run --rm --shm-size=8g ubuntu nvidia-smi",)


@pytest.mark.parametrize(
    ("system", "container", "engine"),
    [
        (System(container="podman"), Container(engine="docker"), "docker"),
        (System(container="podman"), None, "podman"),
        (System(container=""), Container(), "docker"),
        (None, None, "docker"),
    ],
)
def test_the_engine_that_started_it(system: System | None, container: Container | None, engine: str) -> None:
    assert engine_of(system or System(), container or Container()) == engine


@pytest.mark.parametrize(
    ("container", "first"),
    [
        pytest.param(None, "docker run", id="unknown"),
        pytest.param(Container(engine="docker"), "docker run", id="docker run"),
        pytest.param(Container(engine="docker", compose=True), "docker compose", id="compose"),
    ],
)
def test_capabilities_of_the_driver_are_granted_in_both_ways(container: Container | None, first: str) -> None:
    fix = Fix("start-container-with-capabilities", granted="compute,utility")
    commands = [remedy.commands[0] for remedy in made(fix, container=container) if remedy.commands]
    assert commands[0].startswith(first)
    assert any("NVIDIA_DRIVER_CAPABILITIES=compute,utility" in command for command in commands)
    assert len(made(fix, container=container)) == 2


RUN = ("--name", "web", "-v", "/data:/data", "app:1")
UNNAMED = RUN[2:]
HERE = ("-v", "$PWD:/work", "app:1")
START = Fix("start-container-with-gpu")
TWO = Fix("start-container-with-gpu", options="--gpus 2")
SAID = Fix("start-container-with-gpu", summary="Do it")


@pytest.mark.parametrize(
    ("engine", "arguments", "fix", "commands"),
    [
        ("docker", None, START, (TRY,)),
        ("docker", RUN, START, ("docker rm -f web", f"docker run --gpus all {' '.join(RUN)}")),
        ("docker", UNNAMED, START, (f"docker run --gpus all {' '.join(UNNAMED)}",)),
        ("docker", HERE, START, ('docker run --gpus all -v "$PWD:/work" app:1',)),
        ("docker", ("-v", "$HOME:/work", "app:1"), START, (TRY,)),
        ("docker", RUN, SAID, (TRY,)),
        ("docker", (*RUN, "sh -c 'x'"), START, (TRY,)),
        ("docker", None, TWO, ("docker run --rm --gpus 2 ubuntu nvidia-smi",)),
        ("podman", UNNAMED, START, (f"podman run --device nvidia.com/gpu=all {' '.join(UNNAMED)}",)),
        ("podman", None, TWO, ("podman run --rm --gpus 2 ubuntu nvidia-smi",)),
    ],
)
def test_a_container_is_started_by_its_own_command_line(
    engine: str, arguments: tuple[str, ...] | None, fix: Fix, commands: tuple[str, ...]
) -> None:
    container = Container(engine=engine, arguments=arguments)
    assert made_one(fix, system=System(container=engine), container=container).commands == commands


def test_powershell_would_read_the_working_folder_as_a_drive() -> None:
    container = Container(engine="docker", arguments=HERE)
    assert made_one(START, system=System(os="windows"), container=container).commands == (TRY,)


def test_an_installed_toolkit_is_not_installed_again() -> None:
    remedies = made(Fix("install-container-toolkit"), system=UBUNTU, container=Container(toolkit_installed=True))
    commands = [command for remedy in remedies for command in remedy.commands]
    assert "sudo nvidia-ctk runtime configure --runtime=docker" in commands
    assert not any("apt-get install" in command for command in commands)


def test_apptainer_starts_the_shown_file_and_needs_no_docker() -> None:
    container = Container(engine="singularity", image="pytorch.sif")
    (remedy,) = made(Fix("start-container-in-its-way-with-gpu"), container=container)
    assert remedy.commands == ("singularity exec --nv pytorch.sif nvidia-smi",)
