"""Images and containers beside the files that they should hold."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from typing import Any

from gpudoctor.model import CopiedFiles, Finding, Mounted, ProjectImage, Remedy, RunningContainer, Severity
from gpudoctor.model.codec import to_json
from gpudoctor.registry import check
from gpudoctor.remedies.stale_images import stale_image

SEVERITIES = {"stale": Severity.ERROR, "unknown": Severity.WARNING, "fresh": Severity.INFO}
HINTS = ("wildcard-matches-nothing",)
CLOCK_SECONDS = 0.05  # the clock of files may be so far behind the engine's: measured 7 ms with Linux 6.18
STEP_CHARACTERS = 80  # of a step in the history that the summary shows
NAMED = 5  # files that the summary and the evidence name; `details` has all


@check(family="container")
def docker_stale_layers(images: tuple[ProjectImage, ...]) -> Iterator[Finding]:
    """An image or container holds older files than the project that it is built from.

    Why: the program that runs is not the one that was edited. A build that says "cached", or even --no-cache, is no
        proof: BuildKit takes a file whose size and modification time are unchanged from its own copy.
    Exception: files that .dockerignore leaves out are no part of the image, and what a later instruction of the
        Dockerfile writes is its own.
    Reference: https://docs.docker.com/build/cache/invalidation/
    """
    for number, image in enumerate(images):
        verdict, causes = judge(image)
        if verdict == "fresh" and not causes and not image.asked_for:
            continue
        yield Finding(
            severity=_severity(image, verdict, causes),
            subject=_subject(image),
            summary=_summary(image, verdict, causes),
            facts=(f"images[{number}].image_id",),
            remedies=_remedies(image, causes) if verdict == "stale" else (),
            details={"images": [_details(image, verdict, causes)]},
        )


def _severity(image: ProjectImage, verdict: str, causes: tuple[str, ...]) -> Severity:
    """Return how bad it is: a hint, and an old copy that perhaps nothing imports, is worth a warning."""
    is_possible = causes == ("site-packages-shadow",) and not image.shadowing_packages
    return Severity.WARNING if is_possible or (verdict == "fresh" and causes) else SEVERITIES[verdict]


def judge(image: ProjectImage) -> tuple[str, tuple[str, ...]]:
    """Return the verdict ("fresh", "stale" or "unknown") and the causes, the first to act on first.

    A cause of HINTS is told of a fresh image too: another build would make the same again.
    """
    causes = tuple(dict.fromkeys((*_image_causes(image), *_container_causes(image))))
    if any(cause not in HINTS for cause in causes):
        return "stale", causes
    if image.unknown or any(item.unknown for item in image.instructions):
        return "unknown", causes
    return "fresh", causes


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
    if any(_is_seen(item, container) for item in image.container_instructions) or image.container_fits is False:
        yield "container-runs-older-image"
    if container.modified:
        yield "container-modified-in-place"
    yield from dict.fromkeys(cause for mount in container.mounts if (cause := _mount_cause(mount, container)))


def _mount_cause(mount: Mounted, container: RunningContainer) -> str:
    if mount.replaced:
        return "bind-source-replaced"
    if mount.stale or mount.missing:
        return "mount-shadows-copy"
    return "process-older-than-mounted-source" if _is_newer(mount, container) else ""


def _is_newer(mount: Mounted, container: RunningContainer) -> bool:
    """Return whether the mount has source that was written after the process, which goes on with what it read."""
    is_read = container.is_running and container.keeps_code and mount.is_context
    return is_read and _older(container.started_at, mount.newest_change_at)


def is_stale(item: CopiedFiles) -> bool:
    """Return whether the image has other files than a build would copy now."""
    return bool(item.stale or item.missing or item.extra)


def _is_seen(item: CopiedFiles, container: RunningContainer | None) -> bool:
    """Return whether files of the image are stale, and no mount of the container shows the present ones instead."""
    if container is None:
        return is_stale(item)
    current = {path for mount in container.mounts for path in mount.current}
    hidden = tuple(f"{mount.destination.rstrip('/')}/" for mount in container.mounts if mount.is_context)
    extra = (path for path in item.extra if not path.startswith(hidden))
    return bool({*item.stale, *item.missing} - current) or any(extra)


def _why_changed(image: ProjectImage, changed: list[CopiedFiles]) -> str:
    """Return why files of these instructions differ.

    The history of the classic builder does not tell the sources of a COPY: $V in them may have been another one.
    """
    if not _built_after_the_change(image, changed):
        return "image-not-rebuilt"
    if any(item.may_be_kept for item in changed):
        return "image-rebuilt-but-stale"
    is_other = image.by_buildkit is False and all("$" in item.text for item in changed)
    return "dockerfile-differs-from-image" if is_other else "image-not-rebuilt"


def _built_after_the_change(image: ProjectImage, changed: list[CopiedFiles]) -> bool:
    """Return whether a build ran after the newest change, and kept the old files all the same."""
    newest = max((item.newest_change_at for item in changed if item.newest_change_at is not None), default=None)
    return _older(None if newest is None else newest + CLOCK_SECONDS, image.built_at)


def _older(first: float | None, second: float | None) -> bool:
    return first is not None and second is not None and first < second


def _subject(image: ProjectImage) -> str:
    return f"container {image.container.name}" if image.container is not None else f"image {image.image}"


def _summary(image: ProjectImage, verdict: str, causes: tuple[str, ...]) -> str:
    if verdict == "unknown":
        reasons = (image.unknown, *(item.unknown for item in image.instructions))
        return f"whether {image.image} is stale cannot be told: {next(reason for reason in reasons if reason)}"
    if verdict == "fresh":
        patterns = [pattern for item in image.instructions for pattern in item.empty_patterns]
        but = f"; no file matches {', '.join(patterns[:NAMED])}" if patterns else ""
        return f"{image.image} holds the files of {_name(image.context)} as they are now{but}"
    return f"{_subject(image)} is stale ({', '.join(causes)}): {_what(image)}"


def _what(image: ProjectImage) -> str:
    items = (*image.instructions, *image.container_instructions)
    files = list(dict.fromkeys(path for item in items for path in (*item.stale, *item.missing, *item.extra)))
    if image.container is not None:
        files += [path for mount in image.container.mounts for path in (*mount.stale, *mount.missing)]
        files += list(image.container.modified)
    if files:
        more = f" and {len(files) - NAMED} more" if len(files) > NAMED else ""
        return f"{', '.join(files[:NAMED])}{more}"
    if image.unmet_requirements:
        first = image.unmet_requirements[0]
        return f"{first.file} asks for {first.requirement}, it has {first.installed or 'none'}"
    if image.shadowing_packages:
        return f"the older {image.shadowing_packages[0]} is imported instead of the copied source"
    if image.possibly_shadowing_packages:
        path = image.possibly_shadowing_packages[0]
        return f"{path} is older than the copied source, and its command does not tell which of them is imported"
    if image.differing_lines:
        return f"line {image.differing_lines[0]} of {_name(image.dockerfile)} is not in its history"
    if image.additional_steps:
        step = image.additional_steps[0][:STEP_CHARACTERS]
        return f"its history has a step that {_name(image.dockerfile)} has not: {step}"
    container = image.container
    mounts = () if container is None else container.mounts
    newer = [mount.newest_code for mount in mounts if container is not None and _is_newer(mount, container)]
    if any(newer):
        return f"its process started before {_name(newer[0])} was written, and reads its source once"
    return "see the details"


def _name(path: str) -> str:
    return posixpath.basename(path.rstrip("/")) or path


def _remedies(image: ProjectImage, causes: tuple[str, ...]) -> tuple[Remedy, ...]:
    """Return what mends each cause, the first to act on first; what mends several stands there once."""
    return tuple(dict.fromkeys(stale_image(image, cause) for cause in causes if cause not in HINTS))


def _details(image: ProjectImage, verdict: str, causes: tuple[str, ...]) -> dict[str, Any]:
    container = image.container
    return {
        "image": image.image,
        "service": image.service,
        "container": None if container is None else container.name,
        "dockerfile": image.dockerfile,
        "verdict": verdict,
        "causes": list(causes),
        "instructions": [_instruction(item) for item in image.instructions],
        "mounts": [] if container is None else to_json(container.mounts),
    }


def _instruction(item: CopiedFiles) -> dict[str, Any]:
    stale = is_stale(item)
    return {
        "line": item.line,
        "text": item.text,
        "stage": item.stage,
        "verdict": "stale" if stale else "opaque" if item.opaque else "same",
        "stale": list(item.stale),
        "missing": list(item.missing),
        "extra": list(item.extra),
        "ignored": list(item.ignored),
        "changed_later": list(item.changed_later),
    }
