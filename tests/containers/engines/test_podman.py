"""Podman by its compatible socket: what Buildah built is compared, and rebuilt without any docker command line.

Nothing is run in a container, so that the tests need neither a runtime nor a network.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gpudoctor.containers.engines.connection import EngineUnavailable, connect
from gpudoctor.containers.requested import look_at

START_SECONDS = 20.0
SECONDS = 60
ROOT = Path(__file__).parents[2]
IMAGE = "gpudoctor-test"
LONG = " ".join(["a b"] * 100)
DOCKERFILE = """\
FROM scratch AS base
ARG DIRECTORY=work
ENV HOME=/root NAME="two words"
WORKDIR /app
WORKDIR $DIRECTORY
COPY common/ ./common/
FROM base
COPY --from=base /app/work/common/a.py /copied/
ADD --chmod=600 main.py $HOME/
CMD ["main"]
"""


@dataclass(frozen=True)
class Podman:
    """A Podman with storage of its own."""

    words: tuple[str, ...]
    address: str

    def __call__(self, *arguments: str) -> str:
        """Return what the command writes.

        Raises:
            AssertionError: it failed.
        """
        done = subprocess.run([*self.words, *arguments], capture_output=True, text=True, timeout=SECONDS, check=False)
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout.strip()


@pytest.fixture(scope="module")
def podman(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Podman]:
    """Return a Podman whose service answers."""
    program = shutil.which("podman")
    if program is None:
        pytest.skip("no podman")
    folder = tmp_path_factory.mktemp("podman")
    own = ("--root", f"{folder}/root", "--runroot", f"{folder}/run", "--tmpdir", f"{folder}/tmp")
    found = Podman((program, *own, "--storage-driver", "vfs", "--events-backend", "file"), f"unix://{folder}/socket")
    with (folder / "log").open("wb") as log:
        service = subprocess.Popen([*found.words, "system", "service", "--time=0", found.address], stderr=log)
    try:
        if not is_answering(found, service):
            pytest.skip(f"podman does not start: {(folder / 'log').read_text()[-300:]}")
        yield found
    finally:
        service.terminate()
        service.wait()


def is_answering(podman: Podman, service: subprocess.Popen[bytes]) -> bool:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and service.poll() is None:
        if Path(podman.address.removeprefix("unix://")).exists():
            try:
                connect({"DOCKER_HOST": podman.address}).close()
            except EngineUnavailable:
                return False
            return True
        time.sleep(0.05)
    return False


@pytest.fixture
def project(podman: Podman, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a project."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    root = tmp_path / "project"
    (root / "common").mkdir(parents=True)
    for path, text in {"Dockerfile": DOCKERFILE, "common/a.py": "A = 1", "common/b.py": "B = 1", "main.py": ""}.items():
        (root / path).write_text(text)
    yield root
    podman("rmi", "--all", "--force")


def build(podman: Podman, project: Path) -> None:
    """Build as a user does."""
    podman("build", "--quiet", "--tag", IMAGE, str(project))


def rebuild(podman: Podman, project: Path, path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `gpudoctor rebuild` where `path` is all that programs are looked for in."""
    environ = {**os.environ, "DOCKER_HOST": podman.address, "PATH": str(path), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "gpudoctor", "rebuild", *arguments]
    return subprocess.run(
        command, cwd=project, env=environ, capture_output=True, text=True, timeout=SECONDS, check=False
    )


def look(podman: Podman, project: Path) -> dict[str, Any]:
    """Return the facts about the image."""
    found = look_at({"directory": str(project), "image": IMAGE}, {**os.environ, "DOCKER_HOST": podman.address})
    image: dict[str, Any] = found["images"][0]
    return image


def differences(image: dict[str, Any]) -> list[list[str]]:
    return [item[kind] for item in image["instructions"] for kind in ("stale", "missing", "extra")]


def test_what_buildah_built_is_compared(podman: Podman, project: Path) -> None:
    build(podman, project)
    fresh = look(podman, project)
    assert (fresh["differing_lines"], fresh["additional_steps"], fresh["unknown"]) == ([], [], "")
    assert not any(differences(fresh))
    (project / "common" / "a.py").write_text("A = 2")
    (project / "common" / "b.py").unlink()
    stale = {path for paths in differences(look(podman, project)) for path in paths}
    assert stale == {"common/a.py", "/app/work/common/b.py"}
    (project / "Dockerfile").write_text(DOCKERFILE.replace("two words", "three words"))
    assert look(podman, project)["differing_lines"] == [3]


def test_it_is_rebuilt_under_its_own_name_without_docker(podman: Podman, project: Path, tmp_path: Path) -> None:
    build(podman, project)
    (project / "common" / "a.py").write_text("A = 2")
    done = rebuild(podman, project, tmp_path, "--image", IMAGE)
    assert (done.returncode, done.stdout) == (
        0,
        f"{IMAGE}: rebuilt; {IMAGE} is up to date with project\n",
    )
    assert "no docker command found: building with the engine's API" in done.stderr
    assert not any(differences(look(podman, project)))
    names = podman("images", "--format", "{{.Repository}}:{{.Tag}}").split()
    assert [name for name in names if "none" not in name] == [f"localhost/{IMAGE}:latest"]
    build(podman, project)
    assert not any(differences(look(podman, project))), "the user's own next build stays fresh"


def test_a_service_without_compose_shows_how_to_rebuild_its_image(
    podman: Podman, project: Path, tmp_path: Path
) -> None:
    service = f"{{build: {{context: ., target: base, args: {{DIRECTORY: {LONG}}}}}, image: {IMAGE}}}"
    (project / "compose.yaml").write_text(f"services: {{web: {service}}}\n")
    done = rebuild(podman, project, tmp_path, "web")
    assert done.returncode == 2
    assert done.stderr.strip().endswith(
        f"without compose: gpudoctor rebuild --image {IMAGE}:latest --dockerfile {project}/Dockerfile"
        f" --context {project} --target base --build-arg 'DIRECTORY={LONG}'"
    )
