"""Where the docker command line of this user finds its engine, and Podman's socket where docker has none.

Source: https://docs.docker.com/engine/manage-resources/contexts/ ; for the order and for TLS, cli/command/cli.go and
cli/flags/options.go of github.com/docker/cli.
"""

import hashlib
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from gpudoctor.model.record import record

DOCKER_SOCKET = "/var/run/docker.sock"
PODMAN_SOCKET = "/run/podman/podman.sock"
WITH_TLS = "tcp://localhost:2376"
WINDOWS_PIPE = "npipe:////./pipe/docker_engine"
LARGEST_FILE_BYTES = 1 << 20


@record
class Endpoint:
    """An engine's address.

    address: "unix:///var/run/docker.sock", "tcp://host:2376".
    origin: what named it: "DOCKER_HOST", "docker context NAME", "the default socket".
    certificates: folder of ca.pem, cert.pem and key.pem, some of which may be missing; None without TLS.
    is_verified: the engine's certificate has to be that of the CA.
    environment: variables that send docker and compose commands there, if they would not go there by themselves.
    """

    address: str
    origin: str
    certificates: str | None = None
    is_verified: bool = True
    environment: Mapping[str, str] = field(default_factory=dict)


def find_endpoint(environ: Mapping[str, str]) -> Endpoint:
    """Return the engine's address: of DOCKER_HOST, else of DOCKER_CONTEXT, of the current context, of a socket here.

    Raises:
        ValueError: the context is not there or cannot be read; the message says what to do.
    """
    if environ.get("DOCKER_HOST"):
        return Endpoint(address=environ["DOCKER_HOST"], origin="DOCKER_HOST", **_tls(environ))
    folder = _configuration_folder(environ)
    named = environ.get("DOCKER_CONTEXT", "")
    name = named or _current_context(folder)
    if name not in ("", "default"):
        back = "unset DOCKER_CONTEXT" if named else "docker context use default"
        return _of_context(name, folder, back, is_seen_by_all=not named)
    if sys.platform == "win32":
        return Endpoint(address=WINDOWS_PIPE, origin="the default pipe")
    if environ.get("DOCKER_TLS_VERIFY"):
        return Endpoint(address=WITH_TLS, origin="DOCKER_TLS_VERIFY without DOCKER_HOST", **_tls(environ))
    return _of_socket(environ)


def _tls(environ: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields that describe TLS. Any value but an empty one switches it on, as with the command line."""
    verified = bool(environ.get("DOCKER_TLS_VERIFY"))
    if not verified and not environ.get("DOCKER_TLS"):
        return {}
    folder = environ.get("DOCKER_CERT_PATH") or str(_configuration_folder(environ))
    return {"certificates": folder, "is_verified": verified}


def _configuration_folder(environ: Mapping[str, str]) -> Path:
    return Path(environ.get("DOCKER_CONFIG") or Path(environ.get("HOME") or os.path.expanduser("~"), ".docker"))


def _current_context(folder: Path) -> str:
    """Return the context in use; "" if none is named, or the file cannot be read: so does the command line."""
    try:
        name = _read_object(folder / "config.json").get("currentContext")
    except (OSError, ValueError, RecursionError):
        return ""
    return name if isinstance(name, str) else ""


def _of_context(name: str, folder: Path, back: str, *, is_seen_by_all: bool) -> Endpoint:
    """Return the endpoint of a docker context.

    back: the command that leaves it. is_seen_by_all: docker-compose 1.29 knows the current one, and no DOCKER_CONTEXT.
    """
    key = hashlib.sha256(name.encode("utf-8", "surrogateescape")).hexdigest()
    file = folder / "contexts" / "meta" / key / "meta.json"
    try:
        about = _read_object(file)["Endpoints"]["docker"]
        address, skips = about.get("Host") or f"unix://{DOCKER_SOCKET}", bool(about.get("SkipTLSVerify"))
    except FileNotFoundError:
        raise ValueError(f"there is no docker context {name!r}: {back} (docker context ls shows all)") from None
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise ValueError(
            f"the docker context {name!r} cannot be read ({file}): {back}, or recreate it with docker context create"
        ) from None
    certificates = folder / "contexts" / "tls" / key / "docker"
    is_remote = not str(address).startswith(("unix:", "npipe:"))
    found = str(certificates) if is_remote and (certificates.is_dir() or skips) else None
    environment = {"DOCKER_HOST": str(address)}
    if found is not None:
        environment.update({"DOCKER_CERT_PATH": found, "DOCKER_TLS" if skips else "DOCKER_TLS_VERIFY": "1"})
    return Endpoint(
        address=str(address),
        origin=f"docker context {name}",
        certificates=found,
        is_verified=not skips,
        environment={} if is_seen_by_all else environment,
    )


def _of_socket(environ: Mapping[str, str]) -> Endpoint:
    """Return Docker's socket, else that of rootless Docker or of Podman if one is there."""
    path = next((path for path in sockets(environ) if os.path.exists(path)), DOCKER_SOCKET)
    address = f"unix://{path}"
    is_default = path == DOCKER_SOCKET
    return Endpoint(
        address=address,
        origin="the default socket" if is_default else f"no {DOCKER_SOCKET}, but {path}",
        environment={} if is_default else {"DOCKER_HOST": address},
    )


def sockets(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the sockets that are looked for: Docker's, rootless Docker's, Podman's, a user's own one first."""
    user = getattr(os, "geteuid", lambda: 0)()
    runtime = environ.get("XDG_RUNTIME_DIR") or f"/run/user/{user}"
    podman = (PODMAN_SOCKET, f"{runtime}/podman/podman.sock")
    return (DOCKER_SOCKET, f"{runtime}/docker.sock", *(podman if user == 0 else reversed(podman)))


def _read_object(file: Path) -> dict[str, Any]:
    """Return the JSON object in the file."""
    with file.open("rb") as stream:
        found = json.loads(stream.read(LARGEST_FILE_BYTES))
    if not isinstance(found, dict):
        raise ValueError(f"{file} does not contain an object")
    return found
