"""Failure messages and error codes: the tables, the one matcher, and how checks look symptoms up."""

from collections.abc import Iterable, Sequence
from functools import cache

from gpudoctor.model import Symptom
from gpudoctor.model.codec import json_next_to
from gpudoctor.symptoms.tables import row_of

Symptoms = Iterable[Symptom] | None


def of_kind(symptoms: Symptoms, *kinds: str) -> tuple[Symptom, ...]:
    """Return the symptoms of these kinds, in the order of the report.

    kinds: row ids in the message tables; "prefix*" means all ids with that prefix, "@name" the ids of a group in
    groups.json.
    """
    if not symptoms:  # most machines have no symptoms and need no table
        return ()
    exact, beginnings = _exact_and_beginnings(kinds)
    return tuple(s for s in symptoms if s.kind in exact or s.kind.startswith(beginnings))


@cache
def _exact_and_beginnings(kinds: tuple[str, ...]) -> tuple[frozenset[str], tuple[str, ...]]:
    named = {each for kind in kinds for each in (group(kind[1:]) if kind.startswith("@") else (kind,))}
    exact = frozenset(kind for kind in named if not kind.endswith("*"))
    return exact, tuple(kind[:-1] for kind in named - exact)


def group(name: str) -> tuple[str, ...]:
    """Return the kinds of a group in groups.json, most specific first."""
    return tuple(json_next_to(__file__, "groups")["groups"][name]["kinds"])


def most_telling(symptoms: Symptoms, name: str) -> Symptom | None:
    """Return the first symptom of the first kind of the group `name` that has one."""
    return first(*(of_kind(symptoms, kind) for kind in group(name))) if symptoms else None


def with_code(symptoms: Symptoms, *codes: str) -> tuple[Symptom, ...]:
    """Return the symptoms that report one of these error codes: "cuda-803", "nvml-18"."""
    return tuple(symptom for symptom in symptoms or () if symptom.code in codes)


def pasted(symptoms: Symptoms) -> tuple[Symptom, ...]:
    """Return the symptoms from pasted texts, without those that a probe provoked."""
    return tuple(symptom for symptom in symptoms or () if symptom.fact.partition("[")[0] in ("", "symptoms"))


def with_role(symptoms: Symptoms, role: str) -> tuple[Symptom, ...]:
    """Return the symptoms of this role: "failure", "works" or "context". A bare error code is a failure."""
    rows = ((symptom, row_of(symptom.kind)) for symptom in symptoms or ())
    return tuple(symptom for symptom, row in rows if (row.role if row is not None else "failure") == role)


def first(*found: Sequence[Symptom]) -> Symptom | None:
    """Return the first symptom of the first of `found` that has one."""
    return next((symptoms[0] for symptoms in found if symptoms), None)
