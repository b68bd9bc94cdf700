"""Which engine is asked, and why none can be: each reason in one line, with what to do about it."""

from __future__ import annotations

import gc
import os
import shutil
import ssl
import subprocess
import time
import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from docker.errors import APIError, DockerException
from requests import RequestException, Timeout

from gpudoctor.containers.engines import connection as engine
from gpudoctor.containers.engines.connection import EngineUnavailable, connect, is_podman
from gpudoctor.containers.engines.endpoint import Endpoint
from gpudoctor.containers.requested import look_at
from gpudoctor.containers.setups import look_at_setups
from tests.containers.engine_stand_ins import DOCKER, PODMAN, make_authority, on_socket, on_tcp, ping, server_tls

HTTPS_SERVER = ping("400 Bad Request", "Client sent an HTTP request to an HTTPS server.\n")


def reason(environ: Mapping[str, str]) -> str:
    """Return why no engine can be asked."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # docker-py forgets a socket that it could not connect
        with pytest.raises(EngineUnavailable) as caught:
            connect(environ)
        gc.collect()
    return str(caught.value)


@pytest.mark.parametrize(("version", "is_too_old"), [("1.23", True), ("1.24", False), ("2.0", False)])
def test_the_oldest_api(version: str, is_too_old: bool, tmp_path: Path) -> None:
    with on_socket(tmp_path / "s", ping(Api_Version=version)) as address:
        if is_too_old:
            assert f"is too old: its API is {version}; update Docker" in reason({"DOCKER_HOST": address})
        else:
            client = connect({"DOCKER_HOST": address})
            assert client.api.api_version == version
            client.close()


@pytest.mark.parametrize(("answer", "podman"), [(DOCKER, False), (PODMAN, True)])
def test_a_ping_shows_the_engine_and_its_version(answer: bytes, podman: bool, tmp_path: Path) -> None:
    with on_socket(tmp_path / "s", answer) as address:
        client = connect({"DOCKER_HOST": address})
        assert client.api.api_version == "1.41"
        assert is_podman(client.api) is podman
        client.close()


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        pytest.param(ping(Api_Version="1.20"), "is too old: its API is 1.20; update Docker", id="too old"),
        pytest.param(ping(), "is not Docker or Podman, or is older than Docker 1.13", id="a web server"),
        pytest.param(ping(Api_Version="9" * 500), "is not Docker or Podman", id="an absurd version"),
        pytest.param(ping("403 Forbidden", "denied by a plugin", Api_Version="1.41"), "403 denied by a", id="refused"),
        pytest.param(HTTPS_SERVER, "needs TLS: set DOCKER_TLS_VERIFY=1 and DOCKER_CERT_PATH", id="it requires TLS"),
        pytest.param(b"\x1b[31mgarbage\r\n\r\n", "cannot be reached:  [31mgarbage", id="garbage, made harmless"),
        pytest.param(b"", "closed connection without response", id="nothing"),
        pytest.param(ping(body="x" * (8 << 20)), "is not Docker or Podman", id="a flood that is not read"),
    ],
)
def test_what_answers_is_no_engine_to_ask(answer: bytes, why: str, tmp_path: Path) -> None:
    with on_socket(tmp_path / "s", answer) as address:
        told = reason({"DOCKER_HOST": address})
    assert why in told
    assert address in told
    assert told.isprintable()


def test_one_that_never_answers_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "FIRST_ANSWER_SECONDS", 1.0)
    with on_socket(tmp_path / "s", None) as address:
        start = time.monotonic()
        told = reason({"DOCKER_HOST": address})
        seconds = time.monotonic() - start
    assert "does not answer in time: wait if its machine is busy, or restart it there" in told
    assert seconds < 60  # an answer would never come


@pytest.mark.parametrize(
    ("address", "why"),
    [
        pytest.param("unix:///nonexistent/docker.sock", "does not exist", id="no socket"),
        pytest.param(
            "tcp://127.0.0.1:1", "no container engine answers at tcp://127.0.0.1:1 (DOCKER_HOST)", id="no listener"
        ),
        pytest.param("tcp://127.0.0.1", "port is required", id="no port"),
        pytest.param("gopher://x", "Invalid bind address protocol: gopher://x", id="no such scheme"),
        pytest.param(
            "ssh://me@box:2222",
            "ssh -fnNT -L /tmp/docker.sock:/var/run/docker.sock -p 2222 me@box, then DOCKER_HOST=unix:///tmp/docker.sock",
            id="ssh",
        ),
        pytest.param("ssh://a;b@box", "'a;b@box'", id="ssh, quoted"),
    ],
)
def test_an_address_that_leads_nowhere(address: str, why: str) -> None:
    assert why in reason({"DOCKER_HOST": address})


def test_a_context_that_is_gone_is_reported(tmp_path: Path) -> None:
    told = reason({"DOCKER_CONFIG": str(tmp_path), "DOCKER_CONTEXT": "gone"})
    assert told.startswith("there is no docker context 'gone': unset DOCKER_CONTEXT")


@pytest.mark.parametrize(
    ("name", "fix"),
    [("docker.sock", "sudo usermod -aG docker $USER"), ("podman.sock", "start your own socket: systemctl")],
)
def test_no_rights_on_the_socket(name: str, fix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root has every right, so the refusal is made by hand."""

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("socket.socket.connect", refuse)
    told = reason({"DOCKER_HOST": f"unix://{tmp_path}/{name}"})
    assert told.startswith(f"this user has no permission to use unix://{tmp_path}/{name} (DOCKER_HOST): {fix}")


def test_if_only_podman_is_installed_its_socket_is_advised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DOCKER_SOCKET", "PODMAN_SOCKET"):
        monkeypatch.setattr(f"gpudoctor.containers.engines.endpoint.{name}", str(tmp_path / "none"))
    monkeypatch.setattr(engine, "_DEFAULT", f"unix://{tmp_path}/none")
    (tmp_path / "podman").write_text("#!/bin/sh\n")
    (tmp_path / "podman").chmod(0o755)
    here = str(tmp_path)
    told = reason({"PATH": here, "XDG_RUNTIME_DIR": here, "DOCKER_CONFIG": here})
    assert told.endswith("enable --now podman.socket")


@pytest.mark.parametrize("look", [look_at, look_at_setups])
def test_an_engine_that_breaks_off_later_is_reported(look: object, tmp_path: Path) -> None:
    (tmp_path / "compose.yaml").write_text("services: {web: {build: .}}")
    (tmp_path / "Dockerfile").write_text("FROM scratch\n")
    with on_socket(tmp_path / "s", DOCKER) as address:
        found = look({"directory": str(tmp_path)}, {"DOCKER_HOST": address})  # type: ignore[operator]
    assert found["unavailable"].startswith("the engine refuses, or its answer cannot be read: ")


@pytest.fixture(scope="module")
def authorities(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return the folders of certificates of two CAs, and of one CA without a client's certificate."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl to make certificates with")
    folder = tmp_path_factory.mktemp("tls")
    found = {name: make_authority(folder / name) for name in ("own", "other")}
    for name, beside in (("bare", ()), ("stranger", ("cert.pem", "key.pem")), ("empty", ())):
        found[name] = folder / name
        found[name].mkdir()
        for file in beside:
            shutil.copy(found["other"] / file, found[name])
        if name != "empty":
            shutil.copy(found["own"] / "ca.pem", found[name])
    return found


def with_tls(address: str, folder: Path) -> dict[str, str]:
    """Return the variables for an engine by TLS."""
    return {"DOCKER_HOST": address, "DOCKER_TLS_VERIFY": "1", "DOCKER_CERT_PATH": str(folder)}


def test_tls_as_the_variables_say(authorities: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(authorities["other"] / "ca.pem"))  # of no concern here
    with on_tcp(DOCKER, server_tls(authorities["own"])) as address:
        client = connect(with_tls(address, authorities["own"]))
        assert client.api.base_url == address.replace("tcp:", "https:")
        client.close()


def test_tls_without_verifying(authorities: dict[str, Path]) -> None:
    with on_tcp(DOCKER, server_tls(authorities["other"])) as address:
        environ = {"DOCKER_HOST": address, "DOCKER_TLS": "1", "DOCKER_CERT_PATH": str(authorities["other"])}
        connect(environ).close()


@pytest.mark.parametrize(
    ("folder", "why"),
    [
        pytest.param("other", "is not accepted (", id="wrong CA"),
        pytest.param("bare", "asks for a client certificate", id="no client certificate"),
        pytest.param("stranger", "does not accept this client's certificate", id="a client of another CA"),
        pytest.param("empty", "ca.pem: set DOCKER_CERT_PATH to the folder of ca.pem, cert.pem and key.pem", id="no CA"),
    ],
)
def test_tls_that_fails(folder: str, why: str, authorities: dict[str, Path]) -> None:
    with on_tcp(DOCKER, server_tls(authorities["own"])) as address:
        told = reason(with_tls(address, authorities[folder]))
    assert why in told
    assert str(authorities[folder]) in told, "the files to mend are named"


def test_tls_towards_an_engine_without(authorities: dict[str, Path]) -> None:
    with on_tcp(DOCKER, None) as address:
        assert "does not use TLS: unset DOCKER_TLS_VERIFY" in reason(with_tls(address, authorities["own"]))


@pytest.mark.skipif(shutil.which("docker") is None, reason="no docker command line")
def test_tls_by_a_context_that_docker_made(authorities: dict[str, Path], tmp_path: Path) -> None:
    environ = {"PATH": os.environ["PATH"], "DOCKER_CONFIG": str(tmp_path), "DOCKER_CONTEXT": "there"}
    files = ",".join(f"{name}={authorities['own']}/{name}.pem" for name in ("ca", "cert", "key"))
    with on_tcp(DOCKER, server_tls(authorities["own"])) as address:
        create = ["docker", "context", "create", "there", "--docker", f"host={address},{files}"]
        subprocess.run(create, env={**environ, "DOCKER_CONTEXT": ""}, check=True, capture_output=True)
        connect(environ).close()


def test_the_innermost_error_of_tls_is_explained() -> None:
    """TLS 1.3 tells of a refused certificate only when the answer is read, in an error within errors."""
    found = tuple(engine._causes(OSError("outer", OSError("middle", ssl.SSLError(1, "alert")))))
    assert isinstance(found[-1], ssl.SSLError)


@pytest.mark.parametrize("name", ["ca.pem", "cert.pem", "key.pem"])
def test_a_certificate_that_is_refused_to_this_user(
    name: str, authorities: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = str(authorities["own"] / name)
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: path != refused and access(path, mode))
    assert f"{refused} cannot be read by this user" in reason(with_tls("tcp://127.0.0.1:1", authorities["own"]))


@pytest.mark.parametrize("address", ["unix:///run/docker.sock", "npipe:////./pipe/docker_engine"])
def test_a_local_address_needs_no_certificate(address: str, tmp_path: Path) -> None:
    assert engine._tls(Endpoint(address=address, origin="DOCKER_HOST", certificates=str(tmp_path))) is None


@pytest.mark.parametrize("name", ["ca.pem", "cert.pem", "key.pem"])
def test_a_certificate_that_this_user_cannot_read(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for each in ("ca.pem", "cert.pem", "key.pem"):
        (tmp_path / each).touch()
    monkeypatch.setattr(os, "access", lambda path, mode: os.path.basename(path) != name)
    with pytest.raises(ValueError, match=f"{name} cannot be read by this user"):
        engine._tls(Endpoint(address="tcp://host:2376", origin="DOCKER_HOST", certificates=str(tmp_path)))


def test_without_its_ca_no_engine_is_verified(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="there is no .*ca.pem"):
        engine._tls(Endpoint(address="tcp://host:2376", origin="DOCKER_HOST", certificates=str(tmp_path)))


@pytest.mark.parametrize(
    ("docker", "podman", "variables", "address", "by_podman_alone"),
    [
        pytest.param(True, True, False, None, False, id="docker's own engine"),
        pytest.param(True, False, True, "unix:///x", False, id="another engine"),
        pytest.param(False, False, False, None, False, id="no command at all"),
        pytest.param(False, True, False, "unix:///x", True, id="Podman alone"),
        pytest.param(False, True, True, "unix:///x", True, id="Podman alone, at an address of its own"),
    ],
)
def test_how_a_shell_reaches_the_engine(
    docker: bool,
    podman: bool,
    variables: bool,
    address: str | None,
    by_podman_alone: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = Endpoint(address="unix:///x", origin="x", environment={"DOCKER_HOST": "unix:///x"} if variables else {})
    monkeypatch.setattr(engine, "find_endpoint", lambda environ: found)
    monkeypatch.setattr(shutil, "which", lambda name, path: "/bin/docker" if docker else None)
    monkeypatch.setattr(engine, "is_podman", lambda api: podman)
    api: Any = None
    assert engine.reached_by(api, {}) == {"engine_address": address, "by_podman_alone": by_podman_alone}


HERE = Endpoint(address=engine._DEFAULT, origin="the default socket")
THERE = Endpoint(address="tcp://box:2376", origin="DOCKER_HOST")
OWN = replace(HERE, address="unix:///run/user/1000/podman/podman.sock")
WRAPPED = RequestException("x", OSError(PermissionError(13, "Permission denied")))


@pytest.mark.parametrize(
    ("error", "endpoint", "told"),
    [
        (WRAPPED, HERE, "this user has no permission to use {}: sudo usermod -aG docker $USER, then log in again"),
        (
            PermissionError(),
            OWN,
            "this user has no permission to use {}: start your own socket: systemctl --user enable --now podman.socket",
        ),
        (
            FileNotFoundError(),
            HERE,
            (
                "no container engine found: {} does not exist: "
                "is Docker installed and started? sudo systemctl start docker"
            ),
        ),
        (
            ConnectionRefusedError(),
            THERE,
            "no container engine answers at {}: start it there, or set DOCKER_HOST to another engine",
        ),
        (
            Timeout(),
            HERE,
            (
                "the engine at {} does not answer in time: wait if its machine is busy, "
                "or restart it: sudo systemctl restart docker"
            ),
        ),
        (
            TimeoutError(),
            THERE,
            "the engine at {} does not answer in time: wait if its machine is busy, or restart it there",
        ),
        (ValueError("its own words"), THERE, "its own words"),
        (ConnectionResetError("reset"), THERE, "the engine at {} cannot be reached: reset"),
        (RequestException(OSError("inner")), THERE, "the engine at {} cannot be reached: inner"),
    ],
)
def test_why_an_engine_is_not_reached(
    error: Exception, endpoint: Endpoint, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name, path: None)
    assert engine.explain(error, endpoint, {}) == told.format(f"{endpoint.address} ({endpoint.origin})")


@pytest.mark.parametrize(
    ("installed", "user", "command"),
    [
        ([], 0, "is Docker installed and started? sudo systemctl start docker"),
        (["docker", "podman"], 0, "is Docker installed and started? sudo systemctl start docker"),
        (["podman"], 0, "systemctl enable --now podman.socket"),
        (["podman"], 1000, "systemctl --user enable --now podman.socket"),
    ],
)
def test_how_what_is_installed_is_started(
    installed: list[str], user: int, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name, path: name if name in installed else None)
    monkeypatch.setattr(os, "geteuid", lambda: user)
    assert engine._how_to_start(HERE, {}) == command
    assert engine._how_to_start(THERE, {}) == "start it there, or set DOCKER_HOST to another engine"


@pytest.mark.parametrize(
    ("files", "what"),
    [
        (["ca.pem"], "asks for a client certificate"),
        (["cert.pem"], "asks for a client certificate"),
        (["key.pem"], "asks for a client certificate"),
        (["cert.pem", "key.pem"], "does not accept this client's certificate (connection reset)"),
    ],
)
def test_a_connection_that_ends_if_certificates_are_asked_for(files: list[str], what: str, tmp_path: Path) -> None:
    for name in files:
        (tmp_path / name).touch()
    told = engine.explain(ConnectionResetError(), replace(THERE, certificates=str(tmp_path)), {})
    assert told == (
        f"tcp://box:2376 {what}: {tmp_path} needs a cert.pem and key.pem of the CA that dockerd was started with"
    )


@pytest.mark.parametrize(
    ("origin", "advice"),
    [
        ("DOCKER_HOST", "set DOCKER_TLS_VERIFY=1 and DOCKER_CERT_PATH"),
        (
            "context box",
            'docker context update --docker "host=tcp://box:2376,ca=ca.pem,cert=cert.pem,key=key.pem" CONTEXT',
        ),
    ],
)
def test_how_tls_is_set_up_for_an_engine_that_requires_it(origin: str, advice: str) -> None:
    answer: Any = SimpleNamespace(
        headers={}, status_code=400, iter_content=lambda size: iter([b"HTTP request to an HTTPS server"])
    )
    with pytest.raises(ValueError, match="needs TLS") as caught:
        engine._version_of_answer(answer, replace(THERE, origin=origin))
    assert str(caught.value) == f"tcp://box:2376 needs TLS: {advice}"


@pytest.mark.parametrize(
    ("files", "is_verified", "has_own", "has_ca"),
    [
        (["ca.pem"], True, False, True),
        (["ca.pem", "cert.pem"], True, False, True),
        (["ca.pem", "key.pem"], True, False, True),
        (["ca.pem", "cert.pem", "key.pem"], True, True, True),
        (["cert.pem", "key.pem"], False, True, False),
        ([], False, False, False),
    ],
)
def test_what_is_there_of_certificates_is_used(
    files: list[str], is_verified: bool, has_own: bool, has_ca: bool, tmp_path: Path
) -> None:
    for name in files:
        (tmp_path / name).touch()
    tls = engine._tls(replace(THERE, certificates=str(tmp_path), is_verified=is_verified))
    assert tls is not None
    assert tls.cert == ((f"{tmp_path}/cert.pem", f"{tmp_path}/key.pem") if has_own else None)
    assert (tls.ca_cert, tls.verify) == (f"{tmp_path}/ca.pem" if has_ca else None, is_verified)


@pytest.mark.parametrize(
    ("time", "seconds"),
    [
        ("1970-01-01T00:00:02Z", 2.0),
        ("1970-01-01T00:00:01.25Z", 1.25),
        ("1970-01-01T01:00:01.5+01:00", 1.5),
        ("1969-12-31T23:00:03-01:00", 3.0),
        ("0001-01-01T00:00:00Z", 0.0),
        ("1969-12-31T23:59:59.5Z", 0.0),
        ("1970-01-01 00:00:02", 0.0),
        ("", 0.0),
    ],
)
def test_the_seconds_of_a_time(time: str, seconds: float) -> None:
    assert engine.seconds_of(time) == seconds


REFUSED = "the engine refuses, or its answer cannot be read: "


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (Timeout("slow"), "the engine does not answer in time: if this machine is busy, raise --timeout"),
        (APIError("plain"), f"{REFUSED}plain"),
        (APIError("plain", explanation="why\x1b[31m"), f"{REFUSED}why [31m"),
        (DockerException("odd"), f"{REFUSED}DockerException: odd"),
        (RequestException("odd"), f"{REFUSED}RequestException: odd"),
    ],
)
def test_what_an_engine_refuses_later(error: Exception, told: str) -> None:
    assert engine.refusal(error) == told


NO_TLS = "tcp://box:2376 does not use TLS: unset DOCKER_TLS_VERIFY, or start dockerd with --tlsverify"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("WRONG_VERSION_NUMBER", NO_TLS),
        ("record layer failure", NO_TLS),
        ("TLSV13_ALERT_CERTIFICATE_REQUIRED", "asks for a client certificate"),
        ("unexpected EOF", "asks for a client certificate"),
        ("NO_CIPHERS", "TLS with tcp://box:2376 fails (no ciphers): check ca.pem, cert.pem and key.pem in /none"),
    ],
)
def test_why_tls_fails(text: str, told: str) -> None:
    error = ssl.SSLError(1, text)
    error.reason = text if "_" in text else ""
    assert told in engine._explain_tls(error, replace(THERE, certificates="/none"))
