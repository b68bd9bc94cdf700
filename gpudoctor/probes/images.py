"""Images and containers beside the project of the working directory, or those that are asked for."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from gpudoctor.model.images import ProjectImage
from gpudoctor.probes.host import ImageRequest, ProbeContext, Question
from gpudoctor.probes.reading import Facts

COMPOSE_FILES = ("compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml")
PROJECT_FILES = (*COMPOSE_FILES, "Dockerfile")
WHY_ABSENT = "no compose file or Dockerfile in the working directory, and no --image or --container"


def question(setting: ProbeContext) -> Question | None:
    """Return what to ask for the section; None where there is nothing to look at."""
    request = {item.name: getattr(setting.images, item.name) for item in fields(ImageRequest)}
    directory = os.fspath(setting.directory)
    if not any(request.values()) and not any(os.path.exists(os.path.join(directory, name)) for name in PROJECT_FILES):
        return None
    return Question(name="images", worker="docker_images", arguments={**request, "directory": directory})


def parse_images(facts: Facts) -> tuple[ProjectImage, ...] | None:
    """Return the section; None where there is nothing to look at, or the engine cannot be asked."""
    from gpudoctor.model.codec import from_json

    if "images" not in facts:
        return None
    return from_json(tuple[ProjectImage, ...], facts["images"], "images")


def why_unknown(facts: Mapping[str, Any]) -> str:
    """Return why there is no section; "" where nothing is there to look at."""
    return str(facts.get("unavailable", ""))
