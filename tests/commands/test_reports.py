import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from gpudoctor.commands.reports import JOB_SUMMARY, project_root, screen, targets, write_reports
from gpudoctor.errors import UsageError
from gpudoctor.probes.host import ProbeContext
from gpudoctor.reporters.formats import Run
from tests.reporters import reports

RUN = Run(fail_on="error", exit_status=1)


def test_formats_and_files_go_together_in_their_order(tmp_path: Path) -> None:
    first, second = str(tmp_path / "a"), str(tmp_path / "b")
    assert targets((), ()) == [("table", None)]
    assert targets((), (first,)) == [("table", first)]
    assert targets(("json",), ()) == [("json", None)]
    assert targets(("junit", "github"), (first,)) == [("junit", first), ("github", None)]
    assert targets(("junit", "sarif"), (first, second)) == [("junit", first), ("sarif", second)]


@pytest.mark.parametrize(
    ("names", "outputs", "message"),
    [
        ((), ("a", "b"), "--output: 2 files for 1 format"),
        (("json", "html"), ("a", "b", "c"), "--output: 3 files for 2 formats"),
        (("json", "html"), (), "--format: only one of json, html can go to standard output"),
        (("json", "html", "github"), ("a",), "--format: only one of html, github can go to standard output"),
        (("json", "html"), ("a", "./a"), "--output: two formats have the same file"),
        (("json",), ("nowhere/a",), "cannot write nowhere/a: No such file or directory"),
    ],
)
def test_what_does_not_go_together(
    names: tuple[str, ...], outputs: tuple[str, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=f"^{message}"):
        targets(names, outputs)


def test_two_formats_in_one_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    junit = tmp_path / "report.xml"
    write_reports(reports.ERROR, [("github", None), ("junit", str(junit))], RUN, {})
    assert ElementTree.parse(junit).getroot().tag == "testsuites"
    assert capsys.readouterr().out.startswith("::error title=gpudoctor%3A driver-library-mismatch::")


def test_the_summary_of_the_job_is_added_to_what_is_there(tmp_path: Path) -> None:
    summary = tmp_path / "summary.md"
    summary.write_text("before\n")
    write_reports(reports.ERROR, [("github", None)], RUN, {JOB_SUMMARY: str(summary)})
    assert summary.read_text(encoding="utf-8").startswith("before\n## ❌ gpudoctor: 1 error, 1 warning")


def test_other_formats_write_no_summary(tmp_path: Path) -> None:
    summary = tmp_path / "summary.md"
    write_reports(reports.ERROR, [("table", None)], RUN, {JOB_SUMMARY: str(summary)})
    assert not summary.exists()


def test_a_summary_that_cannot_be_written_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_reports(reports.ERROR, [("github", None)], RUN, {JOB_SUMMARY: str(tmp_path / "nowhere" / "s.md")})
    told = capsys.readouterr().err
    assert told == f"gpudoctor: cannot write the job's summary to {tmp_path}/nowhere/s.md: No such file or directory\n"


def test_paths_are_those_of_the_repository(tmp_path: Path) -> None:
    setting = ProbeContext(
        environ={}, directory=str(tmp_path / "docker"), home=str(tmp_path), host_name="", interpreter=None
    )
    assert project_root(setting, {}) == "~/docker"
    assert project_root(setting, {"GITHUB_WORKSPACE": str(tmp_path / "repository")}) == "~/repository"


def test_a_table_in_a_file_has_no_colour() -> None:
    colourful = {**os.environ, "FORCE_COLOR": "1", "NO_COLOR": "", "COLUMNS": "70"}
    on_screen = screen([("table", None)], colourful, verbosity=0)
    assert (on_screen.color, on_screen.width, on_screen.height) == (True, 70, 24)
    assert not screen([("table", "report.txt")], colourful, verbosity=0).color


@pytest.mark.parametrize("names", [(), ("html",), ("junit", "markdown")])
def test_the_exit_status_is_the_same_in_all_formats(names: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "report.txt").write_text("RuntimeError: No CUDA GPUs are available\n")
    arguments = [part for name in names for part in ("--format", name, "--output", name)]
    command = [sys.executable, "-m", "gpudoctor", "check", "--from", "report.txt", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent.parent)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert bool(done.stdout) == (not names)
    assert all((tmp_path / name).stat().st_size for name in names)


def test_the_command_in_the_documentation(tmp_path: Path) -> None:
    root = Path(__file__).parent.parent.parent
    block = (root / "docs" / "ci.md").read_text(encoding="utf-8").partition("```bash")[2].split("```")[0]
    program, *arguments = block.split()
    assert program == "gpudoctor"
    environment = {**os.environ, "PYTHONPATH": str(root), JOB_SUMMARY: str(tmp_path / "summary.md")}
    command = [sys.executable, "-m", "gpudoctor", *arguments, "--fast"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert ElementTree.parse(tmp_path / "gpudoctor.xml").getroot().tag == "testsuites"
    assert all(line.startswith("::") for line in done.stdout.splitlines())
    assert (tmp_path / "summary.md").read_text(encoding="utf-8").startswith("## ")
