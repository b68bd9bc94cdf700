"""Containers and services made anew from a rebuilt image by a real engine, or left as they were."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.containers.engine import BUILDERS, docker, image
from tests.containers.rebuild.projects import Project, environment, gpudoctor, project, temporary_tags

pytestmark = pytest.mark.usefixtures("engine_alone")

__all__ = ["image", "project"]

SLEEP = ("/bin/busybox", "sleep", "1000")
STOPS_SOON = ("--stop-timeout", "1")
"""The first process of a container does not end by itself when it is told to."""


def about(container: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(docker("inspect", container))[0]
    return found


@pytest.fixture
def changed(project: Project) -> Project:
    """Return a project that changed after its image was built."""
    project.build("classic", "--label", "of=the-image")
    project.write("changed\n", seconds=1_700_000_100)
    return project


def test_a_container_keeps_its_settings(changed: Project, tmp_path: Path) -> None:
    name = f"{changed.image}-web"
    docker(
        *("run", "--detach", "--name", name, "--env", "MODE=training", "--label", "mine=yes", "--restart", "always"),
        *("--volume", f"{tmp_path}:/data:ro", "--volume", "/scratch", "--shm-size", "256m", "--network", "none"),
        *("--ulimit", "nofile=1024", "--workdir", "/data", *STOPS_SOON, changed.image, *SLEEP),
    )
    before = about(name)
    done = changed.rebuild("--container", name, "--recreate")
    assert done.returncode == 0, done.stderr
    after = about(name)
    assert after["Id"] != before["Id"]
    assert after["Image"] == changed.image_id() != before["Image"]
    assert after["State"]["Running"]
    assert after["HostConfig"].pop("Binds") == [
        *before["HostConfig"].pop("Binds"),
        f"{volume(before, '/scratch')}:/scratch",
    ]
    assert after["HostConfig"] == before["HostConfig"]
    assert volume(after, "/scratch") == volume(before, "/scratch")
    for setting in ("Env", "Cmd", "Entrypoint", "WorkingDir", "User"):
        assert after["Config"][setting] == before["Config"][setting], setting
    assert before["Config"]["Labels"] == {"mine": "yes", "of": "the-image"}
    assert after["Config"]["Labels"] == {"mine": "yes"}, "the rebuilt image has no such label any more"
    assert docker("ps", "--all", "--format", "{{.Names}}", "--filter", f"name={name}").decode().split() == [name]
    docker("rm", "--force", "--volumes", name)


def volume(container: dict[str, Any], path: str) -> str:
    """Return the name of the volume at `path`."""
    return next(str(mount["Name"]) for mount in container["Mounts"] if mount["Destination"] == path)


def test_networks_and_aliases_are_kept(changed: Project) -> None:
    name, networks = f"{changed.image}-web", [f"{changed.image}-1", f"{changed.image}-2"]
    for network in networks:
        docker("network", "create", network)
    try:
        docker("create", "--name", name, "--network", networks[0], "--network-alias", "db", changed.image, *SLEEP)
        docker("network", "connect", "--alias", "other", networks[1], name)
        done = changed.rebuild("--container", name, "--recreate")
        assert done.returncode == 0, done.stderr
        after = about(name)
        aliases = {key: set(item["Aliases"]) for key, item in after["NetworkSettings"]["Networks"].items()}
        assert {key: names - {after["Id"][:12]} for key, names in aliases.items()} == {
            networks[0]: {"db"},
            networks[1]: {"other"},
        }
        assert not after["State"]["Running"], "it was not running before"
    finally:
        docker("rm", "--force", name)
        docker("network", "rm", *networks)


def test_a_container_that_does_not_start_is_brought_back(changed: Project) -> None:
    name = f"{changed.image}-web"
    docker(
        "run", "--detach", *STOPS_SOON, "--name", name, changed.image, "/bin/busybox", "tail", "-f", "/app/common/a.py"
    )
    dockerfile = changed.root / "Dockerfile"
    dockerfile.write_text(dockerfile.read_text() + 'RUN ["/bin/busybox", "rm", "/app/common/a.py"]\n')
    before, image_before = about(name), changed.image_id()
    done = changed.rebuild("--container", name, "--recreate")
    after = about(name)
    assert done.returncode == 1
    assert "the new container ended at once, with status 1" in done.stderr
    assert "No such file" in done.stderr, "what it wrote"
    assert (after["Id"], after["Name"], after["State"]["Running"]) == (before["Id"], f"/{name}", True)
    assert (changed.image_id(), temporary_tags()) == (image_before, "")
    docker("rm", "--force", name)


def test_a_service_that_does_not_start_is_brought_back(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("docker-compose") is None:
        pytest.skip("no docker-compose")
    command = ["/bin/busybox", "tail", "-f", "/app/common/a.py"]
    web = {"build": ".", "image": project.image, "command": command, "stop_grace_period": "1s"}
    (project.root / "docker-compose.yml").write_text(json.dumps({"version": "3.8", "services": {"web": web}}))
    before = project.build("classic")
    monkeypatch.setenv("COMPOSE_PROJECT_NAME", project.image)
    try:
        compose(project, "up")
        project.write("changed\n", seconds=1_700_000_100)
        dockerfile = project.root / "Dockerfile"
        dockerfile.write_text(dockerfile.read_text() + 'RUN ["/bin/busybox", "rm", "/app/common/a.py"]\n')
        done = gpudoctor("rebuild", "web", "--recreate", cwd=project.root)
        assert done.returncode == 1
        assert "the new container ended at once, with status 1" in done.stderr
        (name,) = docker("ps", "--filter", f"ancestor={before}", "--format", "{{.Names}}").decode().split()
        assert (project.image_id(), temporary_tags()) == (before, "")
        assert about(name)["State"]["Running"]
    finally:
        compose(project, "down")


def test_a_container_of_rm_is_refused(changed: Project) -> None:
    container = docker("run", "--rm", "--detach", changed.image, *SLEEP).decode().strip()
    image_before = changed.image_id()
    done = changed.rebuild("--container", container, "--recreate")
    assert done.returncode == 2
    assert "was started with --rm" in done.stderr
    assert (changed.image_id(), about(container)["State"]["Running"]) == (image_before, True)


def test_files_under_a_mount_are_not_rebuilt(project: Project, tmp_path: Path) -> None:
    before = project.build("classic")
    (tmp_path / "a.py").write_text("another\n")
    mount = f"{tmp_path}/a.py:/app/common/a.py"
    container = docker("create", "--volume", mount, project.image, *SLEEP).decode().strip()
    docker("start", container)
    done = project.rebuild("--container", container, "--recreate")
    assert (done.returncode, project.image_id()) == (1, before)
    assert "a mount hides the files" in done.stderr
    assert about(container)["State"]["Running"], "it was left alone"


def test_a_rebuilt_image_alone_leaves_its_container_stale(changed: Project) -> None:
    container = docker("run", "--detach", *STOPS_SOON, changed.image, *SLEEP).decode().strip()
    done = changed.rebuild("--container", container)
    assert done.returncode == 1
    assert "uses the old image; add --recreate" in done.stderr
    assert changed.rebuild("--container", container, "--recreate").returncode == 0


@pytest.mark.parametrize("builder", BUILDERS)
def test_a_service(project: Project, builder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("docker-compose") is None:
        pytest.skip("no docker-compose")
    services = {"web": {"build": ".", "image": project.image, "command": [*SLEEP], "labels": {"mine": "yes"}}}
    services["web"]["stop_grace_period"] = "1s"
    (project.root / "docker-compose.yml").write_text(json.dumps({"version": "3.8", "services": services}))
    project.build(builder)
    monkeypatch.setenv("COMPOSE_PROJECT_NAME", project.image)
    containers = ("ps", "--all", "--filter", f"label=com.docker.compose.project={project.image}")
    try:
        compose(project, "up")
        (name,) = docker(*containers, "--format", "{{.Names}}").decode().split()
        project.write("changed\n", seconds=1_700_000_100)
        planned = gpudoctor("rebuild", "web", "--recreate", "--dry-run", cwd=project.root)
        assert planned.stdout.splitlines()[-1].endswith("up --detach --no-deps --no-build --force-recreate web")
        before = about(name)
        done = gpudoctor("rebuild", "web", "--recreate", cwd=project.root)
        assert (done.returncode, temporary_tags()) == (0, ""), done.stderr
        after = about(name)
        assert project.read("/app/common/a.py") == "changed\n"
        assert after["Image"] == project.image_id() != before["Image"]
        assert after["Config"]["Labels"]["mine"] == "yes"
    finally:
        compose(project, "down")


def compose(project: Project, command: str) -> None:
    options = ["--detach", "--no-build"] if command == "up" else []
    subprocess.run(
        ["docker-compose", command, *options],
        cwd=project.root,
        env=environment(),
        check=True,
        capture_output=True,
    )
