"""What only a pasted report can show: where it contradicts itself."""

from __future__ import annotations

from typing import Annotated

from gpudoctor.model.fact import Fact
from gpudoctor.model.record import record


@record
class Contradiction:
    """A fact for which a report gives two values: of two machines, or of one before and after a change."""

    fact: str
    taken: Annotated[str, Fact("the value that the snapshot holds, and where it stands")]
    other: Annotated[str, Fact("the value passed over, and where it stands")]
