"""A project whose image can be built FROM scratch, and what tests of a rebuild ask about it."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import tarfile
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from gpudoctor.conclusions.image_verdicts import CLOCK_SECONDS
from tests.containers.engine import docker, docker_program

ROOT = Path(__file__).parents[3]
BUSYBOX = Path("/bin/busybox")
SECONDS = 1_700_000_000

DOCKERFILE = """\
FROM scratch AS base
COPY bin/busybox /bin/busybox
RUN ["/bin/busybox", "cp", "/proc/uptime", "/base-ran"]
FROM base AS app
ARG CACHEBUST
WORKDIR /app
COPY common/ ./common/
RUN ["/bin/busybox", "cp", "/proc/uptime", "/app-ran"]
"""


@dataclass(frozen=True)
class Project:
    """A folder with a Dockerfile, and the image that is built from it."""

    root: Path
    image: str

    @property
    def source(self) -> Path:
        return self.root / "common" / "a.py"

    def write(self, text: str, seconds: int = SECONDS) -> None:
        """Write the source file, with this modification time. A cached build after it may end within milliseconds."""
        self.source.write_text(text)
        os.utime(self.source, (seconds, seconds))
        time.sleep(5 * CLOCK_SECONDS)

    def build(self, builder: str, *options: str) -> str:
        """Build as a user does, and return the id of the image."""
        docker("build", "--tag", self.image, *options, str(self.root), builder=builder)
        return self.image_id()

    def image_id(self) -> str:
        return docker("inspect", "--format", "{{.Id}}", self.image).decode().strip()

    def layers(self) -> str:
        """Return what the image is made of. With containerd's image store each build has another id."""
        return docker("inspect", "--format", "{{json .RootFS.Layers}}", self.image).decode()

    def read(self, path: str) -> str:
        """Return the content of a file of the image."""
        container = docker("create", self.image, "/none").decode().strip()
        try:
            with tarfile.open(fileobj=io.BytesIO(docker("cp", f"{container}:{path}", "-"))) as archive:
                stream = archive.extractfile(archive.next() or tarfile.TarInfo())
                assert stream is not None
                return stream.read().decode()
        finally:
            docker("rm", container)

    def rebuild(self, *options: str, search: str | None = None) -> subprocess.CompletedProcess[str]:
        """Return how `gpudoctor rebuild` of the image ends.

        search: PATH; the folder of the docker command line of the tests comes first without it.
        """
        return gpudoctor("rebuild", "--image", self.image, "--context", str(self.root), *options, search=search)


def gpudoctor(*arguments: str, search: str | None = None, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "gpudoctor", *arguments],
        env=environment(search),
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def environment(search: str | None = None) -> dict[str, str]:
    """Return the environment of a program whose `docker` is that of the tests."""
    path = f"{os.path.dirname(docker_program())}{os.pathsep}{os.environ['PATH']}" if search is None else search
    kept = {name: value for name, value in os.environ.items() if name not in ("DOCKER_BUILDKIT", "PATH")}
    return {**kept, "PATH": path, "PYTHONPATH": str(ROOT)}


def temporary_tags() -> str:
    """Return the temporary tags that are left."""
    return docker("images", "--quiet", "gpudoctor-rebuild").decode()


@pytest.fixture
def project(tmp_path: Path, image: str) -> Project:
    """Return a project whose image is not built yet."""
    if not BUSYBOX.exists():
        pytest.skip("no static busybox at /bin/busybox")
    root = tmp_path / image  # BuildKit has one copy for all contexts whose folders have the same name
    for folder in ("bin", "common"):
        (root / folder).mkdir(parents=True)
    shutil.copy(BUSYBOX, root / "bin" / "busybox")
    (root / "Dockerfile").write_text(DOCKERFILE.replace("base-ran", f"base-ran-{image}"))
    made = Project(root, image)
    made.write("old\n")
    return made
