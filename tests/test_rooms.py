"""The rooms of the program: arrows go one way, and a check is a decision over facts and nothing else."""

import ast
import inspect
import re
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from gpudoctor.registry import Check
from tests.own_checks import own_checks

ROOT = Path(__file__).parent.parent
CHECKS = [check for check in own_checks() if check.origin == "gpudoctor"]

# Room → the rooms that it may import, the lowest rooms first.
ALLOWED = {
    "model": set[str](),
    "errors": set[str](),
    "untrusted": {"privacy"},
    "privacy": set[str](),
    "worker": set[str](),
    "nvml": set[str](),
    "trust": {"errors"},
    "files": {"errors", "trust"},
    "processes": {"errors", "worker"},
    "data": {"model"},
    "registry": {"model"},
    "parsers": {"model", "untrusted"},
    "configuration": {"errors", "model", "trust"},
    "symptoms": {"data", "model"},
    "conclusions": {"data", "model", "symptoms"},
    "remedies": {"data", "model"},
    "triage": {"data", "model", "remedies", "symptoms"},
    "checks": {"data", "model", "registry", "symptoms"},
    "containers": {"errors", "files", "model", "parsers", "privacy", "symptoms", "trust", "untrusted"},
    "probes": {
        *("containers", "data", "errors", "model", "nvml", "parsers", "privacy", "processes", "symptoms", "untrusted"),
        "worker",
    },
    "snapshots": {"errors", "files", "model", "parsers", "privacy", "probes", "symptoms"},
    "readers": {"data", "errors", "model", "parsers", "privacy", "probes", "snapshots", "symptoms", "untrusted"},
    "tuning": {"data", "errors", "model", "nvml", "privacy", "processes", "untrusted", "worker"},
    "profiles": {"errors", "files", "model", "parsers", "tuning", "untrusted"},
    "watching": {"errors", "model", "nvml", "processes", "tuning", "worker"},
    "engine": {
        *("conclusions", "configuration", "errors", "model", "probes", "readers", "registry", "remedies"),
        *("triage", "trust"),
    },
    "fixing": {
        *("conclusions", "containers", "data", "errors", "files", "model", "parsers", "privacy", "processes"),
        *("remedies", "trust", "untrusted"),
    },
    "reporters": {
        *("conclusions", "data", "engine", "model", "privacy", "registry", "snapshots", "tuning", "untrusted"),
        "watching",
    },
    "testing": {"engine", "model", "symptoms"},
    "api": {"engine", "errors", "files", "model", "probes", "profiles", "reporters", "tuning"},
    "pytest_plugin": {"api", "engine", "errors", "model", "untrusted"},
    "commands": {
        *(
            "api",
            "conclusions",
            "configuration",
            "containers",
            "data",
            "engine",
            "errors",
            "files",
            "fixing",
            "model",
            "parsers",
            "privacy",
        ),
        *("probes", "profiles", "readers", "registry", "reporters", "snapshots", "trust", "untrusted", "watching"),
    },
    "__main__": {"commands"},
}
NOT_IN_A_CHECK = {"os", "sys", "pathlib", "subprocess", "time", "datetime", "io", "shutil", "socket", "random"}
MOST_LINES = 200
MOST_PARAMETERS = 6


def modules() -> Iterator[tuple[str, ast.Module]]:
    """Yield each module's room and its syntax tree. The package itself only hands on what api has."""
    for path in sorted((ROOT / "gpudoctor").rglob("*.py")):
        room = path.relative_to(ROOT / "gpudoctor").parts[0].removesuffix(".py")
        if room != "__init__":
            yield room, ast.parse(path.read_text(encoding="utf-8"))
    for path in sorted((ROOT / "checks").glob("*.py")):
        yield "checks", ast.parse(path.read_text(encoding="utf-8"))


def imported(tree: ast.Module) -> Iterator[str]:
    """Yield the dotted names of the modules that a module imports, anywhere in it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{name.name}" for name in node.names)
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names)


def arrows() -> dict[str, set[str]]:
    """Return for each room the other rooms that it imports."""
    found: dict[str, set[str]] = {}
    rooms = {path.stem for path in (ROOT / "gpudoctor").iterdir()} | {"checks"}
    for room, tree in modules():
        names = (name.split(".")[1] for name in imported(tree) if name.startswith("gpudoctor."))
        found.setdefault(room, set()).update(name for name in names if name != room and name in rooms)
    return found


def test_rooms_import_only_what_the_table_allows() -> None:
    forbidden = {room: sorted(others - ALLOWED.get(room, set())) for room, others in arrows().items()}
    assert {room: others for room, others in forbidden.items() if others} == {}


def test_every_arrow_in_the_table_is_there() -> None:
    found = arrows()
    unused = {room: sorted(others - found.get(room, set())) for room, others in ALLOWED.items()}
    assert {room: others for room, others in unused.items() if others} == {}


def test_arrows_make_no_circle() -> None:
    order = list(TopologicalSorter(ALLOWED).static_order())  # raises CycleError if they do
    assert set(order) == set(ALLOWED)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.id)
def test_a_check_is_short_and_touches_nothing(check: Check) -> None:
    path = ROOT / "checks" / f"{check.id.replace('-', '_')}.py"
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= MOST_LINES
    assert len(inspect.signature(check.function).parameters) <= MOST_PARAMETERS
    roots = {name.split(".")[0] for name in imported(ast.parse(text))}
    assert roots & NOT_IN_A_CHECK == set()
    assert not re.search(r"\bopen\(|\bRemedy\(", text), "a check names fixes"
