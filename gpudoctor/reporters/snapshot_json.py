"""The snapshot as JSON: schema gpudoctor/snapshot/1, fit to be posted."""

import json
from typing import Any

from gpudoctor.model import Snapshot
from gpudoctor.model.codec import to_json
from gpudoctor.model.snapshot import SCHEMA
from gpudoctor.privacy import mask_uuids


def document(snapshot: Snapshot) -> dict[str, Any]:
    """Return the snapshot as a JSON value, UUIDs as they are."""
    return {"schema": SCHEMA, **to_json(snapshot)}


def render(snapshot: Snapshot) -> str:
    """Return the snapshot as one JSON object, UUIDs numbered."""
    return json.dumps(mask_uuids(document(snapshot)), indent=2, allow_nan=False) + "\n"
