"""A tuning read from its JSON: to compare with, or to continue."""

import json
from collections.abc import Iterator
from typing import Any

from gpudoctor.errors import GpudoctorError, UsageError
from gpudoctor.model.tuning import SCHEMA, Tuning
from gpudoctor.tuning.answers import read

DEVICE_FIELDS = {
    "kind": "device",
    "name": "device name",
    "memory_total_bytes": "device memory",
    "driver_version": "driver version",
    "torch_version": "PyTorch version",
    "cupy_version": "CuPy version",
    "threads": "threads",
}
"""What a measurement depends on, and what users call it."""


def parse_tuning(data: bytes, name: str) -> Tuning:
    """Return the tuning that `gpudoctor tune --format json` wrote. name: of the file.

    Raises:
        UsageError: it is not one, or of a schema that is not known here.
    """
    try:
        document: Any = json.loads(data)
        schema = document.get("schema") if isinstance(document, dict) else None
        if schema != SCHEMA:
            raise UsageError(f"{name}: its schema is {str(schema)[:80]!r}, this gpudoctor reads {SCHEMA}")
        return read(Tuning, {"elapsed_seconds": document.get("elapsed_s", 0.0), **document})
    except (ValueError, RecursionError, GpudoctorError) as error:
        if isinstance(error, UsageError):
            raise
        raise UsageError(f"{name}: not a tuning as `gpudoctor tune --format json` writes it: {error}") from None


def differences(before: Tuning, now: Tuning) -> Iterator[str]:
    """Yield what makes the measurements of two tunings two different things, with both values."""
    for field, name in DEVICE_FIELDS.items():
        was, is_now = getattr(before.device, field), getattr(now.device, field)
        if was != is_now:
            yield f"{name}: {_shown(was)} before, {_shown(is_now)} now"
    for field, name in (("name", "workload"), ("mode", "mode"), ("parameters", "parameters")):
        was, is_now = getattr(before.workload, field), getattr(now.workload, field)
        if was != is_now:
            yield f"{name}: {_shown(was)} before, {_shown(is_now)} now"


def _shown(value: object) -> str:
    return "unknown" if value in (None, "") else f"{value:,}" if isinstance(value, int) else str(value)
