"""Services of a compose project: from what compose files and `docker compose config` write, to records.

Source: https://docs.docker.com/reference/compose-file/services/
"""

import os
import posixpath
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from gpudoctor.containers.compose.interpolation import read_env_file
from gpudoctor.containers.compose.project import Build, Service
from gpudoctor.containers.compose.yaml_document import text_of
from gpudoctor.model.containers import GpuRequest
from gpudoctor.parsers.containers import plain

_REMOTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://|github\.com/|git@|service:")
_VOLUME = re.compile(r"(?:(?:[A-Za-z]:(?=\\|/[^:]*:/))?[^:]+:)?(?P<target>[^:]+)(?::[^:]+)?")
"""[SOURCE:]TARGET[:MODE]. A letter is a drive in c:/source:/target, and a volume's name in c:/target."""

_SIZE = re.compile(r"(\d{1,18}(?:\.\d{1,9})?) ?([kmgtp]?)i?b?", re.IGNORECASE)
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40, "p": 1 << 50}
_BOOLEANS = {
    **dict.fromkeys(("true", "yes", "y", "on", "1"), True),
    **dict.fromkeys(("false", "no", "n", "off", "0"), False),
}


def service_fields(service: Mapping[str, Any], directory: Path, environ: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields that are read, each in one form of those that users may write: easy to merge.

    directory: to which its paths are relative. environ: gives the values if only names are written.

    Raises:
        ValueError: a field has a form that is not understood; the message names it.
    """
    forms: dict[str, Callable[[Any], Any]] = {
        "build": lambda value: _build(value, directory, environ),
        "deploy": _reserved_gpus,
        "devices": lambda value: dict(map(_device, sequence_of(value))),
        "env_file": lambda value: [_env_file(item, directory) for item in _one_or_more(value)],
        "environment": lambda value: _pairs(value, environ),
        "gpus": lambda value: [_gpu_request(i, ("gpu",)) for i in ([{}] if value == "all" else sequence_of(value))],
        "image": text_of,
        "ipc": text_of,
        "privileged": _boolean,
        "profiles": lambda value: [text_of(item) for item in sequence_of(value)],
        "runtime": text_of,
        "shm_size": _size_bytes,
        "tmpfs": lambda value: {
            posixpath.normpath(text_of(item).partition(":")[0]): True for item in _one_or_more(value)
        },
        "ulimits": _memlock,
        "volumes": lambda value: dict.fromkeys(map(_volume_target, sequence_of(value)), True),
    }
    if service.get("extends") is not None:
        raise ValueError("`extends` needs `docker compose`")
    return {name: _field(name, form, service[name]) for name, form in forms.items() if service.get(name) is not None}


def service_of(name: str, project: str, fields: Mapping[str, Any], environ: Mapping[str, str]) -> Service:
    """Return the service of these fields.

    project: its name. environ: for the values that files of environment variables name.

    Raises:
        ValueError: a file of environment variables is wrong, or not there.
    """
    image, build = fields.get("image"), fields.get("build")
    environment: dict[str, str | None] = {}
    for path, is_required in fields.get("env_file", ()):
        environment.update(_variables(path, is_required, environ))
    built = () if build is None else (f"{project}-{name}", f"{project}_{name}")
    return Service(
        name=name,
        image=image,
        images=built if image is None else (image,),
        build=None if build is None else _build_of(build),
        mount_targets=tuple({**fields.get("volumes", {}), **fields.get("tmpfs", {})}),
        environment={**environment, **fields.get("environment", {})},
        profiles=tuple(fields.get("profiles", ())),
        gpu_requests=(*fields.get("gpus", ()), *fields.get("deploy", ())),
        runtime=fields.get("runtime"),
        shm_size_bytes=fields.get("shm_size"),
        ipc=fields.get("ipc"),
        memlock=fields.get("ulimits", {}).get("memlock"),
        privileged=fields.get("privileged", False),
        devices=tuple(fields.get("devices", {}).values()),
    )


def mapping_of(value: Any) -> dict[str, Any]:
    """Return a mapping; {} for null. Raises ValueError: it is not a mapping."""
    if value is not None and not isinstance(value, dict):
        raise ValueError("a mapping is expected")
    return value or {}


def sequence_of(value: Any) -> list[Any]:
    """Return a sequence; [] for null. Raises ValueError: it is not a sequence."""
    if value is not None and not isinstance(value, list):
        raise ValueError("a sequence is expected")
    return value or []


def _field(name: str, form: Callable[[Any], Any], value: Any) -> Any:
    try:
        return form(value)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def _one_or_more(value: Any) -> list[Any]:
    return [value] if isinstance(value, str) else sequence_of(value)


def _absolute(path: str, directory: Path) -> str:
    """Return `path` absolute; `~` is the home directory."""
    return os.path.abspath(directory / os.path.expanduser(path))


def _context(path: Any, directory: Path) -> str:
    text = text_of(path)
    return text if _REMOTE.match(text) else _absolute(text, directory)


def _pairs(value: Any, environ: Mapping[str, str]) -> dict[str, str | None]:
    """Return NAME → text, from a mapping or a list of NAME=text; a name alone gets the text of the environment."""
    if isinstance(value, list):
        split = [text_of(item).partition("=") for item in value]
        pairs: dict[str, Any] = {name: text if equals else None for name, equals, text in split}
    else:
        pairs = mapping_of(value)
    return {name: environ.get(name) if item is None else text_of(item) for name, item in pairs.items()}


def _build(value: Any, directory: Path, environ: Mapping[str, str]) -> dict[str, Any]:
    build = {"context": value} if isinstance(value, str) else mapping_of(value)
    fields = {name: text_of(build[name]) for name in ("dockerfile", "dockerfile_inline", "target") if build.get(name)}
    contexts = _pairs(build.get("additional_contexts"), {})
    return {
        "directory": str(directory),
        **({"context": _context(build["context"], directory)} if build.get("context") is not None else {}),
        **fields,
        "args": _pairs(build.get("args"), environ),
        "additional_contexts": {name: _context(path, directory) for name, path in contexts.items()},
    }


def _build_of(fields: Mapping[str, Any]) -> Build:
    context = fields.get("context") or fields["directory"]
    inline = fields.get("dockerfile_inline")
    is_remote = _REMOTE.match(context) is not None
    dockerfile = "" if inline is not None else fields.get("dockerfile", "Dockerfile")
    return Build(
        context=context,
        dockerfile=dockerfile if is_remote or not dockerfile else os.path.normpath(os.path.join(context, dockerfile)),
        dockerfile_inline=inline,
        target=fields.get("target"),
        args={name: text for name, text in fields["args"].items() if text is not None},
        additional_contexts=fields["additional_contexts"],
        is_remote=is_remote,
    )


def _device(value: Any) -> tuple[str, str]:
    """Return the path in the container and the one on the host; a CDI name ("nvidia.com/gpu=all") is both."""
    if isinstance(value, dict):
        source = text_of(value.get("source"))
        return text_of(value.get("target")) or source, source
    source, _, rest = text_of(value).partition(":")
    return rest.partition(":")[0] or source, source


def _volume_target(value: Any) -> str:
    if isinstance(value, dict):
        target = text_of(value.get("target"))
    else:
        match = _VOLUME.fullmatch(text_of(value))
        target = match["target"] if match else ""
    if not target:
        raise ValueError(f"{str(value)[:80]!r} is not SOURCE:TARGET:MODE, and has no `target`")
    return posixpath.normpath(target)


def _env_file(value: Any, directory: Path) -> tuple[str, bool]:
    """Return the path, and whether the file has to be there."""
    entries = {"path": value} if isinstance(value, str) else mapping_of(value)
    if not entries.get("path") or "format" in entries:
        raise ValueError("`path` is missing, or `format` is set, which is not supported")
    return _absolute(text_of(entries["path"]), directory), _boolean(entries.get("required", True))


def _variables(path: str, is_required: bool, environ: Mapping[str, str]) -> dict[str, str]:
    try:
        return read_env_file(Path(path), environ)
    except FileNotFoundError:
        if is_required:
            raise ValueError(f"env_file: there is no file {path}") from None
        return {}
    except OSError as error:  # such as a name that is too long
        raise ValueError(f"env_file: {path} cannot be read: {error.strerror}") from None


def _reserved_gpus(deploy: Any) -> list[GpuRequest]:
    """Return the GPUs of `deploy.resources.reservations.devices`."""
    place = mapping_of(deploy)
    for name in ("resources", "reservations"):
        place = mapping_of(place.get(name))
    return [_gpu_request(item, ()) for item in sequence_of(place.get("devices"))]


def _gpu_request(value: Any, capabilities: tuple[str, ...]) -> GpuRequest:
    """Return the request; without a count and devices it is for all GPUs."""
    fields = mapping_of(value)
    device_ids, named = (
        tuple(plain(text_of(item)) for item in sequence_of(fields.get(name))) for name in ("device_ids", "capabilities")
    )
    count = fields.get("count")
    is_for_all = count == "all" or (count is None and not device_ids)
    return GpuRequest(
        driver=plain(text_of(fields.get("driver"))),
        count=-1 if is_for_all else None if count is None else _integer(count),
        device_ids=device_ids,
        capabilities=named or capabilities,
    )


def _memlock(ulimits: Any) -> dict[str, int]:
    """Return the soft limit by its name."""
    limit = mapping_of(ulimits).get("memlock")
    return {} if limit is None else {"memlock": _integer(limit.get("soft") if isinstance(limit, dict) else limit)}


def _integer(value: Any) -> int:
    if re.fullmatch(r"[-+]?[0-9]{1,18}", text_of(value).strip()):
        return int(text_of(value))
    raise ValueError(f"{text_of(value)[:40]!r} is not a whole number")


def _boolean(value: Any) -> bool:
    if (word := text_of(value).lower()) in _BOOLEANS:
        return _BOOLEANS[word]
    raise ValueError("true or false is expected")


def _size_bytes(value: Any) -> int:
    match = _SIZE.fullmatch(text_of(value).strip())
    if match is None:
        raise ValueError(f"{text_of(value)[:40]!r} is not a size")
    number, unit = match[1], _UNITS[match[2].lower()]
    return int(float(number) * unit) if "." in number else int(number) * unit
