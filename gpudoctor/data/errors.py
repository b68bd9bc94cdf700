"""Xid errors of the driver."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from gpudoctor.data.tables import load_table
from gpudoctor.model.record import record


@record
class XidMeaning:
    """What NVIDIA's catalogue says about one Xid.

    action: what to do at once, in NVIDIA's vocabulary: "RESTART_APP", "RESET_GPU", ...
    investigation: what to do when it comes again.
    """

    mnemonic: str
    description: str
    action: str
    investigation: str


def xid_meaning(number: int) -> XidMeaning | None:
    """Return what an Xid means; None where the catalogue has none."""
    row = _xids().get(number)
    if row is None:
        return None
    return XidMeaning(
        mnemonic=row["mnemonic"],
        description=row["description"],
        action=row["action"],
        investigation=row["investigation"],
    )


@functools.cache
def _xids() -> Mapping[int, Mapping[str, Any]]:
    return {row["xid"]: row for row in load_table("xids")["xids"]}
