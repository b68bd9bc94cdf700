"""Newer builds of the same project under other tags."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

from gpudoctor.containers.builds.plan import Plan
from gpudoctor.containers.images.base_images import UNTAGGED
from gpudoctor.containers.images.facts import ImageFacts
from gpudoctor.containers.images.history import HistoryMatch, entries_of, match_history

if TYPE_CHECKING:
    from docker import APIClient

MAXIMUM_HISTORIES = 30
"""Of the newest images: so many are asked whether they are built from the same Dockerfile."""

LEAST_SHARE = 0.5
"""Of the steps of a Dockerfile that an image must have to be taken for one of its builds."""

MAXIMUM_COMPARED = 5
"""Of those: so many are compared with the context."""


def fresh_tags(api: APIClient, stale: ImageFacts) -> tuple[str, ...]:
    """Return the tags of other local images that hold the files of the context, while `stale` does not."""
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
