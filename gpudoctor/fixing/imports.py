"""Whether the packages that a fix changes can be imported, each by a process of the environment's own."""

import os
import time
from collections.abc import Collection, Iterator, Mapping

from gpudoctor.fixing.environment import Distribution, Inventory, needs_of
from gpudoctor.fixing.programs import Failed, run_to_end

SECONDS = 120.0
"""How long all of them together may take; what is not imported by then is not judged."""

_IMPORT = "import importlib, sys; importlib.import_module(sys.argv[1])"
_LONGEST_REASON = 200


def not_importable(inventory: Inventory, names: Collection[str], environ: Mapping[str, str]) -> dict[str, str]:
    """Return which of these distributions, and of those that need one of them, cannot be imported: name → why."""
    found, deadline = dict[str, str](), time.monotonic() + SECONDS
    for item in _affected(inventory, names):
        module, left = module_of(item), deadline - time.monotonic()
        if module and left > 0 and (why := _complaint(inventory.executable, module, environ, left)):
            found[item.name] = why
    return found


def module_of(item: Distribution) -> str:
    """Return the module that a distribution is known by: the one of its name, else its only one; "" if unclear."""
    public = sorted({name for path in item.files or () if (name := _module(path)) and not name.startswith("_")})
    own = item.name.replace("-", "_")
    named = [name for name in public if own == name.lower() or own.startswith(f"{name.lower()}_")]
    return next(iter(named or (public if len(public) == 1 else ())), "")


def _module(path: str) -> str:
    """Return the module that a file of a distribution makes: a folder with __init__.py, or one file."""
    first, _, rest = path.partition("/")
    name = first if rest == "__init__.py" else first.removesuffix(".py") if not rest and first.endswith(".py") else ""
    return name if name.isidentifier() else ""


def _affected(inventory: Inventory, names: Collection[str]) -> Iterator[Distribution]:
    for item in inventory.distributions:
        if item.own and (item.name in names or not needs_of(item, inventory.markers).isdisjoint(names)):
            yield item


def _complaint(python: str, module: str, environ: Mapping[str, str], seconds: float) -> str:
    """Return why the module cannot be imported; "" if it can, or if it takes too long to know."""
    quiet = {**environ, "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        _, said, status = run_to_end((python, "-c", _IMPORT, module), quiet, folder=os.sep, seconds=seconds)
    except Failed:
        return ""
    last = next((line.strip() for line in reversed(said.splitlines()) if line.strip()), "")
    return (last[:_LONGEST_REASON] or f"its import ends with exit status {status}") if status else ""
