"""No terminal escape and no secret of anybody's text is on a screen or in a file, whichever command writes it."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from gpudoctor.commands import rebuild
from gpudoctor.containers.rebuild.steps import BuildFailed, Command, Progress
from gpudoctor.data.environment_variables import environment_variables
from gpudoctor.engine.checkup import Rules
from gpudoctor.engine.runner import run_checks
from gpudoctor.model import Containers, ContainerSetup, Environment, Finding, Remedy, Snapshot
from gpudoctor.model.codec import to_json
from gpudoctor.model.profile import Profile
from gpudoctor.model.tuning import Tuning
from gpudoctor.privacy import mask_arguments
from gpudoctor.readers.report import read_texts
from gpudoctor.reporters import (
    comparison,
    json_report,
    profile_table,
    run_html,
    run_json,
    run_table,
    tuning_html,
    tuning_json,
    tuning_table,
)
from gpudoctor.reporters.formats import FORMATS, Run, render
from gpudoctor.reporters.terminal import Screen
from gpudoctor.snapshots.comparison import compare
from gpudoctor.watching.watched import WatchedRun
from tests.conftest import Install
from tests.environments import python_of
from tests.hostile_engine import hostile_engine
from tests.hostile_records import filled
from tests.own_checks import own_checks
from tests.stand_ins import GIB, RTX_4090, Nvml
from tests.test_secrets import KEYS, is_shown

ROOT = Path(__file__).parent.parent
KEY, PASSWORD = KEYS["GitHub classic"], "hunter2hunter2"
ESCAPE = "\x1b]0;owned\x07\r"
HOSTILE = f"{ESCAPE}{KEY} --api-key {PASSWORD}"
RUN = Run(fail_on="error", exit_status=1, screen=Screen(width=200, verbosity=1), rules=Rules())


def assert_clean(text: str, key: str = KEY) -> None:
    at = re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", text)
    assert at is None, text[max(0, at.start() - 80) : at.end() + 80]
    assert not is_shown(key, text)
    assert PASSWORD not in text


def planted(key: str) -> Snapshot:
    """Return a snapshot with the key in every text of every section."""
    return filled(Snapshot, f"{ESCAPE}{key} --api-key {PASSWORD}")


def outputs(snapshot: Snapshot) -> Iterator[str]:
    report = run_checks(own_checks(), snapshot)
    assert len(report.findings) > 8
    yield from (render(name, report, RUN) for name in FORMATS)
    difference = compare(run_checks((), Snapshot()), report)
    yield comparison.render_json(difference)
    yield comparison.render_table(difference, color=False, width=100)
    yield json_report.render_snapshot(snapshot)


@pytest.mark.parametrize("is_saved", [True, False], ids=["of another", "of this machine"])
@pytest.mark.parametrize("kind", ["GitHub classic", "private key", "Telegram"])
def test_no_text_of_a_snapshot_acts_or_leaks(kind: str, is_saved: bool) -> None:
    snapshot = planted(KEYS[kind])
    if is_saved:
        document = {"schema": "gpudoctor/snapshot/1", **to_json(snapshot)}
        snapshot = read_texts([("other.json", json.dumps(document).encode())])
    for text in outputs(snapshot):
        assert_clean(text, KEYS[kind])


@pytest.mark.parametrize("kind", KEYS)
def test_a_key_in_the_snapshot_of_another_is_not_taken_in(kind: str) -> None:
    document = {"schema": "gpudoctor/snapshot/1", **to_json(planted(KEYS[kind]))}
    snapshot = read_texts([("other.json", json.dumps(document).encode())])
    assert not is_shown(KEYS[kind], json.dumps(to_json(snapshot)))


def test_only_variables_that_gpudoctor_keeps_are_taken_from_a_snapshot() -> None:
    variables = {"CUDA_VISIBLE_DEVICES": "0", "AWS_SECRET_ACCESS_KEY": "aB3/xyz+qwerty", "MY_NAME": "alice"}
    setup = ContainerSetup(name="web", kind="container", environment=variables, image_environment=variables)
    saved = Snapshot(environment=Environment(variables=variables), containers=Containers(setups=(setup,)))
    document = {"schema": "gpudoctor/snapshot/1", **to_json(saved)}
    read = read_texts([("other.json", json.dumps(document).encode())])
    assert read.environment is not None
    assert read.containers is not None
    loaded = read.containers.setups[0]
    kept = {"CUDA_VISIBLE_DEVICES": "0"}
    assert (read.environment.variables, loaded.environment, loaded.image_environment) == (kept, kept, kept)


def huge(name: str) -> bytes:
    """Return a snapshot of 4 MB. name: of its last package."""
    packages = [{"name": f"package{number}", "version": "1.2.3", "path": "/opt/lib"} for number in range(60_000)]
    packages.append({**packages[0], "name": name})
    return json.dumps({"schema": "gpudoctor/snapshot/1", "python": {"packages": packages}}).encode()


def test_a_huge_snapshot_is_read_in_time() -> None:
    data = huge("last")
    began = time.process_time()
    assert read_texts([("other.json", data)]).python is not None
    assert time.process_time() - began < 3


def test_the_last_text_of_a_huge_snapshot_is_masked() -> None:
    read = read_texts([("other.json", huge(f"x-{KEY}"))])
    assert read.python is not None
    assert read.python.packages is not None
    assert (len(read.python.packages), read.python.packages[-1].name) == (60_001, "x-***")


def test_a_snapshot_of_another_names_no_home_folder() -> None:
    document = {"schema": "gpudoctor/snapshot/1", "python": {"executable": "/home/alice/venv/bin/python"}}
    read = read_texts([("other.json", json.dumps(document).encode())])
    assert read.python is not None
    assert read.python.executable == "/home/user/venv/bin/python"


def test_no_text_of_a_watched_run() -> None:
    process = {"pid": 1, "program": HOSTILE, "steps": 3}
    remedy = filled(Remedy, HOSTILE)
    details = {"share": 0.5, "speedup": 2.0, "place": f"{HOSTILE}:1"}
    finding = replace(filled(Finding, HOSTILE), remedies=(remedy,), details=details)
    watched = filled(WatchedRun, HOSTILE, processes=(process, process), findings=(finding,))
    assert_clean(run_table.render(watched, color=False, width=80))
    assert_clean(run_json.render(watched))
    assert_clean(run_html.render(watched))


def test_no_text_of_a_tuning() -> None:
    tuning = filled(Tuning, HOSTILE)
    for text in (tuning_table.render(tuning, color=False, width=80), tuning_json.render(tuning)):
        assert_clean(text)
    assert_clean(tuning_html.render(tuning))


def test_no_text_of_a_profile() -> None:
    assert_clean(profile_table.render(filled(Profile, HOSTILE)))
    named = replace(filled(Profile, "fine"), own={"MY_TOKEN": PASSWORD})
    assert_clean(profile_table.render(named))


@pytest.mark.parametrize(
    ("arguments", "masked"),
    [
        (("train", "--api-key", PASSWORD, "-v"), ("train", "--api-key", "***", "-v")),
        (("train", f"--api-key={PASSWORD}", KEY), ("train", "--api-key=***", "***")),
        (("--lr", "abcdefgh", "token"), ("--lr", "abcdefgh", "token")),
    ],
)
def test_a_secret_among_arguments_is_known_by_its_option(arguments: tuple[str, ...], masked: tuple[str, ...]) -> None:
    assert mask_arguments(arguments) == masked


def gpudoctor(folder: Path, *arguments: str, **variables: str) -> str:
    """Return all that a command shows, which has to be clean."""
    done = subprocess.run(
        [sys.executable, "-m", "gpudoctor", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1", **variables},
        capture_output=True,
        timeout=120,
        check=False,
    )
    text = (done.stdout + done.stderr).decode().replace("\r\n", "\n")
    assert_clean(text)
    return text


@pytest.mark.parametrize("format_name", ["table", "json"])
def test_run_shows_no_secret_of_the_command_line(tmp_path: Path, format_name: str) -> None:
    program = [sys.executable, "-c", "pass", KEY, "--password", PASSWORD, f"\x1b[2J{KEY}"]
    assert "***" in gpudoctor(tmp_path, "run", "--format", format_name, "--", *program)
    told = gpudoctor(tmp_path, "run", "--format", format_name, "--output", f"{KEY}.txt", "--", *program)
    assert "Wrote ***" in told
    assert_clean((tmp_path / f"{KEY}.txt").read_text())


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "--", f"/none/{HOSTILE}"),
        ("run", "--profile", HOSTILE, "--", "true"),
        ("check", "--from", HOSTILE),
        ("check", HOSTILE),
        ("diff", HOSTILE, HOSTILE),
        ("tune", "--workload", f"work.py:{HOSTILE}"),
        ("tune", "--set", HOSTILE),
        ("rebuild", "--dockerfile", HOSTILE),
        ("init", "--folder", HOSTILE),
        ("record", HOSTILE),
        (HOSTILE,),
    ],
    ids=lambda arguments: " ".join(arguments[:2]) if len(arguments) > 1 else "command",
)
def test_an_error_repeats_no_secret(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    (tmp_path / "work.py").write_text("")
    gpudoctor(tmp_path, *arguments)


def test_a_file_is_named_without_the_secret_in_its_name(tmp_path: Path) -> None:
    (tmp_path / f"{KEY}.txt").write_text("AssertionError: Torch not compiled with CUDA enabled")
    for format_name in FORMATS:
        gpudoctor(tmp_path, "check", "--from", f"{KEY}.txt", "--format", format_name)


WORKLOADS = f"""
import os, sys, time, warnings
class Raises:
    def __init__(self, device, precision):
        pass
    def make_batch(self, size):
        return [0.5] * size
    def step(self, batch):
        raise RuntimeError({HOSTILE!r} + "\\nTOKEN={PASSWORD}")
class Ends(Raises):
    def step(self, batch):
        sys.stderr.write({KEYS["private key"]!r} + "\\n" + {HOSTILE!r} + "\\n")
        sys.stderr.flush()
        os._exit(3)
class Runs(Raises):
    name = unit = {HOSTILE!r}
    def step(self, batch):
        warnings.warn({HOSTILE!r})
        print({HOSTILE!r})
        time.sleep(0.001)
        return sum(batch)
"""


@pytest.mark.environments
@pytest.mark.parametrize("name", ["Raises", "Ends", "Runs"])
def test_tune_shows_nothing_of_a_workload_as_it_is(tmp_path: Path, name: str) -> None:
    (tmp_path / "work.py").write_text(WORKLOADS)
    python = str(python_of("torch-cpu"))
    for format_name in ("table", "json") if name == "Runs" else ("table",):
        told = gpudoctor(
            tmp_path, "tune", "--workload", f"work.py:{name}", "--python", python, "--device", "cpu",
            "--budget", "2", "--format", format_name,
        )  # fmt: skip
        assert "***" in told
        assert not is_shown(KEYS["private key"], told)
    if name == "Runs":
        assert_clean((tmp_path / "gpudoctor.env").read_text())


def test_the_output_of_a_build_is_shown_clean(capsys: pytest.CaptureFixture[str]) -> None:
    shown: list[str] = []
    progress = Progress(shown.append, rebuild._note, 20.0)
    output = f"{KEYS['private key']}\n{HOSTILE}\n"
    with pytest.raises(BuildFailed) as failed:
        Command(arguments=(sys.executable, "-c", f"print({output!r}); raise SystemExit(1)")).run(progress)
    rebuild._print_failure("web", failed.value)
    rebuild._print_result(HOSTILE)
    told = capsys.readouterr()
    assert_clean(told.out + told.err)
    assert not is_shown(KEYS["private key"], told.err)
    assert "***" in told.err


@pytest.mark.skipif(os.name == "nt", reason="needs Unix sockets")
@pytest.mark.parametrize("knows", [True, False], ids=["answers", "errors"])
def test_the_answers_of_an_engine_are_shown_clean(tmp_path: Path, knows: bool) -> None:
    (tmp_path / "Dockerfile").write_text("FROM x\nCOPY . /app\n")
    with hostile_engine(tmp_path / "s", HOSTILE, knows=knows) as address:
        variables = {"DOCKER_HOST": address, "XDG_STATE_HOME": str(tmp_path / "state")}
        for arguments in (
            ("check", "--container", "web", "--dockerfile", "Dockerfile"),
            ("check", "--container", "web", "--format", "json"),
            ("check", "--image", "web", "--verbose"),
            ("snapshot",),
            ("rebuild", "--image", "web"),
            ("rebuild", "--container", "web", "--recreate"),
            ("rebuild", "--container", HOSTILE, "--dry-run"),
        ):
            gpudoctor(tmp_path, *arguments, **variables)


PROGRAMS = (f"python train.py --token {PASSWORD}", KEY, f"\x1b[2J{KEY}", f"/home/alice/{KEY}/python")


@pytest.mark.parametrize("format_name", [*FORMATS, "snapshot", "record"])
def test_no_process_and_no_variable_of_this_machine(driver_stand_in: Install, tmp_path: Path, format_name: str) -> None:
    pids = range(9001, 9001 + len(PROGRAMS))
    memory = [f"{pid} {20 * GIB}" for pid in pids]
    device = RTX_4090.but(name=f"{KEY}", memory_used=20 * GIB, compute_process=memory)
    nvml = Nvml(devices=(device,), process_names=dict(zip(pids, PROGRAMS, strict=True)))
    environ = driver_stand_in(tmp_path / "driver", nvml=nvml)
    needed = {*environ, "PATH", "PYTHONPATH", "HOME"}
    hostile = dict.fromkeys(environment_variables() - needed, HOSTILE)
    arguments = {"snapshot": ("snapshot",), "record": ("record", "kept")}.get(
        format_name, ("check", "--verbose", "--format", format_name)
    )
    told = gpudoctor(tmp_path, *arguments, **{**hostile, **environ, "DATABASE_PASSWORD": PASSWORD})
    for file in (tmp_path / "kept").rglob("*.*"):
        told += file.read_text() if file.is_file() else ""
    assert not is_shown(KEY, told)
    assert PASSWORD not in told
    assert format_name not in ("json", "snapshot", "record") or "python train.py --token ***" in told


def test_what_a_dry_run_prints_has_no_secret(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("docker", "build", "--build-arg", f"HF_TOKEN={PASSWORD}", HOSTILE)
    command = Command(arguments=arguments, environment={"TOKEN": PASSWORD})
    rebuild._show([str(command)])
    assert_clean(capsys.readouterr().out)
    assert shlex.split(str(command))[0] == f"TOKEN={PASSWORD}"  # what is run has it
