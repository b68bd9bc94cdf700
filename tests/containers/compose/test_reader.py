"""Compose projects, read by the project's own reader, and by a command line that stands in for the user's."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from gpudoctor.containers.compose.project import Build, Project, Service
from gpudoctor.containers.compose.reader import read_project
from gpudoctor.model import GpuRequest

Read = Callable[..., Project]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "demo"
    folder.mkdir()
    return folder


@pytest.fixture
def read(folder: Path) -> Read:
    """Return a function that reads a project: the text of compose.yaml, and of other files by their name."""

    def read(text: str, *, environ: Mapping[str, str] | None = None, **others: str) -> Project:
        (folder / "compose.yaml").write_text(text)
        for name, content in others.items():
            (folder / f"{name}.yaml").write_text(content)
        return read_project(folder, environ or {}, 0)

    return read


def only(project: Project) -> Service:
    (service,) = project.services
    return service


def build_of(service: Service) -> Build:
    assert service.build is not None
    return service.build


def override(text: str, over: str, read: Read, folder: Path) -> Service:
    (folder / "compose.override.yaml").write_text(over)
    return only(read(text))


def test_project(read: Read, folder: Path) -> None:
    project = read("services: {a: {image: x}}")
    assert (project.name, project.directory) == ("demo", str(folder))
    assert (project.files, project.read_by) == ((str(folder / "compose.yaml"),), "gpudoctor")


@pytest.mark.parametrize(
    ("top", "environ", "name"),
    [
        pytest.param("name: own", {}, "own", id="in the file"),
        pytest.param("name: own-${X:-y}", {}, "own-y", id="with a variable"),
        pytest.param("name: own", {"COMPOSE_PROJECT_NAME": "Set.1"}, "set1", id="the environment wins"),
    ],
)
def test_name(top: str, environ: dict[str, str], name: str, read: Read) -> None:
    project = read(f'{top}\nservices: {{a: {{image: "x:${{COMPOSE_PROJECT_NAME}}"}}}}', environ=environ)
    assert (project.name, only(project).image) == (name, f"x:{name}")


@pytest.mark.parametrize(
    ("service", "image", "images"),
    [
        pytest.param("{image: x}", "x", ("x",), id="from a registry"),
        pytest.param("{image: x, build: .}", "x", ("x",), id="built under a name"),
        pytest.param("{build: .}", None, ("demo-web", "demo_web"), id="built: what v2 and v1 call it"),
    ],
)
def test_images(service: str, image: str | None, images: tuple[str, ...], read: Read) -> None:
    found = only(read(f"services: {{web: {service}}}"))
    assert (found.image, found.images) == (image, images)


def test_build_of_version_2(read: Read, folder: Path) -> None:
    service = only(
        read("""
services:
  a:
    build:
      dockerfile_inline: |
        FROM scratch
      additional_contexts: [common=../common, base=docker-image://alpine, other=service:b]
      ssh: [default]
      secrets: [token]
      args: {DEBUG: true, PYTHON: 3.10, WORD: yes}
""")
    )
    assert service.build == Build(
        context=str(folder),
        dockerfile="",
        dockerfile_inline="FROM scratch\n",
        args={"DEBUG": "true", "PYTHON": "3.1", "WORD": "yes"},
        additional_contexts={
            "common": str(folder.parent / "common"),
            "base": "docker-image://alpine",
            "other": "service:b",
        },
    )


@pytest.mark.parametrize(
    ("build", "dockerfile"),
    [
        pytest.param("app", "{folder}/app/Dockerfile", id="in the context"),
        pytest.param("{context: app, dockerfile: d/F}", "{folder}/app/d/F", id="relative to the context"),
        pytest.param("{context: app, dockerfile: ../F}", "{folder}/F", id="outside the context"),
        pytest.param("{context: app, dockerfile: /F}", "/F", id="absolute"),
        pytest.param('{context: "git@host:x.git", dockerfile: d/F}', "d/F", id="remote context"),
    ],
)
def test_dockerfile(build: str, dockerfile: str, read: Read, folder: Path) -> None:
    found = build_of(only(read(f"services: {{a: {{build: {build}}}}}")))
    assert found.dockerfile == dockerfile.format(folder=folder)


def test_a_value_that_only_the_environment_can_give(read: Read) -> None:
    text = "services: {a: {build: {context: ., args: [HAS, HAS_NOT]}, environment: [HAS, HAS_NOT]}}"
    service = only(read(text, environ={"HAS": "x"}))
    assert build_of(service).args == {"HAS": "x"}
    assert service.environment == {"HAS": "x", "HAS_NOT": None}


@pytest.mark.parametrize(
    ("gpus", "request_"),
    [
        pytest.param("all", GpuRequest(count=-1, capabilities=("gpu",)), id="all"),
        pytest.param("[{driver: cdi}]", GpuRequest(driver="cdi", count=-1, capabilities=("gpu",)), id="a driver"),
        pytest.param(
            "[{device_ids: ['0'], capabilities: [utility]}]",
            GpuRequest(device_ids=("0",), capabilities=("utility",)),
            id="devices",
        ),
    ],
)
def test_gpus(gpus: str, request_: GpuRequest, read: Read) -> None:
    assert only(read(f"services: {{a: {{image: x, gpus: {gpus}}}}}")).gpu_requests == (request_,)


@pytest.mark.parametrize(
    ("volume", "target"),
    [
        pytest.param("/y", "/y", id="anonymous"),
        pytest.param("./x:/y", "/y", id="bind"),
        pytest.param(r"'C:\x:/y:ro'", "/y", id="Windows drive"),
        pytest.param("'c:/x:/y'", "/y", id="Windows drive, slashes"),
        pytest.param("'one:/y/:z,ro'", "/y", id="several modes"),
        pytest.param("d:/y", "/y", id="a volume of one letter"),
        pytest.param("'d:/y:ro'", "/y", id="and a mode"),
        pytest.param("{type: tmpfs, target: /y/}", "/y", id="long form"),
    ],
)
def test_mount(volume: str, target: str, read: Read) -> None:
    assert only(read(f"services: {{s: {{image: x, volumes: [{volume}], tmpfs: '/t/:size=1g'}}}}")).mount_targets == (
        target,
        "/t",
    )


@pytest.mark.parametrize(
    ("device", "source"),
    [
        pytest.param("/dev/a", "/dev/a", id="the same path"),
        pytest.param("/dev/a:/dev/b:r", "/dev/a", id="all three"),
        pytest.param("{source: /dev/a, target: /dev/b, permissions: rwm}", "/dev/a", id="long form"),
        pytest.param("nvidia.com/gpu=all", "nvidia.com/gpu=all", id="CDI"),
    ],
)
def test_device(device: str, source: str, read: Read) -> None:
    assert only(read(f"services: {{a: {{image: x, devices: [{device}]}}}}")).devices == (source,)


@pytest.mark.parametrize(("limit", "memlock"), [("-1", -1), ("'64'", 64), ("{soft: 1, hard: 2}", 1)])
def test_memlock(limit: str, memlock: int, read: Read) -> None:
    assert only(read(f"services: {{a: {{image: x, ulimits: {{memlock: {limit}}}}}}}")).memlock == memlock


@pytest.mark.parametrize(
    ("size", "size_bytes"),
    [
        ("64", 64),
        ("64b", 64),
        ("2k", 2048),
        ("'1.5gb'", 3 << 29),
        ("16G", 16 << 30),
        ("1GiB", 1 << 30),
        ("1 mb", 1 << 20),
    ],
)
def test_shm_size(size: str, size_bytes: int, read: Read) -> None:
    assert only(read(f"services: {{a: {{image: x, shm_size: {size}}}}}")).shm_size_bytes == size_bytes


def test_profiles(read: Read) -> None:
    text = "services: {a: {image: x}, b: {image: x, profiles: [gpu]}, c: {image: x, profiles: [test, dev]}}"
    for active, started in (("", "a"), ("gpu", "ab"), ("gpu,dev", "abc"), ("*", "abc")):
        project = read(text, environ={"COMPOSE_PROFILES": active})
        assert "".join(service.name for service in project.services if project.starts(service)) == started


def test_an_optional_file_of_variables_may_be_missing(read: Read) -> None:
    text = "services: {a: {image: x, env_file: [{path: no.env, required: false}], environment: {A: 1}}}"
    assert only(read(text)).environment == {"A": "1"}


def test_an_override_is_laid_over(read: Read, folder: Path) -> None:
    base = """
services:
  a:
    build: {context: app, target: one, args: [A=1, B=2]}
    environment: {A: base, B: base, GONE: base}
    volumes: ['./a:/a']
    devices: ['/dev/a', '/dev/b']
    ulimits: {memlock: -1}
    profiles: [one]
    deploy: {resources: {reservations: {devices: [{driver: nvidia, count: 1, capabilities: [gpu]}]}}}
"""
    over = """
services:
  a:
    build: {target: two, args: {B: 3}}
    environment: [B=over, GONE]
    volumes: ['./b:/a', 'c:/c']
    devices: ['/dev/c:/dev/b']
    ulimits: {nofile: 10}
    profiles: [two, one]
    deploy: {resources: {reservations: {devices: [{driver: nvidia, count: 2, capabilities: [gpu]}]}}}
"""
    service = override(base, over, read, folder)
    build = build_of(service)
    assert (build.context, build.target, build.args) == (str(folder / "app"), "two", {"A": "1", "B": "3"})
    assert service.environment == {"A": "base", "B": "over", "GONE": None}
    assert (service.mount_targets, service.devices) == (("/a", "/c"), ("/dev/a", "/dev/c"))
    assert (service.profiles, service.memlock) == (("one", "two"), -1)
    assert [request.count for request in service.gpu_requests] == [1, 2]


def test_nothing_in_an_override_changes_nothing(read: Read, folder: Path) -> None:
    service = override("services: {a: {image: x, shm_size: 1g}}", "services: {a: {image: , shm_size: }}", read, folder)
    assert (service.image, service.shm_size_bytes) == ("x", 1 << 30)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("include: [x.yaml]\n", r"`include` needs", id="include"),
        pytest.param("a:\n  image: x\n", r"it has no services", id="the format of version 1"),
        pytest.param("", r"it has no services", id="empty"),
        pytest.param("- a\n", r"a mapping is expected", id="a list"),
        pytest.param("name: Bad Name\nservices: {a: {image: x}}\n", r"'Bad Name' is not a project name", id="name"),
        pytest.param("services:\n  a:\n    image: ${X:?say it}\n", r"a: .*X is required: say it", id="required"),
        pytest.param("services:\n  a:\n    command: echo $(pwd)\n", r"a: '\$\(pwd\)' is not a variable", id="dollar"),
        pytest.param("services:\n  a:\n    build: [x]\n", r"a: build: a mapping is expected", id="build"),
        pytest.param("services:\n  a:\n    volumes: ['a:b:c:d']\n", r"a: volumes: 'a:b:c:d' is not", id="volume"),
        pytest.param("services:\n  a:\n    volumes: [{type: bind}]\n", r"a: volumes: .*`target`", id="no target"),
        pytest.param("services:\n  a:\n    shm_size: big\n", r"a: shm_size: 'big' is not a size", id="size"),
        pytest.param("services:\n  a:\n    privileged: perhaps\n", r"a: privileged: true or false", id="boolean"),
        pytest.param("services:\n  a:\n    ulimits: {memlock: {hard: 1}}\n", r"a: ulimits: .*number", id="ulimit"),
        pytest.param("services:\n  a:\n    gpus: [{count: x}]\n", r"a: gpus: 'x' is not a whole number", id="count"),
        pytest.param("services:\n  a:\n    env_file: [{path: x, format: raw}]\n", r"a: .*`format`", id="env format"),
        pytest.param("services:\n  a:\n    extends: b\n", r"a: `extends` needs `docker compose`", id="extends"),
        pytest.param("services:\n  a:\n    build: !reset null\n", r"line 3: the tag '!reset' is not", id="tag"),
    ],
)
def test_what_is_not_understood_names_file_and_place(text: str, message: str, read: Read) -> None:
    with pytest.raises(ValueError, match=r"compose\.yaml: " + message):
        read(text)


def test_a_file_of_variables_that_is_not_there(read: Read) -> None:
    with pytest.raises(ValueError, match=r"env_file: there is no file .*no\.env"):
        read("services: {a: {image: x, env_file: no.env}}")


ANSWER = {
    "name": "asked",
    "services": {
        "web": {
            "build": {"context": "/src", "dockerfile": "Dockerfile", "args": {"A": "1", "UNSET": None}},
            "command": ["echo", "$$HOME"],
            "entrypoint": None,
            "environment": {"E": None, "F": "$$HOME"},
            "gpus": [{"count": -1}],
            "shm_size": "8589934592",
            "volumes": [{"type": "volume", "source": "data", "target": "/data", "volume": {}}],
            "profiles": ["gpu"],
        }
    },
    "volumes": {"data": {"name": "asked_data"}},
}
"""As `docker compose config --format json` of version 2 answers."""


def stand_in(folder: Path, name: str, script: str) -> dict[str, str]:
    """Put a program into a folder of its own; return the environment in which it is found."""
    program = folder / "bin" / name
    program.parent.mkdir(exist_ok=True)
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return {"PATH": str(program.parent)}


def test_the_command_line_is_asked_first(folder: Path) -> None:
    (folder / "compose.yaml").write_text("services: {web: {build: ., image: not-asked}}")
    script = f"/bin/cat <<'EOF'\n{json.dumps(ANSWER)}\nEOF\necho \"$@ $COMPOSE_PROFILES\" > {folder}/arguments"
    project = read_project(folder, stand_in(folder, "docker", script), 20)
    assert (project.read_by, project.name) == ("docker compose", "asked")
    assert only(project) == Service(
        name="web",
        images=("asked-web", "asked_web"),
        build=Build(context="/src", dockerfile="/src/Dockerfile", args={"A": "1"}),
        mount_targets=("/data",),
        environment={"E": None, "F": "$HOME"},
        profiles=("gpu",),
        gpu_requests=(GpuRequest(count=-1, capabilities=("gpu",)),),
        shm_size_bytes=8 << 30,
    )
    assert (folder / "arguments").read_text().split() == [
        *("compose", "--project-directory", str(folder), "-f", str(folder / "compose.yaml")),
        *("config", "--format", "json"),
        "*",  # all profiles
    ]


@pytest.mark.parametrize(
    "script",
    [
        pytest.param("exit 1", id="it fails"),
        pytest.param("exec /bin/sleep 60", id="it takes too long"),
        pytest.param("/bin/sleep 60 & wait", id="what it started takes too long"),
        pytest.param("echo '['", id="it answers no YAML"),
        pytest.param("exec /usr/bin/head -c 300000 /dev/zero", id="it answers too much"),
    ],
)
def test_without_an_answer_the_project_is_read_here(script: str, folder: Path) -> None:
    (folder / "compose.yaml").write_text("services: {web: {image: x}}")
    project = read_project(folder, stand_in(folder, "docker-compose", script), 0.5)
    assert (project.read_by, only(project).image) == ("gpudoctor", "x")
