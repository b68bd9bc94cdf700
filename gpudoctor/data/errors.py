"""Xid errors of the driver and error codes of CUDA."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from gpudoctor.data.tables import load_table, source_of
from gpudoctor.model.record import record


@record
class XidMeaning:
    """What NVIDIA's catalogue says about one Xid.

    action: what to do at once, in NVIDIA's vocabulary: "RESTART_APP", "RESET_GPU", ...
    investigation: what to do when it comes again.
    """

    number: int
    mnemonic: str
    description: str
    action: str
    investigation: str
    source: str


def xid_meaning(number: int) -> XidMeaning | None:
    """Return what an Xid means; None where the catalogue has none."""
    row = _xids().get(number)
    if row is None:
        return None
    return XidMeaning(
        number=number,
        mnemonic=row["mnemonic"],
        description=row["description"],
        action=row["action"],
        investigation=row["investigation"],
        source=source_of(load_table("xids"), row),
    )


def cuda_error_name(code: int) -> str | None:
    """Return the name of a CUDA error code: "cudaErrorUnknown" for 999; None where there is none."""
    row = _cuda_errors().get(code)
    return None if row is None else row["name"]


def cuda_error_text(code: int) -> str | None:
    """Return the text that cudaGetErrorString gives: "unknown error" for 999; None where there is none."""
    row = _cuda_errors().get(code)
    return None if row is None else row["text"]


@functools.cache
def _xids() -> Mapping[int, Mapping[str, Any]]:
    return {row["xid"]: row for row in load_table("xids")["xids"]}


@functools.cache
def _cuda_errors() -> Mapping[int, Mapping[str, Any]]:
    return {row["code"]: row for row in load_table("cuda_errors")["errors"]}
