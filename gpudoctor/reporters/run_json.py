"""A watched run as JSON, schema gpudoctor/run/1: what held the GPU back, and every sample."""

import json

from gpudoctor.model.codec import to_json
from gpudoctor.watching.verdict import SCHEMA, WatchedRun


def render(run: WatchedRun) -> str:
    """Return the run as one JSON object. A value that is not known is left out."""
    return json.dumps({"schema": SCHEMA, **to_json(run)}, indent=2, allow_nan=False) + "\n"
