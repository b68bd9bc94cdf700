"""A saved snapshot, or a report with one in it."""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gpudoctor.errors import UsageError
from gpudoctor.model import ContainerSetup, ProbeReport, Snapshot, Symptom
from gpudoctor.model.codec import from_json
from gpudoctor.model.snapshot import SCHEMA
from gpudoctor.parsers.containers import variables_of
from gpudoctor.privacy import mask_document
from gpudoctor.probes.environment import parse_environment
from gpudoctor.symptoms import with_role
from gpudoctor.symptoms.facts import with_symptoms
from gpudoctor.symptoms.validity import why_invalid

UNKNOWN_ERROR = "unknown-error"
_NAME = "gpudoctor/snapshot/"


def read_snapshot(data: bytes, name: str) -> Snapshot | None:
    """Return the snapshot; None if `data` is not one.

    Raises:
        UsageError: it is one that cannot be read: damaged, or of a newer gpudoctor.
    """
    if data.lstrip()[:1] != b"{" or _NAME.encode() not in data:
        return None
    try:
        document = mask_document(json.loads(data), pasted=True)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{name}: a snapshot that is cut off or damaged: {error}") from None
    document = document.get("snapshot", document)
    schema = document.get("schema") if isinstance(document, dict) else None
    if schema != SCHEMA:
        raise UsageError(f"{name}: its schema is {_shown(schema)}, this gpudoctor reads {SCHEMA}")
    try:
        read = _with_known_variables(from_json(Snapshot, _upgraded(document), name))
        return with_symptoms(_with_valid_symptoms(read))
    except ValueError as error:
        raise UsageError(f"a damaged snapshot: {error}") from None


def _upgraded(document: Any) -> Any:
    """Return the document with the messages of older snapshots as symptoms. Their codes are in the message tables.

    Raises:
        ValueError: its messages are none.
    """
    if not isinstance(document, dict) or document.get("messages") is None:
        return document
    messages = document["messages"]
    if not isinstance(messages, list) or not all(isinstance(message, dict) for message in messages):
        raise ValueError("messages: expected a list of messages")
    symptoms = [{name: value for name, value in message.items() if name != "code"} for message in messages]
    return {"symptoms": symptoms, **document}


def _with_known_variables(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot without the variables that gpudoctor does not keep: they may hold secrets."""
    environment, containers = snapshot.environment, snapshot.containers
    if environment is not None:
        environment = parse_environment(environment.variables)
    if containers is not None:
        containers = replace(containers, setups=tuple(map(_with_own_variables, containers.setups)))
    return replace(snapshot, environment=environment, containers=containers)


def _with_own_variables(setup: ContainerSetup) -> ContainerSetup:
    def kept(variables: Mapping[str, str]) -> dict[str, str]:
        return variables_of([f"{name}={value}" for name, value in variables.items()])

    of_image = None if setup.image_environment is None else kept(setup.image_environment)
    return replace(setup, environment=kept(setup.environment), image_environment=of_image)


def _with_valid_symptoms(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot without the symptoms that the matcher cannot have made, and a report for each of them.

    A failure stays one, as an error that is not known: without it the machine could be called healthy.
    """
    symptoms: list[Symptom] = []
    reports: list[ProbeReport] = []
    for symptom in snapshot.symptoms or ():
        problem = why_invalid(symptom)
        if problem:
            detail = f"{symptom.kind} {problem}: left out"
            reports.append(ProbeReport(section="symptoms", state="absent", source=symptom.source, detail=detail))
        if not problem:
            symptoms.append(symptom)
        elif with_role((symptom,), "failure"):
            symptoms.append(Symptom(kind=UNKNOWN_ERROR, text=symptom.text, fact=symptom.fact, source=symptom.source))
    if not reports:
        return snapshot
    return replace(snapshot, symptoms=tuple(symptoms), reports=(*snapshot.reports, *reports))


def _shown(schema: object) -> str:
    return re.sub(r"[^\w/.-]", "?", str(schema))[:80]
