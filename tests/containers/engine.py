"""A real engine for tests: images FROM scratch, built by both builders, read without running anything.

Found by DOCKER_HOST or the default socket; where there is none, the tests skip with that reason.
"""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import tarfile
import uuid
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from gpudoctor.containers.rebuild.command_line import find_docker

BUILDERS = ("classic", "buildkit")


def docker(*arguments: str, builder: str = "classic") -> bytes:
    """Return what the docker command line writes.

    Raises:
        AssertionError: it failed.
    """
    environment = {**os.environ, "DOCKER_BUILDKIT": "1" if builder == "buildkit" else "0"}
    command = [docker_program(), *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, check=False)
    if b"unable to find image" in done.stderr and arguments[0] == "build":
        # The classic builder found a layer in its cache that a test beside this one removed.
        done = subprocess.run(command, env=environment, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode(errors="replace")[-2000:]
    return done.stdout


@cache
def docker_program() -> str:
    """Return the first docker command line on PATH that can use both builders."""
    able = (found.path for found in find_docker(os.environ) if found.has_buildkit)
    return next(able, "docker")


@cache
def missing_engine() -> str:
    """Return why no engine can be asked; "" where one can."""
    try:
        done = subprocess.run([docker_program(), "version"], capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"no docker command line: {error}"
    return "" if done.returncode == 0 else f"no engine: {done.stderr.strip().splitlines()[-1][:200]}"


@pytest.fixture
def image() -> Iterator[str]:
    """Return a tag of its own for an image; it is removed after the test, with the containers that run it."""
    reason = missing_engine()
    if reason:
        pytest.skip(reason)
    tag = f"gpudoctor-test-{uuid.uuid4().hex[:12]}"
    yield tag
    containers = docker("ps", "-aq", "--filter", f"ancestor={tag}").decode().split()
    if containers:
        docker("rm", "-f", *containers)
    if docker("images", "-q", tag):
        docker("rmi", "-f", tag)


@pytest.fixture(scope="session")
def base_image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return an image FROM scratch with the commands of busybox, for containers that are to do something."""
    busybox = shutil.which("busybox")
    reason = missing_engine() or ("" if busybox else "no busybox (Debian: busybox-static)")
    if reason:
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("base")
    shutil.copy(str(busybox), folder / "busybox")
    install = "/bin/busybox --install -s /bin && mkdir -p /tmp /root"
    (folder / "Dockerfile").write_text(
        f'FROM scratch\nCOPY busybox /bin/busybox\nRUN ["/bin/busybox", "sh", "-c", "{install}"]\n'
    )
    tag = f"gpudoctor-test-base-{uuid.uuid4().hex[:12]}"
    docker("build", "-q", "-t", tag, str(folder))
    yield tag
    docker("rmi", "-f", tag)


def files_of(image: str) -> dict[str, tarfile.TarInfo]:
    """Return the files and links of the image by absolute path, without those that every container gets."""
    container = docker("create", image, "/none").decode().strip()
    try:
        with tarfile.open(fileobj=io.BytesIO(docker("export", container))) as archive:
            members = [member for member in archive if not member.isdir()]
    finally:
        docker("rm", container)
    return {
        f"/{m.name}": m for m in members if Path(m.name).parts[0] not in ("dev", "etc", "proc", "sys", ".dockerenv")
    }
