"""What a user calls a fact: "driver version" for driver.version."""

import functools
import json
import os.path
import re
from collections.abc import Mapping

from gpudoctor.untrusted import clean

_INDEX = re.compile(r"\[([^\]]*)\]")


def label(fact: str) -> str:
    """Return the label of the fact at a dotted path: its own, or that of the nearest fact that contains it."""
    section, _, name = fact.partition(".")
    if section == "environment" and name:
        return clean(name)  # a variable is known by its name
    path, number = _INDEX.sub("[]", fact), (_INDEX.findall(fact) or [""])[0]
    while path and path not in _labels():
        path = path.removesuffix("[]") if path.endswith("[]") else path.rpartition(".")[0]
    return _labels()[path].replace("{}", clean(number)) if path else clean(fact).replace("_", " ")


@functools.cache
def _labels() -> Mapping[str, str]:
    with open(os.path.join(os.path.dirname(__file__), "labels.json"), encoding="utf-8") as file:
        labels: dict[str, str] = json.load(file)
    return labels
