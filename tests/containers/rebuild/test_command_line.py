"""What a docker command line can do, and which of several is taken."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gpudoctor.containers.compose.reader import read_project
from gpudoctor.containers.rebuild import choice, command_line
from gpudoctor.containers.rebuild.builders import ComposeBuilder, DockerBuilder, EngineBuilder
from gpudoctor.containers.rebuild.choice import choose, wants_buildkit
from gpudoctor.containers.rebuild.command_line import CommandLine, Compose, find_compose, find_docker
from gpudoctor.containers.requested import Subject
from gpudoctor.errors import UsageError

pytestmark = pytest.mark.usefixtures("engine_alone")

OLD = CommandLine(path="/usr/bin/docker", version=(20, 10))
NEW = CommandLine(path="/usr/local/bin/docker", version=(28, 2))
NEW_WITH_BUILDX = CommandLine(path="/opt/docker", version=(28, 2), has_buildx=True)


@pytest.mark.parametrize(
    ("found", "buildkit", "taken", "note"),
    [
        pytest.param((NEW_WITH_BUILDX, OLD), True, NEW_WITH_BUILDX, "", id="the plugin is there"),
        pytest.param((OLD,), True, OLD, "", id="built in"),
        pytest.param((NEW, OLD), True, OLD, f"building with {OLD.path}", id="the next one on PATH"),
        pytest.param((NEW, OLD), False, NEW, "", id="the classic builder needs no plugin"),
        pytest.param((NEW,), True, None, "building with the engine's API", id="none that can"),
        pytest.param((), False, None, "no docker command found", id="none at all"),
    ],
)
def test_which_is_taken(found: tuple[CommandLine, ...], buildkit: bool, taken: CommandLine | None, note: str) -> None:
    docker, told = choose(found, buildkit=buildkit)
    assert docker == taken
    assert note in told if note else told == ""


@pytest.mark.parametrize(
    ("switch", "by_buildkit", "found", "wanted"),
    [
        pytest.param("0", True, (), False, id="the switch wins"),
        pytest.param("1", False, (), True, id="the switch wins, on"),
        pytest.param("", True, (), True, id="as it was built"),
        pytest.param("", False, (NEW,), False, id="as it was built, by the classic one"),
        pytest.param("", None, (NEW,), True, id="docker's own since 23"),
        pytest.param("", None, (OLD,), False, id="docker's own before"),
        pytest.param("", None, (CommandLine(path="docker", version=(23,)),), True, id="docker's own from 23.0 on"),
        pytest.param("", None, (CommandLine(path="docker", version=(22, 9)),), False, id="docker's own until then"),
        pytest.param("", None, (), False, id="no docker"),
        *(pytest.param(off, True, (), False, id=f"switched off: {off}") for off in ("0", "f", "F", "false", "False")),
    ],
)
def test_which_builder(switch: str, by_buildkit: bool | None, found: tuple[CommandLine, ...], wanted: bool) -> None:
    assert wants_buildkit({"DOCKER_BUILDKIT": switch}, by_buildkit, found) is wanted


def test_until_when_buildkit_is_built_in() -> None:
    versions = ((22, 9), (23,), (23, 0))
    assert [CommandLine(path="", version=version).has_buildkit for version in versions] == [True, False, False]
    assert CommandLine(path="", version=(23,), has_buildx=True).has_buildkit


SERVICE = Subject(
    service="web",
    image=None,
    dockerfile=Path("/my app/Dockerfile"),
    context=Path("/my app"),
    build_arguments={"A": "b c"},
)


@pytest.mark.parametrize(
    ("compose", "docker", "refused"),
    [
        (Compose(words=("docker", "compose")), None, ""),
        (Compose(words=("docker-compose",), is_version_1=True), OLD, ""),
        (
            None,
            OLD,
            "docker compose is not installed: install docker-compose-plugin (Ubuntu: docker-compose-v2)",
        ),
        (
            Compose(words=("docker-compose",), is_version_1=True),
            None,
            "docker-compose needs the docker command to build, but none is here",
        ),
    ],
)
def test_a_service_needs_compose(
    compose: Compose | None, docker: CommandLine | None, refused: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choice, "find_compose", lambda found, environ: compose)
    if not refused:
        assert choice._compose_of(SERVICE, (), docker, "none is here", {}) is compose
        return
    with pytest.raises(UsageError) as failed:
        choice._compose_of(SERVICE, (), docker, "none is here", {})
    alone = "gpudoctor rebuild --dockerfile '/my app/Dockerfile' --context '/my app' --build-arg 'A=b c'"
    assert str(failed.value) == f"{refused}. To build the image without compose: {alone}"


@pytest.mark.parametrize("is_podman", [False, True])
@pytest.mark.parametrize("docker", [None, NEW_WITH_BUILDX])
@pytest.mark.parametrize("is_version_1", [None, False, True])
@pytest.mark.parametrize("is_there", [False, True])
def test_who_builds(
    is_podman: bool,
    docker: CommandLine | None,
    is_version_1: bool | None,
    is_there: bool,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    if is_version_1 and docker is None:
        return
    (tmp_path / "compose.yaml").write_text("name: shop\nservices: {db: {image: db}, web: {build: .}}\n")
    subject = replace(SERVICE, image="app:1", service=None if is_version_1 is None else "web")
    compose = Compose(words=("docker", "compose"), is_version_1=bool(is_version_1))
    monkeypatch.setattr(choice, "find_docker", lambda environ: () if docker is None else (docker,))
    monkeypatch.setattr(choice, "find_compose", lambda found, environ: compose)
    monkeypatch.setattr(choice, "is_podman", lambda api: is_podman)
    monkeypatch.setattr(choice, "inspect_image", lambda api, image: {} if is_there else None)
    monkeypatch.setattr(choice, "read_project", partial(read_project, command_seconds=0))
    api: Any = SimpleNamespace()
    found = choice.choose_builder(api, subject, True, {"directory": str(tmp_path)}, {})
    note = "" if docker else "no docker command found: building with the engine's API"
    chosen = None if docker is None else (docker, not is_podman)
    assert (None if found.docker is None else (found.docker.docker, found.docker.buildkit)) == chosen
    if is_version_1 is None:
        assert (found.note, found.subject) == (note, subject)
        kind = EngineBuilder if docker is None else DockerBuilder
        assert isinstance(found.builder, kind)
        assert found.builder.buildkit is not is_podman
        return
    assert found.note == ""
    image = "app:1" if is_there else "shop_web" if is_version_1 else "shop-web"
    assert found.subject == replace(subject, image=image)
    assert isinstance(found.builder, ComposeBuilder)
    builder = found.builder
    assert (builder.service, builder.docker, builder.buildkit, builder.path) == ("web", docker, not is_podman, "")


def stand_in(path: Path, version: str, plugins: str) -> None:
    """Write a program that answers as docker does, with these plugins."""
    path.parent.mkdir()
    path.write_text(f'#!/bin/sh\ncase "$1" in --version) echo "{version}";; {plugins}) echo fine;; *) exit 1;; esac\n')
    path.chmod(0o755)


def test_each_docker_on_path_is_asked(tmp_path: Path) -> None:
    stand_in(tmp_path / "a" / "docker", "Docker version 28.2.2, build e6534b4", "none")
    stand_in(tmp_path / "b" / "docker", "Docker version 27.0.1, build x", "buildx|compose")
    stand_in(tmp_path / "c" / "docker", "podman version 4.3.1", "buildx")
    environ = {"PATH": f"{tmp_path}/a:{tmp_path}/none:{tmp_path}/b:{tmp_path}/c:{tmp_path}/a"}
    found = find_docker(environ)
    assert found == (
        CommandLine(path=f"{tmp_path}/a/docker", version=(28, 2)),
        CommandLine(path=f"{tmp_path}/b/docker", version=(27, 0), has_buildx=True),
    ), "the third one is Podman"
    assert find_compose(found, environ) == Compose(words=(f"{tmp_path}/b/docker", "compose"))
    assert find_compose(found[:1], environ) is None


@pytest.mark.parametrize(("version", "is_version_1"), [("1.29.2", True), ("2.26.1", False)])
def test_docker_compose_is_a_program_of_its_own(version: str, is_version_1: bool, tmp_path: Path) -> None:
    program = tmp_path / "bin" / "docker-compose"
    stand_in(program, "", "none")
    program.write_text(f"#!/bin/sh\necho {version}\n")
    environ = {"PATH": f"{tmp_path}/bin:/bin"}
    assert find_compose((), environ) == Compose(words=(str(program),), is_version_1=is_version_1)


@pytest.mark.parametrize(
    ("answers", "docker", "compose"),
    [
        pytest.param({}, None, None, id="no answer"),
        pytest.param({"docker --version": "podman version 5.4.0"}, None, None, id="podman under docker's name"),
        pytest.param(
            {"docker --version": "Docker version 20.10.24+dfsg1, build 297e128"}, (20, 10, False), None, id="old"
        ),
        pytest.param(
            {
                "docker --version": "Docker version 28.2.2",
                "docker buildx version": "v0.24",
                "docker compose version": "2",
            },
            (28, 2, True),
            ("/bin/docker", "compose"),
            id="with both plugins",
        ),
        pytest.param(
            {"docker --version": "Docker version 28.2.2", "docker-compose version --short": "1.29.2"},
            (28, 2, False),
            ("/bin/docker-compose", "1"),
            id="compose of version 1",
        ),
        pytest.param(
            {"docker-compose version --short": "2.1.0"}, None, ("/bin/docker-compose",), id="compose of version 2 alone"
        ),
    ],
)
def test_what_is_asked(
    answers: dict[str, str],
    docker: tuple[int, int, bool] | None,
    compose: tuple[str, ...] | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def answer(arguments: tuple[str, ...], _: object) -> str | None:
        return answers.get(" ".join((arguments[0].removeprefix("/bin/"), *arguments[1:])))

    monkeypatch.setattr(command_line, "_answer", answer)
    monkeypatch.setattr(
        "shutil.which", lambda name, path=None: f"/bin/{name}" if any(name in asked for asked in answers) else None
    )
    found = find_docker({"PATH": "/bin"})
    assert [(*item.version, item.has_buildx) for item in found] == ([docker] if docker else [])
    taken = find_compose(found, {"PATH": "/bin"})
    assert (taken and (*taken.words, *(["1"] if taken.is_version_1 else []))) == compose


@pytest.mark.parametrize(
    ("script", "answer"),
    [
        ("echo 28.2.0", "28.2.0\n"),
        ("printf 'v\\377'", "v\ufffd"),
        ("echo 28.2.0; exit 1", None),
        ("exec sleep 1000", None),
        (None, None),
    ],
)
def test_what_a_command_answers(
    script: str | None, answer: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command_line, "ASK_SECONDS", 0.3 if script and "sleep" in script else 60.0)
    program = tmp_path / "docker"
    if script is not None:
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
    assert command_line._answer((str(program), "version"), {"PATH": "/usr/bin:/bin"}) == answer
