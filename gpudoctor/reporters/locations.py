"""Where in the project's files a finding is about, for the formats that show it there."""

import posixpath
import re
from collections.abc import Iterator

from gpudoctor.model import Finding, Snapshot
from gpudoctor.model.images import ProjectImage
from gpudoctor.model.record import record

_IMAGE = re.compile(r"images\[(\d{1,6})\]")
_REQUIREMENT = re.compile(r"project\.requirements\[(\d{1,6})\]")
_SOURCE = re.compile(r"(?P<path>.+?)(?: line (?P<line>\d{1,9}))?")  # "requirements.txt line 3"


@record
class Location:
    """A file, relative to the project's folder if it is below it, and a line of it from 1."""

    path: str
    line: int | None = None


def locations(finding: Finding, snapshot: Snapshot, root: str) -> list[Location]:
    """Return the places in files that the finding's facts name, each once; none for one about the machine alone.

    root: the project's folder, written as the snapshot writes paths; "" if it is not known.
    """
    places = dict.fromkeys(place for fact in finding.facts for place in _places(fact, snapshot, root))
    return list(places)


def _places(fact: str, snapshot: Snapshot, root: str) -> Iterator[Location]:
    image = _IMAGE.match(fact)
    if image is not None and int(image[1]) < len(snapshot.images or ()):
        yield from _of_image((snapshot.images or ())[int(image[1])], root)
    requirement = _REQUIREMENT.match(fact)
    asked = (snapshot.project.requirements if snapshot.project is not None else None) or ()
    if requirement is not None and int(requirement[1]) < len(asked):
        yield from _of_source(asked[int(requirement[1])].source)


def _of_image(image: ProjectImage, root: str) -> Iterator[Location]:
    """Yield the stale lines of the Dockerfile and the files whose requirements are not met; else the Dockerfile."""
    dockerfile = _relative(image.dockerfile, root)
    lines = [item.line for item in image.instructions if item.is_stale] + list(image.differing_lines or ())
    files = [_relative(posixpath.join(image.context, unmet.file), root) for unmet in image.unmet_requirements]
    for line in sorted(set(lines)):
        yield Location(path=dockerfile, line=line)
    for file in files:
        yield Location(path=file)
    if dockerfile and not lines and not files:
        yield Location(path=dockerfile)


def _of_source(source: str) -> Iterator[Location]:
    match = _SOURCE.fullmatch(source)
    if match is not None:
        yield Location(path=match["path"], line=int(match["line"]) if match["line"] else None)


def _relative(path: str, root: str) -> str:
    inside = root and path.startswith(f"{root.rstrip('/')}/")
    return path[len(root.rstrip("/")) + 1 :] if inside else path
