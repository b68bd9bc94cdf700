"""One image rebuilt under a temporary tag, compared, and only then given its name."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from gpudoctor.containers.engines.objects import inspect_image
from gpudoctor.containers.project_images import is_changed
from gpudoctor.containers.rebuild.builders import Attempt
from gpudoctor.containers.rebuild.steps import BuildFailed, Progress
from gpudoctor.containers.requested import Subject, look_at_subject
from gpudoctor.model.images import ProjectImage

if TYPE_CHECKING:
    from docker import APIClient

REPOSITORY = "gpudoctor-rebuild"
"""Of the temporary tags."""


def new_tag() -> str:
    """Return a tag that nobody has."""
    return f"{REPOSITORY}:{uuid.uuid4().hex[:12]}"


@contextmanager
def rebuilt_image(
    api: APIClient, subject: Subject, attempts_under: Callable[[str], Iterator[Attempt]], progress: Progress
) -> Iterator[str]:
    """Give a temporary tag under which the files are those of the context; it is gone at the end.

    attempts_under: gives what to try, from the temporary tag.

    Raises:
        BuildFailed: a build fails, or none has the files of the context.
    """
    tag = new_tag()
    try:
        for attempt in attempts_under(tag):
            if attempt.why:
                progress.say(attempt.why)
            for step in attempt.steps:
                step.run(progress)
            if not _is_stale(api, subject, tag):
                break
        else:
            raise BuildFailed(f"{subject.image} is still stale after every kind of build", progress.last_lines)
        yield tag
    finally:
        remove_tag(api, tag)


def _is_stale(api: APIClient, subject: Subject, tag: str) -> bool:
    """Return whether the image under `tag` has other files than the context has now."""
    found: ProjectImage = look_at_subject(api, replace(subject, image=tag, container=None))
    if found.unknown:
        raise BuildFailed(f"the build cannot be compared: {found.unknown}")
    return any(is_changed(item) for item in found.instructions)


def remove_tag(api: APIClient, tag: str) -> None:
    """Remove the tag; of its image only what has no other name, and never the cache below it."""
    from docker.errors import DockerException

    with contextlib.suppress(DockerException):
        api.remove_image(tag, noprune=True)


@contextmanager
def moved_tag(api: APIClient, image: str, to: str) -> Iterator[None]:
    """Give the name `image` to the image `to`; when what follows fails, the name goes back to where it was."""
    before = inspect_image(api, image)
    try:
        _tag(api, to, image)
        yield
    except BaseException:
        if before is None:
            remove_tag(api, image)
        else:
            _tag(api, str(before["Id"]), image)
        raise


def _tag(api: APIClient, image: str, name: str) -> None:
    from docker.utils import parse_repository_tag

    repository, tag = parse_repository_tag(name)
    api.tag(image, repository, tag)
