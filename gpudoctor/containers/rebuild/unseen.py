"""Changes that BuildKit does not see: it sends no file again whose size and modification time are those of its copy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpudoctor.containers.builds.copied_files import CopiedFile
from gpudoctor.containers.builds.plan import Plan
from gpudoctor.containers.comparison import image_path_of
from gpudoctor.containers.images.facts import ImageFacts
from gpudoctor.containers.images.files import ImageFile
from gpudoctor.containers.project_images import is_changed

if TYPE_CHECKING:
    from docker import APIClient

MAXIMUM_FILES = 1000


def has_unseen_changes(api: APIClient, image: str, plan: Plan) -> bool:
    """Return whether a stale file has the size and time that it has in the image, where COPY keeps both.

    Then the next plain build may take the old content again, and one that calls the folder by another path may not:
    BuildKit has a copy of the context for each.
    """
    facts = ImageFacts(api, image, plan)
    with facts.files() as files:
        changed = [item for item in facts.instructions(files) if is_changed(item)]
        stale = {path for item in changed for path in item.stale}
        placed = [item for copy in facts.plan.copies for item in copy.selection.placed if item.file.path in stale]
        there = files.read((), {path: -1 for item in placed[:MAXIMUM_FILES] for path in _paths(item)})
        return any(_is_unseen(plan, item, there.get(image_path_of(item, there))) for item in placed[:MAXIMUM_FILES])


def _paths(placed: CopiedFile) -> tuple[str, ...]:
    """Return where the file may be in the image."""
    inside = f"{placed.image_path}/{placed.file.path.rpartition('/')[2]}"
    return (placed.image_path, inside) if placed.inside_if_folder else (placed.image_path,)


def _is_unseen(plan: Plan, placed: CopiedFile, there: ImageFile | None) -> bool:
    now = plan.context.entry(placed.file.path)
    if there is None or now is None or there.kind != "file":
        return False
    return there.size_bytes == now.st_size and int(there.changed_at) == int(now.st_mtime)
