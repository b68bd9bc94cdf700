"""Render findings for messages that are the whole answer: their rows name check, summary and fix."""

import re
from collections.abc import Mapping
from typing import Any

from gpudoctor.model import Finding, Fix, Severity, Symptom
from gpudoctor.symptoms import Symptoms
from gpudoctor.symptoms.tables import row_of


def answers(symptoms: Symptoms, check_id: str) -> tuple[Finding, ...]:
    """Return what the rows of the message tables answer for this check, one finding for each kind of symptom.

    In a row's texts "{name}" is a name from the message, "{text}" the message, "{says}" its meaning and "{code}" its
    error code. A part in brackets such as "[ of CUDA {version}]" is left out if the message does not name it.
    """
    found: dict[str, Finding] = {}
    for symptom in symptoms or ():
        row = row_of(symptom.kind)
        if row is None:
            continue
        for answer in row.answers:
            if answer["check"] == check_id:
                found.setdefault(f"{symptom.kind} {answer['summary']}", finding_of(answer, symptom, row.says))
    return tuple(found.values())


def finding_of(answer: Mapping[str, Any], symptom: Symptom, says: str) -> Finding:
    names = {"says": says, **symptom.names, "text": symptom.quote}
    if symptom.code:
        names["code"] = symptom.code
    return Finding(
        severity=Severity[answer.get("severity", "error").upper()],
        summary=filled(answer["summary"], names),
        subject=filled(answer.get("subject", ""), names),
        facts=(symptom.fact,),
        certain=answer.get("certain", True),
        details=dict(symptom.names),
        fixes=tuple(_fix(fix, names) for fix in answer.get("fixes", ())),
    )


def _fix(fix: Mapping[str, Any], names: Mapping[str, str]) -> Fix:
    arguments = {key: filled(value, names) if isinstance(value, str) else value for key, value in fix.items()}
    return Fix(arguments.pop("fix"), **arguments)


def filled(template: str, names: Mapping[str, str]) -> str:
    """Return the text with the message's names: "no kernel[ for {gpu}]" is "no kernel" without a GPU name."""

    def optional(match: re.Match[str]) -> str:
        return match[1] if all(name in names for name in re.findall(r"\{(\w+)\}", match.group())) else ""

    text = re.sub(r"\[([^\[\]]*\{\w+\}[^\[\]]*)\]", optional, template)
    return re.sub(r"\{(\w+)\}", lambda match: names.get(match[1], ""), text)
