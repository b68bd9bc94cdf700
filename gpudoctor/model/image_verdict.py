"""What is concluded of an image or container: whether it has the files that the project has now."""

from __future__ import annotations

from typing import Annotated

from gpudoctor.model.fact import Fact
from gpudoctor.model.images import ProjectImage
from gpudoctor.model.record import record


@record
class ImageVerdict:
    """Whether an image, or its container, is stale, and why."""

    image: ProjectImage
    fact: Annotated[str, Fact("path of the fact that identifies it")]
    verdict: Annotated[str, Fact('"fresh", "stale" or "unknown"')]
    causes: Annotated[tuple[str, ...], Fact("the first to act on first")] = ()
    newer_code: Annotated[str, Fact("a mounted file that was written after the process read its code")] = ""

    @property
    def is_hint(self) -> bool:
        """Whether a rebuild would change nothing although there is a cause."""
        return self.verdict == "fresh" and bool(self.causes)

    @property
    def subject(self) -> str:
        """The image or container, for a finding."""
        container = self.image.container
        return f"container {container.name}" if container is not None else f"image {self.image.image}"
