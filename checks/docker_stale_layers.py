"""Images and containers, compared with the files that they should have."""

import posixpath
from collections.abc import Iterator
from typing import Any

from gpudoctor.model import CopiedFiles, Finding, Fix, ImageVerdict, ProjectImage, Severity
from gpudoctor.model.codec import to_json
from gpudoctor.registry import check

SEVERITIES = {"stale": Severity.ERROR, "unknown": Severity.WARNING, "fresh": Severity.INFO}
STEP_CHARACTERS = 80  # of a step in the history that the summary shows
NAMED = 5  # files that the summary and the evidence name; `details` has all


@check(family="container")
def docker_stale_layers(
    images: tuple[ProjectImage, ...], image_verdicts: tuple[ImageVerdict, ...]
) -> Iterator[Finding]:
    """An image or container has older files than the project that it is built from.

    Why: the program that runs is not the one that was edited. A build that says "cached", or even one with --no-cache,
    may still have old files: BuildKit uses its own copy of a file if the file's size and modification time are
    unchanged.
    Exception: files that .dockerignore excludes, or that a later instruction writes, are not compared.
    Reference: https://docs.docker.com/build/cache/invalidation/
    """
    for image, verdict in zip(images, image_verdicts, strict=True):
        if verdict.verdict != "fresh" or verdict.causes or image.asked_for:
            is_stale = verdict.verdict == "stale"
            yield Finding.of(
                _severity(verdict),
                verdict.subject,
                _summary(verdict),
                (verdict.fact,),
                *((Fix("refresh-image", image=image, causes=verdict.causes),) if is_stale else ()),
                details={"images": [_details(verdict)]},
            )


def _severity(verdict: ImageVerdict) -> Severity:
    """Return how bad it is: a hint, and an old copy that perhaps nothing imports, is worth a warning."""
    is_possible = verdict.causes == ("site-packages-shadow",) and not verdict.image.shadowing_packages
    return Severity.WARNING if is_possible or verdict.is_hint else SEVERITIES[verdict.verdict]


def _summary(verdict: ImageVerdict) -> str:
    image = verdict.image
    if verdict.verdict == "unknown":
        reasons = (image.unknown, *(item.unknown for item in image.instructions))
        return f"whether {image.image} is stale cannot be determined: {next(reason for reason in reasons if reason)}"
    if verdict.verdict == "fresh":
        patterns = [pattern for item in image.instructions for pattern in item.empty_patterns]
        but = f"; no file matches {', '.join(patterns[:NAMED])}" if patterns else ""
        return f"{image.image} is up to date with {_name(image.context)}{but}"
    return f"{verdict.subject} is stale ({', '.join(verdict.causes)}): {_what(verdict)}"


def _what(verdict: ImageVerdict) -> str:
    image = verdict.image
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
        return f"{first.file} needs {first.requirement}, but the image has {first.installed or 'none'}"
    if image.shadowing_packages:
        return f"the older {image.shadowing_packages[0]} is imported instead of the copied source"
    if image.possibly_shadowing_packages:
        path = image.possibly_shadowing_packages[0]
        return f"{path} is older than the copied source, and which of them its command imports is unknown"
    if image.differing_lines:
        return f"line {image.differing_lines[0]} of {_name(image.dockerfile)} is not in its history"
    if image.additional_steps:
        step = image.additional_steps[0][:STEP_CHARACTERS]
        return f"its history has a step that {_name(image.dockerfile)} does not have: {step}"
    if verdict.newer_code:
        code = _name(verdict.newer_code)
        return f"its process started before {code} was written, and reads its source once"
    return "see the details"


def _name(path: str) -> str:
    return posixpath.basename(path.rstrip("/")) or path


def _details(verdict: ImageVerdict) -> dict[str, Any]:
    image, container = verdict.image, verdict.image.container
    return {
        "image": image.image,
        "service": image.service,
        "container": None if container is None else container.name,
        "dockerfile": image.dockerfile,
        "verdict": verdict.verdict,
        "causes": list(verdict.causes),
        "instructions": [_instruction(item) for item in image.instructions],
        "mounts": [] if container is None else to_json(container.mounts),
    }


def _instruction(item: CopiedFiles) -> dict[str, Any]:
    return {
        "line": item.line,
        "text": item.text,
        "stage": item.stage,
        "verdict": "stale" if item.is_stale else "opaque" if item.opaque else "same",
        "stale": list(item.stale),
        "missing": list(item.missing),
        "extra": list(item.extra),
        "ignored": list(item.ignored),
        "changed_later": list(item.changed_later),
    }
