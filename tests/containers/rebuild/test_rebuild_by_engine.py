"""Stale images, each in its own way, rebuilt by a real engine: fresh, by comparison, and so after the next build."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.containers.engine import BUILDERS, docker, files_of, image
from tests.containers.rebuild.projects import ROOT, Project, environment, project, temporary_tags

pytestmark = pytest.mark.usefixtures("engine_alone")

__all__ = ["image", "project"]

BASE = "/base-ran-"


def change_content(project: Project, builder: str) -> None:
    project.build(builder)
    project.write("other content\n", seconds=1_700_000_100)


def change_mode(project: Project, builder: str) -> None:
    project.build(builder)
    project.source.chmod(0o755)


def change_unseen(project: Project, builder: str) -> None:
    """Change neither size nor time: BuildKit's next build does not see it, one without the cache neither."""
    project.build(builder)
    project.write("new\n")
    project.build(builder)
    project.build(builder, "--no-cache")


def change_unseen_with_an_argument(project: Project, builder: str) -> None:
    """Do the same, and as people do against it: change an argument once."""
    change_unseen(project, builder)
    project.build(builder, "--build-arg", "CACHEBUST=1")
    project.build(builder)


def change_through_a_hard_link(project: Project, builder: str) -> None:
    """Change the file through its other name: the classic builder sees the link, and not its content."""
    other = project.root / "aaa"
    other.write_text("old\n")
    project.source.unlink()
    project.source.hardlink_to(other)
    project.build(builder)
    other.write_text("new and longer\n")
    project.build(builder)


CASES = [
    *(pytest.param(change_content, builder, id=f"content, {builder}") for builder in BUILDERS),
    *(pytest.param(change_mode, builder, id=f"mode, {builder}") for builder in BUILDERS),
    pytest.param(change_unseen, "buildkit", id="same size and time, buildkit"),
    pytest.param(change_unseen_with_an_argument, "buildkit", id="changed argument, then a plain build"),
    pytest.param(change_through_a_hard_link, "classic", id="hard link, classic"),
]


@pytest.mark.parametrize(("change", "builder"), CASES)
def test_a_stale_image_becomes_fresh_and_stays_so(project: Project, change, builder: str) -> None:  # type: ignore[no-untyped-def]
    change(project, builder)
    before = {path: project.read(path) for path in (f"{BASE}{project.image}", "/app-ran")}
    done = project.rebuild()
    assert (done.returncode, temporary_tags()) == (0, ""), done.stderr
    assert done.stdout.startswith(f"{project.image}: rebuilt; ")
    rebuilt = project.layers()
    assert project.read("/app/common/a.py") == project.source.read_text()
    assert project.read(f"{BASE}{project.image}") == before[f"{BASE}{project.image}"], "the stage before ran again"
    assert project.read("/app-ran") != before["/app-ran"], "the stale stage did not run again"
    project.build(builder)
    assert project.layers() == rebuilt, "the next plain build is another image"


def test_what_is_fresh_is_left_alone(project: Project) -> None:
    before = project.build("classic")
    done = project.rebuild()
    assert (done.returncode, done.stdout) == (0, f"{project.image}: nothing is stale\n")
    assert project.image_id() == before


def test_an_image_that_was_never_built_is_built(project: Project) -> None:
    done = project.rebuild()
    assert done.returncode == 0, done.stderr
    assert project.read("/app/common/a.py") == "old\n"


@pytest.mark.parametrize("builder", BUILDERS)
def test_a_build_that_fails_changes_nothing(project: Project, builder: str) -> None:
    before = project.build(builder)
    container = docker("run", "--detach", project.image, "/bin/busybox", "sleep", "60").decode().strip()
    project.write("broken\n", seconds=1_700_000_100)
    failing = 'RUN ["/bin/busybox", "sh", "-c", "echo the reason; exit 3"]\n'
    (project.root / "Dockerfile").write_text((project.root / "Dockerfile").read_text() + failing)
    done = project.rebuild("--container", container, "--recreate")
    assert (done.returncode, done.stdout) == (1, "")
    assert "the reason" in done.stderr
    assert "image and container are as before" in done.stderr
    assert (project.image_id(), temporary_tags()) == (before, "")
    assert docker("inspect", "--format", "{{.State.Running}}", container) == b"true\n"


@pytest.mark.parametrize("builder", BUILDERS)
def test_a_build_that_is_interrupted_changes_nothing(project: Project, builder: str) -> None:
    before = project.build(builder)
    project.write("changed\n", seconds=1_700_000_100)
    seconds = f"61.{os.getpid()}"  # another's test may run beside this one
    with (project.root / "Dockerfile").open("a") as file:
        file.write(f'RUN ["/bin/busybox", "sleep", "{seconds}"]\n')
    process = subprocess.Popen(
        [sys.executable, "-m", "gpudoctor", "rebuild", "--image", project.image, "--context", str(project.root)],
        env=environment(),
        cwd=ROOT,
        stderr=subprocess.PIPE,
        text=True,
    )
    await_process(seconds)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=30)
    assert (process.returncode, error.splitlines()[-1]) == (3, "gpudoctor: interrupted")
    assert (project.image_id(), temporary_tags()) == (before, "")
    assert docker("ps", "--all", "--quiet", "--filter", f"ancestor={before}") == b""


def await_process(argument: str) -> None:
    """Wait until a program with that argument runs: the RUN of the build."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        for line in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = line.read_bytes().split(b"\0")
            except OSError:
                continue
            if words[:2] == [b"/bin/busybox", b"sleep"] and words[2:3] == [argument.encode()]:
                return
        time.sleep(0.05)
    raise AssertionError("the build does not run")


def test_a_dry_run_changes_nothing(project: Project) -> None:
    change_unseen(project, "buildkit")
    before, contexts = state(project), kept_contexts()
    done = project.rebuild("--dry-run")
    assert (done.returncode, state(project)) == (0, before)
    assert contexts <= kept_contexts(), "tests beside this one may add theirs"
    lines = [line for line in done.stdout.splitlines() if not line.startswith("#")]
    assert lines[0].endswith("docker builder prune --force --filter type=source.local")
    assert lines[1].startswith("DOCKER_BUILDKIT=1 ")
    assert lines[1].endswith(f"--file {project.root}/Dockerfile {project.root}")


def state(project: Project) -> tuple[str, ...]:
    """Return the project's image and its containers, and the temporary tags."""
    containers = docker("ps", "--all", "--quiet", "--filter", f"ancestor={project.image}").decode()
    return (project.image_id(), containers, temporary_tags())


def kept_contexts() -> set[str]:
    """Return what BuildKit keeps of the contexts of builds."""
    kept = docker("system", "df", "--verbose", "--format", "{{json .BuildCache}}", builder="buildkit").decode()
    return {item["ID"] for item in json.loads(kept) if item["CacheType"] == "source.local"}


@pytest.mark.parametrize("builder", BUILDERS)
def test_without_a_command_line_the_engine_builds(project: Project, builder: str) -> None:
    (project.root / ".dockerignore").write_text("common/*.log\n")
    (project.root / "common" / "left-out.log").write_text("not in the image")
    (project.root / "common" / "link").symlink_to("a.py")
    change_content(project, builder)
    done = rebuild_by_engine(project)
    assert (done.returncode, temporary_tags()) == (0, ""), done.stderr
    assert "no docker command found: building with the engine's API" in done.stderr
    assert project.read("/app/common/a.py") == "other content\n"
    assert "/app/common/left-out.log" not in files_of(project.image)
    assert files_of(project.image)["/app/common/link"].linkname == "a.py"


def rebuild_by_engine(project: Project) -> subprocess.CompletedProcess[str]:
    """Return how a rebuild without a docker command line ends; skip where the engine cannot build so."""
    done = project.rebuild(search="/nonexistent")
    if "this engine loses the context" in done.stderr:
        pytest.skip("BuildKit of this engine takes no context by the API (Docker 26.1, containerd's image store)")
    return done


@pytest.mark.parametrize("builder", BUILDERS)
def test_a_build_of_the_engine_that_fails_shows_its_output(project: Project, builder: str) -> None:
    before = project.build(builder)
    with (project.root / "Dockerfile").open("a") as file:
        file.write('RUN ["/bin/busybox", "sh", "-c", "echo the reason; exit 3"]\n')
    done = rebuild_by_engine(project)
    assert done.returncode == 1
    assert "    the reason" in done.stderr.splitlines()
    assert (project.image_id(), temporary_tags()) == (before, "")


def test_a_stage_that_copies_from_a_stale_stage(project: Project) -> None:
    text = DOCKERFILE_OF_TWO.replace("base-ran", f"base-ran-{project.image}")
    (project.root / "Dockerfile").write_text(text)
    change_through_a_hard_link(project, "classic")
    done = project.rebuild()
    assert done.returncode == 0, done.stderr
    assert project.read("/app/common/a.py") == "new and longer\n"
    rebuilt = project.layers()
    project.build("classic")
    assert project.layers() == rebuilt


DOCKERFILE_OF_TWO = """\
FROM scratch
COPY bin/busybox /bin/busybox
COPY common/ /sources/
FROM scratch
COPY --from=0 /sources/ /app/common/
"""


def test_a_file_that_no_build_may_take_is_reported(project: Project) -> None:
    project.build("classic")
    project.write("changed\n", seconds=1_700_000_100)
    os.unlink(project.root / "bin" / "busybox")
    done = project.rebuild()
    assert done.returncode == 1
    assert "bin/busybox" in done.stderr
