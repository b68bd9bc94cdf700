"""Where the docker command line finds its engine: DOCKER_HOST, docker contexts, and the sockets that are looked for."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest

from gpudoctor.containers.engines import endpoint
from gpudoctor.containers.engines.endpoint import Endpoint, find_endpoint, sockets

DOCKER = shutil.which("docker")
SOCKET = "unix:///run/one.sock"
TCP = "tcp://gpu-box:2376"


class Contexts:
    """A folder of docker's configuration."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def create(self, name: str, host: str, *, skips_verifying: bool = False) -> Path:
        """Write a context as `docker context create` does, and return the folder for its certificates."""
        endpoint = {"Host": host, "SkipTLSVerify": skips_verifying}
        self.write(name, json.dumps({"Name": name, "Metadata": {}, "Endpoints": {"docker": endpoint}}))
        return self.folder / "contexts" / "tls" / self.key(name) / "docker"

    def write(self, name: str, meta: str) -> None:
        """Write the file of a context."""
        folder = self.folder / "contexts" / "meta" / self.key(name)
        folder.mkdir(parents=True)
        (folder / "meta.json").write_text(meta)

    def use(self, name: Any) -> None:
        """Make it the current one."""
        (self.folder / "config.json").write_text(json.dumps({"currentContext": name}))

    def key(self, name: str) -> str:
        """Return the name of its folders."""
        return hashlib.sha256(name.encode()).hexdigest()

    def find(self, **environ: str) -> Endpoint:
        """Return what is found with these variables."""
        return find_endpoint({"DOCKER_CONFIG": str(self.folder), "XDG_RUNTIME_DIR": str(self.folder), **environ})


@pytest.fixture
def contexts(tmp_path: Path) -> Contexts:
    """Return a configuration with the contexts `one` and `two`, of which `one` is in use."""
    found = Contexts(tmp_path)
    found.create("one", SOCKET)
    found.create("two", "unix:///run/two.sock")
    found.use("one")
    return found


@pytest.mark.parametrize(
    ("environ", "address", "origin"),
    [
        pytest.param({"DOCKER_HOST": TCP, "DOCKER_CONTEXT": "two"}, TCP, "DOCKER_HOST", id="DOCKER_HOST first"),
        pytest.param({"DOCKER_CONTEXT": "two"}, "unix:///run/two.sock", "docker context two", id="then DOCKER_CONTEXT"),
        pytest.param({}, SOCKET, "docker context one", id="then the current context"),
        pytest.param({"DOCKER_HOST": "", "DOCKER_CONTEXT": ""}, SOCKET, "docker context one", id="empty is not set"),
    ],
)
def test_the_order_is_that_of_the_command_line(
    environ: dict[str, str], address: str, origin: str, contexts: Contexts
) -> None:
    found = contexts.find(**environ)
    assert (found.address, found.origin) == (address, origin)


@pytest.mark.skipif(DOCKER is None, reason="no docker command line")
def test_contexts_that_docker_makes_are_read(tmp_path: Path) -> None:
    def docker(*arguments: str) -> None:
        environ = {"PATH": os.environ["PATH"], "DOCKER_CONFIG": str(tmp_path)}
        subprocess.run([str(DOCKER), "context", *arguments], env=environ, check=True, capture_output=True)

    docker("create", "here", "--docker", f"host={SOCKET}")
    docker("create", "there", "--docker", f"host={TCP}")
    docker("use", "there")
    assert Contexts(tmp_path).find().address == TCP
    assert Contexts(tmp_path).find(DOCKER_CONTEXT="here").address == SOCKET


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        pytest.param("DOCKER_CONTEXT", "unset DOCKER_CONTEXT", id="named by the variable"),
        pytest.param("", "docker context use default", id="in use"),
    ],
)
def test_a_context_that_is_gone_is_named(name: str, advice: str, contexts: Contexts) -> None:
    contexts.use("gone")
    with pytest.raises(ValueError, match=f"there is no docker context 'gone': {advice}"):
        contexts.find(**({name: "gone"} if name else {}))


@pytest.mark.parametrize(
    "meta",
    [
        pytest.param("{", id="no JSON"),
        pytest.param("[]", id="a list"),
        pytest.param('{"Endpoints": {"kubernetes": {}}}', id="no endpoint of docker"),
        pytest.param('{"Endpoints": {"docker": 1}}', id="a number"),
        pytest.param("[" * 100_000, id="endless"),
        pytest.param('{"Endpoints": []}', id="a list of endpoints"),
        pytest.param(None, id="a folder"),
    ],
)
def test_a_context_that_cannot_be_read_is_named(meta: str | None, contexts: Contexts) -> None:
    if meta is None:
        (contexts.folder / "contexts" / "meta" / contexts.key("broken") / "meta.json").mkdir(parents=True)
    else:
        contexts.write("broken", meta)
    with pytest.raises(ValueError, match=r"the docker context 'broken' cannot be read \(.*meta.json\)"):
        contexts.find(DOCKER_CONTEXT="broken")


@pytest.mark.parametrize("text", ["{", "[]", '{"currentContext": 5}', "{}"])
def test_a_configuration_without_a_context_leads_to_the_socket(text: str, contexts: Contexts) -> None:
    (contexts.folder / "config.json").write_text(text)
    assert contexts.find(DOCKER_CONTEXT="default") == contexts.find()
    assert contexts.find().address.endswith(".sock")


def test_a_name_leads_nowhere_else(contexts: Contexts) -> None:
    with pytest.raises(ValueError, match="there is no docker context"):
        contexts.find(DOCKER_CONTEXT="../../etc")


@pytest.mark.parametrize(
    ("environ", "certificates", "is_verified"),
    [
        pytest.param({}, None, True, id="without"),
        pytest.param({"DOCKER_TLS_VERIFY": "1", "DOCKER_CERT_PATH": "/c"}, "/c", True, id="verified"),
        pytest.param({"DOCKER_TLS_VERIFY": "0", "DOCKER_CERT_PATH": "/c"}, "/c", True, id="any value switches it on"),
        pytest.param({"DOCKER_TLS": "1", "DOCKER_CERT_PATH": "/c"}, "/c", False, id="not verified"),
        pytest.param({"DOCKER_TLS_VERIFY": "", "DOCKER_CERT_PATH": "/c"}, None, True, id="empty is off"),
    ],
)
def test_tls_is_that_of_the_command_line(
    environ: dict[str, str], certificates: str | None, is_verified: bool, contexts: Contexts
) -> None:
    found = contexts.find(DOCKER_HOST=TCP, **environ)
    assert (found.certificates, found.is_verified) == (certificates, is_verified)


@pytest.mark.parametrize(
    ("host", "is_remote"), [(SOCKET, False), ("npipe:////./pipe/docker_engine", False), (TCP, True)]
)
def test_only_an_engine_elsewhere_takes_certificates(host: str, is_remote: bool, contexts: Contexts) -> None:
    folder = contexts.create("here", host)
    folder.mkdir(parents=True)
    assert contexts.find(DOCKER_CONTEXT="here").certificates == (str(folder) if is_remote else None)


def test_certificates_stand_next_to_the_configuration_by_default(contexts: Contexts) -> None:
    assert contexts.find(DOCKER_HOST=TCP, DOCKER_TLS_VERIFY="1").certificates == str(contexts.folder)


def test_a_context_brings_its_certificates(contexts: Contexts) -> None:
    folder = contexts.create("safe", TCP)
    folder.mkdir(parents=True)
    contexts.create("plain", TCP)
    contexts.create("careless", TCP, skips_verifying=True)
    assert contexts.find(DOCKER_CONTEXT="safe").certificates == str(folder)
    assert contexts.find(DOCKER_CONTEXT="plain").certificates is None
    assert not contexts.find(DOCKER_CONTEXT="careless").is_verified


@pytest.mark.parametrize("variable", [{}, {"DOCKER_HOST": TCP}])
def test_commands_find_it_by_themselves(variable: dict[str, str], contexts: Contexts) -> None:
    assert contexts.find(**variable).environment == {}


def test_old_docker_compose_gets_the_context(contexts: Contexts) -> None:
    """docker-compose 1.29 reads the current context, and no DOCKER_CONTEXT."""
    folder = contexts.create("safe", TCP)
    folder.mkdir(parents=True)
    assert contexts.find(DOCKER_CONTEXT="safe").environment == {
        "DOCKER_HOST": TCP,
        "DOCKER_TLS_VERIFY": "1",
        "DOCKER_CERT_PATH": str(folder),
    }


def test_podman_is_found_if_docker_is_not(tmp_path: Path, contexts: Contexts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint, "DOCKER_SOCKET", str(tmp_path / "docker.sock"))
    monkeypatch.setattr(endpoint, "PODMAN_SOCKET", str(tmp_path / "none.sock"))
    contexts.use("default")
    assert contexts.find().origin == "the default socket", "none is there: that one is reported as missing"
    podman = tmp_path / "podman" / "podman.sock"
    podman.parent.mkdir()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(podman))
    found = contexts.find()
    assert (found.address, found.origin) == (f"unix://{podman}", f"no {tmp_path}/docker.sock, but {podman}")
    assert found.environment == {"DOCKER_HOST": f"unix://{podman}"}, "docker would not look there"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "docker.sock"))
    assert contexts.find().address == f"unix://{tmp_path}/docker.sock"


@pytest.mark.parametrize(
    ("user", "first"), [(0, "/run/podman/podman.sock"), (1000, "/run/user/1000/podman/podman.sock")]
)
def test_a_users_own_podman_comes_first(user: int, first: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: user)
    assert sockets({})[2] == first
