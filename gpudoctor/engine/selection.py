"""Which checks to run: ids and families named by the user."""

from collections.abc import Iterable, Sequence

from gpudoctor.errors import UsageError
from gpudoctor.registry import Check


def select(checks: Sequence[Check], names: Iterable[str]) -> tuple[Check, ...]:
    """Return the checks that `names`, ids or families, stand for; all of them where no name is given.

    Plugins that cannot be loaded always stay: what they would have checked is not known.

    Raises:
        UsageError: a name is neither an id nor a family.
    """
    wanted = {check.id for name in names for check in named(checks, name)}
    return tuple(check for check in checks if not wanted or check.id in wanted or check.broken)


def named(checks: Sequence[Check], name: str) -> tuple[Check, ...]:
    """Return the check of that id, or the checks of that family.

    Raises:
        UsageError: the name is neither; the message gives the nearest that is.
    """
    found = tuple(check for check in checks if name in (check.id, check.family))
    if found:
        return found
    from difflib import get_close_matches

    near = get_close_matches(name, [*(check.id for check in checks), *(check.family for check in checks)], n=1)
    hint = f"did you mean {near[0]}?" if near else "gpudoctor list shows them"
    broken = "".join(f"; {check.broken}" for check in checks if check.broken)
    raise UsageError(f"no check or family is called {name!r}: {hint}{broken}")
