"""Images other than the one that is looked at: newer builds of the same project, and those that COPY --from names."""

import posixpath
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from itertools import islice
from typing import Any

from gpudoctor.containers.builds.copied_files import WILDCARDS
from gpudoctor.containers.builds.plan import Plan
from gpudoctor.containers.builds.stages import Copy, find_stage, lineage
from gpudoctor.containers.engines import APIClient
from gpudoctor.containers.engines.objects import inspect_image
from gpudoctor.containers.images.base_images import UNTAGGED, written_at
from gpudoctor.containers.images.facts import ImageFacts
from gpudoctor.containers.images.history import HistoryMatch, entries_of, match_history
from gpudoctor.containers.images.reader import ContainerFiles, created_container

MAXIMUM_HISTORIES = 30
"""Of the newest images: so many are asked whether they are built from the same Dockerfile."""

LEAST_SHARE = 0.5
"""Of the steps of a Dockerfile that an image must have to be taken for one of its builds."""

MAXIMUM_COMPARED = 5
"""Of those: so many are compared with the context."""

MAXIMUM_BYTES = 64 << 20
"""Larger folders are not compared."""


def fresh_tags(api: APIClient, stale: ImageFacts) -> tuple[str, ...]:
    """Return the tags of other local images that contain the files of the context, while `stale` does not."""
    others = (image for image in _newest(api) if image["Id"] != stale.id)
    alike = (image for image in others if (there := _fit(api, image, stale.plan)) is not None and there.fits)
    return tuple(tag for image in islice(alike, MAXIMUM_COMPARED) for tag in _fresh_tags_of(api, image, stale.plan))


def tags_of_plan(api: APIClient, plan: Plan) -> tuple[str, ...]:
    """Return a tag of the newest local image of each repository that is built from the Dockerfile, the newest first.

    Where the Dockerfile was changed since, those are taken that still have most of its steps, a COPY or ADD among them.
    """
    tags: dict[str, str] = {}
    for image in _newest(api):
        there = _fit(api, image, plan)
        if there is None or not any(there.entry(step.instruction) for step in plan.steps if step.copy):
            continue
        share = 1 - len({*there.differing}) / len(plan.steps) - len(there.additional) / (len(there.own) + 1)
        if share > LEAST_SHARE:
            tags.update((repository_of(tag), tag) for tag in _tags(image) if repository_of(tag) not in tags)
    return tuple(tags.values())


def repository_of(tag: str) -> str:
    """Return the name before the ":" of a tag."""
    return tag.rpartition(":")[0]


def _newest(api: APIClient) -> list[Mapping[str, Any]]:
    """Return the newest tagged images, the newest first."""
    images = [image for image in api.images() if _tags(image)]
    return sorted(images, key=lambda image: -int(image.get("Created") or 0))[:MAXIMUM_HISTORIES]


def _fit(api: APIClient, image: Mapping[str, Any], plan: Plan) -> HistoryMatch | None:
    from docker.errors import NotFound

    try:
        return match_history(entries_of(api.history(image["Id"])), plan.stages, plan.target)
    except NotFound:  # removed by somebody in the meantime
        return None


def _fresh_tags_of(api: APIClient, image: Mapping[str, Any], plan: Plan) -> list[str]:
    from docker.errors import NotFound

    try:
        instructions = ImageFacts(api, str(image["Id"]), plan).instructions()
    except NotFound:  # removed by somebody in the meantime
        return []
    differ = any(item.stale or item.missing or item.extra or item.unknown for item in instructions)
    is_fresh = not differ and any(item.compared for item in instructions)
    return _tags(image) if is_fresh else []


def _tags(image: Mapping[str, Any]) -> list[str]:
    return [str(tag) for tag in image.get("RepoTags") or () if tag != UNTAGGED]


def moved_sources(api: APIClient, facts: ImageFacts) -> tuple[str, ...]:
    """Return the images, by their names in the Dockerfile, from which a build would copy other files now.

    Only names that were given to an image after the build are checked, and only those whose files nothing changes
    on the way: no RUN of the stage that is named after the image, and none after the COPY.
    """
    found = (
        name
        for name, copy in _outside_copies(facts)
        if (about := inspect_image(api, name)) is not None
        and written_at(about) > facts.built_at
        and about["Id"] != facts.id
        and _differs(api, name, facts.id, copy)
    )
    return tuple(dict.fromkeys(found))


def _outside_copies(facts: ImageFacts) -> Iterator[tuple[str, Copy]]:
    """Yield the copies out of images as they are, each with the name of the image."""
    stages = facts.plan.stages
    index = {stage.name: stage.index for stage in stages}
    for item in facts.plan.copies:
        if not item.copy.origin or not item.opaque or item.later_run:
            continue
        origin = find_stage(stages[: index[item.copy.stage]], item.copy.origin)
        line = () if origin is None else lineage(stages, origin)
        if not any(step.instruction.name in ("RUN", "COPY", "ADD") for stage in line for step in stage.steps):
            yield line[0].base if line else item.copy.origin, item.copy


def _differs(api: APIClient, name: str, image_id: str, copy: Copy) -> bool:
    with ExitStack() as stack:
        theirs, mine = (
            ContainerFiles(api, stack.enter_context(created_container(api, image))) for image in (name, image_id)
        )
        return any(
            _brings_others(theirs, mine, copy, source) for source in copy.sources if not WILDCARDS.search(source)
        )


def _brings_others(theirs: ContainerFiles, mine: ContainerFiles, copy: Copy, source: str) -> bool:
    path = posixpath.normpath(posixpath.join("/", source))
    is_file, wanted = _content(theirs, path)
    name = posixpath.basename(path) if is_file and copy.destination.endswith("/") else ""
    _, there = _content(mine, posixpath.normpath(posixpath.join(copy.destination, name)))
    return any(there.get(relative) != digest for relative, digest in wanted.items())


def _content(files: ContainerFiles, path: str) -> tuple[bool, dict[str, tuple[object, ...]]]:
    """Return whether a single file is at `path`, and the identity of each file there, by its relative path."""
    file = files.whole_file(path)
    if file is None:
        return False, {}
    if file.kind != "folder":
        return True, {"": file.identity}
    sizes = {name: item.size_bytes for name, item in files.read([path], {}).items() if item.kind == "file"}
    if sum(sizes.values()) > MAXIMUM_BYTES:
        return False, {}
    found = files.read([path], sizes)
    kept = {name: item.identity for name, item in found.items() if item.kind != "folder"}
    return False, {posixpath.relpath(name, path): identity for name, identity in kept.items()}
