"""What the check says about an image, and what of it a build or a new container can mend."""

from __future__ import annotations

from dataclasses import replace

from gpudoctor.engine.catalog import load_checks
from gpudoctor.engine.runner import run_one
from gpudoctor.model import ProjectImage, Snapshot
from gpudoctor.model.record import record

CHECK = "docker-stale-layers"

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


def judge(image: ProjectImage) -> Verdict:
    """Return what the check says."""
    check = next(check for check in load_checks() if check.id == CHECK)
    finding = run_one(check, Snapshot(images=(replace(image, asked_for=True),))).findings[0]
    details = finding.details["images"][0]
    return Verdict(state=details["verdict"], causes=tuple(details["causes"]), text=finding.summary)
