"""What only a pasted report holds: the messages that programs printed, and where the report contradicts itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated

from gpudoctor.model.fact import Fact
from gpudoctor.model.record import record


@record
class Message:
    """A failure message that a program printed, recognised by the table of failure messages."""

    kind: Annotated[str, Fact('its id in the table of failure messages: "torch-out-of-memory"')]
    text: Annotated[str, Fact("what was printed, white space folded, cut where it is long")]
    library: Annotated[str, Fact('who printed it: "torch", "cupy", "nvidia-smi", "docker", "pip"')] = ""
    code: Annotated[int | None, Fact("CUDA error code that it reports")] = None
    source: Annotated[str, Fact("the text it stands in")] = ""
    names: Annotated[Mapping[str, str], Fact('what it names: {"library": "libcudnn.so.9", "capability": "12.0"}')] = (
        field(default_factory=dict)
    )


@record
class Contradiction:
    """A fact for which a report gives two values: of two machines, or of one before and after a change."""

    fact: str
    taken: Annotated[str, Fact("the value that the snapshot holds, and where it stands")]
    other: Annotated[str, Fact("the value passed over, and where it stands")]
