"""Questions to this machine, by workers that misbehave: each has a named outcome and takes no other answer with it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import pytest

from gpudoctor.probes import local_host
from gpudoctor.probes.host import Answer, ProbeContext, Question
from gpudoctor.probes.local_host import LocalHost
from gpudoctor.processes import Worker
from tests.waiting import is_at_work, wait_until

LONG_SECONDS = 60.0


OWN_STAT = {"files": ["/proc/self/stat"]}
"""What to read to learn which process answers."""


def pid_of(answer: Answer) -> str:
    return str(answer.facts["files"]["/proc/self/stat"]["text"].split()[0])


class Ask(Protocol):
    def __call__(self, body: str, timeout_seconds: float = LONG_SECONDS, **arguments: object) -> Answer: ...


def answers(questions: Iterable[Question], directory: Path, timeout_seconds: float = LONG_SECONDS) -> dict[str, Answer]:
    setting = ProbeContext(environ=dict(os.environ), directory=directory, timeout_seconds=timeout_seconds)
    return dict(LocalHost(setting).ask(questions)())


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ask:
    """Return a function that asks torch_runtime, with this as the body of its `import torch`."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    def ask(body: str, timeout_seconds: float = LONG_SECONDS, **arguments: object) -> Answer:
        (tmp_path / "torch.py").write_text(f"import os, subprocess, sys, time\n{body}\n")
        question = Question(name="it", worker="torch_runtime", arguments=arguments, in_environment=True)
        return answers([question], tmp_path, timeout_seconds)["it"]

    return ask


def test_facts_come_back(ask: Ask) -> None:
    answer = ask("raise ImportError('broken')")
    assert (answer.state, answer.facts["import_error"], answer.detail) == ("ok", "ImportError: broken", "")
    assert answer.seconds > 0


def test_what_a_library_prints_does_not_spoil_the_answer(ask: Ask) -> None:
    assert ask("print('banner'); os.system('echo child'); os.write(1, b'raw')").state == "ok"


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        pytest.param("os._exit(9)", "ended with exit status 9 and no answer", id="exits hard"),
        pytest.param("os._exit(0)", "ended with exit status 0 and no answer", id="exits as if all were well"),
        pytest.param("os.kill(os.getpid(), 11)", "killed by SIGSEGV", id="crashes"),
        pytest.param("os.abort()", "killed by SIGABRT", id="aborts"),
    ],
)
def test_a_worker_that_ends_says_how(ask: Ask, body: str, detail: str) -> None:
    answer = ask(body)
    assert (answer.state, answer.detail.partition("\n")[0]) == ("failed", detail)
    assert answer.seconds > 0


def test_an_error_of_the_worker_itself_is_a_failed_answer(tmp_path: Path) -> None:
    answer = answers([Question(name="it", worker="nowhere")], tmp_path)["it"]
    assert answer.state == "failed"
    assert answer.detail.startswith(
        "ModuleNotFoundError: No module named 'gpudoctor.probes.workers.nowhere'\nTraceback"
    )


def test_a_crash_keeps_the_last_lines_of_standard_error(ask: Ask) -> None:
    assert "what(): bad" in ask("os.write(2, b'what(): bad\\n'); os.abort()").detail


def test_a_question_with_patience_has_several_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    (tmp_path / "torch.py").write_text("import time\ntime.sleep(1.5)\nraise ImportError\n")
    question = Question(name="it", worker="torch_runtime", in_environment=True, time_limits=60)
    assert answers([question], tmp_path, timeout_seconds=1.0)["it"].state == "ok"
    assert answers([replace(question, time_limits=1)], tmp_path, timeout_seconds=1.0)["it"].state == "timed-out"


def test_a_worker_that_hangs_is_killed_with_its_children(ask: Ask, tmp_path: Path) -> None:
    body = (
        "child = subprocess.Popen(['sleep', '1000'])\n"
        f"open({str(tmp_path / 'pid')!r}, 'w').write(str(child.pid))\n"
        "child.wait()"
    )
    answer = ask(body, timeout_seconds=3.0)
    assert (answer.state, answer.detail, answer.seconds) == (
        "timed-out",
        "no answer in 3 s (--timeout sets the limit)",
        3.0,
    )
    child = int((tmp_path / "pid").read_text())
    wait_until(lambda: not is_at_work(child))


def test_a_child_left_behind_is_not_waited_for(ask: Ask) -> None:
    assert ask("subprocess.Popen(['sleep', '1000']); raise ImportError", timeout_seconds=500).state == "ok"


def test_a_process_that_ignores_the_kill_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    end = Worker.end
    monkeypatch.setattr(Worker, "end", lambda worker: end(worker) and False)
    answer = answers([Question(name="it", worker="read_host")], tmp_path)["it"]
    assert (answer.state, answer.detail) == ("ok", local_host.LEFT_BEHIND)


def test_workers_run_at_the_same_time(tmp_path: Path) -> None:
    """Each waits for the other: one after the other, both would time out."""
    for name in ("one", "two"):
        os.mkfifo(tmp_path / name)
    meeting = {"one": "echo > one; cat two", "two": "cat one; echo > two"}
    questions = [
        Question(name=name, worker="read_host", arguments={"commands": {"meet": ["sh", "-c", script]}})
        for name, script in meeting.items()
    ]
    answered = answers(questions, tmp_path)
    assert [answered[name].facts["commands"]["meet"]["status"] for name in meeting] == [0, 0]


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="files of Linux")
def test_questions_that_share_have_one_process_and_others_one_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_host, "SOON_SECONDS", LONG_SECONDS)
    questions = [
        Question(name=name, worker="read_host", arguments=OWN_STAT, shares=shares)
        for name, shares in (("one", True), ("two", False), ("three", True), ("four", False))
    ]
    answered = answers(questions, tmp_path)
    pids = {name: pid_of(answer) for name, answer in answered.items()}
    assert pids["one"] == pids["three"]
    assert len(set(pids.values())) == 3


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="files of Linux")
@pytest.mark.parametrize(
    ("body", "state", "soon", "timeout"),
    [
        pytest.param("while True: time.sleep(1000)", "timed-out", 0.2, 5.0, id="hangs"),
        pytest.param("os._exit(9)", "failed", LONG_SECONDS, LONG_SECONDS, id="crashes"),
        pytest.param("time.sleep(0.8); raise ImportError", "ok", 0.2, LONG_SECONDS, id="is slow"),
    ],
)
def test_a_question_takes_no_answer_of_its_process_with_it(
    body: str, state: str, soon: float, timeout: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_host, "SOON_SECONDS", soon)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    (tmp_path / "torch.py").write_text(f"import os, time\n{body}\n")
    bad = Question(name="bad", worker="torch_runtime", shares=True)
    before, after, last = (
        Question(name=name, worker="read_host", arguments=OWN_STAT, shares=True) for name in ("before", "after", "last")
    )
    answered = answers([before, bad, after, last], tmp_path, timeout)
    assert {name: answer.state for name, answer in answered.items()} == {
        "before": "ok",
        "bad": state,
        "after": "ok",
        "last": "ok",
    }
    assert pid_of(answered["before"]) != pid_of(answered["last"])


def test_an_interpreter_that_cannot_be_started_is_a_failed_answer(tmp_path: Path) -> None:
    setting = ProbeContext(environ=dict(os.environ), directory=tmp_path, interpreter="/nowhere/python")
    there = Question(name="there", worker="read_host")
    answered = LocalHost(setting).ask([Question(name="it", worker="torch_runtime", in_environment=True), there])()
    assert answered["it"].state == "failed"
    assert answered["it"].detail.startswith("its interpreter cannot be started\n")
    assert answered["there"].state == "ok"


def test_answers_name_no_person(tmp_path: Path) -> None:
    setting = ProbeContext(environ=dict(os.environ), directory=tmp_path, home=str(tmp_path), interpreter=sys.executable)
    (tmp_path / "note").write_text(f"in {tmp_path}/secret")
    asked = Question(name="it", worker="read_host", arguments={"files": [f"{tmp_path}/note"]})
    facts = LocalHost(setting).ask([asked])()["it"].facts
    assert facts["files"] == {"~/note": {"text": "in ~/secret"}}


def test_the_names_of_the_user() -> None:
    names = ("USER", "LOGNAME", "USERNAME", "SUDO_USER")
    context = ProbeContext(environ={name: name.lower() for name in names}, directory=Path("/"), home="/home/ann")
    assert context.user_names == ("user", "logname", "username", "sudo_user", "ann")
