"""`gpudoctor rebuild` as a user types it: what is refused, and what is shown while it works."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from tests.containers.engine import docker, image
from tests.containers.rebuild.projects import ROOT, Project, environment, gpudoctor, project, temporary_tags

pytestmark = pytest.mark.usefixtures("engine_alone")

__all__ = ["image", "project"]

NO_ENGINE = {"DOCKER_HOST": "unix:///nonexistent/docker.sock"}


def rebuild(*arguments: str, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "gpudoctor", "rebuild", *arguments],
        env={**environment(), **variables},
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
    )


def test_no_engine(tmp_path: Path) -> None:
    done = rebuild("--image", "train", cwd=tmp_path, **NO_ENGINE)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith("gpudoctor: no container engine found: ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(("--timeout", "0"), "Invalid value for '--timeout'", id="no time"),
        pytest.param(("--context", "none"), "--context: there is no folder none", id="no such folder"),
        pytest.param(("--compose", "none"), "--compose: there is no file none", id="no such compose file"),
        pytest.param(("--build-arg", "=1"), "has no name", id="an argument without a name"),
    ],
)
def test_a_wrong_command_line_is_one_line(arguments: tuple[str, ...], message: str, tmp_path: Path) -> None:
    done = rebuild(*arguments, cwd=tmp_path, **NO_ENGINE)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert message in done.stderr


@pytest.mark.usefixtures("image")
def test_what_cannot_be_rebuilt_is_one_line(tmp_path: Path) -> None:
    for arguments, message in (
        ((), "nothing to rebuild"),
        (("web",), "service web has nothing to build"),
        (("web", "--image", "train"), "--image and --container cannot be combined with a service"),
        (("--container", "gpudoctor-none"), "no container gpudoctor-none"),
        (("--image", "train"), f"{tmp_path}/Dockerfile"),
    ):
        done = rebuild(*arguments, cwd=tmp_path)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), arguments
        assert message in done.stderr


@pytest.mark.usefixtures("image")
def test_a_service_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "compose.yaml").write_text(json.dumps({"services": {"web": {"build": "."}}}))
    done = rebuild("wbe", cwd=tmp_path)
    assert done.returncode == 2
    assert "no service 'wbe'" in done.stderr
    assert "it has web" in done.stderr


def test_a_dockerfile_that_is_wrong(project: Project) -> None:
    (project.root / "Dockerfile").write_text("FROM scratch\nCOPY a\n")
    done = rebuild("--image", project.image, cwd=project.root)
    assert done.returncode == 2
    assert "line 2: COPY needs a source and a destination" in done.stderr


def test_an_id_is_no_name(project: Project) -> None:
    for name in (project.build("classic"), project.image_id().partition(":")[2][:12]):
        done = rebuild("--image", name, cwd=project.root)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert "is an id or digest, which a rebuilt image cannot keep" in done.stderr


def test_on_a_terminal_the_output_of_the_build_is_one_line(project: Project) -> None:
    project.build("classic")
    project.write("changed\n", seconds=1_700_000_100)
    main, terminal = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "gpudoctor", "rebuild", "--image", project.image],
        env={**environment(), "TERM": "xterm"},
        cwd=project.root,
        stdout=subprocess.DEVNULL,
        stderr=terminal,
    )
    os.close(terminal)
    shown = read_all(main)
    assert process.wait() == 0
    assert b"Step 3/8" in shown
    assert b"Rebuilding" in shown
    assert visible(shown) == [f"image {project.image} is stale (image-not-rebuilt): common/a.py"]


def test_the_example_in_the_readme_says_that(project: Project) -> None:
    example = (ROOT / "README.md").read_text().partition("<!-- the rebuild example -->")[2].split("```")[1]
    example = example.replace("train", project.image).replace("with project", f"with {project.root.name}")
    command, *expected = example.removeprefix("console\n$ gpudoctor ").splitlines()
    project.build("buildkit")
    project.write("new\n")
    project.build("buildkit")
    done = gpudoctor(*command.split(), cwd=project.root)
    assert (done.stderr + done.stdout).splitlines() == expected


def read_all(descriptor: int) -> bytes:
    parts = []
    try:
        while part := os.read(descriptor, 4096):
            parts.append(part)
    except OSError:  # the other side is closed
        pass
    os.close(descriptor)
    return b"".join(parts)


def visible(text: bytes) -> list[str]:
    """Return the lines that remain on the screen."""
    lines = (line.rpartition(b"\r\x1b[K")[2].rstrip(b"\r") for line in text.split(b"\n"))
    return [line.decode() for line in lines if line]


def test_hostile_output_of_a_build_is_shown_written_out(project: Project) -> None:
    project.build("classic")
    with (project.root / "Dockerfile").open("a") as file:
        file.write('RUN ["/bin/busybox", "sh", "-c", "printf \'\\\\033]0;owned\\\\007\'; exit 1"]\n')
    done = rebuild("--image", project.image, cwd=project.root)
    assert done.returncode == 1
    assert "\x1b" not in done.stderr
    assert r"\x1b]0;owned\x07" in done.stderr
    assert temporary_tags() == ""
    assert docker("images", "--quiet", project.image) != b""
