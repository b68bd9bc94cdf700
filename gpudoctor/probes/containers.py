"""Images, containers and services seen from outside: those asked for, or those of the working directory's project."""

import os
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from gpudoctor.model.containers import Containers
from gpudoctor.model.images import ProjectImage
from gpudoctor.probes.host import ImageRequest, ProbeContext
from gpudoctor.probes.reading import Facts

FILES = ("compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml", "Dockerfile")
TIME_LIMITS = 20
"""Each answer of the engine has the time limit: with many of them, or on a busy machine, all together take longer."""

WHY_ABSENT = "no compose file or Dockerfile in the working directory, and no --image or --container"


def request(setting: ProbeContext) -> Mapping[str, Any] | None:
    """Return the request to the engine, for both sections; None if there is nothing to examine."""
    asked = {item.name: getattr(setting.images, item.name) for item in fields(ImageRequest)}
    directory = os.fspath(setting.directory)
    if not any(asked.values()) and not any(os.path.exists(os.path.join(directory, name)) for name in FILES):
        return None
    return {**asked, "directory": directory, "timeout_seconds": setting.timeout_seconds}


def parse_images(facts: Facts) -> tuple[ProjectImage, ...] | None:
    """Return the section; None if there is nothing to examine, or the engine cannot be reached."""
    from gpudoctor.model.codec import from_json

    return from_json(tuple[ProjectImage, ...], facts["images"], "images") if "images" in facts else None


def parse_containers(facts: Facts) -> Containers | None:
    """Return the section; None if there is nothing to examine, or it cannot be examined.

    Raises:
        ValueError: the facts are not the worker's.
    """
    from gpudoctor.model.codec import from_json

    return from_json(Containers, facts["containers"], "containers") if "containers" in facts else None


def why_unknown(facts: Mapping[str, Any]) -> str:
    """Return why there is no section; "" if there is nothing to examine."""
    return str(facts.get("unavailable", ""))
