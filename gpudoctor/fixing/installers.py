"""pip and uv: what an install would change, fetched first, and then applied without a network."""

import json
import os
import re
import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from gpudoctor.fixing.actions import Action
from gpudoctor.fixing.environment import Inventory
from gpudoctor.fixing.programs import Failed, Refused, run, run_to_end
from gpudoctor.fixing.record import Scope
from gpudoctor.fixing.resolution import Change, Pin, Resolution
from gpudoctor.fixing.settings import index_problem, refuse_elsewhere
from gpudoctor.fixing.sizes import size_of_pip, sizes_of_pip, sizes_of_uv
from gpudoctor.privacy import mask_secrets

NEVER_DRAGGED = ("torch", "torchvision", "torchaudio", "triton", "pytorch-triton", "jax", "jaxlib", "numpy")
"""What a fix of something else leaves as it is. CuPy distributions too, of whatever name."""

_ON = ("1", "true", "yes", "on", "t", "y")  # as pip reads a setting

FIRST_PIP_WITH_REPORT = Version("23.0")  # the format of its report is stable from there on


class Installer(ABC):
    """What plans a change of an environment, and applies it. environ: the variables that its commands run under.

    lock: descriptor that the commands inherit which change the environment, so that it is locked until they have ended.
    """

    name = ""
    lock: tuple[int, ...] = ()

    def __init__(self, inventory: Inventory, environ: Mapping[str, str]) -> None:
        self.inventory, self.environ = inventory, environ

    @abstractmethod
    def resolve(self, actions: Sequence[Action]) -> Resolution:
        """Return what the actions change, without changing anything: one resolution for all of them.

        Raises:
            Refused: an index cannot be reached, or the installer finds no versions that go together.
        """

    @abstractmethod
    def fetch(self, resolution: Resolution, folder: Path) -> None:
        """Download into `folder` what is installed later. Raises Refused, Failed."""

    @abstractmethod
    def apply(self, resolution: Resolution, folder: Path) -> None:
        """Uninstall and install, from `folder` and without a network. Raises Failed."""

    @abstractmethod
    def broken(self) -> set[str]:
        """Return one line for each broken requirement of the environment. Raises Failed: it cannot be determined."""

    def whole_scope(self) -> Scope | None:
        """Return what is recorded, if that is more than what the changed packages contain."""
        return None


class _OfWheels(Installer):
    """What pip and uv have in common."""

    def resolve(self, actions: Sequence[Action]) -> Resolution:
        asked = {name_of(requirement) for action in actions for requirement in action.requirements}
        removes = _installed(self.inventory, (name for action in actions for name in action.removes))
        pins: dict[str, Pin] = {}
        for action in filter(lambda action: action.requirements, actions):
            names = {name_of(requirement) for requirement in action.requirements}
            forced = names & {*removes} | (names if action.forced else set())
            kept = _kept(self.inventory, {*asked, *removes})
            constraints = [*(str(pin) for pin in pins.values() if pin.name not in names), *kept]
            try:
                found = self._dry_run(action, forced, constraints)
            except Failed as error:
                raise Refused(f"{self.name} finds no versions that go together: {error}") from None
            pins.update({pin.name: pin for pin in found})
            self._refuse_left_out(action, pins)
        removes = tuple(dict.fromkeys((*removes, *(name for name in self.inventory.twins() if name in pins))))
        return Resolution(
            pins=tuple(pins.values()), removes=removes, changes=tuple(_changes(self.inventory, pins, removes))
        )

    def _refuse_left_out(self, action: Action, pins: Mapping[str, Pin]) -> None:
        """Refuse if the plan leaves out what the action asks for: settings such as an override do that."""
        for requirement in map(Requirement, action.requirements):
            name = canonicalize_name(requirement.name)
            version = self.inventory.version_of(name)
            has_it = version is not None and requirement.specifier.contains(version, prereleases=True)
            if name not in pins and not has_it:
                raise Refused(
                    f"{self.name} leaves {name} as it is, although {requirement} is asked for: a setting overrides it,"
                    " such as override-dependencies in pyproject.toml or uv.toml"
                )

    @abstractmethod
    def _dry_run(self, action: Action, forced: set[str], constraints: Sequence[str]) -> list[Pin]:
        """Return what one action installs. Raises Refused, Failed."""

    def broken(self) -> set[str]:
        """Return the broken requirements, as the installer's own check lists them."""
        try:
            out, error, status = run_to_end(self._check_command(), self.environ)
        except Refused as problem:
            raise Failed(str(problem)) from None
        if status not in (0, 1):
            raise Failed(f"{self.name} check ended with exit status {status}: the environment cannot be verified")
        lines = (line.strip() for line in f"{out}\n{error}".splitlines())
        return {line for line in lines if re.search(r" requires |has requirement|not supported on this platform", line)}

    @abstractmethod
    def _check_command(self) -> list[str]:
        """Return the command that names what does not fit."""


class Pip(_OfWheels):
    """pip of the environment itself. It runs isolated from the working directory."""

    name = "pip"

    def resolve(self, actions: Sequence[Action]) -> Resolution:
        version = self.inventory.version_of("pip")
        if version is None:
            raise Refused(f"the environment has no pip: {self.inventory.executable} -m ensurepip")
        if Version(version) < FIRST_PIP_WITH_REPORT:
            raise Refused(
                f"pip {version} is too old to show a plan: update it with {self.inventory.executable} -m pip install"
                f" 'pip>={FIRST_PIP_WITH_REPORT}'"
            )
        refuse_elsewhere(self.name, self._pip(), self.environ)
        return super().resolve(actions)

    def _pip(self, *arguments: str) -> list[str]:
        return [self.inventory.executable, "-I", "-B", "-m", "pip", *arguments]

    def _dry_run(self, action: Action, forced: set[str], constraints: Sequence[str]) -> list[Pin]:
        more = [*(["--upgrade"] if action.upgrade else []), *(["--no-deps"] if action.alone else [])]
        found = self._report(action, [*more, *action.requirements], constraints)
        missing = [name for name in sorted(forced - {pin.name for pin in found}) if self.inventory.version_of(name)]
        asked = {name_of(requirement): requirement for requirement in action.requirements}
        twins = self.inventory.twins()
        again = [asked[name] if name in twins else f"{name}=={self.inventory.version_of(name)}" for name in missing]
        return [*found, *(self._report(action, ["--no-deps", "--force-reinstall", *again], ()) if again else [])]

    def _report(self, action: Action, arguments: Sequence[str], constraints: Sequence[str]) -> list[Pin]:
        with tempfile.TemporaryDirectory(prefix="gpudoctor-") as folder:
            limits, report = os.path.join(folder, "constraints.txt"), os.path.join(folder, "report.json")
            Path(limits).write_text("".join(f"{line}\n" for line in constraints), encoding="utf-8")
            options = ("--dry-run", "--report", report, "--only-binary", ":all:", "--retries", "1", "--no-user")
            command = self._pip("install", *options, "--constraint", limits, *action.index, *arguments)
            try:
                said = run(command, self.environ)
            except Failed as error:
                raise Failed(self._index_problem(command, str(error))) from None
            try:
                rows = json.loads(Path(report).read_text(encoding="utf-8"))["install"]
            except (OSError, ValueError, KeyError, TypeError):
                raise Refused(
                    f"pip shows no plan: repair it with {self.inventory.executable} -m ensurepip --upgrade"
                ) from None
        sizes = sizes_of_pip(said)
        return [_pin(row, action.index, sizes) for row in rows]

    def _index_problem(self, command: Sequence[str], why: str) -> str:
        """Return why nothing was found: pip keeps to itself that an index refused to answer."""
        if why.startswith("the index has no ") and self.environ.get("PIP_NO_INDEX", "").lower() in _ON:
            folders = mask_secrets(self.environ.get("PIP_FIND_LINKS", ""))
            there = f"{folders} {why.removeprefix('the index ')}" if folders else "PIP_FIND_LINKS names no folder"
            return f"PIP_NO_INDEX forbids every index, and {there}"
        if not re.fullmatch(r"the index has no [^:]+", why):
            return why
        return index_problem("\n".join(map(str, run_to_end([*command, "-vv"], self.environ)))) or why

    def fetch(self, resolution: Resolution, folder: Path) -> None:
        for index in dict.fromkeys(pin.index for pin in resolution.pins):
            names = [str(pin) for pin in resolution.pins if pin.index == index]
            options = ("--no-deps", "--only-binary", ":all:", "--dest", str(folder), *index)
            run(self._pip("download", *options, *names), self.environ)

    def apply(self, resolution: Resolution, folder: Path) -> None:
        try:
            installed = [item.name for item in self.inventory.own(resolution.removes)]
            for _ in range(max(map(installed.count, installed), default=0)):  # each time it removes one of the twins
                run(self._pip("uninstall", "--yes", *resolution.removes), self.environ, self.lock)
            if resolution.pins:
                options = ("--no-index", "--find-links", str(folder), "--no-deps", "--force-reinstall", "--no-user")
                run(self._pip("install", *options, *map(str, resolution.pins)), self.environ, self.lock)
        except Refused as error:
            raise Failed(str(error)) from None

    def _check_command(self) -> list[str]:
        return self._pip("check")


class Uv(_OfWheels):
    """uv, on the environment that is named. What is fetched goes into its cache, and a copy shows what is in it."""

    name = "uv"

    def __init__(self, inventory: Inventory, environ: Mapping[str, str]) -> None:
        super().__init__(inventory, environ)
        self._program = shutil.which("uv", path=environ.get("PATH"))

    def resolve(self, actions: Sequence[Action]) -> Resolution:
        refuse_elsewhere(self.name, self._on("install"), self.environ)
        return super().resolve(actions)

    def _uv(self, *arguments: str) -> list[str]:
        if self._program is None:
            raise Refused("uv manages this environment and is not on PATH: install it, or add its folder to PATH")
        return [self._program, "--color", "never", "pip", *arguments]

    def _on(self, verb: str, *arguments: str) -> list[str]:
        return self._uv(verb, "--python", self.inventory.executable, *arguments)

    def _dry_run(self, action: Action, forced: set[str], constraints: Sequence[str]) -> list[Pin]:
        more = [*(["--upgrade"] if action.upgrade else []), *(["--no-deps"] if action.alone else [])]
        more += [word for name in sorted(forced) for word in ("--reinstall-package", name)]
        with tempfile.TemporaryDirectory(prefix="gpudoctor-") as folder:
            limits = os.path.join(folder, "constraints.txt")
            Path(limits).write_text("".join(f"{line}\n" for line in constraints), encoding="utf-8")
            options = ("--dry-run", "--output-format", "json", "--only-binary", ":all:", *self._limited_by(limits))
            out = run(self._on("install", *options, *action.index, *more, *action.requirements), self.environ)
        try:
            rows = json.loads(out)["changes"]
            installed = [row for row in rows if row["action"] == "installed"]
            pins = [Pin(name=row["name"], version=row["version"], index=action.index) for row in installed]
        except (ValueError, KeyError, TypeError):
            raise Refused("this version of uv does not show its plan as JSON: update uv to 0.9 or newer") from None
        sizes = self._sizes(pins, action.index)
        return [replace(pin, size_bytes=sizes.get(pin.name)) for pin in pins]

    def _limited_by(self, limits: str) -> list[str]:
        """Return the options that name `limits`, and the user's own files of constraints, which they would replace."""
        files = (limits, *self.environ.get("UV_CONSTRAINT", "").split())
        return [word for file in files for word in ("--constraints", file)]

    def _sizes(self, pins: Sequence[Pin], index: Sequence[str]) -> dict[str, int]:
        """Return how large the wheels are, by name, as far as an index or a folder says so."""
        with tempfile.TemporaryDirectory(prefix="gpudoctor-") as folder:
            names, lock = os.path.join(folder, "pins.in"), os.path.join(folder, "pylock.toml")
            Path(names).write_text("".join(f"{pin}\n" for pin in pins), encoding="utf-8")
            options = ("--python", self.inventory.executable, "--no-deps", "--quiet", "--only-binary", ":all:")
            _, _, status = run_to_end(self._uv("compile", *options, *index, "-o", lock, names), self.environ)
            return sizes_of_uv(Path(lock).read_text(encoding="utf-8")) if status == 0 else {}

    def fetch(self, resolution: Resolution, folder: Path) -> None:
        for index in dict.fromkeys(pin.index for pin in resolution.pins):
            names = [str(pin) for pin in resolution.pins if pin.index == index]
            options = ("--target", str(folder), "--no-deps", "--only-binary", ":all:", *index)
            run(self._on("install", *options, *names), self.environ)

    def apply(self, resolution: Resolution, folder: Path) -> None:  # noqa: ARG002 - it is in uv's cache
        try:
            if resolution.removes:
                run(self._on("uninstall", *resolution.removes), self.environ, self.lock)
            for index in dict.fromkeys(pin.index for pin in resolution.pins):
                pins = [pin for pin in resolution.pins if pin.index == index]
                forced = [word for pin in pins for word in ("--reinstall-package", pin.name)]
                options = ("--offline", "--no-deps", "--only-binary", ":all:", *forced, *index)
                run(self._on("install", *options, *map(str, pins)), self.environ, self.lock)
        except Refused as error:
            raise Failed(str(error)) from None

    def _check_command(self) -> list[str]:
        return self._on("check")


def installer_of(name: str | None, inventory: Inventory, environ: Mapping[str, str]) -> Installer:
    """Return what installs wheels in the environment. name: as the snapshot has it."""
    return (Uv if name == "uv" else Pip)(inventory, environ)


def name_of(requirement: str) -> str:
    """Return the normalised name of a requirement."""
    return canonicalize_name(Requirement(requirement).name)


def _pin(row: Mapping[str, Any], index: tuple[str, ...], sizes: dict[str, int]) -> Pin:
    metadata, archive = row["metadata"], row["download_info"].get("archive_info", {})
    sha256 = archive.get("hashes", {}).get("sha256", "")
    name = canonicalize_name(metadata["name"])
    size = size_of_pip(row["download_info"].get("url", ""), sizes)
    return Pin(name=name, version=metadata["version"], index=index, sha256=sha256, size_bytes=size)


def _installed(inventory: Inventory, names: Iterable[str]) -> tuple[str, ...]:
    wanted = {canonicalize_name(name) for name in names}
    return tuple(dict.fromkeys(item.name for item in inventory.own(wanted)))


def _kept(inventory: Inventory, changing: set[str]) -> list[str]:
    """Return what must stay as it is, as constraints. Of twins nobody knows which version is the real one."""
    changing = {*changing, *inventory.twins()}
    return [
        f"{item.name}=={item.version}"
        for item in inventory.distributions
        if item.name not in changing and (item.name in NEVER_DRAGGED or item.name.startswith("cupy"))
    ]


def _changes(inventory: Inventory, pins: Mapping[str, Pin], removes: Sequence[str]) -> Iterable[Change]:
    for name in dict.fromkeys((*removes, *pins)):
        pin = pins.get(name)
        after, size = (pin.version, pin.size_bytes) if pin is not None else (None, None)
        yield Change(name=name, before=inventory.installed_as(name), after=after, size_bytes=size)
