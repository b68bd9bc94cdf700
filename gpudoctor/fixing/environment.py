"""The environment to change: what is installed in it, what each distribution needs, and what would not fit."""

import csv
import os
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from packaging.markers import UndefinedEnvironmentName
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from gpudoctor.errors import GpudoctorError, UsageError
from gpudoctor.fixing.programs import run_to_end
from gpudoctor.model.record import record
from gpudoctor.processes import Worker, WorkerEnded, WorkerSilent

MODULE = "gpudoctor.probes.workers.run"
WORKER = "environment_inventory"
SECONDS = 60.0
_TOO_OLD = ("2.6", "2.7", "3.3", "3.4", "3.5", "3.6")


@record
class Distribution:
    """An installed distribution. files: paths of its RECORD, relative to its folder; None if it has none.

    info: its folder of metadata. own: installed in the environment itself, not inherited.
    """

    name: str
    version: str
    requires: tuple[str, ...]
    info: str
    files: tuple[str, ...] | None
    installer: str
    direct_url: str
    own: bool

    @property
    def folder(self) -> str:
        """Return the folder that its files are relative to."""
        return os.path.dirname(self.info)


@record
class Inventory:
    """An environment. folders: its own, for packages. scripts: of its programs. markers: as PEP 508 has them."""

    executable: str
    prefix: str
    is_virtual: bool
    externally_managed: bool
    conda: bool
    conda_base: bool
    folders: tuple[str, ...]
    scripts: str
    markers: Mapping[str, str]
    distributions: tuple[Distribution, ...]

    def version_of(self, name: str) -> str | None:
        """Return the installed version; None if it is not installed."""
        return next((item.version for item in self.distributions if item.name == name), None)

    def installed_as(self, name: str) -> str | None:
        """Return the installed version; all of them if it is installed more than once in the environment."""
        versions = dict.fromkeys(item.version for item in self.own((name,)))
        return " and ".join(versions) if len(versions) > 1 else self.version_of(name)

    def twins(self) -> tuple[str, ...]:
        """Return what is installed more than once in the environment: an interrupted installation leaves it so."""
        names = [item.name for item in self.distributions if item.own]
        return tuple(dict.fromkeys(name for name in names if names.count(name) > 1))

    def own(self, names: Collection[str]) -> tuple[Distribution, ...]:
        """Return the environment's own distributions of these names."""
        return tuple(item for item in self.distributions if item.own and item.name in names)


def read_inventory(interpreter: str, environ: Mapping[str, str] | None = None) -> Inventory:
    """Return the inventory of this interpreter's environment.

    Raises:
        UsageError: it is no Python.
        GpudoctorError: it does not say.
    """
    try:
        worker = Worker(MODULE, interpreter, environ)
    except OSError as error:
        raise UsageError(f"{interpreter} cannot be started: {error.strerror}") from None
    try:
        answer = worker.ask({"worker": WORKER, "arguments": {}}, SECONDS)
    except WorkerEnded as error:
        _refuse_old(interpreter)
        raise UsageError(f"{interpreter} is not a Python interpreter, or a broken one: it {error}") from None
    except WorkerSilent as error:
        raise GpudoctorError(f"{interpreter} does not say what is installed: {error}") from None
    finally:
        worker.end()
    if "facts" not in answer:
        raise GpudoctorError(f"{interpreter} does not say what is installed: {answer['error']}")
    facts = answer["facts"]
    names = ("executable", "prefix", "is_virtual", "externally_managed", "conda", "conda_base", "scripts", "markers")
    return Inventory(
        **{name: facts[name] for name in names},
        folders=tuple(facts["folders"]),
        distributions=tuple(_distribution(item) for item in facts["distributions"]),
    )


def _refuse_old(interpreter: str) -> None:
    """Refuse a Python in which gpudoctor's own programs do not start. Raises UsageError."""
    said, _, _ = run_to_end([interpreter, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"], os.environ)
    version = said.strip()
    if version in _TOO_OLD:
        raise UsageError(f"{interpreter} is Python {version}: gpudoctor needs 3.7 or newer there")


def _distribution(item: Mapping[str, Any]) -> Distribution:
    rows = csv.reader((item["record"] or "").splitlines())
    return Distribution(
        **{name: item[name] for name in ("name", "version", "info", "installer", "direct_url", "own")},
        requires=tuple(item["requires"]),
        files=None if item["record"] is None else tuple(row[0] for row in rows if row),
    )


def broken_requirements(inventory: Inventory, changed: Mapping[str, str | None]) -> set[str]:
    """Return one sentence for each requirement that would be broken after these changes.

    changed: name → new version; None if it is removed.
    Only requirements on a changed distribution are checked. The installer checks what a new distribution needs.
    """
    return set(_broken(inventory, changed))


def needs_of(item: Distribution, markers: Mapping[str, str]) -> set[str]:
    """Return the distributions that this one needs in this environment, without extras."""
    needed = filter(None, map(_parsed, item.requires))
    return {canonicalize_name(requirement.name) for requirement in needed if _applies(requirement, markers)}


def _broken(inventory: Inventory, changed: Mapping[str, str | None]) -> Iterator[str]:
    for item in inventory.distributions:
        if item.name in changed and (changed[item.name] is None or changed[item.name] != item.version):
            continue
        for text in item.requires:
            requirement = _parsed(text)
            name = canonicalize_name(requirement.name) if requirement is not None else ""
            if requirement is None or name not in changed or not _applies(requirement, inventory.markers):
                continue
            version = changed[name]
            if version is None:
                yield f"{item.name} {item.version} needs {name}"
            elif not _is_met(requirement, version):
                yield f"{item.name} {item.version} needs {name}{requirement.specifier}, not {version}"


def _parsed(text: str) -> Requirement | None:
    try:
        return Requirement(text)
    except InvalidRequirement:
        return None


def _applies(requirement: Requirement, markers: Mapping[str, str]) -> bool:
    """Return whether it is asked for without an extra."""
    try:
        return requirement.marker is None or requirement.marker.evaluate({**markers, "extra": ""})
    except UndefinedEnvironmentName:
        return False


def _is_met(requirement: Requirement, version: str) -> bool:
    try:
        return requirement.specifier.contains(Version(version), prereleases=True)
    except InvalidVersion:
        return True
