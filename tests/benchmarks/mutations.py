"""How many small mistakes the tests would find: random mutations of the code and of the tables, each against its tests.

    python tests/benchmarks/mutations.py [N] [--seed SEED] [--only PATH] [--timeout SECONDS] [--traced FILE]

Each mutation is made in a temporary copy of the tree. Its tests are those of the mutated file, those that import it,
those of the modules that import it (if these have none, of the modules that import them), the recorded machines,
reports and messages for what reads and decides, those of the command by which a person reaches it, and for containers
the command line with a container engine. These take 10 minutes, need `--timeout 1200` and skip without DOCKER_HOST.
Which tests run a line can also be recorded before, which finds more of them and takes a tenth of the time
(`pip install pytest-cov`; `python -m pytest --cov=gpudoctor --cov=checks --cov-context=test --cov-report=` writes
`.coverage`; give it as FILE). Test files that are newer than the recording run whole. Lines that run when a module is
imported, or in another process, keep the tests above.
The mutations that survive are printed with their place; at most 10 % may. What no test can see is not changed:
docstrings, annotations, words for people, and the limits on hostile input and on how long a call waits.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import difflib
import itertools
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).parents[2]
LIMIT_SHARE = 0.1
MOST_IMPORTERS = 12
"""Test files that are run for what they import, and for what their modules do; those of the same room come first."""

MOST_TRACED = 1500
"""Of the tests that run a line: some run in each of ten thousand diagnoses."""

DECIDING = ("checks", "gpudoctor/conclusions", "gpudoctor/remedies", "gpudoctor/engine", "gpudoctor/symptoms")
TABLES = ("gpudoctor/data", "gpudoctor/symptoms")
READING = ("gpudoctor/readers", "gpudoctor/parsers", "gpudoctor/probes", "gpudoctor/model", "gpudoctor/triage")
RECORDED = [
    "tests/test_machines.py",
    "tests/test_changed_machines.py",
    "tests/test_recorded_reports.py",
    "tests/symptoms/test_every_row.py",
    "tests/checks/test_every_pair.py",
    "tests/conclusions/test_every_symptom.py",
]
TYPED = {"watching": "run", "tuning": "tune", "profiles": "profile", "containers/rebuild": "rebuild"}
"""The command that a person types to reach a room."""
FOR_PEOPLE = re.compile(r"as_of|about|sources|notes?|says|summary|meaning|\w*source")
COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==",
    ast.In: "not in", ast.NotIn: "in", ast.Is: "is not", ast.IsNot: "is",
}  # fmt: skip
# Bounds on what a broken or hostile machine may answer: a test just below each would test a round number.
_BOUND = re.compile(r"_?(?:MAXIMUM|MOST|LONGEST|DEEPEST)(?:_|$)|\w*_(?:BYTES|SECONDS|MAXIMUM|CHARACTERS|LINES)$")
_COMMAND = re.compile(
    r"(?:sudo |python3? -|\S*pip3? |docker |podman |conda |mamba |uv |apt|dnf |zypper |pacman |nvidia-|ln |export "
    r"|unset |systemctl |modprobe |rmmod |dkms |mokutil |usermod |mount |wsl |snap |kubectl |echo |ls |lsmod |cat )"
)

_TYPE = re.compile(r"(?:tuple|dict|list|set|frozenset|Callable|Mapping|Sequence|Iterator|type)\[")

LAST_FAILED = ".pytest_cache/v/cache/lastfailed"
CHOSEN = """
import json

def pytest_collection_modifyitems(config, items):
    with open("chosen.json", encoding="utf-8") as file:
        names, broken = json.load(file)
    place = {name: number for number, name in enumerate(names)}
    found = [item for item in items if item.nodeid not in broken]
    files = {name for name in names if "::" not in name}
    found = [item for item in found if item.nodeid in place or item.nodeid.partition("::")[0] in files]
    items[:] = sorted(found, key=lambda item: place.get(item.nodeid, place.get(item.nodeid.partition("::")[0], 0)))
"""
"""A plugin of pytest: it runs the tests that are named and still there, in the order of their names."""

_SENTENCE = re.compile(r" (?:is|are|was|has|does|sees|chose|cannot|the|not|probably) ")


@dataclass(frozen=True)
class Mutation:
    """One change of a file: the text between two offsets becomes another."""

    path: str
    start: int
    end: int
    text: str
    line: int
    before: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {_short(self.before)} -> {_short(self.text) or 'nothing'}"

    def of(self, source: str) -> str:
        """Return the mutated file."""
        return source[: self.start] + self.text + source[self.end :]


def _short(text: str) -> str:
    folded = " ".join(text.split())
    return folded if len(folded) <= 100 else f"{folded[:97]}..."


class PythonFile:
    """The mutations of one module."""

    def __init__(self, path: str, source: str) -> None:
        self._path = path
        self._source = source
        self._tree = ast.parse(source)
        self._starts = [0]
        for line in source.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self._lines = source.splitlines(keepends=True)
        self._skipped = {*self._left_alone(), *self._limits()}

    def mutations(self) -> Iterator[Mutation]:
        """Yield the mutations; some of them may not parse."""
        for node in self._nodes(self._tree):
            for start, end, text in self._of(node):
                yield self._mutation(start, end, text)

    def _nodes(self, node: ast.AST) -> Iterator[ast.AST]:
        for child in ast.iter_child_nodes(node):
            if child not in self._skipped:
                yield child
                # before Python 3.12 what stands in an f-string has no place of its own
                if not isinstance(child, ast.JoinedStr):
                    yield from self._nodes(child)

    def _left_alone(self) -> Iterator[ast.AST]:
        for node in ast.walk(self._tree):
            if isinstance(node, ast.arg | ast.AnnAssign) and node.annotation is not None:
                yield node.annotation
            if isinstance(node, ast.FunctionDef) and node.returns is not None:
                yield node.returns
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                yield from node.decorator_list
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                yield node  # a docstring
            if isinstance(node, ast.Import | ast.ImportFrom | ast.Raise | ast.Assert):
                yield node
            if (
                isinstance(node, ast.Assign)
                and isinstance(node.value, ast.Subscript)
                and _TYPE.match(ast.unparse(node.value))
            ):
                yield node  # another name of a type
            if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
                yield node
            if isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                names = [target.id for target in targets if isinstance(target, ast.Name)]
                if any(_BOUND.match(name) or name == "__all__" for name in names):
                    yield node

    def _limits(self) -> Iterator[ast.AST]:
        """Yield what only cuts off a text that is too long or a wait that is too long."""
        reads = self._path.startswith(("gpudoctor/readers", "gpudoctor/parsers"))
        for node in ast.walk(self._tree):
            if isinstance(node, ast.Slice):
                yield from (part for part in (node.lower, node.upper) if part is not None and _is_large(part))
            if isinstance(node, ast.Call):
                yield from _waits(node)
            if isinstance(node, ast.Subscript) and ast.unparse(node.slice) == "0" and isinstance(node.value, ast.Call):
                yield from (word.value for word in node.value.keywords if word.arg == "maxsplit")  # the first part
            if isinstance(node, ast.BinOp | ast.Compare) and reads:
                yield from (part for part in ast.iter_child_nodes(node) if _is_far(part))

    def _of(self, node: ast.AST) -> Iterator[tuple[int, int, str]]:
        """Yield start, end and new text."""
        if isinstance(node, ast.Compare):
            yield from self._comparison(node)
        elif isinstance(node, ast.BoolOp):
            old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
            for left, right in zip(node.values, node.values[1:], strict=False):
                yield from self._between(left, right, rf"\b{old}\b", new)
        elif isinstance(node, ast.If | ast.IfExp | ast.While):
            yield from self._negated(node.test)
        elif isinstance(node, ast.comprehension):
            for test in node.ifs:
                yield from self._negated(test)
        elif isinstance(node, ast.Constant | ast.JoinedStr):
            yield from self._constant(node)
        elif isinstance(node, ast.Tuple) and isinstance(node.ctx, ast.Load) and len(node.elts) > 1:
            yield from self._tuple(node)
        elif isinstance(node, ast.Return) and node.value is not None:
            yield from self._answer(node.value)

    def _comparison(self, node: ast.Compare) -> Iterator[tuple[int, int, str]]:
        words = {ast.In: r"\bin\b", ast.NotIn: r"\bnot\s+in\b", ast.Is: r"\bis\b", ast.IsNot: r"\bis\s+not\b"}
        for left, operator, right in zip([node.left, *node.comparators], node.ops, node.comparators, strict=False):
            new = COMPARISONS[type(operator)]
            yield from self._between(left, right, words.get(type(operator), r"[<>=!]=?"), new)

    def _between(self, left: ast.expr, right: ast.expr, pattern: str, new: str) -> Iterator[tuple[int, int, str]]:
        _, start = self._span(left)
        end, _ = self._span(right)
        found = re.search(pattern, self._source[start:end])
        if found:
            yield start + found.start(), start + found.end(), new

    def _negated(self, test: ast.expr) -> Iterator[tuple[int, int, str]]:
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            start, end = self._span(test)
            inner, _ = self._span(test.operand)
            yield start, end, self._source[inner:end]
        elif not isinstance(test, ast.Compare):  # a comparison is mutated itself
            start, end = self._span(test)
            yield start, end, f"not ({self._source[start:end]})"

    def _constant(self, node: ast.Constant | ast.JoinedStr) -> Iterator[tuple[int, int, str]]:
        start, end = self._span(node)
        value = node.value if isinstance(node, ast.Constant) else None
        if isinstance(value, int) and not isinstance(value, bool):
            yield from ((start, end, str(value + step)) for step in (1, -1) if value + step >= 0)
        elif isinstance(node, ast.JoinedStr) or isinstance(value, str):
            yield from self._command(node, start, end)

    def _command(self, node: ast.Constant | ast.JoinedStr, start: int, end: int) -> Iterator[tuple[int, int, str]]:
        """Yield a command to paste without one of its words."""
        parts = node.values if isinstance(node, ast.JoinedStr) else [node]
        first = parts[0]
        text = self._source[start:end]
        if not (isinstance(first, ast.Constant) and _COMMAND.match(str(first.value))) or _SENTENCE.search(text):
            return
        inside = (
            [(m.start(), m.end()) for m in re.finditer(r"\{[^{}]*\}", text)] if isinstance(node, ast.JoinedStr) else []
        )
        for word in re.finditer(r" [\w./=:@+-]+", text):
            if not any(a <= word.start() < b for a, b in inside):
                yield start + word.start(), start + word.end(), ""

    def _tuple(self, node: ast.Tuple) -> Iterator[tuple[int, int, str]]:
        """Yield the tuple without one of its elements; of two, one stays a tuple by its comma."""
        spans = [self._span(element) for element in node.elts]
        if any(isinstance(element, ast.Starred) for element in node.elts):
            return
        if len(spans) == 2:
            yield from ((spans[0][0], spans[1][1], f"{self._source[slice(*kept)]},") for kept in spans)
            return
        for number, (start, end) in enumerate(spans):
            last = number + 1 == len(spans)
            left, right = (spans[number - 1][1], end) if last else (start, spans[number + 1][0])
            if "#" not in self._source[left:right]:
                yield left, right, ""

    def _answer(self, value: ast.expr) -> Iterator[tuple[int, int, str]]:
        start, end = self._span(value)
        if isinstance(value, ast.Constant) and isinstance(value.value, bool):
            yield start, end, str(not value.value)
        elif isinstance(value, ast.Tuple) and len(value.elts) == 2:
            first, second = (self._source[slice(*self._span(element))] for element in value.elts)
            yield start, end, f"({second}, {first})"
        elif isinstance(value, ast.Constant) and value.value is None:
            yield start, end, "False"

    def _span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._offset(node.lineno, node.col_offset), self._offset(node.end_lineno, node.end_col_offset)

    def _offset(self, line: int, column: int) -> int:
        """Return the offset in characters; columns count bytes."""
        return self._starts[line - 1] + len(self._lines[line - 1].encode()[:column].decode())

    def _mutation(self, start: int, end: int, text: str) -> Mutation:
        line = self._source.count("\n", 0, start) + 1
        return Mutation(self._path, start, end, text, line, self._source[start:end])


def _is_large(node: ast.expr) -> bool:
    """Return whether a slice ends at a round length, which only cuts off what is too long."""
    if isinstance(node, ast.BinOp):  # start + 400
        return _is_large(node.left) or _is_large(node.right)
    return isinstance(node, ast.Constant) and isinstance(node.value, int) and node.value >= 20


def _is_far(node: ast.AST) -> bool:
    """Return whether this is a round number of characters after which a reader stops."""
    value = node.value if isinstance(node, ast.Constant) else None
    return isinstance(value, int) and value >= 1000 and value % 1000 == 0


def _waits(node: ast.Call) -> Iterator[ast.expr]:
    """Yield how long a call waits, at most: half a second more is seen by a test only that waits as long."""
    if isinstance(node.func, ast.Attribute) and node.func.attr in ("wait", "join", "sleep", "settimeout"):
        yield from (argument for argument in node.args if isinstance(argument, ast.Constant))
    yield from (keyword.value for keyword in node.keywords if keyword.arg in ("timeout", "limit_seconds"))


def table_mutations(path: str, source: str) -> Iterator[Mutation]:
    """Yield the mutations at the edges of a table, its first and last rows, where a copied number is a decision.

    A number, or the last part of a version, becomes one higher or lower, and yes becomes no.
    """
    value = re.compile(r'"(\w+)": ("\d+(?:\.\d+)+"|\d+|true|false)(?=[,}])')
    lines = source.splitlines(keepends=True)
    rows = [line.startswith("  {") for line in lines]
    for number, line in enumerate(lines):
        if not rows[number] or (rows[number - 1] and rows[number + 1]):
            continue
        offset = sum(map(len, lines[:number]))
        for found in value.finditer(line):
            start, end = (offset + place for place in found.span(2))
            for new in () if FOR_PEOPLE.fullmatch(found[1]) else _changed(found[2]):
                yield Mutation(path, start, end, new, number + 1, f"{found[1]}: {found[2]}")


def _changed(value: str) -> Iterator[str]:
    if value in ("true", "false"):
        yield "false" if value == "true" else "true"
        return
    *_, last = re.finditer(r"\d+", value)
    for step in (1, -1):
        if int(last[0]) + step >= 0:
            yield f"{value[: last.start()]}{int(last[0]) + step}{value[last.end() :]}"


def differs(mutation: Mutation, source: str) -> bool:
    """Return whether the mutated file can be read and means something else."""
    read = json.loads if mutation.path.endswith(".json") else lambda text: ast.dump(ast.parse(text))
    try:
        return bool(read(mutation.of(source)) != read(source))
    except (SyntaxError, ValueError):
        return False


def all_mutations(root: Path, only: Sequence[str] = ()) -> list[Mutation]:
    """Return every mutation of the tree, in a fixed order."""
    code = [*(root / "checks").glob("*.py"), *(root / "gpudoctor").rglob("*.py")]
    tables = [path for folder in TABLES for path in (root / folder).rglob("*.json")]
    found: list[Mutation] = []
    for path in sorted([*code, *tables]):
        name = path.relative_to(root).as_posix()
        if not only or any(name == place or name.startswith(f"{place.rstrip('/')}/") for place in only):
            source = path.read_text(encoding="utf-8")
            found += PythonFile(name, source).mutations() if path.suffix == ".py" else table_mutations(name, source)
    return found


class Tests:
    """Which tests a file has."""

    def __init__(self, root: Path) -> None:
        self._root = root
        modules = [*(root / "checks").glob("*.py"), *(root / "gpudoctor").rglob("*.py")]
        self._modules = {path.relative_to(root).as_posix(): _imported(path) for path in modules}
        tests = (root / "tests").rglob("test_*.py")
        self._tests = {path.relative_to(root).as_posix(): _imported(path) for path in tests}

    def groups(self, path: str) -> list[list[str]]:
        """Return test files, the nearest first."""
        own = self._own(path)
        names = self._names(path)
        room = path.rpartition("/")[0]
        near = f"tests/{room.removeprefix('gpudoctor/')}/"
        direct = [test for test, imported in self._tests.items() if imported & names]
        direct = sorted(direct, key=lambda test: (not test.startswith(near), test))[:MOST_IMPORTERS]
        indirect = self._of_importers(path, room)[:MOST_IMPORTERS]
        machines = RECORDED if path.startswith(DECIDING + TABLES + READING) else []
        groups: list[list[str]] = []
        seen: set[str] = set()
        for group in ([*own, *direct], machines, indirect, self._as_typed(path), self._by_engine(path)):
            groups.append([test for test in dict.fromkeys(group) if test not in seen])
            seen.update(group)
        return [group for group in groups if group]

    def _of_importers(self, path: str, room: str) -> list[str]:
        """Return the tests of the modules that import this one; if they have none, of those that import them."""
        seen, modules = {path}, [path]
        while modules:
            names = set().union(*map(self._names, modules))
            modules = [module for module, imported in self._modules.items() if imported & names and module not in seen]
            modules.sort(key=lambda module: (not module.startswith(room), module))
            seen.update(modules)
            names = set().union(*map(self._names, modules))
            tests = [test for module in modules for test in self._own(module)]
            tests += sorted(test for test, imported in self._tests.items() if imported & names)
            if tests:
                return tests
        return []

    def _as_typed(self, path: str) -> list[str]:
        return [
            test
            for room, command in TYPED.items()
            if path.startswith(f"gpudoctor/{room}/")
            for test in self._named("", rf"test_{command}_commands?")
        ]

    def _by_engine(self, path: str) -> list[str]:
        """Return the tests that run the command line against a container engine: those of the room first."""
        if not path.startswith("gpudoctor/containers/"):
            return []
        near = f"{path.replace('gpudoctor', 'tests', 1).rpartition('/')[0]}/"
        tests = [
            test for test in self._tests if re.fullmatch(r"tests/containers/.*(_by_engine|test_scenarios)\.py", test)
        ]
        return sorted(tests, key=lambda test: (not test.startswith(near), test))

    def _own(self, path: str) -> list[str]:
        """Return the tests that have the module's name.

        A program of a folder `workers` is tested as what starts it, and a command as what a person types.
        """
        folder, _, name = path.removeprefix("gpudoctor/").rpartition("/")
        stem = name.partition(".")[0]
        place = f"{folder}/" if folder else ""
        found = self._named(place, rf"test_{stem}(_\w+)?")
        if folder.endswith("workers"):
            found += self._named(place.removesuffix("workers/"), f"test_{stem}")
        if folder == "commands":
            found += [*self._named("", rf"test_{stem}_commands?"), *self._named(place, "test_cli")]
        if not found and "_" in stem:  # comparing_arrays is a part of comparing
            found = self._named(place, f"test_{stem.partition('_')[0]}")
        return [*found, *(["tests/data/test_tables.py"] if path.endswith(".json") else [])]

    def _named(self, folder: str, pattern: str) -> list[str]:
        named = re.compile(rf"tests/{re.escape(folder)}{pattern}\.py")
        return sorted(test for test in self._tests if named.fullmatch(test))

    def _names(self, path: str) -> set[str]:
        """Return how others import the module: by itself, or by a name that its package hands on."""
        if path.endswith(".json"):
            path = path.removesuffix(".json") + ".py"
        module = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        package = module.rpartition(".")[0]
        names = {module}
        init = self._root / f"{package.replace('.', '/')}/__init__.py"
        if init.is_file():
            for node in ast.parse(init.read_text(encoding="utf-8")).body:
                if isinstance(node, ast.ImportFrom) and node.module == module:
                    names |= {f"{package}:{alias.name}" for alias in node.names}
        return names


def _imported(path: Path) -> set[str]:
    """Return the modules that a file imports or starts as programs, and "package:name" of each name."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            for alias in node.names:
                found |= {f"{node.module}.{alias.name}", f"{node.module}:{alias.name}"}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.Constant) and str(node.value).startswith("gpudoctor."):
            found.add(str(node.value))
    return found


class Traced:
    """Which tests ran a line, as `coverage` recorded it: for the same tree, or for an older one that is still there."""

    def __init__(self, file: Path, root: Path = ROOT) -> None:
        self._data = import_module("coverage").CoverageData(str(file))
        self._data.read()
        self._measured = sorted(self._data.measured_files())
        self._root = root

    def tests(self, mutation: Mutation, own: Sequence[str], others: Iterable[str] = ()) -> list[str]:
        """Return the tests that ran the mutated line, those of the test files in `own` first.

        others: test files that are added whole if they are newer than what was recorded.
        """
        measured = next((name for name in self._measured if name.endswith(f"/{mutation.path}")), "")
        if not measured:
            return []
        lines, places = self._data.contexts_by_lineno(measured), self._lines(measured, mutation.path)
        last = mutation.line + mutation.before.count("\n")
        recorded = [places.get(line, 0) for line in range(mutation.line, last + 1)]
        found = {test for line in recorded for test in lines.get(line, ()) if "::" in test}
        if not found or not _in_function(_text(self._root / mutation.path), mutation.line):
            return []  # what runs on import is credited to the one test that happened to import it first
        old = Path(measured.removesuffix(mutation.path))
        by_worker = own if "/workers/" in mutation.path else ()  # most of its tests run it in another process
        newer = [test for test in (*own, *others) if test in by_worker or self._is_newer(old, test)]
        tests = sorted({test.rpartition("|")[0] for test in found})
        near = [test for test in tests if test.partition("::")[0] in own and test.partition("::")[0] not in newer]
        far = [test for test in tests if test.partition("::")[0] not in (*own, *newer)]
        return [*near, *dict.fromkeys(newer), *far[:: max(1, len(far) // MOST_TRACED)]]

    def _is_newer(self, old: Path, test: str) -> bool:
        """Return whether a test file differs from what was recorded, or one of the JSON files whose rows it tests."""
        names = re.findall(r'"(\w+\.jsonl?)"', _text(self._root / test))
        places = (Path(test), *(Path(test).with_name(name) for name in names))
        return any(_text(old / place) != _text(self._root / place) for place in places)

    def _lines(self, measured: str, path: str) -> dict[int, int]:
        """Return the number that each line had when it was recorded."""
        old, new = _text(Path(measured)).splitlines(), _text(self._root / path).splitlines()
        if not old:
            return {number: number for number in range(1, len(new) + 100)}
        blocks = difflib.SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks()
        return {block.b + number: block.a + number for block in blocks for number in range(1, block.size + 1)}


def _in_function(source: str, line: int) -> bool:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.Lambda):
            body = node.body[0] if isinstance(node, ast.FunctionDef) else node.body
            if body.lineno <= line <= (node.end_lineno or 0):
                return True
    return False


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.is_file() else ""


class Judge:
    """Runs tests in a copy of the tree."""

    def __init__(self, root: Path, copy: Path, timeout: float) -> None:
        self._copy = copy
        self._timeout = timeout
        self._broken: set[str] = set()
        listed = subprocess.run(
            ["git", "ls-files", "-z", "-co", "--exclude-standard"], cwd=root, capture_output=True, check=True
        )
        for name in filter(None, listed.stdout.decode().split("\0")):
            if (root / name).is_file():
                (copy / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(root / name, copy / name)
        (copy / "chosen.py").write_text(CHOSEN, encoding="utf-8")

    def verdict(self, mutation: Mutation, groups: Iterable[Sequence[str]]) -> str:
        """Return "killed", "survived", "timed out", or "no answer" if its tests fail anyway."""
        target = self._copy / mutation.path
        source = target.read_text(encoding="utf-8")
        end = time.monotonic() + self._timeout
        try:
            for tests in groups:
                answer = self._answer(target, mutation.of(source), source, tests, end)
                if answer != "survived":
                    return answer
            return "survived"
        finally:
            target.write_text(source, encoding="utf-8")

    def _answer(self, target: Path, changed: str, source: str, tests: Sequence[str], end: float) -> str:
        """Return the verdict of a group. A test that fails without the mutation too is left out from then on."""
        while True:
            (self._copy / LAST_FAILED).unlink(missing_ok=True)
            target.write_text(changed, encoding="utf-8")
            status = self._pytest(tests, end)
            target.write_text(source, encoding="utf-8")
            if status is None:
                return "timed out"
            if status in (0, 5):  # 5: no test was selected
                return "no answer" if status and self._broken else "survived"
            if self._pytest(self._failed() or tests, time.monotonic() + self._timeout) in (0, 5):
                return "killed"
            broken = {test for test in self._failed() if "::" in test}
            if broken <= self._broken:
                return "no answer"
            self._broken |= broken

    def _failed(self) -> list[str]:
        recorded = self._copy / LAST_FAILED
        return sorted(json.loads(recorded.read_text(encoding="utf-8"))) if recorded.is_file() else []

    def _pytest(self, arguments: Sequence[str], end: float) -> int | None:
        """Return the exit status; None if the time is up."""
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-m", "not gpu and not environments", "-p", "chosen"]
        command += dict.fromkeys(name.partition("::")[0] for name in arguments)
        (self._copy / "chosen.json").write_text(json.dumps([arguments, sorted(self._broken)]), encoding="utf-8")
        environ = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(self._copy)}
        process = subprocess.Popen(
            command,
            cwd=self._copy,
            env=environ,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            return process.wait(max(1.0, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            return None
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def main(arguments: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Mutate, test and print. Return 0 if at most 10 % survived, 1 if more did, 2 if there is nothing to mutate."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", nargs="?", type=int, default=100, metavar="N", help="mutations (default 100)")
    parser.add_argument("--seed", type=int, default=0, help="another seed gives other mutations (default 0)")
    parser.add_argument("--only", action="append", default=[], metavar="PATH", help="a file or folder (repeatable)")
    parser.add_argument("--timeout", type=float, default=120.0, metavar="SECONDS", help="per mutation (default 120)")
    parser.add_argument("--traced", type=Path, metavar="FILE", help="what coverage recorded of the tests")
    options = parser.parse_args(arguments)
    possible = all_mutations(root, options.only)
    if not possible:
        print("nothing to mutate", file=sys.stderr)
        return 2
    random.Random(options.seed).shuffle(possible)
    valid = (mutation for mutation in possible if differs(mutation, (root / mutation.path).read_text(encoding="utf-8")))
    chosen = list(itertools.islice(valid, options.count))
    print(f"{len(chosen)} of {len(possible)} possible mutations", file=sys.stderr)
    verdicts: dict[Mutation, str] = {}
    tests = Tests(root)
    traced = Traced(options.traced, root) if options.traced else None
    with tempfile.TemporaryDirectory(prefix="gpudoctor-mutations-") as folder, contextlib.suppress(KeyboardInterrupt):
        judge = Judge(root, Path(folder), options.timeout)
        for number, mutation in enumerate(chosen, start=1):
            groups = tests.groups(mutation.path)
            own, *others = groups or [[]]
            running = traced.tests(mutation, own, itertools.chain(*others)) if traced else []
            verdicts[mutation] = judge.verdict(mutation, [running] if running else groups)
            print(f"{number}/{len(chosen)} {verdicts[mutation]}: {mutation}", file=sys.stderr, flush=True)
    return report(verdicts)


def report(verdicts: dict[Mutation, str]) -> int:
    """Print the figures and what was not killed; return the exit status."""
    for kind in ("survived", "timed out", "no answer"):
        for mutation, verdict in verdicts.items():
            if verdict == kind:
                print(f"{kind}: {mutation}")
    counted = [verdict for verdict in verdicts.values() if verdict != "no answer"]
    survived = counted.count("survived")
    timed_out = counted.count("timed out")
    print(f"{len(counted)} mutations, {survived} survived" + (f", {timed_out} timed out" if timed_out else ""))
    return int(survived > LIMIT_SHARE * len(counted))


if __name__ == "__main__":
    sys.exit(main())
