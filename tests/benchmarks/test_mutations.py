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
        ("x = y[a : a + 400]", set()),
        ("process.wait(1)\nx.join(timeout=3)\ntime.sleep(2)", set()),
        ("x = y.split(a, maxsplit=1)[0]", {("0", "1")}),
        ("f(3)", {("3", "4"), ("3", "2")}),
        ("x = 'conda packages are installed'", set()),
        ("x = 'conda install torch'", {(" install", ""), (" torch", "")}),
        ("MAXIMUM_NAMED = 30", set()),
        ("_Answer = tuple[bool | None, str]", set()),
    ],
)
def test_each_kind(statement: str, changed: set[tuple[str, str]]) -> None:
    assert changes(statement) == changed


def test_how_far_a_reader_looks_is_a_limit() -> None:
    found = mutations.PythonFile("gpudoctor/readers/age.py", "x = min(a, b + 20000)\ny = a > 5000 or b > 12")
    assert {mutation.before for mutation in found.mutations()} == {">", "or", "12"}


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
    """Stands for `coverage.CoverageData`: what the tests ran of `age.py`, at `root`."""

    root = Path("/elsewhere")

    def __init__(self, _file: str) -> None:
        two = ["tests/test_b.py::test|run", "tests/test_a.py::test|run", "tests/test_b.py::test|setup", ""]
        self.lines = {2: ["tests/test_z.py::test|run"], 6: two, 10: ["tests/test_c.py::test|run"]}

    def read(self) -> None:
        """Have everything already."""

    def measured_files(self) -> set[str]:
        return {f"{self.root}/gpudoctor/age.py", f"{self.root}/gpudoctor/page.py"}

    def contexts_by_lineno(self, file: str) -> dict[int, list[str]]:
        return self.lines if file.endswith("/age.py") else {}


def recorded(root: Path, monkeypatch: pytest.MonkeyPatch, module: str = MODULE) -> mutations.Traced:
    """Return the recording of an older tree, `root/old`, for that in `root/new`, with another module."""
    for name, text in (("old", MODULE), ("new", module)):
        for place in ("gpudoctor/workers", "tests"):
            (root / name / place).mkdir(parents=True)
        (root / name / "gpudoctor/age.py").write_text(text)
        (root / name / "gpudoctor/workers/age.py").write_text(text)
    monkeypatch.setattr(Recording, "root", root / "old")
    monkeypatch.setitem(sys.modules, "coverage", SimpleNamespace(CoverageData=Recording))
    return mutations.Traced(Path(".coverage"), root / "new")


def at(line: int, before: str = "<", path: str = "gpudoctor/age.py") -> mutations.Mutation:
    return mutations.Mutation(path, 0, 1, "", line, before)


@pytest.mark.parametrize(
    ("mutation", "tests"),
    [
        pytest.param(at(6), ["tests/test_b.py::test", "tests/test_a.py::test"], id="its own tests first"),
        pytest.param(at(5, "a\nb"), ["tests/test_b.py::test", "tests/test_a.py::test"], id="two lines"),
        pytest.param(at(5), [], id="a line that no test runs"),
        pytest.param(at(2), [], id="run on import, by the first test that imports it"),
        pytest.param(at(6, path="gpudoctor/page.py"), [], id="another file with such a name"),
        pytest.param(at(6, path="gpudoctor/other.py"), [], id="a file that was not measured"),
    ],
)
def test_the_tests_that_ran_the_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mutation: mutations.Mutation, tests: list[str]
) -> None:
    assert recorded(tmp_path, monkeypatch).tests(mutation, ["tests/test_b.py"]) == tests


@pytest.mark.parametrize(
    ("module", "line", "tests"),
    [
        pytest.param(MODULE.replace("def link", "ADDED = 1\n\n\ndef link"), 13, ["tests/test_c.py::test"], id="moved"),
        pytest.param(MODULE.replace("sudo ln", "ln"), 10, [], id="changed since"),
    ],
)
def test_a_line_of_an_older_tree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, line: int, tests: list[str]
) -> None:
    assert recorded(tmp_path, monkeypatch, module).tests(at(line), []) == tests


def test_what_is_newer_than_the_recording_runs_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    traced = recorded(tmp_path, monkeypatch)
    for name in ("test_a.py", "test_c.py"):
        for place in ("old", "new"):
            (tmp_path / place / "tests" / name).write_text('FILE = "rows.json"' if name == "test_c.py" else "")
    (tmp_path / "new/tests/test_b.py").write_text("# changed")
    assert traced.tests(at(6), ["tests/test_b.py"], ["tests/test_c.py"]) == ["tests/test_b.py", "tests/test_a.py::test"]
    (tmp_path / "new/tests/rows.json").write_text("[]")
    assert traced.tests(at(6), [], ["tests/test_a.py", "tests/test_c.py"])[0] == "tests/test_c.py"


def test_the_own_tests_of_a_worker_run_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = recorded(tmp_path, monkeypatch).tests(at(6, path="gpudoctor/workers/age.py"), ["tests/test_b.py"])
    assert found == []
    monkeypatch.setattr(Recording, "measured_files", lambda self: {f"{self.root}/gpudoctor/workers/age.py"})
    found = mutations.Traced(Path(".coverage"), tmp_path / "new").tests(
        at(6, path="gpudoctor/workers/age.py"), ["tests/test_b.py"]
    )
    assert found == ["tests/test_b.py", "tests/test_a.py::test"]
