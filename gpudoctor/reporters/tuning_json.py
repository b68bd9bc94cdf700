"""A tuning as JSON, schema gpudoctor/tuning/1: what other programs read, and every raw value."""

import dataclasses
import json
import math
from typing import Any

from gpudoctor.model.codec import to_json
from gpudoctor.model.tuning import SCHEMA, Measurement, Tuning
from gpudoctor.privacy import mask_document
from gpudoctor.tuning import figures


def render(tuning: Tuning) -> str:
    """Return the tuning as one JSON object. Every name is always there; null is unknown or not measured."""
    # ASCII only, so that no stream's encoding can refuse a character of a user's text.
    return json.dumps(mask_document(_document(tuning)), indent=2, allow_nan=False) + "\n"


def _document(tuning: Tuning) -> dict[str, Any]:
    document = {"schema": SCHEMA, **_plain(tuning)}
    document["elapsed_s"] = document.pop("elapsed_seconds")
    return document


def _plain(value: Any) -> Any:
    """Return `value` as lists, dicts and scalars, unknown fields as null; a measurement with its statistics."""
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if not dataclasses.is_dataclass(value):
        return to_json(value)
    fields = {item.name: _plain(getattr(value, item.name)) for item in dataclasses.fields(value)}
    return {**fields, **_statistics(value)} if isinstance(value, Measurement) else fields


def _statistics(measurement: Measurement) -> dict[str, float | None]:
    statistics = {
        "step_ms": _milliseconds(measurement.step_median_seconds),
        "step_ms_spread": _milliseconds(figures.spread_seconds(measurement)),
        "throughput": measurement.throughput,
        "tflops": measurement.tflops,
        "fraction_of_peak": measurement.fraction_of_peak,
    }
    return {key: None if value is None or not math.isfinite(value) else value for key, value in statistics.items()}


def _milliseconds(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1e3
