"""The engine that has the images: Docker, or Podman by its compatible socket."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import ssl
import warnings
from collections.abc import Iterator, Mapping
from datetime import datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from gpudoctor.containers.engines.endpoint import DOCKER_SOCKET, Endpoint, find_endpoint

if TYPE_CHECKING:
    from docker import APIClient, DockerClient
    from docker.tls import TLSConfig
    from requests import Response

OLDEST_API = (1, 24)
"""Of the Docker Engine API: Docker 1.12, the oldest that docker-py 7 speaks."""

FIRST_ANSWER_SECONDS = 15.0
"""For a ping, which an engine answers in milliseconds, or on a busy machine in seconds."""

LONGEST_REASON = 500
"""Characters."""

_DEFAULT = f"unix://{DOCKER_SOCKET}"
_CERTIFICATES = ("ca.pem", "cert.pem", "key.pem")


class EngineUnavailable(Exception):
    """No engine can be reached. The text says why, and what to do."""


def connect(environ: Mapping[str, str], timeout_seconds: float = 20.0) -> DockerClient:
    """Return a client of the engine that the docker command line of this user would ask, see `find_endpoint`.

    timeout_seconds: for each answer. The first has no more than FIRST_ANSWER_SECONDS.

    Raises:
        EngineUnavailable: there is none, or this user has no permission to use it, or it is too old.
    """
    try:
        from docker.errors import DockerException
    except ImportError as error:
        raise EngineUnavailable(f"the package docker cannot be imported: {error}") from None
    try:
        endpoint = find_endpoint(environ)
        _check_scheme(endpoint.address)
    except ValueError as error:
        raise EngineUnavailable(_on_one_line(str(error))) from None
    try:
        ping_seconds = min(timeout_seconds, FIRST_ANSWER_SECONDS)
        first = _client(endpoint, "{}.{}".format(*OLDEST_API), ping_seconds)
        try:
            with _ping(first.api) as answer:
                version = _version_of_answer(answer, endpoint)
        finally:
            first.close()
        return _client(endpoint, version, timeout_seconds)
    except (DockerException, OSError, ValueError) as error:
        raise EngineUnavailable(_on_one_line(explain(error, endpoint, environ))) from None


def reached_by(api: APIClient, environ: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields of ProjectImage that say how a user reaches the engine from a shell."""
    endpoint = find_endpoint(environ)
    alone = shutil.which("docker", path=environ.get("PATH")) is None and is_podman(api)
    return {"engine_address": endpoint.address if alone or endpoint.environment else None, "by_podman_alone": alone}


def is_podman(api: APIClient) -> bool:
    """Return whether Podman answers, by its compatible API."""
    with _ping(api) as answer:
        return "Libpod-Api-Version" in answer.headers


def refusal(error: Exception) -> str:
    """Return the reason why an engine that had answered before fails now."""
    from docker.errors import APIError
    from requests import Timeout

    if isinstance(error, Timeout):
        return "the engine does not answer in time: if this machine is busy, raise --timeout"
    text = str(error.explanation or error) if isinstance(error, APIError) else f"{type(error).__name__}: {error}"
    return _on_one_line(f"the engine refuses, or its answer cannot be read: {text}")


def _on_one_line(text: str) -> str:
    """Return `text` without control characters: an answer may contain anything."""
    return "".join(character if character.isprintable() else " " for character in text[:LONGEST_REASON])


def _check_scheme(address: str) -> None:
    """Refuse ssh, for which docker-py needs a package of its own."""
    if address.startswith("ssh:"):
        to = urlsplit(address)
        port = f"-p {to.port} " if to.port else ""
        host = shlex.quote(f"{f'{to.username}@' if to.username else ''}{to.hostname or 'HOST'}")
        raise ValueError(
            f"{address}: engines over ssh are not supported; forward the socket:"
            f" ssh -fnNT -L /tmp/docker.sock:{DOCKER_SOCKET} {port}{host}, then DOCKER_HOST=unix:///tmp/docker.sock"
        )


def _client(endpoint: Endpoint, version: str, timeout_seconds: float) -> DockerClient:
    import docker

    tls = _tls(endpoint)
    client = docker.DockerClient(
        base_url=endpoint.address, tls=tls or False, version=version, timeout=max(1, round(timeout_seconds))
    )
    if tls is not None:
        client.api.trust_env = False  # else requests prefers REQUESTS_CA_BUNDLE to the CA of this engine
    if not endpoint.is_verified:
        from urllib3.exceptions import InsecureRequestWarning

        warnings.simplefilter("ignore", InsecureRequestWarning)  # it is the user's own setting
    return client


def _tls(endpoint: Endpoint) -> TLSConfig | None:
    """Return what docker-py needs for TLS; None for an address without it."""
    folder = endpoint.certificates
    if folder is None or endpoint.address.startswith(("unix:", "npipe:")):
        return None
    from docker.tls import TLSConfig

    ca, certificate, key = (os.path.join(folder, name) for name in _CERTIFICATES)
    for path in (ca, certificate, key):
        if os.path.exists(path) and not os.access(path, os.R_OK):
            raise ValueError(f"{path} cannot be read by this user")
    if endpoint.is_verified and endpoint.origin.startswith("DOCKER_") and not os.path.exists(ca):
        raise ValueError(f"there is no {ca}: set DOCKER_CERT_PATH to the folder of ca.pem, cert.pem and key.pem")
    has_own = os.path.exists(certificate) and os.path.exists(key)  # an engine may not ask for them
    return TLSConfig(
        client_cert=(certificate, key) if has_own else None,
        ca_cert=ca if os.path.exists(ca) else None,
        verify=endpoint.is_verified,
    )


def _ping(api: APIClient) -> Response:
    """Return the answer to SystemPing of the Docker Engine API, whose headers name the engine; its body is not read."""
    return api.get(f"{api.base_url}/_ping", timeout=api.timeout, stream=True)


def _version_of_answer(answer: Response, endpoint: Endpoint) -> str:
    """Return the version of the engine's API."""
    version = answer.headers.get("Api-Version", "")
    where = f"{endpoint.address} ({endpoint.origin})"
    if answer.status_code != HTTPStatus.OK:
        text = next(answer.iter_content(LONGEST_REASON), b"").decode("utf-8", "replace").strip()
        if not version and "HTTPS server" in text:  # so Go's HTTP server says
            by_context = f'docker context update --docker "host={endpoint.address},ca=ca.pem,cert=cert.pem,key=key.pem"'
            by_variables = "set DOCKER_TLS_VERIFY=1 and DOCKER_CERT_PATH"
            is_named = endpoint.origin.startswith("DOCKER_")
            raise ValueError(f"{endpoint.address} needs TLS: {by_variables if is_named else f'{by_context} CONTEXT'}")
        raise ValueError(f"{where} refuses: {answer.status_code} {text}".rstrip())
    if not re.fullmatch(r"\d{1,3}\.\d{1,4}", version):
        raise ValueError(f"the service at {where} is not Docker or Podman, or is older than Docker 1.13")
    if tuple(int(part) for part in version.split(".")) < OLDEST_API:
        raise ValueError(f"the engine at {endpoint.address} is too old: its API is {version}; update Docker")
    return version


def explain(error: Exception, endpoint: Endpoint, environ: Mapping[str, str]) -> str:
    """Return why the engine cannot be reached, and what to do about it."""
    from requests import Timeout

    causes = tuple(_causes(error))
    where = f"{endpoint.address} ({endpoint.origin})"

    def is_for(*kinds: type[BaseException]) -> bool:
        return any(isinstance(cause, kinds) for cause in causes)

    tls = next((cause for cause in causes if isinstance(cause, ssl.SSLError)), None)
    if tls is not None:
        return _explain_tls(tls, endpoint)
    if endpoint.certificates is not None and is_for(ConnectionResetError):
        return _explain_refused_client("connection reset", endpoint)
    if is_for(PermissionError):
        own_socket = "start your own socket: systemctl --user enable --now podman.socket"
        group = "sudo usermod -aG docker $USER, then log in again"
        return f"this user has no permission to use {where}: {own_socket if 'podman' in endpoint.address else group}"
    if is_for(FileNotFoundError):
        return f"no container engine found: {where} does not exist: {_how_to_start(endpoint, environ)}"
    if is_for(ConnectionRefusedError):
        return f"no container engine answers at {where}: {_how_to_start(endpoint, environ)}"
    if is_for(Timeout, TimeoutError):
        restart = "restart it: sudo systemctl restart docker" if endpoint.address == _DEFAULT else "restart it there"
        return f"the engine at {where} does not answer in time: wait if its machine is busy, or {restart}"
    if isinstance(error, ValueError) and not isinstance(error, OSError):
        return str(error)
    return f"the engine at {where} cannot be reached: {causes[-1]}"


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield the error and what it was raised for, the outermost first: requests and urllib3 wrap as arguments."""
    yield error
    inner = (*error.args, getattr(error, "reason", None), error.__cause__ or error.__context__)
    found = next((item for item in inner if isinstance(item, BaseException) and item is not error), None)
    if found is not None:
        yield from _causes(found)


def _explain_tls(error: ssl.SSLError, endpoint: Endpoint) -> str:
    folder, text = endpoint.certificates, f"{error.reason or error}".replace("_", " ").lower()
    if isinstance(error, ssl.SSLCertVerificationError):
        return (
            f"the certificate of {endpoint.address} is not accepted ({error.verify_message}):"
            f" {folder}/ca.pem must be the CA that signed it, and the address one of its names"
        )
    if "wrong version number" in text or "record layer failure" in text:
        return f"{endpoint.address} does not use TLS: unset DOCKER_TLS_VERIFY, or start dockerd with --tlsverify"
    if "alert" in text or "eof" in text:  # the connection may end before the alert that says why has come
        return _explain_refused_client(text, endpoint)
    return f"TLS with {endpoint.address} fails ({text}): check ca.pem, cert.pem and key.pem in {folder}"


def _explain_refused_client(text: str, endpoint: Endpoint) -> str:
    folder = endpoint.certificates
    there = all(os.path.exists(f"{folder}/{name}") for name in _CERTIFICATES[1:])
    what = f"does not accept this client's certificate ({text})" if there else "asks for a client certificate"
    return f"{endpoint.address} {what}: {folder} needs a cert.pem and key.pem of the CA that dockerd was started with"


def _how_to_start(endpoint: Endpoint, environ: Mapping[str, str]) -> str:
    """Return the command that starts what is installed, if nothing else was asked for."""
    if endpoint.address != _DEFAULT:
        return "start it there, or set DOCKER_HOST to another engine"
    programs = {name: shutil.which(name, path=environ.get("PATH")) for name in ("docker", "podman")}
    if programs["podman"] and not programs["docker"]:
        is_root = hasattr(os, "geteuid") and os.geteuid() == 0
        return f"systemctl {'' if is_root else '--user '}enable --now podman.socket"
    return "is Docker installed and started? sudo systemctl start docker"


def seconds_of(time: str) -> float:
    """Return the seconds since 1970 of a time as the engine writes it, "2026-11-21T13:22:05.3Z".

    0 for another text, and for one before 1970: the engine writes year 1 for never.
    """
    match = re.fullmatch(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d+)?(Z|[+-]\d\d:\d\d)", time)
    if match is None:
        return 0.0
    whole = datetime.fromisoformat(match[1] + match[3].replace("Z", "+00:00")).timestamp()
    return max(0.0, whole + float(match[2] or 0))
