"""A requested image or service that is not there: gpudoctor says so in its own words, not in the engine's."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from gpudoctor.containers.builds.plan import read_plan
from gpudoctor.containers.engines.connection import connect
from gpudoctor.containers.project_images import look_at_image
from gpudoctor.containers.requested import Subject, look_at, look_at_subject
from tests.containers.engine import docker, image

__all__ = ["image"]

pytestmark = pytest.mark.engine


def test_a_container_that_is_not_there(tmp_path: Path, image: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "a.txt").write_text("a")
    dockerfile = tmp_path / "Dockerfile"
    dockerfile.write_text("FROM scratch\nCOPY a.txt /\n")
    docker("build", "-q", "-t", image, str(tmp_path))
    client = connect(os.environ)
    subject = Subject(dockerfile=dockerfile, context=tmp_path, container="gone", build_arguments={})
    found = (
        look_at_subject(client.api, subject),
        look_at_image(client.api, image, read_plan(dockerfile, tmp_path, None, {}), "gone"),
    )
    client.close()
    assert [item.unknown for item in found] == ["there is no container gone"] * 2


def test_a_folder_with_nothing_but_a_dockerfile(tmp_path: Path, image: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / f"{image}.txt").write_text("a")
    (tmp_path / "Dockerfile").write_text(f"FROM scratch\nCOPY {image}.txt /{image}\n")
    unbuilt = look_at({"directory": str(tmp_path)}, os.environ)
    docker("build", "-q", "-t", image, str(tmp_path))
    (tmp_path / f"{image}.txt").write_text("newer")
    (found,) = look_at({"directory": str(tmp_path)}, os.environ)["images"]
    assert unbuilt["unavailable"].endswith("no local image matches; name it with --image")
    assert (found["image"], found["instructions"][0]["stale"]) == (f"{image}:latest", [f"{image}.txt"])


def test_a_service_whose_dockerfile_stands_in_the_compose_file(
    tmp_path: Path, image: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    project = tmp_path / "project"
    for path in ("project/a.txt", "shared/b.txt"):
        (tmp_path / path).parent.mkdir()
        (tmp_path / path).write_text("old")
    (project / "Dockerfile.same").write_text("FROM scratch\nCOPY a.txt /\nCOPY b.txt /\n")
    (project / "b.txt").write_text("old")
    docker("build", "-q", "-t", image, "-f", str(project / "Dockerfile.same"), str(project))
    build = {
        "context": ".",
        "dockerfile_inline": "FROM scratch\nCOPY a.txt /\nCOPY --from=shared b.txt /\n",
        "additional_contexts": {"shared": "../shared"},
    }
    (project / "compose.yaml").write_text(json.dumps({"services": {"web": {"image": image, "build": build}}}))
    (tmp_path / "shared" / "b.txt").write_text("newer")
    (found,) = look_at({"directory": str(project)}, os.environ)["images"]
    assert (found["service"], found["unknown"]) == ("web", "")
    assert [item["stale"] for item in found["instructions"]] == [[], ["../shared/b.txt"]]
