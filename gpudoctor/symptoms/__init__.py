"""Failure messages and error codes: the tables, the one matcher, and how checks look symptoms up."""

from collections.abc import Iterable, Sequence
from functools import cache

from gpudoctor.model import Symptom
from gpudoctor.symptoms.tables import row_of

Symptoms = Iterable[Symptom] | None


def of_kind(symptoms: Symptoms, *kinds: str) -> tuple[Symptom, ...]:
    """Return the symptoms of these kinds, in the order of the report.

    kinds: ids of rows of the message tables; one that ends with "*" means all that begin like it.
    """
    exact, beginnings = _exact_and_beginnings(kinds)
    return tuple(s for s in symptoms or () if s.kind in exact or s.kind.startswith(beginnings))


@cache
def _exact_and_beginnings(kinds: tuple[str, ...]) -> tuple[frozenset[str], tuple[str, ...]]:
    exact = frozenset(kind for kind in kinds if not kind.endswith("*"))
    return exact, tuple(kind[:-1] for kind in kinds if kind.endswith("*"))


def with_code(symptoms: Symptoms, *codes: str) -> tuple[Symptom, ...]:
    """Return the symptoms that report one of these error codes: "cuda-803", "nvml-18"."""
    return tuple(symptom for symptom in symptoms or () if symptom.code in codes)


def pasted(symptoms: Symptoms) -> tuple[Symptom, ...]:
    """Return the symptoms of pasted texts: what people and programs say, not what a probe provoked."""
    return tuple(symptom for symptom in symptoms or () if symptom.fact.partition("[")[0] in ("", "symptoms"))


def with_role(symptoms: Symptoms, role: str) -> tuple[Symptom, ...]:
    """Return the symptoms of this role: "failure", "works" or "context". A bare error code is a failure."""
    return tuple(symptom for symptom in symptoms or () if _role(symptom) == role)


def _role(symptom: Symptom) -> str:
    row = row_of(symptom.kind)
    return row.role if row is not None else "failure"


def first(*found: Sequence[Symptom]) -> Symptom | None:
    """Return the first symptom of the first of `found` that has one."""
    return next((symptoms[0] for symptoms in found if symptoms), None)
