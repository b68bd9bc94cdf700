"""Import the packages that a fix changes, each in a process of its own."""

import os
import re
import tempfile
import time
from collections.abc import Collection, Iterator, Mapping

from gpudoctor.fixing.environment import Distribution, Inventory, needs_of
from gpudoctor.fixing.programs import Failed, full_disk, wait_for

SECONDS = 120.0
"""Time limit for all of them together. Packages not imported by then are not judged."""

TOO_SLOW = f"it was not imported within {SECONDS:.0f} s"

_IMPORT = "import importlib, sys; importlib.import_module(sys.argv[1])"
_RAISED = r"[A-Za-z_][\w.]*(?:Error|Exception|Warning|Interrupt)\b"
_LONGEST_REASON, _MOST_CHARACTERS = 200, 1_000_000


def not_importable(inventory: Inventory, names: Collection[str], environ: Mapping[str, str]) -> dict[str, str]:
    """Return the distributions that cannot be imported, of these and those that need one of them: name → why."""
    found, deadline = dict[str, str](), time.monotonic() + SECONDS
    for item in _affected(inventory, names):
        module, left = module_of(item), deadline - time.monotonic()
        if module:
            why = _complaint(inventory.executable, module, environ, left) if left > 0 else TOO_SLOW
            is_wrong_guess = is_editable(item) and why == f"ModuleNotFoundError: No module named '{module}'"
            found.update({item.name: why} if why and not is_wrong_guess else {})
    return found


def module_of(item: Distribution) -> str:
    """Return the main module of a distribution: the one with its name, else its only one; "" if there are several.

    The files of an editable install are elsewhere: its module is probably named like it.
    """
    public = sorted({name for path in item.files or () if (name := _module(path)) and not name.startswith("_")})
    own = item.name.replace("-", "_")
    named = [name for name in public if own == name.lower() or own.startswith(f"{name.lower()}_")]
    guessed = (own,) if is_editable(item) and own.isidentifier() else ()
    return next(iter(named or (public if len(public) == 1 else guessed)), "")


def is_editable(item: Distribution) -> bool:
    """Return whether it is installed as a link to its source code."""
    return bool(re.search(r'"editable": *true', item.direct_url))


def _module(path: str) -> str:
    """Return the top-level module of a file: a folder with __init__.py, or the file itself; "" for none."""
    first, _, rest = path.partition("/")
    name = first if rest == "__init__.py" else first.removesuffix(".py") if not rest and first.endswith(".py") else ""
    return name if name.isidentifier() else ""


def _affected(inventory: Inventory, names: Collection[str]) -> Iterator[Distribution]:
    for item in inventory.distributions:
        if item.own and (item.name in names or not needs_of(item, inventory.markers).isdisjoint(names)):
            yield item


def _complaint(python: str, module: str, environ: Mapping[str, str], seconds: float) -> str:
    """Return why the module cannot be imported; "" if it can."""
    quiet = {**environ, "PYTHONDONTWRITEBYTECODE": "1"}
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as said:
        try:
            status = wait_for((python, "-c", _IMPORT, module), quiet, said, os.sep, seconds)
        except Failed:
            return TOO_SLOW
        said.seek(0)
        lines = [line.strip() for line in said.read(_MOST_CHARACTERS).splitlines() if line.strip()]
    raised = [line for line in lines if re.match(_RAISED, line)]
    shown = (raised or lines)[-1:]
    if status and (full := full_disk(" ".join(shown), python)):
        return full
    return (shown[0][:_LONGEST_REASON] if shown else f"its import ends with exit status {status}") if status else ""
