"""A container whose image the engine has not kept: containerd's image store loses it, others when it is forced away."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gpudoctor.containers.requested import look_at
from gpudoctor.model import ProjectImage
from gpudoctor.model.codec import from_json
from gpudoctor.testing import run_check
from tests.containers.engine import docker, image

__all__ = ["image"]

pytestmark = pytest.mark.engine


@pytest.fixture
def container(tmp_path: Path, image: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Return a container of the image, which is built of `a.txt` and `b.txt`."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    project = tmp_path / image
    project.mkdir()
    for name in ("a.txt", "b.txt"):
        (project / name).write_text("old")
    (project / "Dockerfile").write_text("FROM scratch\nCOPY a.txt b.txt /app/\n")
    docker("build", "-q", "-t", image, str(project))
    container = docker("create", image, "/none").decode().strip()
    yield container
    docker("rm", "-f", container)


def lose_image(container: str, image: str, project: Path, *options: str) -> None:
    """Build again, and remove the image that the container was made of."""
    old = docker("inspect", "--format", "{{.Image}}", container).decode().strip()
    docker("build", "-q", "-t", image, *options, str(project))
    docker("rmi", "-f", old)


def looked_at(container: str, image: str, project: Path) -> ProjectImage:
    facts = look_at({"directory": str(project), "image": image, "container": container}, os.environ)
    (found,) = from_json(tuple[ProjectImage, ...], facts["images"], "images")
    return found


def changed(project: Path) -> None:
    (project / "a.txt").write_text("newer")


def removed_from_dockerfile(project: Path) -> None:
    (project / "Dockerfile").write_text("FROM scratch\nCOPY b.txt /app/\nCOPY a.txt /elsewhere/\n")


@pytest.mark.parametrize(
    ("change", "stale", "missing"),
    [
        pytest.param(changed, {"a.txt"}, set(), id="another content"),
        pytest.param(removed_from_dockerfile, set(), {"a.txt"}, id="another place"),
    ],
)
def test_its_own_files_show(
    container: str, image: str, tmp_path: Path, change: Callable[[Path], None], stale: set[str], missing: set[str]
) -> None:
    project = tmp_path / image
    change(project)
    lose_image(container, image, project)
    found = looked_at(container, image, project)
    assert {path for item in found.container_instructions for path in item.stale} == stale
    assert {path for item in found.container_instructions for path in item.missing} == missing
    details = run_check("docker-stale-layers", images=(found,)).findings[0].details["images"][0]
    assert (details["verdict"], details["causes"]) == ("stale", ["container-runs-older-image"])


def test_the_same_files_may_have_been_made_by_other_commands(container: str, image: str, tmp_path: Path) -> None:
    project = tmp_path / image
    lose_image(container, image, project, "--no-cache")
    assert "the engine no longer has the image of container" in looked_at(container, image, project).unknown
