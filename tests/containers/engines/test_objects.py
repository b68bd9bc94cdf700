"""The containers of a compose project, from what the engine lists."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gpudoctor.containers.compose.project import Project, Service
from gpudoctor.containers.compose.reader import read_project
from gpudoctor.containers.engines.connection import connect
from gpudoctor.containers.engines.objects import ServiceContainer, of_project, service_containers, short_name
from tests.containers.engine import docker, missing_engine

pytestmark = pytest.mark.engine

PROJECT = Project(
    name="demo", directory="/src/demo", files=("/src/demo/compose.yaml",), services=(Service(name="web"),)
)


def listed(name: str, *, state: str = "running", created: int = 100, **labels: str) -> dict[str, Any]:
    """Return a container as the engine lists it. labels: below com.docker.compose, "_" for each point."""
    named = {f"com.docker.compose.{key.replace('_', '.', 1)}": value for key, value in labels.items()}
    return {
        "Id": f"id-{name}",
        "Names": [f"/{name}"],
        "Image": "demo-web",
        "ImageID": "sha256:1",
        "State": state,
        "Created": created,
        "Labels": {"com.docker.compose.service": "web", **named},
    }


def test_what_a_container_shows() -> None:
    entry = listed(
        "demo-web-1",
        project="demo",
        project_working_dir="/src/demo",
        oneoff="False",
    )
    assert of_project([entry], PROJECT) == {
        "web": (
            ServiceContainer(
                id="id-demo-web-1",
                name="demo-web-1",
            ),
        )
    }


@pytest.mark.parametrize(
    ("labels", "found"),
    [
        pytest.param({"project": "demo", "project.working_dir": "/src/demo"}, True, id="its own"),
        pytest.param({"project": "other", "project.working_dir": "/src/demo"}, True, id="another name"),
        pytest.param({"project": "demo", "project.working_dir": "/old/demo"}, True, id="another folder"),
        pytest.param({"project": "demo"}, True, id="no folder noted"),
        pytest.param({"project": "other", "project.working_dir": "/other"}, False, id="another project"),
        pytest.param({"project": "other"}, False, id="another name, no folder noted"),
    ],
)
def test_whose_it_is(labels: dict[str, str], found: bool) -> None:
    entry = listed("c")
    entry["Labels"].update({f"com.docker.compose.{name}": value for name, value in labels.items()})
    assert bool(of_project([entry], PROJECT)["web"]) is found


def test_a_folder_behind_a_link_is_the_same(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    project = Project(name="x", directory=str(tmp_path / "real"), files=(), services=(Service(name="web"),))
    entry = listed("c", project="y", project_working_dir=str(tmp_path / "link"))
    assert len(of_project([entry], project)["web"]) == 1


def test_running_ones_first_then_the_newest() -> None:
    entries = [
        listed("stopped", project="demo", state="exited", created=300),
        listed("old", project="demo", created=100),
        listed("run", project="demo", created=200, oneoff="True"),
    ]
    containers = of_project(entries, PROJECT)["web"]
    assert [(item.name, item.is_one_off) for item in containers] == [("run", True), ("old", False), ("stopped", False)]


def test_one_of_unknown_age_comes_last() -> None:
    old, unknown = listed("old", project="demo", created=1), listed("new?", project="demo")
    unknown["Created"] = None
    assert [item.name for item in of_project([unknown, old], PROJECT)["web"]] == ["old", "new?"]


def test_a_service_that_the_project_has_no_more_is_left_out() -> None:
    assert of_project([listed("c", project="demo", service="gone")], PROJECT) == {"web": ()}


@pytest.fixture
def composed(tmp_path: Path) -> Iterator[Path]:
    """Return the folder of a compose project whose containers a real engine holds, made by the real command line."""
    busybox = "/bin/busybox"
    if missing_engine():
        pytest.skip(missing_engine())
    if shutil.which("docker-compose") is None or not os.path.exists(busybox):
        pytest.skip("docker-compose and a static busybox are needed")
    folder = tmp_path / f"gpudoctor-test-{os.getpid()}"
    folder.mkdir()
    shutil.copy(busybox, folder)
    (folder / "Dockerfile").write_text('FROM scratch\nCOPY busybox /\nCMD ["/busybox", "sleep", "600"]\n')
    (folder / "compose.yaml").write_text("services:\n  web: {build: .}\n  idle: {build: ., network_mode: none}\n")
    yield folder
    for project in (folder.name, f"{folder.name}-other"):
        compose(folder, "-p", project, "down", "-t", "0", "--rmi", "local")


def compose(folder: Path, *arguments: str) -> None:
    environment = {**os.environ, "DOCKER_BUILDKIT": "0", "COMPOSE_DOCKER_CLI_BUILD": "0"}
    subprocess.run(["docker-compose", *arguments], cwd=folder, env=environment, check=True, capture_output=True)


def test_a_real_engine(composed: Path) -> None:
    compose(composed, "build")
    compose(composed, "up", "--no-start", "web")
    compose(composed, "-p", f"{composed.name}-other", "up", "--no-start", "idle")
    project = read_project(composed, os.environ)
    client = connect(os.environ)
    try:
        found = service_containers(client, project)
    finally:
        client.close()
    (web,), (idle,) = found["web"], found["idle"]
    names = [docker("inspect", "-f", "{{.Name}}", container.id).decode().strip() for container in (web, idle)]
    assert names == [f"/{web.name}", f"/{idle.name}"]
    assert (composed.name in web.name, f"{composed.name}-other" in idle.name) == (True, True)


@pytest.mark.parametrize(
    ("image", "name"),
    [
        ("web:latest", "web:latest"),
        ("localhost/web:latest", "web:latest"),
        ("docker.io/library/web:latest", "web:latest"),
        ("docker.io/me/web:1", "me/web:1"),
        ("ghcr.io/library/web:1", "ghcr.io/library/web:1"),
    ],
)
def test_what_podman_puts_before_a_name(image: str, name: str) -> None:
    assert short_name(image) == name
