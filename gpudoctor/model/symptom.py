"""Symptoms (failure messages and error codes), and contradictions in a pasted report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated

from gpudoctor.model.record import Fact, record

LONGEST_QUOTE = 120  # characters of a message in a sentence; the evidence has more


def shortened(text: str) -> str:
    """Return a text for a sentence: a long one ends after a word."""
    return (
        text if len(text) <= LONGEST_QUOTE else f"{text[:LONGEST_QUOTE].rpartition(' ')[0] or text[:LONGEST_QUOTE]} ..."
    )


@record
class Symptom:
    """A recognised failure message or error code from a live machine, container log or pasted text."""

    kind: Annotated[str, Fact('its id in the message tables: "torch-out-of-memory"')]
    text: Annotated[str, Fact("what was printed, white space folded, cut if it is long")]
    library: Annotated[str, Fact('who printed it: "torch", "cupy", "nvidia-smi", "docker", "pip"')] = ""
    code: Annotated[str, Fact('error code that it reports: "cuda-803", "nvml-18"; empty if it reports none')] = ""
    names: Annotated[Mapping[str, str], Fact('what it names: {"library": "libcudnn.so.9", "capability": "12.0"}')] = (
        field(default_factory=dict)
    )
    fact: Annotated[str, Fact("path of the fact that holds it; its own path in a pasted text")] = ""
    source: Annotated[str, Fact("the text that contains it: report.txt")] = ""

    @property
    def quote(self) -> str:
        """The text, for a sentence."""
        return shortened(self.text)


@record
class Contradiction:
    """A fact with two values in one report: from two machines, or before and after a change."""

    fact: str
    taken: Annotated[str, Fact("the value that the snapshot holds, and where it stands")]
    other: Annotated[str, Fact("the value passed over, and where it stands")]
