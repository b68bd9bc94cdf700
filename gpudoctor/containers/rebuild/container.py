"""An image rebuilt under a temporary tag, and a recreated container: each takes the place of the old one at the end."""

import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from gpudoctor.containers.engines import APIClient
from gpudoctor.containers.engines.objects import inspect_image
from gpudoctor.containers.project_images import is_changed
from gpudoctor.containers.rebuild.builders import Attempt
from gpudoctor.containers.rebuild.steps import BuildFailed, Progress, Step
from gpudoctor.containers.rebuild.transaction import Journal, name_image
from gpudoctor.containers.requested import Subject, look_at_subject
from gpudoctor.errors import UsageError
from gpudoctor.model.images import ProjectImage

REPOSITORY = "gpudoctor-rebuild"
"""Of the temporary tags."""

START_SECONDS = 2.0
"""A container that still runs then has started."""

_POLL_SECONDS = 0.1
_STOP_SECONDS = 10  # the engine's own default
_LOG_LINES = 10
_SHARED_NETWORKS = ("default", "bridge", "host", "none")  # they take no settings of a container
_LOST_LAYER = "unable to find image"  # the classic builder of Docker 20.10
_BY_PODMAN = ("container=podman", "TERM=xterm")  # variables that it shows as if the user had set them


class NotStarted(Exception):
    """The new container does not run. lines: its last lines of output."""

    def __init__(self, message: str, lines: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.lines = lines


def recreate(api: APIClient, name: str, image: str, journal: Journal) -> None:
    """Recreate the container `name` from `image`; the new one runs if the old one ran. The journal keeps the old one.

    Raises:
        UsageError: it was made so that the engine removes it as soon as it stops.
        NotStarted: the new one does not start, or ends with an error at once.
    """
    old = api.inspect_container(name)
    check_can_be_kept(old)
    name, was_running = str(old["Name"]).lstrip("/"), bool(old["State"].get("Running"))
    spare = f"{name}-gpudoctor-{uuid.uuid4().hex[:8]}"
    journal.write(old=old["Id"], name=name, spare=spare, was_running=was_running)
    new = _create(api, old, image, f"{spare}-new")
    journal.write(new=new)
    if was_running:
        api.stop(old["Id"], timeout=old["Config"].get("StopTimeout") or _STOP_SECONDS)
    api.rename(old["Id"], f"{spare}-old")
    api.rename(new, name)
    if was_running:
        _start(api, new)


def check_can_be_kept(about: Mapping[str, Any]) -> None:
    """Raise UsageError if the container is removed as soon as it stops."""
    if about["HostConfig"].get("AutoRemove"):
        name = str(about["Name"]).lstrip("/")
        raise UsageError(f"--recreate: {name} was started with --rm: stop it, rebuild, start it again")


def new_settings(old: Mapping[str, Any], image_config: Mapping[str, Any], image: str) -> dict[str, Any]:
    """Return the body of POST /containers/create for a container like `old`, made of `image`.

    Only what the user set is taken over: what came from the old image comes from the new one again.

    old: as the engine's inspect gives it. image_config: the `Config` of the image that it was made of.
    """
    host = dict(old["HostConfig"])
    host["Binds"] = [*(host.get("Binds") or ()), *_other_volumes(old)]
    host["Links"] = [_link(link) for link in host.get("Links") or ()]
    limits = host.get("Ulimits") or ()  # Podman shows RLIMIT_NOFILE, and takes only "nofile"
    host["Ulimits"] = [{**limit, "Name": limit["Name"].removeprefix("RLIMIT_").lower()} for limit in limits]
    mode = str(host.get("NetworkMode") or "default")
    config = _own(old["Config"], image_config)
    if str(old["Id"]).startswith(config.get("Hostname") or "-") or mode == "host" or mode.startswith("container:"):
        config.pop("Hostname", None)  # the engine chose it
    networks = endpoints(old)
    if mode == "bridge" and networks and "bridge" not in old["NetworkSettings"]["Networks"]:
        mode = host["NetworkMode"] = next(iter(networks))  # Podman says "bridge" whatever the network
    first = {mode: networks[mode]} if mode in networks else {}
    return {**config, "Image": image, "HostConfig": host, "NetworkingConfig": {"EndpointsConfig": first}}


def endpoints(old: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the user's settings for each network of the container that takes any."""
    networks = old["NetworkSettings"].get("Networks") or {}
    return {
        name: {
            "IPAMConfig": about.get("IPAMConfig"),
            "Links": about.get("Links"),
            "Aliases": [alias for alias in about.get("Aliases") or () if not str(old["Id"]).startswith(alias)],
            "DriverOpts": about.get("DriverOpts"),
        }
        for name, about in networks.items()
        if name not in _SHARED_NETWORKS
    }


def _own(config: Mapping[str, Any], of_image: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that are not those of the image."""
    own: dict[str, Any] = {}
    for name, value in config.items():
        before = of_image.get(name)
        if isinstance(value, dict) and name != "Healthcheck":
            own[name] = {key: item for key, item in value.items() if (before or {}).get(key, own) != item}
        elif name == "Env":
            given = {*(before or ()), *_BY_PODMAN, f"HOSTNAME={config.get('Hostname')}"}
            own[name] = [setting for setting in value or () if setting not in given]
        elif value != before and (value or before):
            own[name] = value
    return own


def _other_volumes(old: Mapping[str, Any]) -> list[str]:
    """Return the volumes that no setting names, for the image asked for them: with the data that they have by now."""
    host = old["HostConfig"]
    named = {bind.split(":")[1] for bind in host.get("Binds") or () if ":" in bind}
    named |= {mount.get("Target") for mount in host.get("Mounts") or ()}
    return [
        f"{mount['Name']}:{mount['Destination']}{'' if mount.get('RW', True) else ':ro'}"
        for mount in old.get("Mounts") or ()
        if mount.get("Type") == "volume" and mount["Destination"] not in named
    ]


def _link(link: str) -> str:
    """Return NAME:ALIAS for /NAME:/CONTAINER/ALIAS."""
    name, _, alias = link.partition(":")
    return f"{name.lstrip('/')}:{alias.rpartition('/')[2]}"


def _create(api: APIClient, old: Mapping[str, Any], image: str, name: str) -> str:
    of_image = inspect_image(api, old["Image"]) or {}  # it may be removed: then every setting is taken for the user's
    settings = new_settings(old, of_image.get("Config") or {}, image)
    new = str(api.create_container_from_config(settings, name)["Id"])
    for network, about in endpoints(old).items():
        if network not in settings["NetworkingConfig"]["EndpointsConfig"]:
            addresses = about["IPAMConfig"] or {}
            api.connect_container_to_network(
                new,
                network,
                aliases=about["Aliases"] or None,
                links=[tuple(link.split(":", 1)) for link in about["Links"] or ()] or None,
                ipv4_address=addresses.get("IPv4Address"),
                ipv6_address=addresses.get("IPv6Address"),
                driver_opt=about["DriverOpts"],
            )
    return new


def _start(api: APIClient, container: str) -> None:
    """Start the container; raise NotStarted unless it runs."""
    from docker.errors import APIError

    try:
        api.start(container)
    except APIError as error:
        raise NotStarted(f"the new container does not start: {error.explanation or error}") from None
    await_started(api, container)


def await_started(api: APIClient, container: str) -> None:
    """Wait until the container has run for START_SECONDS, or ended without an error.

    Raises:
        NotStarted: it ended with an error, or is started again and again.
    """
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        state = api.inspect_container(container)["State"]
        if state.get("Restarting") or not state.get("Running"):
            if state.get("ExitCode") == 0 and not state.get("Restarting"):
                return
            lines = api.logs(container, tail=_LOG_LINES).decode(errors="replace").splitlines()
            raise NotStarted(f"the new container ended at once, with status {state.get('ExitCode')}", tuple(lines))
        time.sleep(_POLL_SECONDS)


def new_tag() -> str:
    """Return a tag that no image has."""
    return f"{REPOSITORY}:{uuid.uuid4().hex[:12]}"


def build_under(tag: str, api: APIClient, subject: Subject, attempts: Iterator[Attempt], progress: Progress) -> None:
    """Build until the image under the temporary tag has the files of the context.

    Raises:
        BuildFailed: a build fails, or none has the files of the context.
    """
    for attempt in attempts:
        if attempt.why:
            progress.say(attempt.why)
        for step in attempt.steps:
            _carry_out(step, progress)
        if not _is_stale(api, subject, tag):
            return
    raise BuildFailed(f"{subject.image} is still stale after every kind of build", progress.last_lines)


def _carry_out(step: Step, progress: Progress) -> None:
    """Carry out the step; once more if another program removed a layer that the builder had found in its cache."""
    try:
        step.run(progress)
    except BuildFailed as failed:
        if not any(_LOST_LAYER in text for text in (str(failed), *failed.lines[-1:])):
            raise
        step.run(progress)


def _is_stale(api: APIClient, subject: Subject, tag: str) -> bool:
    """Return whether the image under `tag` has other files than the context has now."""
    found: ProjectImage = look_at_subject(api, replace(subject, image=tag, container=None))
    if found.unknown:
        raise BuildFailed(f"the new image cannot be compared with the context: {found.unknown}")
    return any(is_changed(item) for item in found.instructions)


def move_name(api: APIClient, image: str, to: str, before: str | None, journal: Journal) -> None:
    """Give the name `image` to the image `to`. before: the id of the image that had it when the rebuild began.

    Raises:
        BuildFailed: another one has it by now.
    """
    found = inspect_image(api, image)
    if (None if found is None else found["Id"]) != before:
        raise BuildFailed(f"another program has built {image} in the meantime")
    kept = f"{to}-old" if before else None
    journal.write(image=image, before=before, after=api.inspect_image(to)["Id"], kept=kept)
    if before and kept:
        name_image(api, before, kept)
    name_image(api, to, image)
