"""What differs between distributions of Linux: package manager, driver packages, kernel module."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from gpudoctor.data.tables import load_table
from gpudoctor.model import System

# Linux Mint Debian Edition is at 7, Linux Mint has been above since 2010. Source: https://linuxmint.com/download_lmde.php
FIRST_MINT_OF_UBUNTU = 10


@cache
def _rows() -> Mapping[str, Mapping[str, Any]]:
    table = load_table("distributions")
    families = {row["id"]: row for row in table["families"]}
    return {row["id"]: {**families.get(row.get("like"), {}), **row} for row in table["distributions"]}


def distribution_of(system: System | None) -> Mapping[str, Any]:
    """Return the row of the distribution with what its family has, {} if it is unknown: LMDE's is Debian's."""
    if system is None or system.distribution is None:
        return {}
    number = (system.distribution_version or "").partition(".")[0]
    edition = system.distribution == "linuxmint" and number.isdecimal() and int(number) < FIRST_MINT_OF_UBUNTU
    return _rows().get("debian" if edition else system.distribution, {})
