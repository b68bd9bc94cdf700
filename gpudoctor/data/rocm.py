"""The ROCm builds of PyTorch."""

from __future__ import annotations

import re

from gpudoctor.data.tables import load_table
from gpudoctor.model.record import record


@record
class RocmRelease:
    """The ROCm builds of one PyTorch release; None where not verified.

    variants: "rocm7.1", ...; each is an index of its own. gfx_targets: device code inside, by the build scripts.
    """

    release: str
    variants: tuple[str, ...] | None
    gfx_targets: tuple[str, ...] | None


def rocm_builds(release: str) -> RocmRelease | None:
    """Return the ROCm builds of a PyTorch release such as "2.13"; None for one outside the table."""
    for row in load_table("rocm")["torch"]:
        if row["release"] == release:
            variants, targets = row["variants"], row["gfx_targets"]
            return RocmRelease(
                release=release,
                variants=None if variants is None else tuple(variants),
                gfx_targets=None if targets is None else tuple(targets),
            )
    return None


def gfx_target_of(name: str) -> str | None:
    """Return the gfx target of an AMD GPU by its product name: "gfx1032" of "Radeon RX 6600 XT"; None where unknown."""
    for row in load_table("rocm")["cards"]:
        if re.search(rf"(?<!\w)(?:{row['names']})(?!\w)", name, re.IGNORECASE):
            return str(row["gfx"])
    return None
