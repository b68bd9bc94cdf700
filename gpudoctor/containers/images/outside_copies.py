"""What a COPY --from takes out of another image: would it bring the same again, now that the name was given anew?"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

from gpudoctor.containers.builds.copied_files import WILDCARDS
from gpudoctor.containers.builds.stages import Copy, find_stage, lineage
from gpudoctor.containers.engines.objects import inspect_image
from gpudoctor.containers.images.base_images import written_at
from gpudoctor.containers.images.facts import ImageFacts
from gpudoctor.containers.images.reader import ContainerFiles, created_container

if TYPE_CHECKING:
    from docker import APIClient

MAXIMUM_BYTES = 64 << 20
"""Larger folders are not compared."""


def moved_sources(api: APIClient, facts: ImageFacts) -> tuple[str, ...]:
    """Return the images, by their names in the Dockerfile, out of which a build would copy other files now.

    Only names that were given to an image after the build are looked into, and only those whose files nothing changes
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
    return any(there.get(relative) != told for relative, told in wanted.items())


def _content(files: ContainerFiles, path: str) -> tuple[bool, dict[str, tuple[object, ...]]]:
    """Return whether a single file stands at `path`, and the identity of each file there, by its relative path."""
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
