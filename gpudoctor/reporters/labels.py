"""What a user calls a fact: "driver version" for driver.version."""

import re

from gpudoctor.model.codec import json_next_to
from gpudoctor.untrusted import clean

_INDEX = re.compile(r"\[([^\]]*)\]")


def label(fact: str) -> str:
    """Return the label of the fact at a dotted path: its own, or that of the nearest fact that contains it."""
    section, _, name = fact.partition(".")
    if section == "environment" and name:
        return clean(name)  # a variable is known by its name
    labels: dict[str, str] = json_next_to(__file__, "labels")
    path, number = _INDEX.sub("[]", fact), (_INDEX.findall(fact) or [""])[0]
    while path and path not in labels:
        path = path.removesuffix("[]") if path.endswith("[]") else path.rpartition(".")[0]
    return labels[path].replace("{}", clean(number)) if path else clean(fact).replace("_", " ")
