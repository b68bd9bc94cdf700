"""Workers that misbehave: each ends in a named outcome, on time, and takes nothing else with it."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Protocol

import pytest

from gpudoctor.probes import isolate
from gpudoctor.probes.host import Answer, Question, Setting
from gpudoctor.probes.isolate import ForkedSupervisor, Supervisor

WELL = "def collect(arguments):\n    return {'sum': arguments['a'] + arguments['b']}\n"


class Ask(Protocol):
    def __call__(self, worker: str, timeout_seconds: float = 20.0, **arguments: object) -> Answer: ...


def answers(questions: Iterable[Question], directory: Path, timeout_seconds: float = 20.0) -> dict[str, Answer]:
    setting = Setting(environ=dict(os.environ), directory=directory, timeout_seconds=timeout_seconds)
    supervisor = Supervisor(setting.environ, setting.directory)
    supervisor.ask(questions, setting)
    return dict(supervisor.answers())


@pytest.fixture(params=[True, False], ids=["interpreter", "copy"])
def ask(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ask:
    """Return a function that runs a worker's text, in an interpreter of its own or a copy of the supervisor."""
    workers = tmp_path / "workers"
    workers.mkdir()
    for name in ("read_host.py", "run.py", "supervise.py"):
        shutil.copy(Path(isolate.WORKERS, name), workers)
    monkeypatch.setattr(isolate, "WORKERS", str(workers))

    def ask(worker: str, timeout_seconds: float = 20.0, **arguments: object) -> Answer:
        (workers / "worker.py").write_text(worker)
        question = Question(name="it", worker="worker", arguments=arguments, fresh=request.param)
        return answers([question], tmp_path, timeout_seconds)["it"]

    return ask


def test_facts_come_back(ask: Ask) -> None:
    answer = ask(WELL, a=1, b=2)
    assert (answer.state, answer.facts, answer.detail) == ("ok", {"sum": 3}, "")
    assert answer.seconds > 0


def test_what_a_library_prints_does_not_spoil_the_answer(ask: Ask) -> None:
    worker = "import os\ndef collect(arguments):\n    print('banner'); os.system('echo child')\n    return {}\n"
    assert ask(worker).state == "ok"


@pytest.mark.parametrize(
    ("body", "state", "detail"),
    [
        pytest.param("import nowhere", "failed", "ModuleNotFoundError: No module named 'nowhere'", id="missing module"),
        pytest.param("raise SystemExit(3)", "failed", "SystemExit: 3", id="exits"),
        pytest.param("os._exit(9)", "failed", "ended with exit status 9 and no answer", id="exits hard"),
        pytest.param("os.kill(os.getpid(), 11)", "failed", "killed by SIGSEGV", id="crashes"),
        pytest.param("os.abort()", "failed", "killed by SIGABRT", id="aborts"),
    ],
)
def test_a_worker_that_fails_says_how(ask: Ask, body: str, state: str, detail: str) -> None:
    answer = ask(f"import os\ndef collect(arguments):\n    {body}\n    return {{}}\n")
    assert (answer.state, answer.detail.partition("\n")[0]) == (state, detail)


def test_a_crash_keeps_the_last_words(ask: Ask) -> None:
    answer = ask("import os\ndef collect(arguments):\n    os.write(2, b'told you so\\n'); os.abort()\n")
    assert "told you so" in answer.detail


def test_a_worker_that_hangs_is_killed_with_its_children(ask: Ask, tmp_path: Path) -> None:
    worker = (
        "import subprocess, time\n"
        "def collect(arguments):\n"
        "    child = subprocess.Popen(['sleep', '60'])\n"
        "    open(arguments['note'], 'w').write(str(child.pid))\n"
        "    time.sleep(60)\n"
    )
    before = time.monotonic()
    answer = ask(worker, timeout_seconds=1.0, note=str(tmp_path / "pid"))
    assert (answer.state, answer.detail) == ("timed-out", "no answer in 1 s")
    assert time.monotonic() - before < 3
    child = Path("/proc") / (tmp_path / "pid").read_text() / "stat"
    wait_until(lambda: not child.exists() or child.read_text().split()[2] == "Z")


def test_a_child_left_behind_is_not_waited_for(ask: Ask) -> None:
    worker = "import subprocess\ndef collect(arguments):\n    subprocess.Popen(['sleep', '20'])\n    return {}\n"
    before = time.monotonic()
    assert ask(worker).state == "ok"
    assert time.monotonic() - before < 5


def test_a_crash_during_teardown_does_not_take_the_answer(ask: Ask) -> None:
    worker = "import atexit, os\ndef collect(arguments):\n    atexit.register(os.abort)\n    return {'it': 1}\n"
    assert ask(worker).facts == {"it": 1}


def test_the_workers_folder_hides_no_library(ask: Ask, tmp_path: Path) -> None:
    (tmp_path / "workers" / "secrets.py").write_text("raise RuntimeError('wrong module')")
    assert ask("def collect(arguments):\n    import secrets\n    return {'file': secrets.__file__}\n").state == "ok"


def test_workers_run_side_by_side(tmp_path: Path) -> None:
    questions = [
        Question(name=str(n), worker="read_host", arguments={"commands": {"sleep": ["sleep", "0.5"]}}) for n in range(6)
    ]
    before = time.monotonic()
    assert {answer.state for answer in answers(questions, tmp_path).values()} == {"ok"}
    assert time.monotonic() - before < 2.5


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="files of Linux")
def test_an_answer_does_not_wait_for_a_slower_one(tmp_path: Path) -> None:
    setting = Setting(environ=dict(os.environ), directory=tmp_path)
    supervisor = Supervisor(setting.environ, setting.directory)
    slow = Question(name="slow", worker="read_host", arguments={"commands": {"sleep": ["sleep", "63.5"]}})
    supervisor.ask([slow, Question(name="quick", worker="read_host")], setting)
    name, answer = next(supervisor.answers())  # what is left of it is closed, which ends the workers
    assert (name, answer.state) == ("quick", "ok")
    wait_until(lambda: not is_running("63.5"))


def test_mere_files_are_read_by_one_process_and_commands_by_others(tmp_path: Path) -> None:
    stat = {"files": ["/proc/self/stat"]}
    commands = {**stat, "commands": {"true": ["true"]}}
    questions = [
        Question(name=name, worker="read_host", arguments=arguments)
        for name, arguments in (("one", stat), ("two", {**stat, "values": ["platform"]}), ("three", commands))
    ]
    answered = answers(questions, tmp_path)
    pids = {name: answer.facts["files"]["/proc/self/stat"]["text"].split()[0] for name, answer in answered.items()}
    assert pids["one"] == pids["two"] != pids["three"]
    assert answered["two"].facts["values"]["platform"] == {"value": sys.platform}


def test_an_environment_that_hangs_takes_no_answer_about_the_machine(tmp_path: Path) -> None:
    """One process reads both; that of the environment, which may be on a file server, comes last."""
    setting = Setting(environ=dict(os.environ), directory=tmp_path)
    supervisor = Supervisor(setting.environ, setting.directory)
    environment = Question(name="environment", worker="python_environment")
    supervisor.ask([environment, Question(name="machine", worker="read_host")], setting)
    assert [name for name, _ in supervisor.answers()] == ["machine", "environment"]


def test_a_copy_of_this_process_answers_as_an_interpreter_does(tmp_path: Path) -> None:
    listing = {"files": ["/proc/version"]}
    questions = [
        Question(name="fork", worker="read_host", arguments=listing),
        Question(name="fresh", worker="read_host", arguments=listing, fresh=True),
    ]
    answered = answers(questions, tmp_path)
    assert answered["fork"].facts == answered["fresh"].facts != {}


def test_an_interpreter_that_cannot_be_started_is_a_failed_answer(tmp_path: Path) -> None:
    setting = Setting(environ=dict(os.environ), directory=tmp_path, interpreter="/nowhere/python")
    supervisor = Supervisor(setting.environ, setting.directory)
    supervisor.ask([Question(name="it", worker="torch_runtime", fresh=True)], setting)
    answer = dict(supervisor.answers())["it"]
    assert answer.state == "failed"
    assert answer.detail.startswith("its interpreter cannot be started\n")


def test_nothing_stays_at_work_when_the_asker_leaves(tmp_path: Path) -> None:
    setting = Setting(environ=dict(os.environ), directory=tmp_path)
    supervisor = Supervisor(setting.environ, setting.directory)
    sleeping = {"commands": {"sleep": ["sleep", "61.5"]}}
    supervisor.ask([Question(name="it", worker="read_host", arguments=sleeping)], setting)
    wait_until(lambda: is_running("61.5"))
    supervisor.dismiss()
    wait_until(lambda: not is_running("61.5"))


@pytest.mark.parametrize("start", [Supervisor, ForkedSupervisor])
def test_a_prepared_question_is_asked_once(start: type[Supervisor], tmp_path: Path) -> None:
    """The copy is made in a process of its own: this one may have threads."""
    program = (
        "import os, sys\n"
        f"from gpudoctor.probes.isolate import {start.__name__} as start\n"
        "supervisor = start(os.environ, os.getcwd())\n"
        "from gpudoctor.probes.host import Question, Setting\n"
        "setting = Setting(environ=os.environ, directory=os.getcwd())\n"
        "count = ['sh', '-c', 'echo once >> count']\n"
        "wanted = Question(name='it', worker='read_host', arguments={'commands': {'count': count}})\n"
        "other = Question(name='other', worker='read_host', arguments={'commands': {'sleep': ['sleep', '62.5']}})\n"
        "more = Question(name='more', worker='read_host')\n"
        "supervisor.prepare([wanted, other], setting)\n"
        "supervisor.ask([wanted, more], setting)\n"
        "print(sorted((name, answer.state) for name, answer in supervisor.answers()))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "[('it', 'ok'), ('more', 'ok')]\n"
    assert (tmp_path / "count").read_text() == "once\n"
    wait_until(lambda: not is_running("62.5"))


def is_running(word: str) -> bool:
    """Tell whether a process has this word in its command line."""
    lines = (path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists())
    return any(word.encode() in line.split(b"\0") for line in lines)


def wait_until(condition: Callable[[], bool]) -> None:
    for _ in range(200):
        if condition():
            return
        time.sleep(0.02)
    raise AssertionError("it did not come to be in 4 s")
