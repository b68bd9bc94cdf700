"""The table of fixes that are the same on every machine, and the names by which fixes are called."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import gpudoctor
from gpudoctor.conclusions import parameters
from gpudoctor.model import Fix, Python, System
from gpudoctor.remedies.fixes import _advice, builder_of
from gpudoctor.symptoms.tables import failure_messages
from tests.remedies.made import made_one, pasted_one

PACKAGE = Path(gpudoctor.__file__).parent
CHECKS = next(folder for folder in (PACKAGE / "checks", PACKAGE.parent / "checks") if folder.is_dir())
NEEDS = {"root", "restart", "reboot"}

VARIANTS = ("windows", "mac", "wsl", "container", "conda", "kubernetes", "k3s", "uv")


def _parts(row: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the row, and what differs in it on some machines."""
    return [row, *(row[name] for name in VARIANTS if row.get(name))]


def _called() -> Iterator[str]:
    for file in (*CHECKS.glob("*.py"), *(PACKAGE / "remedies").glob("*.py"), *(PACKAGE / "conclusions").glob("*.py")):
        yield from re.findall(r'Fix\(\s*"([a-z0-9-]+)"', file.read_text(encoding="utf-8"))
    for row in failure_messages():
        yield from (fix["fix"] for answer in row.answers for fix in answer.get("fixes", ()))


def test_every_fix_that_is_called_exists() -> None:
    assert [name for name in sorted(set(_called())) if not callable(builder_of(name))] == []


def test_no_row_is_idle() -> None:
    others = [
        other["fix"]
        for row in _advice().values()
        for part in _parts(row)
        for other in (part, *part.get("fixes", ()))
        if "fix" in other
    ]
    texts = "".join(
        file.read_text(encoding="utf-8")
        for folder in (CHECKS, PACKAGE / "remedies", PACKAGE / "conclusions", PACKAGE / "symptoms" / "tables")
        for file in (*folder.glob("*.py"), *folder.glob("*.json"))
        if file.name != "advice.json"
    )
    prefixes = tuple(re.findall(r'Fix\(f"([a-z-]+-)\{', texts))
    assert [
        name for name in _advice() if f'"{name}"' not in texts and name not in others and not name.startswith(prefixes)
    ] == []


@pytest.mark.parametrize(("name", "row"), _advice().items())
def test_a_row(name: str, row: dict[str, Any]) -> None:
    texts = {"summary", "commands", "needs", "reference", "fixes"}
    assert row.get("summary") or "fix" in row or "fixes" in row
    for part in _parts(row):
        assert not part.get("summary", "").endswith(".")
        assert set(part.get("needs", ())) <= NEEDS
        other_fix = part.get("fix", row.get("fix"))
        own = set(parameters(builder_of(other_fix))) | {"fix"} if other_fix else texts
        assert set(part) - {*VARIANTS} <= own
        for other in part.get("fixes", ()):
            assert (
                set(other) - {"fix"} <= {*parameters(builder_of(other["fix"])), "arguments"}
                or other["fix"] in _advice()
            )


def test_a_value_is_one_word_of_a_command() -> None:
    """A value is quoted itself: within other quotes it would not be."""
    commands = [command for row in _advice().values() for command in row.get("commands", ())]
    for command in (command for command in commands if isinstance(command, str)):
        plain = re.sub(r"\{(?!sudo|prefix|python)\w+\}", "SLOT", command)
        assert not re.findall(r"'[^']*SLOT[^']*'|\"[^\"]*SLOT[^\"]*\"", plain), command


def test_what_a_report_says_runs_nothing() -> None:
    hostile = 'x\'; rm -rf ~; "$(id)"`id`'
    (pcie,) = made_one(Fix("check-pcie-link-under-load", nvml_index=hostile)).commands
    assert hostile in shlex.split(pcie)
    assert pasted_one(Fix("multiply-again", device=hostile)).commands == ()
    (multiply,) = pasted_one(Fix("multiply-again", device="cuda:0")).commands
    assert "device='cuda:0'" in shlex.split(multiply)[2]


@pytest.mark.parametrize(
    ("system", "command"),
    [
        (System(os="linux"), "sudo nvidia-smi -pm 1"),
        (System(os="linux", user_is_root=True), "nvidia-smi -pm 1"),
        (System(os="windows"), "nvidia-smi -pm 1"),
    ],
)
def test_only_who_is_not_root_needs_sudo(system: System, command: str) -> None:
    assert made_one(Fix("turn-on-persistence-mode"), system=system).commands[0] == command


def test_the_environment_of_conda_is_named() -> None:
    conda = Python(executable="/c d/bin/python", environment="conda", prefix="/c d")
    install, show = made_one(Fix("install-older-mkl"), python=conda).commands
    assert install.startswith("conda install --yes --prefix '/c d' 'mkl<")
    assert show.startswith("'/c d/bin/python' -c ")
    assert made_one(Fix("install-older-mkl")).commands[0].startswith("conda install --yes 'mkl<")
