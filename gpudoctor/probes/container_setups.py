"""Containers, services and images seen from outside: those asked for, or those of the working directory's project."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from gpudoctor.model.containers import Containers
from gpudoctor.probes.host import ImageRequest, ProbeContext, Question
from gpudoctor.probes.images import COMPOSE_FILES
from gpudoctor.probes.reading import Facts

FILES = (*COMPOSE_FILES, "Dockerfile")
WHY_ABSENT = "no compose file or Dockerfile in the working directory, and no --image or --container"


def question(setting: ProbeContext) -> Question | None:
    """Return what to ask for the section; None where there is nothing to look at."""
    request = {item.name: getattr(setting.images, item.name) for item in fields(ImageRequest)}
    directory = os.fspath(setting.directory)
    if not any(request.values()) and not any(os.path.exists(os.path.join(directory, name)) for name in FILES):
        return None
    return Question(name="containers", worker="container_facts", arguments={**request, "directory": directory})


def parse_containers(facts: Facts) -> Containers | None:
    """Return the section; None where there is nothing to look at, or it cannot be looked at.

    Raises:
        ValueError: the facts are not the worker's.
    """
    from gpudoctor.model.codec import from_json

    if "containers" not in facts:
        return None
    return from_json(Containers, facts["containers"], "containers")


def why_unknown(facts: Mapping[str, Any]) -> str:
    """Return why there is no section; "" where nothing is there to look at."""
    return str(facts.get("unavailable", ""))
