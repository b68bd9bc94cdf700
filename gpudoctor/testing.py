"""For tests of checks, those of plugins too: run one check on facts written by hand."""

from __future__ import annotations

from typing import Any

from gpudoctor.engine.catalog import load_checks
from gpudoctor.engine.runner import run_one
from gpudoctor.model import CheckResult, Snapshot


def run_check(check_id: str, **sections: Any) -> CheckResult:
    """Return how the check ends on a machine of which only `sections` are known.

    Raises:
        KeyError: there is no such check.
    """
    return run_one({check.id: check for check in load_checks()}[check_id], Snapshot(**sections))
