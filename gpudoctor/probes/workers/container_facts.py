"""Ask the engine how containers are started: under gpudoctor's interpreter, nothing of theirs is run."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from gpudoctor.containers.setups import look_at_setups


def collect(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what `gpudoctor.containers.setups` gives."""
    return look_at_setups(arguments, os.environ)
