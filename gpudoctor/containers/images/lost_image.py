"""A container whose image is gone: its own files beside those of the image that has the name now.

Engines with containerd's image store drop an image when a build gives its name to another one, while its container
goes on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gpudoctor.containers.builds.context import is_below
from gpudoctor.containers.builds.tracing import ResolvedCopy
from gpudoctor.containers.comparison import compared, image_path_of
from gpudoctor.containers.engines.connection import seconds_of
from gpudoctor.containers.images.facts import ImageFacts, read_copied
from gpudoctor.containers.images.files import ImageFile
from gpudoctor.containers.images.reader import ContainerFiles
from gpudoctor.model.images import CopiedFiles, RunningContainer

if TYPE_CHECKING:
    from docker import APIClient

MAXIMUM_NAMED = 1000


def look_at_orphan(api: APIClient, container: RunningContainer, facts: ImageFacts) -> dict[str, Any]:
    """Return `container_instructions` of ProjectImage, or `unknown` where the files do not tell.

    facts: of the image that has the name now.
    """
    copies = facts.plan.copies
    theirs = read_copied(ContainerFiles(api, container.name), copies)
    with facts.files() as files:
        mine = read_copied(files, copies)
    instructions = tuple(_older(copy, container, theirs, mine) for copy in copies)
    if any(item.stale or item.missing for item in instructions):
        return {"container_instructions": instructions}
    created_at = seconds_of(str(api.inspect_container(container.name).get("Created") or ""))
    if seconds_of(str(facts.about.get("Created") or "")) <= created_at:  # every step of it came out of the cache since
        return {}
    return {
        "unknown": f"the engine has lost the image of container {container.name}, and a step of the one with that name"
        " was carried out since: it may be another"
    }


def _older(
    copy: ResolvedCopy, container: RunningContainer, theirs: Mapping[str, ImageFile], mine: Mapping[str, ImageFile]
) -> CopiedFiles:
    """Return the files of one COPY that the container has otherwise than the image, and not by its own changes."""
    hidden = (*container.modified, *(mount.destination for mount in container.mounts))
    stale, missing = [], []
    for placed in compared(copy):
        path = image_path_of(placed, mine)
        if is_below(path, hidden):
            continue
        if path not in theirs and path in mine:
            missing.append(placed.file.path)
        elif path in theirs and (path not in mine or theirs[path].identity != mine[path].identity):
            stale.append(placed.file.path)
    return CopiedFiles(
        line=copy.copy.instruction.line,
        text=copy.copy.instruction.text,
        stage=copy.copy.stage,
        compared=len(compared(copy)),
        stale=tuple(sorted(stale)[:MAXIMUM_NAMED]),
        missing=tuple(sorted(missing)[:MAXIMUM_NAMED]),
    )
