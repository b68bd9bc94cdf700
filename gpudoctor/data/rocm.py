"""The ROCm builds of PyTorch."""

import re

from gpudoctor.data.tables import load_table, records
from gpudoctor.model.record import record

OVERRIDE = "HSA_OVERRIDE_GFX_VERSION"
"""The variable that names the gfx target whose code is to run: "10.3.0" for gfx1030."""


@record
class RocmRelease:
    """The ROCm builds of one PyTorch release; None if not verified.

    variants: "rocm7.1", ...; each is an index of its own. gfx_targets: device code inside, by the build scripts.
    """

    release: str
    variants: tuple[str, ...] | None
    gfx_targets: tuple[str, ...] | None

    @property
    def number(self) -> tuple[int, ...]:
        """The release as numbers, to be compared."""
        return tuple(int(part) for part in self.release.split("."))


def rocm_builds(release: str) -> RocmRelease | None:
    """Return the ROCm builds of a PyTorch release such as "2.13"; None for one outside the table."""
    return next((row for row in _releases() if row.release == release), None)


def rocm_targets_after(release: tuple[int, ...]) -> tuple[str, ...] | None:
    """Return the gfx targets of the next release whose targets are verified, None if there is none.

    From release to release targets were added only, so what that one lacks the release lacks.
    """
    later = (row for row in _releases() if row.number > release[:2])
    found = min((row for row in later if row.gfx_targets is not None), key=lambda row: row.number, default=None)
    return found.gfx_targets if found is not None else None


def first_rocm_release(target: str) -> tuple[str, str] | None:
    """Return the first release of PyTorch 2, and its newest ROCm, whose build has code for the gfx target."""
    rows = (row for row in _releases() if row.number[0] >= 2 and target in (row.gfx_targets or ()))
    built = [(row.number, row.release, row.variants[-1]) for row in rows if row.variants]
    return min(built)[1:] if built else None


def _releases() -> tuple[RocmRelease, ...]:
    return records(RocmRelease, "rocm", "torch")


def gfx_target_of(name: str) -> str | None:
    """Return the gfx target of an AMD GPU by its product name: "gfx1032" of "Radeon RX 6600 XT"; None if unknown."""
    name = re.sub(r"^(?=\d{4} ?XTX?$)", "RX ", name)  # people write "7800 XT"
    for row in load_table("rocm")["cards"]:
        if re.search(rf"(?<!\w)(?:{row['names']})(?!\w)", name, re.IGNORECASE):
            return str(row["gfx"])
    return None


def gfx_target(override: str | None) -> str:
    """Return the gfx target that HSA_OVERRIDE_GFX_VERSION names: gfx90a for "9.0.10"; "" for none."""
    parts = (override or "").split(".")
    if len(parts) != 3 or not all(part.isdigit() for part in parts):
        return ""
    return f"gfx{int(parts[0])}{int(parts[1]):x}{int(parts[2]):x}"
