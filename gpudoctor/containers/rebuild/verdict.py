"""What the check says about an image, and what of it a build or a new container can mend."""

from __future__ import annotations

from collections.abc import Callable

from gpudoctor.model import Finding, ProjectImage
from gpudoctor.model.record import record

OF_THE_CONTAINER = (
    "container-runs-older-image",
    "container-modified-in-place",
    "bind-source-replaced",
    "process-older-than-mounted-source",
)
"""Causes that a new container mends, and no build."""

OF_THE_MOUNTS = ("mount-shadows-copy",)
"""Causes that neither mends: the new container has the same mounts."""


@record
class Verdict:
    """state: "fresh", "stale" or "unknown". text: the check's own sentence."""

    state: str
    causes: tuple[str, ...]
    text: str

    @property
    def needs_build(self) -> bool:
        """Return whether a cause is one of the image."""
        return bool(set(self.causes) - {*OF_THE_CONTAINER, *OF_THE_MOUNTS})

    @property
    def needs_container(self) -> bool:
        """Return whether a cause is one that a new container mends."""
        return bool(set(self.causes) & {*OF_THE_CONTAINER})

    @property
    def is_hidden_by_mounts(self) -> bool:
        """Return whether a cause is one that neither a build nor a new container mends."""
        return bool(set(self.causes) & {*OF_THE_MOUNTS})

    @classmethod
    def of(cls, finding: Finding) -> Verdict:
        """Return what the finding of the check on one image says."""
        about = finding.details["images"][0]
        return cls(state=about["verdict"], causes=tuple(about["causes"]), text=finding.summary)


Judge = Callable[[ProjectImage], Verdict]
"""Asks the check about an image."""
