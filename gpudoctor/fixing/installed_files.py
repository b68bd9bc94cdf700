"""Whose the files of an environment are: a distribution's, as installed or edited since, or the user's own."""

import base64
import csv
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from gpudoctor.fixing.environment import Inventory
from gpudoctor.fixing.record import Scope, digest_of, unrecorded


def paths_of(folder: str, files: Iterable[str]) -> Iterator[str]:
    """Yield the paths of files in `folder`."""
    yield from (os.path.join(folder, file) for file in files)


def damaged_files(inventory: Inventory, names: Collection[str]) -> list[str]:
    """Return the files of these distributions that are missing, or not those that the package has a hash of."""
    return [path for item in inventory.own(names) for path in _damaged(item.folder, Path(item.info, "RECORD"))]


def _damaged(folder: str, listing: Path) -> Iterator[str]:
    if not listing.is_file():
        yield str(listing)
        return
    with listing.open(encoding="utf-8", newline="") as lines:
        for row in csv.reader(lines):
            if len(row) < 2 or not row[1].startswith("sha256="):
                continue
            path = os.path.join(folder, row[0])
            try:
                digest = base64.urlsafe_b64encode(digest_of(Path(path)).digest()).rstrip(b"=").decode()
            except OSError:
                digest = ""
            if digest != row[1].removeprefix("sha256="):
                yield path


def users_files(inventory: Inventory, scope: Scope, entries: Mapping[str, Any]) -> list[str]:
    """Return the files in a record's scope that neither the record nor a distribution has, as a record names them."""
    known = {
        os.path.realpath(path)
        for item in inventory.distributions
        if item.own
        for path in (item.info, *paths_of(item.folder, item.files or ()))
    }
    return sorted(name for name in unrecorded(scope, entries) if os.path.realpath(scope.prefix / name) not in known)
