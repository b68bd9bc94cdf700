"""A failure message or an error code that was recognised, wherever it came from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated

from gpudoctor.model.fact import Fact
from gpudoctor.model.record import record


@record
class Symptom:
    """One recognised failure message or error code: of a live machine, of a container log or of a pasted text."""

    kind: Annotated[str, Fact('its id in the message tables: "torch-out-of-memory"')]
    text: Annotated[str, Fact("what was printed, white space folded, cut if it is long")]
    library: Annotated[str, Fact('who printed it: "torch", "cupy", "nvidia-smi", "docker", "pip"')] = ""
    code: Annotated[str, Fact('error code that it reports: "cuda-803", "nvml-18"; empty if it reports none')] = ""
    names: Annotated[Mapping[str, str], Fact('what it names: {"library": "libcudnn.so.9", "capability": "12.0"}')] = (
        field(default_factory=dict)
    )
    fact: Annotated[str, Fact("path of the fact that holds it; its own path in a pasted text")] = ""
    source: Annotated[str, Fact("the text that contains it: report.txt")] = ""
