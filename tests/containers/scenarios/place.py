"""A project in a folder of its own, its image and containers: what a scenario acts on."""

from __future__ import annotations

import io
import os
import shutil
import tarfile
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpudoctor.containers.requested import look_at
from gpudoctor.model import CheckResult, ProjectImage
from gpudoctor.model.codec import from_json
from gpudoctor.testing import run_check
from tests.containers.engine import docker

TREE = {
    "train.py": "import common",
    "run.sh": "#!/bin/sh",
    "common/__init__.py": "",
    "common/util.py": "old",
    "common/sub/deep.py": "deep",
    "conf/a.yaml": "a",
    "conf/b.yaml": "b",
    "requirements.txt": "torchlike==2.1.0\nnumpylike==1.26.0\n",
}


@dataclass
class Place:
    """One project. base: an image with a shell, for FROM."""

    root: Path
    builder: str
    base: str
    tag: str = field(default_factory=lambda: f"gpudoctor-test-{uuid.uuid4().hex[:12]}")
    arguments: Mapping[str, str] = field(default_factory=dict)
    target: str | None = None
    container: str | None = None
    tags: list[str] = field(default_factory=list)
    volumes: list[str] = field(default_factory=list)

    def write(self, path: str, content: str) -> None:
        """Write a file in place, as editors without a backup do."""
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(content)

    def keep_time(self, path: str, content: str) -> None:
        """Write a file and give it back its modification time."""
        before = (self.root / path).stat()
        self.write(path, content)
        os.utime(self.root / path, ns=(before.st_atime_ns, before.st_mtime_ns))

    def replace(self, path: str, content: str) -> None:
        """Write another file and rename it to this one, as many editors save."""
        self.write(f"{path}.new", content)
        (self.root / f"{path}.new").rename(self.root / path)

    def archive(self, path: str, members: Mapping[str, str]) -> None:
        """Write an archive with these files."""
        with tarfile.open(self.root / path, "w:gz") as archive:
            for name, content in members.items():
                about = tarfile.TarInfo(name)
                about.size = len(content)
                archive.addfile(about, io.BytesIO(content.encode()))

    def flatten(self) -> None:
        """Make the image one that was imported: a single layer without a history."""
        container = docker("create", self.tag, "true").decode().strip()
        docker("export", "-o", str(self.root / "flat.tar"), container)
        docker("rm", container)
        docker("import", str(self.root / "flat.tar"), self.tag)

    def dockerfile(self, text: str, name: str = "Dockerfile") -> None:
        """Write the Dockerfile; BASE in it is the image with a shell, TAG that of the project."""
        self.write(name, text.replace("BASE", self.base).replace("TAG", self.tag))

    def build(self, *options: str, tag: str | None = None, name: str = "Dockerfile") -> None:
        """Build the image, under another tag or from another Dockerfile where that is said."""
        tag = tag or self.tag
        self.tags.append(tag)
        docker("build", "-q", "-t", tag, "-f", str(self.root / name), *options, str(self.root), builder=self.builder)
        time.sleep(0.05)  # the clock of files is some milliseconds behind the engine's

    def build_base(self, text: str) -> None:
        """Build TAG-base from a Dockerfile of its own, which is gone afterwards."""
        self.dockerfile(text, "Base")
        self.build(tag=f"{self.tag}-base", name="Base")
        (self.root / "Base").unlink()

    def run(self, *options: str, command: str = "sleep 1000") -> None:
        """Start a container of the image; it is the one that is looked at."""
        if self.container is not None:
            docker("rm", "-f", self.container)
        self.container = self.tag
        docker("run", "-d", "--name", self.container, "--network", "none", *options, self.tag, *command.split())

    def stop(self) -> None:
        """Stop the container."""
        docker("stop", "-t", "0", str(self.container))

    def volume(self) -> str:
        """Return the name of a new volume."""
        self.volumes.append(f"{self.tag}-{len(self.volumes)}")
        return self.volumes[-1]

    def inside(self, command: str) -> None:
        """Run a shell command inside the container."""
        docker("exec", str(self.container), "sh", "-c", command)

    def has_lost_image(self) -> bool:
        """Return whether the engine has not kept the image of the container, as with containerd's image store."""
        image = docker("inspect", "--format", "{{.Image}}", str(self.container)).decode().strip()
        return image not in docker("images", "--all", "--quiet", "--no-trunc").decode().split()

    def look(self) -> ProjectImage:
        """Return what gpudoctor knows of the image."""
        request: dict[str, Any] = {
            "directory": str(self.root),
            "image": self.tag,
            "container": self.container,
            "target": self.target,
            "build_arguments": [f"{name}={value}" for name, value in self.arguments.items()],
        }
        facts = look_at(request, os.environ)
        (image,) = from_json(tuple[ProjectImage, ...], facts["images"], "images")
        return image

    def check(self) -> CheckResult:
        """Return what the check says of it."""
        return run_check("docker-stale-layers", images=(self.look(),))

    def remove(self) -> None:
        """Remove everything that it made."""
        if self.container is not None:
            docker("rm", "-f", "-v", self.container)
        for tag in dict.fromkeys(reversed(self.tags)):
            if docker("images", "-q", tag):
                docker("rmi", "-f", tag)
        for name in self.volumes:
            docker("volume", "rm", "-f", name)
        shutil.rmtree(self.root)
