"""The mutation script finds what a test misses, leaves words alone, and never touches the tree."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.benchmarks import mutations

MODULE = '''"""Is 3 < 4?"""


def is_old(version: int, least: int = 5) -> bool:
    """Return whether 1 < 2."""
    return version < least and version > 0


def link(name: str) -> str:
    return f"sudo ln -s {name}.1 {name}"
'''
TABLE = """{
 "as_of": "2026-01-01",
 "rows": [
  {"cuda": "12.0", "eol": false, "source": "1.0"},
  {"cuda": "12.4", "eol": true, "source": "1.0"},
  {"cuda": "13.0", "eol": true, "source": "1.0"}
 ]
}
"""
STRONG = """from gpudoctor.age import is_old, link
def test(): assert [is_old(4), is_old(5), is_old(6), is_old(0), is_old(1)] == [True, False, False, False, True]
def test_link(): assert link("a") == "sudo ln -s a.1 a"
"""
WEAK = """from gpudoctor.age import is_old
def test(): assert is_old(3)
"""


def changes(source: str) -> set[tuple[str, str]]:
    found = mutations.PythonFile("gpudoctor/age.py", source).mutations()
    return {(mutation.before, mutation.text) for mutation in found if mutations.differs(mutation, source)}


def test_what_is_mutated() -> None:
    assert changes(MODULE) == {
        ("<", "<="), (">", ">="), ("and", "or"), ("5", "6"), ("5", "4"), ("0", "1"), (" ln", ""), (" -s", ""),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("statement", "changed"),
    [
        ("if not ready: pass", {("not ready", "ready")}),
        ("x = [a for a in b if a]", {("a", "not (a)")}),
        ("def f():\n    return a, b", {("a, b", "(b, a)"), ("a, b", "a,"), ("a, b", "b,")}),
        ("x = f((a, b, c))", {("a, ", ""), ("b, ", ""), (", c", "")}),
        ("if a is None: pass", {("is", "is not")}),
        ("x: Annotated[int, 3] = y[:300]", set()),
        ("raise ValueError(3)", set()),
        ("x = 'conda packages are installed'", set()),
        ("x = 'conda install torch'", {(" install", ""), (" torch", "")}),
        ("MAXIMUM_NAMED = 30", set()),
    ],
)
def test_each_kind(statement: str, changed: set[tuple[str, str]]) -> None:
    assert changes(statement) == changed


def test_the_edges_of_a_table() -> None:
    found = list(mutations.table_mutations("t.json", TABLE))
    assert [(m.line, m.text) for m in found] == [
        (4, '"12.1"'), (4, "true"), (6, '"13.1"'), (6, "false"),
    ]  # fmt: skip
    assert all(mutations.differs(m, TABLE) for m in found)


def tree(root: Path, test: str) -> Path:
    (root / "gpudoctor").mkdir()
    (root / "tests").mkdir()
    (root / "gpudoctor" / "age.py").write_text(MODULE)
    (root / "tests" / "test_age.py").write_text(test)
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    return root


def test_a_weak_test_lets_mutations_survive(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert mutations.main(["2", "--seed", "0", "--timeout", "60"], tree(tmp_path, WEAK)) == 1
    printed = capsys.readouterr().out
    assert printed.endswith("2 mutations, 2 survived\n")
    assert "survived: gpudoctor/age.py:" in printed
    assert (tmp_path / "gpudoctor" / "age.py").read_text() == MODULE


def test_a_strong_test_kills_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert mutations.main(["2", "--seed", "0", "--timeout", "60"], tree(tmp_path, STRONG)) == 0
    assert capsys.readouterr().out == "2 mutations, 0 survived\n"


def test_a_test_that_fails_anyway_kills_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mutations.main(["1", "--timeout", "60"], tree(tmp_path, "def test(): assert False\n"))
    assert capsys.readouterr().out.endswith("0 mutations, 0 survived\n")


def test_a_test_that_fails_anyway_is_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mutations.main(
        ["2", "--timeout", "60"], tree(tmp_path, f"import gpudoctor.age\ndef test_broken(): assert False\n{STRONG}")
    )
    assert capsys.readouterr().out == "2 mutations, 0 survived\n"


def test_nothing_to_mutate(tmp_path: Path) -> None:
    assert mutations.main(["--only", "gpudoctor/other"], tree(tmp_path, WEAK)) == 2


def test_containers_are_judged_by_the_command_line_with_an_engine_too(tmp_path: Path) -> None:
    for name in ("tests/containers/test_scenarios.py", "tests/containers/rebuild/test_rebuild_by_engine.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    found = mutations.Tests(tmp_path)
    assert found.groups("gpudoctor/containers/rebuild/steps.py") == [
        ["tests/containers/rebuild/test_rebuild_by_engine.py", "tests/containers/test_scenarios.py"]
    ]
    assert found.groups("gpudoctor/age.py") == []


def test_a_room_is_judged_by_the_command_that_reaches_it(tmp_path: Path) -> None:
    for name in ("run", "tune", "profile", "rebuild"):
        (tmp_path / "tests").mkdir(exist_ok=True)
        (tmp_path / f"tests/test_{name}_command{'s' * (name == 'profile')}.py").touch()
    found = mutations.Tests(tmp_path)
    rooms = (
        "watching/program",
        "tuning/workers/loading",
        "profiles/samples",
        "containers/rebuild/steps",
        "reporters/x",
    )
    assert [found.groups(f"gpudoctor/{room}.py") for room in rooms] == [
        [["tests/test_run_command.py"]],
        [["tests/test_tune_command.py"]],
        [["tests/test_profile_commands.py"]],
        [["tests/test_rebuild_command.py"]],
        [],
    ]


class Recording:
    """Stands for `coverage.CoverageData`."""

    def __init__(self, _file: str) -> None:
        self.lines = {3: ["tests/test_b.py::test|run", "tests/test_a.py::test|run", "tests/test_b.py::test|setup", ""]}

    def read(self) -> None:
        """Have everything already."""

    def measured_files(self) -> set[str]:
        return {"/elsewhere/gpudoctor/age.py", "/elsewhere/gpudoctor/page.py"}

    def contexts_by_lineno(self, file: str) -> dict[int, list[str]]:
        return self.lines if file == "/elsewhere/gpudoctor/age.py" else {}


@pytest.mark.parametrize(
    ("path", "line", "before", "tests"),
    [
        ("gpudoctor/age.py", 3, "<", ["tests/test_b.py::test", "tests/test_a.py::test"]),
        ("gpudoctor/age.py", 2, "a\nb", ["tests/test_b.py::test", "tests/test_a.py::test"]),
        ("gpudoctor/age.py", 4, "<", []),
        ("gpudoctor/page.py", 3, "<", []),
        ("gpudoctor/other.py", 3, "<", []),
    ],
)
def test_the_tests_that_ran_the_line_its_own_first(
    monkeypatch: pytest.MonkeyPatch, path: str, line: int, before: str, tests: list[str]
) -> None:
    monkeypatch.setitem(sys.modules, "coverage", SimpleNamespace(CoverageData=Recording))
    mutation = mutations.Mutation(path, 0, 1, "", line, before)
    assert mutations.Traced(Path(".coverage")).tests(mutation, ["tests/test_b.py"]) == tests
