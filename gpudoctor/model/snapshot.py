"""Facts about one machine: gathered by probes, read by checks, stored in a snapshot file.

`None` means unknown, never none: a known absence has a value of its own (`""`, `()`, `False`, `build="cpu"`).
A section's `ProbeReport` says why the whole section is unknown.
"""

from __future__ import annotations

import dataclasses
import re
from typing import Annotated, Any

from gpudoctor.model.containers import Containers
from gpudoctor.model.images import ProjectImage
from gpudoctor.model.machine import Device, Driver, System
from gpudoctor.model.profile import FoundProfile
from gpudoctor.model.record import Fact, record
from gpudoctor.model.run import Run
from gpudoctor.model.software import (
    Container,
    Cupy,
    CupyRuntime,
    Environment,
    Project,
    Python,
    Toolkit,
    Torch,
    TorchRuntime,
)
from gpudoctor.model.symptom import Contradiction, Symptom

SCHEMA = "gpudoctor/snapshot/1"
STATES = ("failed", "timed-out", "not-run", "absent", "ok")


@record
class ProbeReport:
    """How one probe of a section went."""

    section: str
    state: Annotated[str, Fact('"ok", "absent" (no such thing here), "failed", "timed-out" or "not-run"')]
    probe: Annotated[str, Fact('name of the question asked: "nvml"')] = ""
    source: Annotated[str, Fact('where its facts come from: "NVML", "import torch"')] = ""
    detail: Annotated[str, Fact("why it failed, with the last lines of its standard error")] = ""
    seconds: Annotated[float, Fact("how long it took until its answer or its end; 0 if nothing measured it")] = 0.0
    facts: Annotated[
        tuple[str, ...], Fact('which facts of the section it gave, if only some are its own: "cuda_version"')
    ] = ()


@record
class Snapshot:
    """All facts about one machine. A section that could not be gathered is None."""

    taken_at: Annotated[str | None, Fact("UTC time in ISO 8601")] = None
    system: System | None = None
    driver: Driver | None = None
    devices: tuple[Device, ...] | None = None
    toolkit: Toolkit | None = None
    python: Python | None = None
    torch: Torch | None = None
    torch_runtime: TorchRuntime | None = None
    cupy: Cupy | None = None
    cupy_runtime: CupyRuntime | None = None
    container: Container | None = None
    containers: Containers | None = None
    environment: Environment | None = None
    images: tuple[ProjectImage, ...] | None = None
    project: Project | None = None
    profile: FoundProfile | None = None
    symptoms: tuple[Symptom, ...] | None = None
    words: Annotated[tuple[str, ...] | None, Fact("the words of pasted texts that distinguish causes")] = None
    contradictions: tuple[Contradiction, ...] | None = None
    run: Run | None = None
    reports: tuple[ProbeReport, ...] = ()

    def report(self, section: str) -> ProbeReport | None:
        """Return the report on `section`, the worst of its probes first; None if no probe ran."""
        reports = [report for report in self.reports if report.section == section]
        ranks = {state: rank for rank, state in enumerate(STATES)}  # a file may contain another word
        return min(reports, key=lambda report: ranks.get(report.state, 0), default=None)


SECTIONS = tuple(f.name for f in dataclasses.fields(Snapshot) if f.name not in ("taken_at", "reports"))


def _field(value: Any, name: str) -> Any:
    """Return a field of a section; other attributes are not facts.

    Raises:
        TypeError, ValueError: not a section, or no such field.
    """
    if name not in {field.name for field in dataclasses.fields(value)}:
        raise ValueError(name)
    return getattr(value, name)


def look_up(snapshot: Snapshot, fact: str) -> Any:
    """Return the value at a dotted path such as "torch.cuda_version", "devices[0].name" or "environment.CUDA_HOME".

    Raises:
        KeyError: there is no such fact.
    """
    value: Any = snapshot
    for step in fact.split("."):
        name, *indices = re.split(r"[\[\]]+", step.rstrip("]"))
        try:
            value = value.get(name) if isinstance(value, Environment) else _field(value, name)
            for index in indices:
                value = value[int(index)]
        except (IndexError, TypeError, ValueError):
            raise KeyError(fact) from None
    return value
