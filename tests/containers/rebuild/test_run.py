"""What a build or a new container can mend, by the causes that the check names."""

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gpudoctor.containers.compose.project import Project
from gpudoctor.containers.rebuild import run
from gpudoctor.containers.rebuild.builders import ComposeBuilder, DockerBuilder, EngineBuilder
from gpudoctor.containers.rebuild.choice import Chosen
from gpudoctor.containers.rebuild.command_line import CommandLine, Compose
from gpudoctor.containers.rebuild.copy_again import CopyAgain
from gpudoctor.containers.rebuild.run import Verdict
from gpudoctor.containers.rebuild.steps import Command
from gpudoctor.containers.requested import Subject
from gpudoctor.errors import GpudoctorError, UsageError
from gpudoctor.model import Finding, Severity
from tests.containers.fake_engine import FakeEngine


def verdict(*causes: str) -> Verdict:
    details = {"images": [{"verdict": "stale", "causes": list(causes)}]}
    return Verdict.of(Finding(severity=Severity.WARNING, summary="It is old", details=details))


def test_it_is_what_the_finding_says() -> None:
    assert verdict("image-not-rebuilt") == Verdict(state="stale", causes=("image-not-rebuilt",), text="It is old")


@pytest.mark.parametrize(
    ("causes", "build", "container", "hidden"),
    [
        pytest.param(["image-not-rebuilt"], True, False, False, id="the image is old"),
        pytest.param(["container-runs-older-image"], False, True, False, id="the container is old"),
        pytest.param(["bind-source-replaced"], False, True, False, id="a mounted file was replaced"),
        pytest.param(["mount-shadows-copy"], False, False, True, id="a mount"),
        pytest.param(["image-not-rebuilt", "container-modified-in-place"], True, True, False, id="image and container"),
        pytest.param([], False, False, False, id="nothing"),
    ],
)
def test_what_fixes_it(causes: list[str], build: bool, container: bool, hidden: bool) -> None:
    found = verdict(*causes)
    assert (found.needs_build, found.needs_container, found.is_hidden_by_mounts) == (build, container, hidden)


DOCKERFILE = (
    "FROM scratch AS base\nCOPY a.txt /a.txt\nFROM base AS top\nCOPY b.txt /b.txt\nFROM scratch\nCOPY --from=top / /\n"
)
DOCKER = CommandLine(path="docker", version=(28, 2), has_buildx=True)


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeEngine:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(run, "new_tag", lambda: "gpudoctor-rebuild:1")
    monkeypatch.setattr(run, "choose_builder", choose)
    return FakeEngine()


@pytest.fixture
def subject(tmp_path: Path) -> Subject:
    root = tmp_path / "project"
    root.mkdir()
    for name in "ab":
        (root / f"{name}.txt").write_text(name)
    (root / "Dockerfile").write_text(DOCKERFILE)
    return Subject(dockerfile=root / "Dockerfile", context=root, image="app:1", build_arguments={})


def choose(api: Any, subject: Subject, by_buildkit: bool | None, arguments: Mapping[str, Any], environ: Any) -> Chosen:
    """Return docker, or what is asked for: the engine's API, or compose."""
    docker = DockerBuilder(docker=DOCKER, subject=subject, buildkit=bool(by_buildkit))
    compose = Compose(words=("docker", "compose"))
    project = Project(name="shop", directory="/p", files=("/p/compose.yaml",), services=())
    builders: dict[str, Any] = {
        "docker": docker,
        "api": EngineBuilder(api=api, subject=subject, buildkit=True),
        "compose": ComposeBuilder(
            api=api, compose=compose, docker=DOCKER, project=project, service="web", buildkit=True, path=""
        ),
    }
    kind = arguments.get("kind", "docker")
    return Chosen(builder=builders[kind], docker=None if kind == "api" else docker, subject=subject, note=kind)


def prepared(
    engine: FakeEngine,
    subject: Subject,
    state: str = "stale",
    *causes: str,
    recreates: bool = True,
    kind: str = "docker",
) -> run.RebuildPlan:
    found = Verdict(state=state, causes=causes, text="It is old")
    return run.prepare(engine, subject, {"kind": kind}, lambda image: found, recreates=recreates)  # type: ignore[arg-type]


HISTORY = ["COPY / / # buildkit"]


@pytest.mark.parametrize(
    ("state", "causes", "recreates", "builds", "recreated"),
    [
        ("stale", ["image-not-rebuilt"], True, True, True),
        ("stale", ["image-not-rebuilt"], False, True, False),
        ("stale", ["container-runs-older-image"], True, False, True),
        ("stale", ["container-runs-older-image"], False, False, False),
        ("stale", ["mount-shadows-copy"], True, False, False),
        ("unknown", [], True, True, True),
        ("fresh", [], True, False, False),
    ],
)
def test_what_is_to_be_done(
    state: str, causes: list[str], recreates: bool, builds: bool, recreated: bool, engine: FakeEngine, subject: Subject
) -> None:
    image = engine.add_image("app:1", tree={"/a.txt": "a", "/b.txt": "b"}, history=HISTORY)
    engine.add_container("web", image)
    plan = prepared(engine, replace(subject, container="web"), state, *causes, recreates=recreates)
    assert (plan.builds, plan.recreates, plan.stages, plan.unseen_changes) == (builds, recreated, (), False)
    assert (plan.name, plan.image.image_id, plan.chosen.builder.buildkit) == ("web", image, True)
    without = prepared(engine, subject, state, *causes, recreates=recreates)
    assert (without.builds, without.recreates, without.name) == (builds, False, "app:1")


def test_a_container_that_is_gone_once_it_stops_is_not_recreated(engine: FakeEngine, subject: Subject) -> None:
    image = engine.add_image("app:1", tree={}, history=HISTORY)
    engine.add_container("web", image, HostConfig={"AutoRemove": True})
    once = replace(subject, container="web")
    with pytest.raises(UsageError, match="web was started with --rm"):
        prepared(engine, once, "stale", "image-not-rebuilt")
    assert prepared(engine, once, "stale", "image-not-rebuilt", recreates=False).builds
    assert prepared(engine, once, "stale", "image-not-rebuilt", kind="compose").recreates
    assert not prepared(engine, once, "fresh").recreates


@pytest.mark.parametrize(
    ("tree", "stages"),
    [
        ({"/a.txt": "A", "/b.txt": "b"}, ("base", "top", "2")),
        ({"/a.txt": "a", "/b.txt": "b"}, ()),
    ],
)
def test_the_stages_that_are_stale(
    tree: dict[str, str], stages: tuple[str, ...], engine: FakeEngine, subject: Subject
) -> None:
    engine.add_image("app:1", tree=tree, history=HISTORY)
    assert prepared(engine, subject).stages == stages


def test_an_image_that_is_not_there_yet(engine: FakeEngine, subject: Subject) -> None:
    plan = prepared(engine, replace(subject, container="web", service="shop"), "unknown", recreates=False)
    assert (plan.builds, plan.recreates, plan.stages, plan.name) == (True, False, (), "shop")
    assert "it has not been built" in plan.image.unknown


@pytest.mark.parametrize(
    ("name", "refused"),
    [("app:1", False), ("sha256:0000", True), ("0000", True), ("app@sha256:0000", True), ("other", False)],
)
def test_an_id_is_no_name(name: str, refused: bool, engine: FakeEngine) -> None:
    identity = engine.add_image("app:1", "other")
    found = dict(engine.inspect_image("app:1"))
    engine.inspect_image = lambda name: found  # type: ignore[method-assign]
    with pytest.raises(UsageError, match="is an id or digest") if refused else nullcontext():
        run._check_name(engine, name)  # type: ignore[arg-type]
    with pytest.raises(UsageError):
        run._check_name(engine, identity)  # type: ignore[arg-type]


def test_what_cannot_be_rebuilt(engine: FakeEngine, subject: Subject) -> None:
    engine.add_image("app:1", tree={}, history=HISTORY)
    engine.history = lambda identity: int("no")  # type: ignore[method-assign,assignment,return-value]
    with pytest.raises(GpudoctorError, match="app:1 cannot be compared: ValueError"):
        prepared(engine, subject)
    subject.dockerfile.unlink()
    with pytest.raises(UsageError, match="No such file"):
        prepared(engine, subject)


def test_the_names_of_what_is_asked_for(engine: FakeEngine, subject: Subject) -> None:
    identity = engine.add_container("web", "sha256:1", Config={"Image": "app:2"})
    api: Any = engine
    assert run.named(api, subject) is subject
    found = run.named(api, replace(subject, container=identity))
    assert (found.image, found.container) == ("app:1", "web")
    assert run.named(api, replace(subject, image=None, container="web")).image == "app:2"
    with pytest.raises(UsageError, match="--container: there is no container none"):
        run.named(api, replace(subject, container="none"))


VERIFIED = "# after the new image has been verified:"
BY_DOCKER = ["docker tag gpudoctor-rebuild:1 app:1", "docker rmi --no-prune gpudoctor-rebuild:1"]
BY_API = ["# the engine's API: tags gpudoctor-rebuild:1 as app:1, and removes the tag gpudoctor-rebuild:1"]
RECREATED = ["# the engine's API: container web is recreated from app:1 with its settings; the old one is kept until"]
RECREATED[0] += " the new one has started"
UP = "docker compose --project-name shop --project-directory /p -f /p/compose.yaml up"


@pytest.mark.parametrize(
    ("kind", "causes", "container", "expected"),
    [
        ("docker", ["image-not-rebuilt"], None, BY_DOCKER),
        ("api", ["image-not-rebuilt"], None, BY_API),
        ("docker", ["image-not-rebuilt"], "web", [*BY_DOCKER, *RECREATED]),
        ("docker", ["container-runs-older-image"], "web", RECREATED),
        (
            "compose",
            ["container-runs-older-image"],
            "web",
            [f"{UP} --detach --no-deps --no-build --force-recreate web"],
        ),
        (
            "compose",
            ["container-runs-older-image"],
            "stopped",
            [f"{UP} --no-start --no-deps --no-build --force-recreate web"],
        ),
        ("docker", [], "web", []),
    ],
)
def test_a_dry_run(
    kind: str, causes: list[str], container: str | None, expected: list[str], engine: FakeEngine, subject: Subject
) -> None:
    image = engine.add_image("app:1", tree={"/a.txt": "a", "/b.txt": "b"}, history=HISTORY)
    engine.add_container("web", image)
    engine.add_container("stopped", image, State={"Running": False, "StartedAt": ""})
    plan = prepared(engine, replace(subject, container=container), "stale", *causes, kind=kind)
    lines = list(run.describe(engine, plan))  # type: ignore[arg-type]
    assert lines[:2] == ["# It is old", f"# {kind}"]
    builds = lines[2 : lines.index(VERIFIED)] if plan.builds else []
    assert [
        line.removeprefix("DOCKER_BUILDKIT=1 COMPOSE_DOCKER_CLI_BUILD=1 ") for line in lines[2 + len(builds) :]
    ] == [
        *([VERIFIED] if plan.builds else []),
        *expected,
    ]
    tried = [line for line in builds if line.startswith("# still stale")]
    assert len(tried) == (2 if plan.builds else 0)


@pytest.mark.parametrize(
    ("kind", "container", "tag", "calls"),
    [
        ("compose", "web", "new:1", ["move to app:1", "up --detach", "await the start of web"]),
        ("compose", "stopped", "new:1", ["move to app:1", "up --no-start"]),
        ("compose", "web", "app:1", ["up --detach", "await the start of web"]),
        ("docker", "web", "new:1", ["move to app:1", "recreate web"]),
        ("docker", None, "new:1", ["move to app:1"]),
    ],
)
def test_the_image_gets_its_name_and_the_container_the_image(
    kind: str,
    container: str | None,
    tag: str,
    calls: list[str],
    engine: FakeEngine,
    subject: Subject,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    image = engine.add_image("app:1", tree={"/a.txt": "a", "/b.txt": "b"}, history=HISTORY)
    engine.add_container("web", image)
    engine.add_container("stopped", image, State={"Running": False, "StartedAt": ""})
    plan = prepared(engine, replace(subject, container=container), "stale", "container-runs-older-image", kind=kind)
    done: list[str] = []
    written: dict[str, Any] = {}
    monkeypatch.setattr(run, "move_name", lambda api, image, tag, before, journal: done.append(f"move to {image}"))
    monkeypatch.setattr(run, "recreate", lambda api, name, image, journal: done.append(f"recreate {name}"))
    monkeypatch.setattr(run, "await_started", lambda api, name: done.append(f"await the start of {name}"))
    monkeypatch.setattr(Command, "run", lambda self, progress: done.append(" ".join(self.arguments[8:10])))
    journal: Any = SimpleNamespace(write=lambda **entry: written.update(entry), repeat=None)
    run._use(engine, plan, tag, None, journal)  # type: ignore[arg-type]
    assert done == calls
    assert written.pop("done") is True
    assert list(written) == (["command"] if kind == "compose" else [])
    if kind == "compose":
        journal.repeat()
        assert done == calls, "the container is as before"
        engine.inspect_container(str(container))["Id"] = "another"
        journal.repeat()
        assert done == [*calls, next(call for call in calls if call.startswith("up"))]


@pytest.mark.parametrize(
    ("kind", "buildkit", "inline", "copies_again"),
    [
        pytest.param("docker", False, None, True, id="the classic builder"),
        pytest.param("docker", True, None, False, id="BuildKit compares contents itself"),
        pytest.param("docker", False, "FROM scratch", False, id="a Dockerfile in the compose file"),
        pytest.param("api", False, None, False, id="no docker command"),
    ],
)
def test_when_a_stale_copy_is_carried_out_again(
    kind: str,
    buildkit: bool,
    inline: str | None,
    copies_again: bool,
    engine: FakeEngine,
    subject: Subject,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine.add_image("app:1", tree={"/a.txt": "A", "/b.txt": "b"}, history=HISTORY)
    plan = prepared(engine, subject, "stale", "image-not-rebuilt", kind=kind)
    docker = DockerBuilder(docker=DOCKER, subject=subject, buildkit=buildkit) if kind == "docker" else None
    plan = replace(
        plan, chosen=replace(plan.chosen, docker=docker), subject=replace(plan.subject, dockerfile_inline=inline)
    )
    given: list[Any] = []

    def attempts(*parts: Any, **more: Any) -> Any:
        given.append((parts, more))
        return iter(())

    monkeypatch.setattr(run, "attempts", attempts)
    run._attempts(engine, plan, "new:1")  # type: ignore[arg-type]
    again = CopyAgain(api=engine, builder=docker, tag="new:1") if copies_again else None  # type: ignore[arg-type]
    more = {"stages": plan.stages, "unseen_changes": plan.unseen_changes, "copy_again": again}
    assert given == [((plan.chosen.builder, "new:1"), more)]
