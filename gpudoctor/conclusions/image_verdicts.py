"""Whether images and containers have their projects' current files, and why not."""

from collections.abc import Iterator

from gpudoctor.model import CopiedFiles, ImageVerdict, Mounted, ProjectImage, RunningContainer

HINTS = ("wildcard-matches-nothing",)
"""Causes that do not make an image stale: a rebuild would give the same files."""

CLOCK_SECONDS = 0.02  # file times lag behind the engine's clock by up to a tick: 10 ms with 100 Hz, 7 ms measured


def image_verdicts(images: tuple[ProjectImage, ...] | None) -> tuple[ImageVerdict, ...]:
    """Return the verdict on each examined image."""
    return tuple(_judge(image, f"images[{number}].image_id") for number, image in enumerate(images or ()))


def _judge(image: ProjectImage, fact: str) -> ImageVerdict:
    causes = tuple(dict.fromkeys((*_image_causes(image), *_container_causes(image))))
    verdict = "fresh"
    if any(cause not in HINTS for cause in causes):
        verdict = "stale"
    elif image.unknown or any(item.unknown for item in image.instructions):
        verdict = "unknown"
    return ImageVerdict(image=image, fact=fact, verdict=verdict, causes=causes, newer_code=_newer_code(image))


def _newer_code(image: ProjectImage) -> str:
    container = image.container
    newer = (mount for mount in container.mounts if _is_newer(mount, container)) if container is not None else ()
    return next((mount.newest_code for mount in newer), "")


def _image_causes(image: ProjectImage) -> Iterator[str]:
    if image.differing_lines or image.differing_arguments or image.additional_steps:
        yield "dockerfile-differs-from-image"
    stale = [item for item in image.instructions if _is_seen(item, image.container)]
    changed = [item for item in stale if item.line not in (image.differing_lines or ())]
    if changed:
        yield _why_changed(image, changed)
    if stale and image.fresh_tags:
        yield "fresh-content-under-other-tag"
    if image.base_moved:
        yield "base-image-moved"
    if image.unmet_requirements:
        yield "dependency-not-at-pinned-version"
    if image.shadowing_packages or image.possibly_shadowing_packages:
        yield "site-packages-shadow"
    if any(item.empty_patterns for item in image.instructions):
        yield "wildcard-matches-nothing"


def _container_causes(image: ProjectImage) -> Iterator[str]:
    container = image.container
    if container is None:
        return
    # a mount may have the current files, but the process did not read them
    is_old = any(_is_newer(mount, container) for mount in container.mounts)
    is_older = is_old and bool(_changed(image.container_instructions) - _changed(image.instructions))
    is_seen = any(_is_seen(item, container) for item in image.container_instructions)
    if is_older or is_seen or image.container_fits is False:
        yield "container-runs-older-image"
    if container.modified:
        yield "container-modified-in-place"
    yield from dict.fromkeys(cause for mount in container.mounts if (cause := _mount_cause(mount, container)))


def _changed(instructions: tuple[CopiedFiles, ...]) -> set[str]:
    return {path for item in instructions for path in (*item.stale, *item.missing, *item.extra)}


def _mount_cause(mount: Mounted, container: RunningContainer) -> str:
    if mount.replaced:
        return "bind-source-replaced"
    if mount.stale or mount.missing:
        return "mount-shadows-copy"
    return "process-older-than-mounted-source" if _is_newer(mount, container) else ""


def _is_newer(mount: Mounted, container: RunningContainer) -> bool:
    """Return whether the mount has source files newer than the process, which still runs the old ones."""
    is_read = container.is_running and container.keeps_code and mount.is_context
    return is_read and _older(container.started_at, mount.newest_change_at)


def _is_seen(item: CopiedFiles, container: RunningContainer | None) -> bool:
    """Return whether image files are stale and no mount replaces them with current ones."""
    if container is None:
        return item.is_stale
    current = {path for mount in container.mounts for path in mount.current}
    hidden = tuple(f"{mount.destination.rstrip('/')}/" for mount in container.mounts if mount.is_context)
    extra = (path for path in item.extra if not path.startswith(hidden))
    return bool({*item.stale, *item.missing} - current) or any(extra)


def _why_changed(image: ProjectImage, changed: list[CopiedFiles]) -> str:
    """Return why files of these instructions differ.

    The classic builder's history does not show the sources of a COPY: $V in them may have had another value.
    """
    if not _built_after_the_change(image, changed):
        return "image-not-rebuilt"
    if any(item.may_be_kept for item in changed):
        return "image-rebuilt-but-stale"
    is_other = image.by_buildkit is False and all("$" in item.text for item in changed)
    return "dockerfile-differs-from-image" if is_other else "image-not-rebuilt"


def _built_after_the_change(image: ProjectImage, changed: list[CopiedFiles]) -> bool:
    """Return whether a build ran after the newest change and still kept the old files."""
    newest = max((item.newest_change_at for item in changed if item.newest_change_at is not None), default=None)
    return _older(None if newest is None else newest + CLOCK_SECONDS, image.built_at)


def _older(first: float | None, second: float | None) -> bool:
    return first is not None and second is not None and first < second
