"""The catalog of checks, gpudoctor's own and those of plugins, and the selection that a user names."""

import os
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module

from gpudoctor.engine.plugins import Plugin, in_folder, installed
from gpudoctor.errors import UsageError
from gpudoctor.model import Finding
from gpudoctor.registry import FAMILIES, Check, origin_of, registered


def load_checks(folder: str | None = None, *, plugins: bool = True) -> tuple[Check, ...]:
    """Return every check, in the order of families and ids: those of installed plugins too, and those in `folder`.

    A plugin that cannot be loaded is a check that is broken. Without `plugins` only gpudoctor's own code runs.

    Raises:
        UsageError: there is no such folder, it cannot be read, or other users can write to it.
    """
    _load_own_checks()
    if not plugins:
        return _in_order(check for check in registered.values() if check.origin == "gpudoctor")
    broken = [check for plugin in installed() for check in _load(plugin)]
    kept = dict(registered)
    try:
        if folder is not None:
            broken += [check for plugin in in_folder(folder) for check in _load(plugin)]
        found = (*registered.values(), *broken)
    finally:  # another run in this process may have another folder, or none
        _restore(kept)
    return _in_order(found)


def _in_order(checks: Iterable[Check]) -> tuple[Check, ...]:
    return tuple(sorted(checks, key=lambda check: (FAMILIES.index(check.family), check.id)))


def _load_own_checks() -> None:
    """Import every module of the package gpudoctor.checks: each registers one."""
    package = import_module("gpudoctor.checks")
    for name in sorted(os.listdir(package.__path__[0])):  # asking pkgutil takes 3 ms
        if name.endswith(".py") and name != "__init__.py":
            import_module(f"{package.__name__}.{name[:-3]}")


def _load(plugin: Plugin) -> Iterator[Check]:
    """Register the checks of `plugin`. If that fails, register none, and yield the check that says so."""
    before = dict(registered)
    try:
        plugin.load()
    except (Exception, SystemExit) as error:
        _restore(before)
        yield _broken(plugin, f"{type(error).__name__}: {error}")
        return
    modules = (f"{check.function.__module__}." for check in before.values())
    imported_before = any(module.startswith(f"{plugin.module}.") for module in modules)
    if len(registered) == len(before) and not imported_before:
        yield _broken(plugin, "it registers no check")


def _restore(kept: dict[str, Check]) -> None:
    registered.clear()
    registered.update(kept)


def _broken(plugin: Plugin, why: str) -> Check:
    def function() -> Iterator[Finding]:
        yield from ()

    reason = f"the plugin {plugin.name} ({plugin.place}) cannot be loaded: {why}"
    function.__doc__ = f"{reason[0].upper()}{reason[1:]}\n\nWhy: its checks are not run until it is fixed or removed."
    words = "".join(letter if letter.isalnum() else " " for letter in plugin.name.lower()).split()
    return Check(
        id="-".join(("plugin", *words)),
        family="tool",
        sections=(),
        optional=(),
        explains=(),
        function=function,
        origin=origin_of(plugin.module),
        broken=reason,
    )


def select(checks: Sequence[Check], names: Iterable[str]) -> tuple[Check, ...]:
    """Return the checks that `names`, ids or families, select; all of them if no name is given.

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
