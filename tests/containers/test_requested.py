"""What a build of the subject would do: also with what only a compose file can say."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gpudoctor.containers.compose.project import Build, Project, Service
from gpudoctor.containers.engines.objects import ServiceContainer
from gpudoctor.containers.requested import Subject, _of_service


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for path in ("project/a.py", "shared/b.py", "shared/c.log"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(path)
    (tmp_path / "shared" / ".dockerignore").write_text("*.log\n")
    return tmp_path / "project"


def copied(project: Path, dockerfile: str, others: Mapping[str, Path] | None = None) -> dict[str, str]:
    """Return path in the image → path from the context, for a Dockerfile inside a compose file."""
    subject = Subject(
        dockerfile=project / "compose.yaml",
        context=project,
        build_arguments={},
        dockerfile_inline=dockerfile,
        other_contexts=others or {},
    )
    plan = subject.plan()
    for item in plan.copies:
        for one in item.selection.placed:
            assert plan.context.entry(one.file.path), "the context finds it there"
    return {one.image_path: one.file.path for item in plan.copies for one in item.selection.placed}


def test_a_dockerfile_inside_the_compose_file(project: Path) -> None:
    assert copied(project, "FROM scratch\nCOPY a.py /app/\n") == {"/app/a.py": "a.py"}


@pytest.mark.parametrize(
    "stage", ["", "FROM scratch AS more\nCOPY a.py /b.py\n"], ids=["a new name", "that of a stage"]
)
def test_a_folder_that_the_build_has_a_name_for(project: Path, stage: str) -> None:
    others = {"more": project.parent / "shared"}
    found = copied(project, f"{stage}FROM scratch\nCOPY --from=more . /app/\n", others)
    assert found == {"/app/.dockerignore": "../shared/.dockerignore", "/app/b.py": "../shared/b.py"}


def test_the_folder_may_be_reached_through_links(project: Path) -> None:
    link = project.parent / "elsewhere" / "link"
    link.parent.mkdir()
    link.symlink_to(project)
    assert copied(link, "FROM scratch\nCOPY --from=more b.py /\n", {"more": project.parent / "shared"}) == {
        "/b.py": "../shared/b.py"
    }


def of_service(
    images: tuple[str, ...], local: list[list[str] | None], containers: tuple[ServiceContainer, ...] = (), **build: Any
) -> Subject:
    """Return what a service is found to run by an engine that has these images."""
    engine: Any = SimpleNamespace(api=SimpleNamespace(images=lambda: [{"RepoTags": tags} for tags in local]))
    given = Build(**{"context": "/p", "dockerfile": "/p/Dockerfile", **build})
    service = Service(name="web", images=images, build=given)
    project = Project(name="demo", directory="/p", files=("/p/compose.yaml",), services=(service,))
    return _of_service(engine, project, service, given, containers)


BUILT = ("demo-web", "demo_web")


@pytest.mark.parametrize(
    ("images", "local", "image"),
    [
        pytest.param(BUILT, [["demo-web:latest"]], "demo-web:latest", id="built by version 2"),
        pytest.param(BUILT, [None, ["x:1", "demo_web:latest"]], "demo_web:latest", id="built by version 1"),
        pytest.param(BUILT, [["demo_web:latest"], ["demo-web:latest"]], "demo-web:latest", id="by both"),
        pytest.param(BUILT, [["demo_web:1"]], "demo-web:latest", id="not built"),
        pytest.param(("x:1",), [["x:1"]], "x:1", id="with a tag"),
        pytest.param(("r:5000/x",), [["r:5000/x:latest"]], "r:5000/x:latest", id="the port of a registry is no tag"),
    ],
)
def test_the_image_of_a_service(images: tuple[str, ...], local: list[list[str] | None], image: str) -> None:
    assert of_service(images, local).image == image


def test_the_container_of_a_service_is_not_one_of_compose_run() -> None:
    once, up = ServiceContainer(id="1", name="demo-web-run-1", is_one_off=True), ServiceContainer(id="2", name="web-1")
    assert of_service(BUILT, [], (once, up)).container == "web-1"
    assert of_service(BUILT, [], (once,)).container is None


def test_what_builds_a_service() -> None:
    subject = of_service(
        BUILT, [], target="t", args={"A": "1"}, additional_contexts={"more": "/more", "remote": "https://x/y.git"}
    )
    assert (subject.dockerfile, subject.context, subject.service) == (Path("/p/Dockerfile"), Path("/p"), "web")
    assert (subject.target, subject.build_arguments, subject.other_contexts) == (
        "t",
        {"A": "1"},
        {"more": Path("/more")},
    )
    inline = of_service(BUILT, [], dockerfile="", dockerfile_inline="FROM a")
    assert (inline.dockerfile, inline.dockerfile_inline) == (Path("/p/compose.yaml"), "FROM a")
