"""What a watched run is remembered as."""

from __future__ import annotations

from typing import Annotated

from gpudoctor.model.record import Fact, record
from gpudoctor.watching.samples import Watch
from gpudoctor.watching.verdict import Reason

SCHEMA = "gpudoctor/run/1"


@record
class WatchedRun:
    """A program that has ended, and what held the GPU back meanwhile."""

    command: tuple[str, ...]
    exit_status: int
    elapsed_seconds: float
    every_seconds: Annotated[float, Fact("between two samples, unless the run was so long that they were thinned")]
    profile: Annotated[str | None, Fact("file of the env profile that it ran with")] = None
    watch: Watch
    reasons: tuple[Reason, ...]
