"""Ask the engine about images and containers, and compare them with the project: under gpudoctor's interpreter."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from gpudoctor.containers.requested import look_at


def collect(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the facts of section images: `images`, or `unavailable` with the reason."""
    return look_at(arguments, os.environ)
