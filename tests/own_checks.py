"""gpudoctor's own checks, loaded once: to look for plugins takes a millisecond in each of thousands of tests."""

from functools import cache

from gpudoctor.engine.catalog import load_checks
from gpudoctor.registry import Check


@cache
def own_checks() -> tuple[Check, ...]:
    """Return gpudoctor's own checks, in the order of families and ids."""
    return load_checks(plugins=False)
