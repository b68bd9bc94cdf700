"""What is concluded of an image of which a report shows only what its container says."""

from __future__ import annotations

from typing import Annotated

from gpudoctor.model.fact import Fact
from gpudoctor.model.record import record
from gpudoctor.model.symptom import Symptom


@record
class OutdatedImage:
    """Why the image that a container runs is probably older than its source; empty if nothing shows it."""

    module: Annotated[str, Fact("one that the program in the container does not find and that is required")] = ""
    module_facts: Annotated[
        tuple[str, ...], Fact("paths of what shows that it is missing, and that it is required")
    ] = ()
    from_cache: Annotated[bool, Fact("the build took the layer that installs packages from its cache")] = False
    said: Annotated[Symptom | None, Fact("a message that the container runs something older than its source")] = None
    asked: Annotated[bool, Fact("a module is missing, or a message says that something is old")] = False
