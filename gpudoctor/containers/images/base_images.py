"""What an image was built on and with: its base images, and the values of its arguments."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from gpudoctor.containers.builds.plan import Plan
from gpudoctor.containers.builds.stages import Base, lineage
from gpudoctor.containers.engines import APIClient
from gpudoctor.containers.engines.connection import seconds_of
from gpudoctor.containers.engines.objects import Inspected, inspect_image
from gpudoctor.containers.images.history import Entry, HistoryMatch, entries_of

UNTAGGED = "<none>:<none>"
MAXIMUM_IMAGES = 50
"""Tagged local images that are looked through for the one that an image was built on, the newest first."""

MAXIMUM_SHOWN = 60
"""Characters of a value that are shown."""

_SECRET = re.compile(r"key|token|secret|passw|credential|auth", re.IGNORECASE)


def inspect_bases(api: APIClient, plan: Plan) -> dict[str, Inspected]:
    """Return the bases of the plan that the engine has, by their names in FROM. BuildKit leaves most of them out."""
    inspected = ((name, inspect_image(api, name)) for name in sorted(plan.outside_bases))
    return {name: about for name, about in inspected if about is not None}


def bases_of(image: Inspected, bases: Mapping[str, Inspected], plan: Plan, fit: HistoryMatch) -> dict[str, Base]:
    """Return what the build inherits from each base.

    Where the one that the image builds on no longer exists, the image itself says its working directory and
    its variables, without those that the Dockerfile sets too.
    """
    found = {name: _handed_over(about) for name, about in bases.items()}
    if plan.base not in bases or not is_built_on(image, bases[plan.base]):
        found[plan.base] = _base_of_image(image, plan, fit)
    return found


def is_built_on(image: Inspected, base: Inspected) -> bool:
    """Return whether the layers of `base` are the first of `image`."""
    layers, below = _layers(image), _layers(base)
    return layers[: len(below)] == below


def has_base_moved(image: Inspected, base: Inspected | None) -> bool | None:
    """Return whether the name of the base was given to another image since `image` was built on it; None if unknown.

    A base that is older than the image proves nothing: BuildKit takes the newest of the registry, and leaves the local
    image of that name as it is.
    """
    if base is None or any(image.get(key) != base.get(key) for key in ("Os", "Architecture")):
        return None
    return not is_built_on(image, base) and written_at(base) > seconds_of(str(image.get("Created") or ""))


def tag_built_on(api: APIClient, image: Inspected, fit: HistoryMatch) -> str | None:
    """Return a tag of the local image that `image` was built on; None if it is not found."""
    from docker.errors import NotFound

    tags = [str(tag) for item in api.images() for tag in (item.get("RepoTags") or ())[:1]]
    below = [entry.text for entry in fit.before]
    for tag in [tag for tag in tags if tag != UNTAGGED][:MAXIMUM_IMAGES]:
        about = inspect_image(api, tag)
        if about is None or not _layers(about) or about["Id"] == image["Id"] or not is_built_on(image, about):
            continue
        with suppress(NotFound):  # removed by somebody in the meantime
            if [entry.text for entry in entries_of(api.history(about["Id"]))] == below:
                return tag
    return None


def written_at(image: Inspected) -> float:
    """Return when its tag was last written, else when it was created: seconds since 1970."""
    tagged = seconds_of(str((image.get("Metadata") or {}).get("LastTagTime") or ""))
    return max(tagged, seconds_of(str(image.get("Created") or "")))


def environment_of(config: Mapping[str, Any]) -> dict[str, str]:
    """Return the variables of an image or container. config: of it, as the engine describes it."""
    pairs = (str(item).partition("=") for item in config.get("Env") or ())
    return {name: value for name, _, value in pairs}


def _handed_over(about: Inspected) -> Base:
    config = about.get("Config") or {}
    return Base(
        directory=config.get("WorkingDir") or "/",
        environment=environment_of(config),
        triggers=tuple(config.get("OnBuild") or ()),
    )


def _base_of_image(image: Inspected, plan: Plan, fit: HistoryMatch) -> Base:
    own = {word.partition("=")[0] for step in plan.steps if step.instruction.name == "ENV" for word in step.words}
    directories = (entry.text.removesuffix("# buildkit").strip().rpartition("WORKDIR ") for entry in fit.before)
    last = [path for _, name, path in directories if name and path.startswith("/")]
    return Base(
        directory=last[-1] if last else "/",
        environment={
            name: value for name, value in environment_of(image.get("Config") or {}).items() if name not in own
        },
    )


def _layers(about: Inspected) -> list[str]:
    return list((about.get("RootFS") or {}).get("Layers") or ())


def differing_arguments(fit: HistoryMatch, plan: Plan) -> tuple[str, ...]:
    """Return the given arguments that had another value: "V: 1 in the image, 2 asked for".

    Both builders write the arguments that a RUN may read before its command: |2 V=1 W=2 /bin/sh -c ...
    """
    given = {name: value for name, value in plan.arguments.items() if name in _declared(plan)}
    return _differences(_differing(given, fit.own), given)


def differing_defaults(fit: HistoryMatch, plan: Plan, built_at: float) -> tuple[str, ...]:
    """Return the arguments that are not given, and whose default was another one when the image was built.

    BuildKit writes `ARG V=1` with the value that V had. That may have been given, too: it shows another default
    only if the Dockerfile was written after the build.
    """
    if plan.changed_at <= built_at:
        return ()
    defaults = {name: value for name, value in _declared(plan).items() if name not in plan.arguments}
    written = (re.fullmatch(r"ARG (\w+)=(.*)", entry.text, re.DOTALL) for entry in fit.own if entry.by_buildkit)
    had = ((item[1], item[2]) for item in written if item is not None)
    return _differences(((name, value) for name, value in had if defaults.get(name, value) != value), defaults)


def _differences(differing: Iterable[tuple[str, str]], wanted: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(
        f"{name}: {_shown(name, value)} in the image, {_shown(name, wanted[name])} asked for"
        for name, value in sorted(dict(differing).items())
    )


def _declared(plan: Plan) -> dict[str, str]:
    stages = lineage(plan.stages, plan.target)
    return {name: value for stage in stages for name, value in stage.arguments.items()}


def _differing(given: Mapping[str, str], entries: Sequence[Entry]) -> Iterator[tuple[str, str]]:
    for entry in entries:
        text = re.sub(r"^RUN ", "", entry.text)
        if not text.startswith("|"):
            continue
        for name, value in given.items():
            match = re.search(
                rf"^\|\d+ (?:.*? )??{re.escape(name)}=(.*?)(?= [A-Za-z_]\w*=| /\S+ -\S*c )", text, re.DOTALL
            )
            if match is not None and match[1] != value and f" {name}={value} " not in text:
                yield name, match[1]


def _shown(name: str, value: str) -> str:
    return "***" if _SECRET.search(name) else repr(value[:MAXIMUM_SHOWN])
