"""Services of a compose document → records."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping
from pathlib import Path

from gpudoctor.containers.compose.canonical import absolute, is_remote
from gpudoctor.containers.compose.env_file import read_env_file
from gpudoctor.containers.compose.project import Build, DeviceRequest, Mount, Service
from gpudoctor.containers.compose.yaml_document import Value

_SIZE = re.compile(r"(\d{1,18}(?:\.\d{1,9})?) ?([kmgtp]?)i?b?", re.IGNORECASE)
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40, "p": 1 << 50}


class ServiceReader:
    """Makes records of the services of one project.

    project: its name. directory: of the project. volumes: the named volumes of the document.
    environ: for the values that files of environment variables name.
    """

    def __init__(self, project: str, directory: Path, volumes: Mapping[str, Value], environ: Mapping[str, str]) -> None:
        self._project = project
        self._directory = directory
        self._volumes = volumes
        self._environ = environ

    def service(self, name: str, value: Value) -> Service:
        """Return the service.

        value: in its canonical form.

        Raises:
            ValueError: a field is not understood; the message names file and line.
            OSError: a file of environment variables cannot be read.
        """
        fields = _Fields(value)
        image = fields.text("image")
        build = self._build(fields.known["build"]) if "build" in fields.known else None
        return Service(
            name=name,
            image=image,
            images=self._images(name, image, build),
            build=build,
            platform=fields.text("platform"),
            mounts=self._mounts(fields),
            volumes_from=fields.texts("volumes_from"),
            environment=self._environment(fields),
            profiles=fields.texts("profiles"),
            device_requests=_device_requests(fields),
            runtime=fields.text("runtime"),
            shm_size_bytes=_size_bytes(fields.known["shm_size"]) if "shm_size" in fields.known else None,
            ipc=fields.text("ipc"),
            ulimits={key: _ulimit(item) for key, item in fields.mapping("ulimits").items()},
            command=_command(fields.known["command"]) if "command" in fields.known else None,
            privileged=fields.flag("privileged"),
            devices=tuple(_device(item) for item in fields.sequence("devices")),
        )

    def _images(self, service: str, image: str | None, build: Build | None) -> tuple[str, ...]:
        if image is not None:
            return (image,)
        return () if build is None else (f"{self._project}-{service}", f"{self._project}_{service}")

    def _build(self, value: Value) -> Build:
        fields = _Fields(value)
        context = fields.text("context") or str(self._directory)
        inline = fields.text("dockerfile_inline")
        args = {name: item.content for name, item in fields.mapping("args").items()}
        dockerfile = "" if inline is not None else fields.text("dockerfile") or "Dockerfile"
        return Build(
            context=context,
            dockerfile=dockerfile if is_remote(context) or not dockerfile else _inside(context, dockerfile),
            dockerfile_inline=inline,
            target=fields.text("target") or None,
            args={name: str(text) for name, text in args.items() if text is not None},
            unset_args=tuple(name for name, text in args.items() if text is None),
            additional_contexts={name: item.text() for name, item in fields.mapping("additional_contexts").items()},
            uses_ssh="ssh" in fields.known,
            uses_secrets="secrets" in fields.known,
            is_remote=is_remote(context),
        )

    def _mounts(self, fields: _Fields) -> tuple[Mount, ...]:
        tmpfs = (Mount(kind="tmpfs", target=path.partition(":")[0]) for path in fields.texts("tmpfs"))
        return tuple(dict.fromkeys((*(self._mount(item) for item in fields.sequence("volumes")), *tmpfs)))

    def _mount(self, value: Value) -> Mount:
        fields = _Fields(value)
        kind, source, target = fields.text("type") or "", fields.text("source") or "", fields.text("target") or ""
        read_only = fields.flag("read_only")
        if kind != "volume":
            return Mount(kind=kind, target=target, source=source, read_only=read_only)
        if not source:
            return Mount(kind="anonymous", target=target, read_only=read_only)
        if source not in self._volumes:
            raise value.error(f"the volume {source[:80]!r} is not among the project's `volumes`")
        volume = _Fields(self._volumes[source])
        return Mount(
            kind="named",
            target=target,
            source=self._volume_name(source, volume),
            read_only=read_only,
            device=self._bound_folder(volume),
        )

    def _volume_name(self, name: str, volume: _Fields) -> str:
        """Return the engine's name: `name`, that of `external`, or PROJECT_NAME."""
        external = volume.known.get("external")
        if external is not None and isinstance(external.content, dict):
            return _Fields(external).text("name") or name
        is_external = external is not None and external.boolean()
        return volume.text("name") or (name if is_external else f"{self._project}_{name}")

    def _bound_folder(self, volume: _Fields) -> str:
        """Return the folder that a named volume shows; "" for an ordinary volume."""
        options = volume.mapping("driver_opts")
        words = options["o"].text().split(",") if "o" in options else []
        if "device" not in options or not {"bind", "rbind"} & set(words):
            return ""
        return absolute(options["device"].text(), self._directory)

    def _environment(self, fields: _Fields) -> dict[str, str | None]:
        found: dict[str, str | None] = {}
        for item in fields.sequence("env_file"):
            found.update(self._env_file(_Fields(item)))
        return {**found, **{name: _text_or_none(item) for name, item in fields.mapping("environment").items()}}

    def _env_file(self, fields: _Fields) -> dict[str, str]:
        path = fields.known["path"]
        is_required = fields.flag("required", default=True)
        try:
            return read_env_file(Path(path.text()), self._environ)
        except FileNotFoundError:
            if is_required:
                raise path.error(f"env_file: there is no file {path.text()}") from None
            return {}


class _Fields:
    """The fields of a mapping by their type; None, "" or () where one is not there or null."""

    def __init__(self, value: Value) -> None:
        self.known = {name: item for name, item in value.mapping().items() if item.content is not None}

    def text(self, name: str) -> str | None:
        return self.known[name].text() if name in self.known else None

    def flag(self, name: str, *, default: bool = False) -> bool:
        return self.known[name].boolean() if name in self.known else default

    def mapping(self, name: str) -> dict[str, Value]:
        return self.known[name].mapping() if name in self.known else {}

    def sequence(self, name: str) -> list[Value]:
        return self.known[name].sequence() if name in self.known else []

    def texts(self, name: str) -> tuple[str, ...]:
        return tuple(item.text() for item in self.sequence(name))


def _inside(context: str, dockerfile: str) -> str:
    """Return the absolute path of a Dockerfile that is named relative to its context."""
    return os.path.normpath(os.path.join(context, dockerfile))


def _text_or_none(value: Value) -> str | None:
    return None if value.content is None else value.text()


def _device_requests(fields: _Fields) -> tuple[DeviceRequest, ...]:
    """Return the GPUs of `gpus` and of `deploy.resources.reservations.devices`."""
    found = [_device_request(item, ("gpu",)) for item in fields.sequence("gpus")]
    place = fields
    for name in ("deploy", "resources", "reservations"):
        if name not in place.known:
            return tuple(found)
        place = _Fields(place.known[name])
    return (*found, *(_device_request(item, ()) for item in place.sequence("devices")))


def _device_request(value: Value, capabilities: tuple[str, ...]) -> DeviceRequest:
    fields = _Fields(value)
    count = fields.known.get("count")
    return DeviceRequest(
        driver=fields.text("driver") or "",
        count=None if count is None else -1 if count.content == "all" else count.integer(),
        device_ids=fields.texts("device_ids"),
        capabilities=fields.texts("capabilities") or capabilities,
    )


def _ulimit(value: Value) -> tuple[int, int]:
    if not isinstance(value.content, dict):
        limit = value.integer()
        return limit, limit
    if not {"soft", "hard"} <= value.content.keys():
        raise value.error("ulimits: `soft` and `hard` are expected")
    return value.content["soft"].integer(), value.content["hard"].integer()


def _size_bytes(value: Value) -> int:
    match = _SIZE.fullmatch(value.text().strip())
    if match is None:
        raise value.error(f"{value.text()[:40]!r} is no size")
    return (
        int(float(match[1]) * _UNITS[match[2].lower()]) if "." in match[1] else int(match[1]) * _UNITS[match[2].lower()]
    )


def _command(value: Value) -> tuple[str, ...]:
    if isinstance(value.content, list):
        return tuple(item.text() for item in value.content)
    try:
        return tuple(shlex.split(value.text()))
    except ValueError as error:
        raise value.error(f"command: {error}") from None


def _device(value: Value) -> str:
    """Return SOURCE:TARGET:PERMISSIONS, without the permissions `rwm` that all have, or the name of a CDI device."""
    fields = _Fields(value)
    source, target, permissions = (fields.text(name) or "" for name in ("source", "target", "permissions"))
    if source == target and not source.startswith("/"):
        return source
    return ":".join(part for part in (source, target, "" if permissions == "rwm" else permissions) if part)
