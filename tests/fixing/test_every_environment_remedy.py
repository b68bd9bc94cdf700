"""Every remedy that changes an environment: planned by uv, some by pip too, applied, verified and undone.

Whether its finding is gone is tested in `test_every_remedy`, for each kind of finding that a check makes of wheels.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from gpudoctor.conclusions import Facts
from gpudoctor.fixing.actions import Action, actions_of, kind_of
from gpudoctor.fixing.environment import read_inventory
from gpudoctor.fixing.installers import installer_of, name_of
from gpudoctor.fixing.store import Store
from gpudoctor.fixing.transaction import apply
from gpudoctor.model import (
    ComputeCapability,
    CudaVersion,
    Cupy,
    Device,
    Driver,
    DriverVersion,
    Fix,
    Package,
    PackageVersion,
    Python,
    Snapshot,
    System,
    Torch,
)
from gpudoctor.remedies.fitting import fitted
from gpudoctor.remedies.fixes import remedies_of
from tests.fixing.beds import UV, Bed
from tests.remedies.hostile_values import arguments_of, every_fix
from tests.remedies.test_every_fix import ARGUMENTS
from tests.wheels import make_wheel

PYTHON = "/v/bin/python"
MACHINE = Snapshot(
    system=System(os="linux", machine="x86_64", distribution="ubuntu"),
    driver=Driver(version=DriverVersion.parse("580.65.06"), cuda_version=CudaVersion(13, 0)),
    devices=(Device(nvml_index=0, compute_capability=ComputeCapability.parse("8.9")),),
    python=Python(version=PackageVersion("3.12.3"), executable=PYTHON, environment="venv", installer="uv"),
    torch=Torch(version=PackageVersion("2.13.0+cpu"), build="cpu"),
    cupy=Cupy(distributions=(Package(name="cupy-cuda11x", version=PackageVersion("12.0.0")),)),
)
NO_TEXT = "1"
"""The value of an argument that is a text of the user's machine."""


@cache
def remedies() -> tuple[tuple[str, tuple[Action, ...]], ...]:
    """Return a fix and its actions for each different remedy of the environment."""
    found: dict[tuple[Action, ...], str] = {}
    for name in every_fix():
        arguments = {
            key: ARGUMENTS.get(key, NO_TEXT) for key, kind in arguments_of(name) if key in ARGUMENTS or kind is str
        }
        facts = Facts(MACHINE)
        try:
            made = facts.call(fitted, remedies=remedies_of((Fix(name, **arguments),), facts))
        except (TypeError, AttributeError, ValueError):  # it needs an argument that only its check has
            continue
        for remedy in made:
            if kind_of(remedy, PYTHON) == "environment":
                found.setdefault(actions_of(remedy, PYTHON), name)
    return tuple((name, actions) for actions, name in found.items())


def test_there_are_remedies_of_the_environment() -> None:
    assert len(remedies()) > 25


def cases() -> list[Any]:
    """Return each remedy with uv, which is quick, and every sixth one with pip; without uv each with pip."""
    each = [(name, actions, "uv") for name, actions in remedies()] if UV else []
    slow = [(name, actions, "pip") for name, actions in remedies()[:: 6 if UV else 1]]
    return [pytest.param(*case, id=f"{case[0]} by {case[2]}") for case in (*each, *slow)]


@pytest.mark.parametrize(("name", "actions", "tool"), cases())
def test_it_is_applied_verified_and_undone(bed: Bed, name: str, actions: tuple[Action, ...], tool: str) -> None:
    requirements = [Requirement(text) for action in actions for text in action.requirements]
    for requirement in requirements:
        if not list(bed.index.glob(f"{requirement.name.replace('-', '_')}-{_version(requirement.specifier)}-*.whl")):
            _wheel(bed, requirement.name, _version(requirement.specifier))
    old = sorted({*(name_of(removed) for action in actions for removed in action.removes), *_forced(actions)})
    for distribution in old:
        if distribution not in {name_of(str(requirement)) for requirement in requirements}:
            _wheel(bed, distribution, "0.1")
    env = bed.environment("cuda-pathfinder", *old, installer=tool)  # uv leaves its own .lock in it
    before = env.state()

    inventory = read_inventory(env.python)
    installer, store = installer_of(tool, inventory, bed.variables), Store(inventory.prefix)
    resolution = installer.resolve(actions)
    assert env.state() == before
    with store.locked(print):
        assert apply(store, installer, resolution, lambda: "", lambda _: None) == ("", [])
        for requirement in requirements:
            version = read_inventory(env.python).version_of(name_of(str(requirement)))
            assert version is not None
            assert requirement.specifier.contains(version, prereleases=True)
        assert store.undo() == []
    assert env.state() == before


def _forced(actions: tuple[Action, ...]) -> Iterator[str]:
    yield from (name_of(text) for action in actions if action.forced for text in action.requirements)


def _wheel(bed: Bed, name: str, version: str) -> None:
    module = re.sub(r"\W", "_", name)
    make_wheel(bed.index, name, version, {f"{module}/__init__.py": f"__version__ = {version!r}\n"})


def _version(specifiers: SpecifierSet) -> str:
    """Return a version that fits."""
    exact = next((s.version for s in specifiers if s.operator in ("==", ">=", "~=")), "")
    return exact.replace(".*", ".0") or "1.0"
