"""The program as its users call it: output, exit status, and one line for a mistake."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gpudoctor.engine.runner import run_checks
from gpudoctor.model import Snapshot
from gpudoctor.model.codec import from_json
from gpudoctor.registry import OF_RUNS
from gpudoctor.reporters import json_report
from tests.own_checks import own_checks


def gpudoctor(*arguments: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    root = Path(__file__).parent.parent.parent
    return subprocess.run(
        [sys.executable, "-m", "gpudoctor", *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(root), "NO_COLOR": "1", "COLUMNS": "80", **environment},
    )


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    done = gpudoctor("check", "--fast", "--format", "json", "--fail-on", "never", folder=tmp_path_factory.mktemp("cwd"))
    assert (done.returncode, done.stderr) == (0, "")
    report: dict[str, object] = json.loads(done.stdout)
    return report


def test_the_report_keeps_its_promise(report: dict[str, object]) -> None:
    triage = ["understood", "missing", "next", "possible"]
    others = ["findings", "passed", "skipped", "snapshot", "duration_s"]
    assert list(report) == ["schema", "version", "verdict", "proof", *triage, *others]
    assert report["schema"] == "gpudoctor/report/1"
    assert report["verdict"] in ("healthy", "warning", "error", "unknown")
    assert (report["verdict"] == "healthy") is bool(report["proof"])
    assert (report["verdict"] == "unknown") is bool(report["next"])


def test_every_check_is_accounted_for(report: dict[str, object]) -> None:
    found = {finding["check"] for finding in report["findings"]}  # type: ignore[attr-defined]
    skipped = {entry["check"] for entry in report["skipped"]}  # type: ignore[attr-defined]
    of_machines = {check.id for check in own_checks() if check.family != OF_RUNS}
    assert found | skipped | set(report["passed"]) == of_machines  # type: ignore[call-overload]


def test_the_snapshot_gives_the_same_findings_byte_for_byte(report: dict[str, object]) -> None:
    snapshot = from_json(Snapshot, report["snapshot"])
    again = json.loads(json_report.render(run_checks(own_checks(), snapshot)))
    assert json.dumps(again["findings"]) == json.dumps(report["findings"])


def test_the_snapshot_names_no_home(report: dict[str, object]) -> None:
    assert str(Path.home()) + "/" not in json.dumps(report["snapshot"])


def test_the_screen(tmp_path: Path) -> None:
    done = gpudoctor("check", "--fast", "--fail-on", "never", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert max(len(line) for line in done.stdout.splitlines() if not line.startswith("   ")) <= 80
    assert "\x1b" not in done.stdout


def test_the_fast_check_imports_neither_library(report: dict[str, object]) -> None:
    states = {entry["probe"]: entry["state"] for entry in report["snapshot"]["reports"]}  # type: ignore[index]
    assert states["torch-runtime"] == states["cupy-runtime"] == "not-run"


def test_only_the_selected_checks_run(tmp_path: Path) -> None:
    done = gpudoctor("check", "shm-too-small", "--select", "cupy-missing", "--format", "json", folder=tmp_path)
    report = json.loads(done.stdout)
    ids = {*report["passed"], *(e["check"] for e in report["skipped"]), *(f["check"] for f in report["findings"])}
    assert ids == {"shm-too-small", "cupy-missing"}


def test_an_ignored_check_stays_visible(tmp_path: Path) -> None:
    done = gpudoctor("check", "cupy", "--fast", "--ignore", "cupy-missing", "--format", "json", folder=tmp_path)
    skipped = {entry["check"]: entry["reason"] for entry in json.loads(done.stdout)["skipped"]}
    assert skipped["cupy-missing"] == "ignored on the command line"


def test_a_run_in_which_everything_is_ignored_has_the_verdict_unknown(tmp_path: Path) -> None:
    done = gpudoctor("check", "cupy-missing", "--ignore", "cupy", "--format", "json", folder=tmp_path)
    assert done.returncode == 3
    assert json.loads(done.stdout)["verdict"] == "unknown"


def test_a_requirement_of_the_project_makes_a_missing_cupy_an_error(tmp_path: Path) -> None:
    assert gpudoctor("check", "cupy-missing", folder=tmp_path).returncode == 0
    (tmp_path / "requirements.txt").write_text("cupy-cuda12x>=13\n")
    done = gpudoctor("check", "cupy-missing", "--format", "json", folder=tmp_path)
    assert (done.returncode, json.loads(done.stdout)["findings"][0]["severity"]) == (1, "error")


def test_the_report_goes_whole_into_a_file(tmp_path: Path) -> None:
    done = gpudoctor("check", "cupy-missing", "--format", "json", "--output", "report.json", folder=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "Wrote report.json\n")
    assert json.loads((tmp_path / "report.json").read_text())["schema"] == "gpudoctor/report/1"


def test_another_interpreter_needs_no_gpudoctor(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    interpreter = tmp_path / "venv" / "bin" / "python"
    done = gpudoctor("check", "torch", "--python", str(interpreter), "--format", "json", folder=tmp_path)
    snapshot = json.loads(done.stdout)["snapshot"]
    assert snapshot["python"]["prefix"].endswith("/venv")
    assert snapshot["torch"]["installed"] is False


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (
            ["check", "torch-cpu-bild"],
            "gpudoctor: no check or family is called 'torch-cpu-bild': did you mean torch-cpu-build?",
        ),
        (["check", "--ignore", "driverr"], "gpudoctor: no check or family is called 'driverr': did you mean driver?"),
        (
            ["check", "--format", "xml"],
            "gpudoctor check: Invalid value for '--format': 'xml' is not one of 'table', 'json', 'junit', 'sarif',",
        ),
        (
            ["check", "--timeout", "0"],
            "gpudoctor check: Invalid value for '--timeout': 0.0 is not in the range x>=0.1.",
        ),
        (
            ["check", "--python", "/nowhere/python"],
            "gpudoctor: --python: /nowhere/python is not a program that can be run",
        ),
        (["check", "--colour"], "gpudoctor check: No such option"),
        (["chekc"], "gpudoctor: no such command 'chekc': did you mean check?"),
        (["zzz"], "gpudoctor: no such command 'zzz': gpudoctor --help lists the commands"),
        (["explain", "nothing-like-it"], "gpudoctor: no check or family is called 'nothing-like-it'"),
        (["explain", "torch"], "gpudoctor: explain: 'torch' is a family: gpudoctor list torch shows its checks"),
        (
            ["check", "cupy-missing", "--output", "nowhere/x"],
            "gpudoctor: cannot write nowhere/x: No such file or directory",
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_mistake_is_one_line(arguments: list[str], line: str, tmp_path: Path) -> None:
    done = gpudoctor(*arguments, folder=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(line)
    assert done.stderr.count("\n") == 1


def test_an_interpreter_that_is_none_is_a_failed_probe(tmp_path: Path) -> None:
    done = gpudoctor("check", "--python", "true", "--format", "json", "--fail-on", "never", folder=tmp_path)
    report = json.loads(done.stdout)
    assert done.returncode == 0
    assert "probe-failed" in {finding["check"] for finding in report["findings"]}


def test_a_pipe_that_closes_early_is_quiet(tmp_path: Path) -> None:
    command = f"{sys.executable} -m gpudoctor list | true"
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent.parent)}
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=True, env=environment)
    assert done.stderr == ""


def test_without_a_command_it_checks_and_says_what_else_there_is(tmp_path: Path) -> None:
    (tmp_path / "gpudoctor.toml").write_text('select = ["shm-too-small"]\n')
    done = gpudoctor(folder=tmp_path)
    checked = gpudoctor("check", folder=tmp_path)
    assert (done.returncode, done.stdout) == (checked.returncode, checked.stdout)
    assert done.stderr.startswith(f"{checked.stderr}\nWhat else there is:\n  gpudoctor -v")
    assert done.stderr.endswith("gpudoctor --help       list all commands\n")
    (tmp_path / "gpudoctor.toml").write_text("select = 3\n")
    assert gpudoctor(folder=tmp_path).returncode == 2


@pytest.mark.parametrize(
    ("arguments", "same"),
    [
        pytest.param(["-q"], ["check", "-q"], id="flags alone"),
        pytest.param(["--no-color", "-q", "check"], ["check", "--no-color", "-q"], id="flags before a command"),
        pytest.param(["--from", "run"], ["check", "--from", "run"], id="a file named like a command"),
        pytest.param(["--from", "-", "-q"], ["check", "--from", "-", "-q"], id="options"),
        pytest.param(["--fast", "nonsense"], ["check", "--fast", "nonsense"], id="the name of a check"),
    ],
)
def test_options_without_a_command_are_those_of_check(arguments: list[str], same: list[str], tmp_path: Path) -> None:
    (tmp_path / "gpudoctor.toml").write_text('select = ["shm-too-small"]\n')
    (tmp_path / "run").write_text("torch 2.3.0+cpu\n")
    one, other = gpudoctor(*arguments, folder=tmp_path), gpudoctor(*same, folder=tmp_path)
    assert (one.returncode, one.stdout, one.stderr) == (other.returncode, other.stdout, other.stderr)


def test_a_working_directory_that_is_gone(tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    command = f"cd {folder} && rmdir {folder} && exec {sys.executable} -m gpudoctor check --fast"
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent.parent)}
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False, env=environment)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "gpudoctor: the working directory no longer exists: change to one that does\n"


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-"])
def test_a_stream_that_is_closed(closed: str, tmp_path: Path) -> None:
    command = f"{sys.executable} -m gpudoctor check shm-too-small debug-environment-left-on --fast {closed}"
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent.parent)}
    done = subprocess.run(
        command, shell=True, capture_output=True, text=True, check=False, cwd=tmp_path, env=environment
    )
    assert done.returncode in (0, 1)
    assert "crashed" not in done.stdout + done.stderr


def test_list_is_one_line_for_each_check_in_a_pipe(tmp_path: Path) -> None:
    done = gpudoctor("list", folder=tmp_path)
    assert done.returncode == 0
    assert [line.split()[0] for line in done.stdout.splitlines()] == [check.id for check in own_checks()]


def test_list_as_json(tmp_path: Path) -> None:
    document = json.loads(gpudoctor("list", "driver", "--format", "json", folder=tmp_path).stdout)
    assert document["schema"] == "gpudoctor/checks/1"
    drivers = [check for check in own_checks() if check.family == "driver"]
    assert document["checks"] == [{"id": c.id, "family": "driver", "problem": c.title} for c in drivers]


@pytest.mark.parametrize("check_id", [check.id for check in own_checks()])
def test_explain_has_a_page_for_each(check_id: str, tmp_path: Path) -> None:
    from gpudoctor.reporters import catalog

    page = catalog.render_page(next(check for check in own_checks() if check.id == check_id), width=80)
    assert check_id in page
    headings = [line.partition(":")[0] for line in page.splitlines() if ":" in line[:12] and line[0] != " "]
    assert headings[:5] == ["Why", "See it", "Fix", "Exception", "Reference"]


def test_explain_prints_the_page(tmp_path: Path) -> None:
    done = gpudoctor("explain", "driver-too-old", folder=tmp_path)
    assert done.returncode == 0
    assert "docs.nvidia.com" in done.stdout


def test_explain_without_an_id_names_the_command_that_shows_them(tmp_path: Path) -> None:
    done = gpudoctor("explain", folder=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "gpudoctor: explain: an ID is missing: gpudoctor list shows the checks\n"


def test_a_recording_gives_the_same_diagnosis(tmp_path: Path) -> None:
    from gpudoctor.probes.snapshot import take_snapshot
    from gpudoctor.snapshots.recording import RecordedHost

    done = gpudoctor("record", "machine", folder=tmp_path)
    assert (done.returncode, done.stdout) == (0, "")
    recorded = run_checks(own_checks(), take_snapshot(RecordedHost.load(tmp_path / "machine")))
    live = json.loads(gpudoctor("check", "--format", "json", "--fail-on", "never", folder=tmp_path).stdout)
    assert [finding.check_id for finding in recorded.findings] == [finding["check"] for finding in live["findings"]]


NOT_PROBED = "is for probing this machine: with --from nothing is probed"
OLD_DRIVER = (
    "UserWarning: The NVIDIA driver on your system is too old (found version 11040). Please update your driver\n"
)


def test_a_pasted_report_is_diagnosed(tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text(OLD_DRIVER)
    done = gpudoctor("check", "--from", "log.txt", folder=tmp_path)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.startswith("1 error: driver-too-old")
    assert "(messages in log.txt)" in done.stdout


@pytest.mark.parametrize("color", [[], ["--no-color"]])
def test_quiet_verbose_and_no_color(color: list[str], tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text(OLD_DRIVER)
    forced = {"NO_COLOR": "", "FORCE_COLOR": "1"}
    quiet = gpudoctor("check", "--from", "log.txt", "-q", *color, folder=tmp_path, **forced)
    assert quiet.stdout == ("1 error: driver-too-old\n" if color else "\x1b[31m1 error\x1b[0m: driver-too-old\n")
    verbose = gpudoctor("check", "--from", "log.txt", "-v", *color, folder=tmp_path, **forced)
    assert ("\x1b" in verbose.stdout) is (color == [])
    assert "[driver.cuda_version]" in verbose.stdout
    assert "\nnot applicable " in verbose.stdout
    assert (quiet.returncode, verbose.returncode) == (1, 1)


@pytest.mark.parametrize("color", [[], ["--no-color"]])
def test_a_comparison_in_colors(color: list[str], tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(OLD_DRIVER)
    (tmp_path / "b.txt").write_text("AssertionError: Torch not compiled with CUDA enabled")
    done = gpudoctor("diff", "a.txt", "b.txt", *color, folder=tmp_path, NO_COLOR="", FORCE_COLOR="1")
    assert ("\x1b" in done.stdout) is (color == [])


def test_watch_names_the_command_that_starts_a_program(tmp_path: Path) -> None:
    done = gpudoctor("watch", "--", "python", "train.py", folder=tmp_path)
    assert done.returncode == 2
    assert "gpudoctor run -- python train.py" in done.stderr


def test_a_report_comes_through_a_pipe(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "gpudoctor", "check", "--from", "-", "--format", "json"],
        input=OLD_DRIVER,
        capture_output=True,
        text=True,
        check=False,
    )
    report = json.loads(done.stdout)
    assert (done.returncode, report["findings"][0]["check"]) == (1, "driver-too-old")
    assert report["findings"][0]["evidence"][0]["source"] == "standard input"


@pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX shell")
def test_a_closed_standard_input_is_one_clear_line() -> None:
    command = [sys.executable, "-m", "gpudoctor", "check", "--from", "-"]
    done = subprocess.run(["sh", "-c", '"$@" <&-', "sh", *command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "gpudoctor: -: standard input is closed\n")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--from", "nowhere.txt"], "gpudoctor: nowhere.txt: No such file or directory"),
        (["--from", "."], "gpudoctor: .: Is a directory"),
        (["--from", "log.txt", "--fast"], f"gpudoctor: --fast {NOT_PROBED}"),
        (["--from", "log.txt", "--python", "x"], f"gpudoctor: --python {NOT_PROBED}"),
    ],
)  # fmt: skip
def test_a_mistake_with_a_report_is_one_line(arguments: list[str], line: str, tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text(OLD_DRIVER)
    done = gpudoctor("check", *arguments, folder=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", line + "\n")


def test_a_snapshot_gives_the_findings_of_the_machine(tmp_path: Path, report: dict[str, object]) -> None:
    assert gpudoctor("snapshot", "--fast", "--output", "s.json", folder=tmp_path).returncode == 0
    done = gpudoctor("check", "--from", "s.json", "--format", "json", "--fail-on", "never", folder=tmp_path)
    assert json.dumps(json.loads(done.stdout)["findings"]) == json.dumps(report["findings"])


def test_a_snapshot_does_not_differ_from_itself(tmp_path: Path) -> None:
    gpudoctor("snapshot", "--fast", "--output", "s.json", folder=tmp_path)
    done = gpudoctor("diff", "s.json", "s.json", folder=tmp_path)
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "no differences")


def test_two_reports_differ(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(OLD_DRIVER)
    (tmp_path / "b.txt").write_text("AssertionError: Torch not compiled with CUDA enabled")
    done = gpudoctor("diff", "a.txt", "b.txt", "--format", "json", folder=tmp_path)
    document = json.loads(done.stdout)
    assert done.returncode == 1
    assert "driver-too-old" in [finding["check"] for finding in document["gone"]]


def test_a_file_without_facts_cannot_be_compared(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(OLD_DRIVER)
    (tmp_path / "b.txt").write_text("{")
    done = gpudoctor("diff", "a.txt", "b.txt", folder=tmp_path)
    assert (done.returncode, done.stderr) == (2, "gpudoctor: b.txt: not recognised as a GPU report\n")


def test_a_file_that_cannot_be_compared_is_one_line(tmp_path: Path) -> None:
    done = gpudoctor("diff", "a.json", "b.json", folder=tmp_path)
    assert (done.returncode, done.stderr) == (2, "gpudoctor: a.json: No such file or directory\n")
