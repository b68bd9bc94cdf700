"""Symptoms by their kind, each with its fact."""

from __future__ import annotations

from gpudoctor.model import Symptom
from gpudoctor.symptoms import of_kind


def reported(symptoms: tuple[Symptom, ...] | None, *kinds: str) -> tuple[tuple[str, Symptom], ...]:
    """Return the fact and the symptom of each symptom of these kinds in a pasted text: ("symptoms[0].text", ...)."""
    found = of_kind(symptoms, *kinds)
    return tuple((symptom.fact, symptom) for symptom in found if symptom.fact.partition("[")[0] in ("", "symptoms"))
