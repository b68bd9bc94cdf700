"""What a build of the subject would do: also with what only a compose file can say."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from docker.errors import APIError, DockerException
from requests import RequestException

from gpudoctor.containers import requested
from gpudoctor.containers.builds.context import TooLarge
from gpudoctor.containers.compose.project import Build, Project, Service
from gpudoctor.containers.engines.connection import EngineUnavailable
from gpudoctor.containers.engines.objects import ServiceContainer
from gpudoctor.containers.requested import Subject, _of_service, find_subjects, look_at
from gpudoctor.model import ProjectImage
from gpudoctor.model.codec import from_json
from tests.containers.fake_engine import SECONDS, FakeEngine


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


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeEngine:
    """Return the engine that is asked."""
    engine = FakeEngine()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(requested, "connect", lambda environ, seconds: engine)
    monkeypatch.setattr(requested, "reached_by", lambda api, environ: {"by_podman_alone": True})
    return engine


def write(folder: Path, **texts: str) -> None:
    folder.mkdir(exist_ok=True)
    for name, text in texts.items():
        (folder / name.replace("_", ".")).write_text(text)


def asked(engine: FakeEngine, folder: Path, **arguments: Any) -> Any:
    """Return the images in the answer; without any, the whole answer."""
    answer = look_at({"directory": str(folder), **arguments}, {})
    assert engine.is_closed
    return from_json(tuple[ProjectImage, ...], answer["images"], "images") if "images" in answer else answer


DOCKERFILE = "FROM scratch AS base\nCOPY a.py /\nFROM base AS more\nCOPY b.py /\n"
COPIES = ["COPY a.py / # buildkit", "COPY b.py / # buildkit"]
TREE = {"/a.py": "a", "/b.py": "b"}
SOURCES = {"a_py": "a", "b_py": "b", "Dockerfile": DOCKERFILE}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"image": "x:1"}, {"image": "x:1"}),
        ({"image": "x:1", "target": "base"}, {"image": "x:1", "target": "base"}),
        ({"container": "web"}, {"image": "x:1"}),
        ({"image": "x:1", "container": "web"}, {"image": "x:1"}),
        ({"container": "none"}, {"image": "none", "unknown": "there is no container none"}),
        ({"image": "y:1"}, {"image": "y:1", "unknown": "there is no image y:1: it has not been built"}),
        ({"image": "x:1", "target": "no"}, {"image": "x:1", "unknown": "stage"}),
        ({"image": "x:1", "dockerfile": "none"}, {"image": "x:1"}),
        ({"image": "x:1", "context": "sub"}, {"image": "x:1"}),
        ({"image": "x:1", "dockerfile": "sub/other", "context": ""}, {"image": "x:1"}),
    ],
)
def test_an_image_that_is_named(
    arguments: dict[str, str], expected: dict[str, Any], engine: FakeEngine, tmp_path: Path
) -> None:
    write(tmp_path / "p", **SOURCES)
    write(tmp_path / "p" / "sub", Dockerfile=DOCKERFILE, other=DOCKERFILE)
    identity = engine.add_image("x:1", tree=TREE, history=COPIES)
    engine.add_container("web", identity, Config={"Image": "x:1"})
    (found,) = asked(engine, tmp_path / "p", **arguments)
    context = arguments.get("context") or arguments.get("dockerfile", "").rpartition("/")[0]
    place = {"dockerfile": arguments.get("dockerfile") or f"{arguments.get('context', '')}/Dockerfile".lstrip("/")}
    place |= {"context": context}
    assert (found.by_podman_alone, found.asked_for, found.service) == (True, True, None)
    assert found.dockerfile == str(tmp_path / "p" / place["dockerfile"])
    assert found.context == str(tmp_path / "p" / context)
    for name, value in expected.items():
        assert value in getattr(found, name) if name == "unknown" else getattr(found, name) == value
    assert bool(found.unknown) is ("unknown" in expected or "none" in arguments.values())
    assert (found.container is not None) is (arguments.get("container") == "web")


def test_build_arguments_of_an_image_that_is_named(tmp_path: Path) -> None:
    given = {"directory": str(tmp_path), "image": "x", "build_arguments": ["A=1", "B=2=3", "C"]}
    (subject,) = find_subjects(FakeEngine(), given, {})  # type: ignore[arg-type]  # nothing is asked
    assert subject == Subject(
        dockerfile=tmp_path / "Dockerfile",
        context=tmp_path,
        image="x",
        build_arguments={"A": "1", "B": "2=3", "C": ""},
    )


@pytest.mark.parametrize(
    ("tags", "chosen", "reason"),
    [
        ([], None, "no local image matches"),
        (["x:1"], "x:1", ""),
        (["x:1", "r:5000/shop:2"], "r:5000/shop:2", ""),
        (["x:1", "y:1"], None, "several images match: y:1, x:1"),
        ([f"{letter}:1" for letter in "abcdefg"], None, "several images match: g:1, f:1, e:1, d:1, c:1"),
    ],
)
def test_the_image_of_the_dockerfile_in_the_working_directory(
    tags: list[str], chosen: str | None, reason: str, engine: FakeEngine, tmp_path: Path
) -> None:
    write(tmp_path / "Shop", **SOURCES)
    for number, tag in enumerate(tags):
        engine.add_image(tag, tree=TREE, history=COPIES, created=SECONDS + number)
    answer = asked(engine, tmp_path / "Shop")
    if chosen is None:
        dockerfile = tmp_path / "Shop" / "Dockerfile"
        assert answer == {"unavailable": f"which image is built from {dockerfile}? {reason}; name it with --image"}
    else:
        assert [(found.image, found.asked_for, found.unknown) for found in answer] == [(chosen, True, "")]


def test_a_folder_without_a_dockerfile_has_no_image(engine: FakeEngine, tmp_path: Path) -> None:
    assert asked(engine, tmp_path) == {}


COMPOSE = """
services:
  web: {build: {context: ., target: base, args: {A: "1"}}}
  db: {image: "postgres:17"}
  far: {build: "https://github.com/x/y.git"}
"""


@pytest.mark.parametrize("service", [None, "web"])
def test_the_services_of_a_compose_file_that_are_built_here(
    service: str | None, engine: FakeEngine, tmp_path: Path
) -> None:
    write(tmp_path / "shop", **SOURCES, compose_yaml=COMPOSE)
    image = engine.add_image("shop-web:latest", tree=TREE, history=COPIES[:1])
    labels = {"com.docker.compose.project": "shop", "com.docker.compose.service": "web"}
    engine.add_container("shop-web-1", image, Config={"Image": "shop-web", "Labels": labels})
    (found,) = asked(engine, tmp_path / "shop", **({"service": service} if service else {}))
    assert (found.image, found.service, found.target, found.asked_for) == ("shop-web:latest", "web", "base", False)
    assert (found.dockerfile, found.unknown) == (str(tmp_path / "shop" / "Dockerfile"), "")
    assert found.container is not None
    assert found.container.name == "shop-web-1"


def test_a_service_that_is_not_in_the_compose_file(engine: FakeEngine, tmp_path: Path) -> None:
    write(tmp_path / "shop", **SOURCES, compose_yaml=COMPOSE)
    assert "nowhere" in asked(engine, tmp_path / "shop", service="nowhere")["unavailable"]


def test_an_engine_that_is_not_there_or_refuses(
    engine: FakeEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> Any:
        raise APIError("no", explanation="too many questions")

    write(tmp_path / "shop", **SOURCES)
    engine.images = refuse  # type: ignore[method-assign]
    refused = "the engine refuses, or its answer cannot be read: too many questions"
    assert asked(engine, tmp_path / "shop") == {"unavailable": refused}

    def unavailable(*_: Any) -> Any:
        raise EngineUnavailable("none here")

    monkeypatch.setattr(requested, "connect", unavailable)
    assert look_at({"directory": str(tmp_path), "image": "x"}, {}) == {"unavailable": "none here"}


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (DockerException("no"), "the engine refuses, or its answer cannot be read: DockerException: no"),
        (RequestException("no"), "the engine refuses, or its answer cannot be read: RequestException: no"),
        (ValueError("of an answer"), "of an answer"),
        (OSError("of a file"), "of a file"),
    ],
)
def test_every_way_to_fail_leaves_the_images_unknown(
    error: Exception, told: str, engine: FakeEngine, tmp_path: Path
) -> None:
    def fail(*_: Any) -> Any:
        raise error

    write(tmp_path / "shop", **SOURCES)
    engine.images = fail  # type: ignore[method-assign]
    assert asked(engine, tmp_path / "shop") == {"unavailable": told}


@pytest.mark.parametrize("error", [ValueError("wrong"), TooLarge("wrong"), OSError("wrong")])
def test_a_plan_that_cannot_be_read_leaves_the_image_unknown(
    error: Exception, engine: FakeEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> Any:
        raise error

    monkeypatch.setattr(requested, "read_plan", fail)
    (found,) = asked(engine, tmp_path, image="x:1")
    assert (found.image, found.unknown) == ("x:1", "wrong")
