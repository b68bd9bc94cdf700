"""Fixes made into remedies for a machine, for the tests of this folder."""

from typing import Any

from gpudoctor.conclusions import Facts
from gpudoctor.model import SECTIONS, Fix, Remedy, Snapshot
from gpudoctor.remedies.fitting import fitted
from gpudoctor.remedies.fixes import remedies_of


def made(fix: Fix, **sections: Any) -> tuple[Remedy, ...]:
    """Return the remedies of the fix for a machine of which only `sections`, read or concluded, are known."""
    read = {name: section for name, section in sections.items() if name in SECTIONS}
    concluded = {name: section for name, section in sections.items() if name not in SECTIONS}
    return remedies_of((fix,), Facts(Snapshot(**read), **concluded))


def made_one(fix: Fix, **sections: Any) -> Remedy:
    """Return the only remedy of the fix."""
    (remedy,) = made(fix, **sections)
    return remedy


def pasted_one(fix: Fix, **sections: Any) -> Remedy:
    """Return the only remedy of the fix, with commands that can be pasted on that machine."""
    read = {name: section for name, section in sections.items() if name in SECTIONS}
    (remedy,) = Facts(Snapshot(**read)).call(fitted, remedies=made(fix, **sections))
    assert isinstance(remedy, Remedy)
    return remedy
