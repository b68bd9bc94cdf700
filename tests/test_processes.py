"""Worker processes that misbehave: each ends in a named outcome and takes nothing else with it."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from gpudoctor import processes
from gpudoctor.errors import GpudoctorError
from gpudoctor.processes import STDERR_LINE_BYTES, STDERR_LINES, Worker, WorkerEnded, WorkerSilent
from gpudoctor.worker import descendants
from tests.waiting import is_at_work, wait_until

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the stand-in is a shell script")

Start = Callable[[str], Worker]
LONG_SECONDS = 60.0
"""Longer than anything here takes on a machine that is not broken."""


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Return a function that starts a shell script in the place of an interpreter."""
    workers: list[Worker] = []

    def start(script: str) -> Worker:
        program = tmp_path / "python"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        workers.append(Worker("no.module", str(program)))
        return workers[-1]

    yield start
    for worker in workers:
        worker.end()


def test_each_request_has_its_answer(start: Start) -> None:
    worker = start('while read request; do echo "{\\"value\\": $request}"; done')
    assert [worker.ask({"ask": number}, LONG_SECONDS) for number in (1, 2)] == [
        {"value": {"ask": 1}},
        {"value": {"ask": 2}},
    ]


def test_an_answer_before_the_end_counts(start: Start) -> None:
    assert start('echo "{}"; exit 3').receive(LONG_SECONDS) == {}


class Reader:
    """A thread that reads the rest while it is waited for."""

    def __init__(self, read: Callable[[], None]) -> None:
        self._read = read

    def join(self, timeout: float) -> None:
        self._read()


def test_what_a_process_wrote_before_its_end_is_read_first(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    worker = start("read forever")
    with monkeypatch.context() as patched:
        patched.setattr(worker._process, "poll", lambda: 3)
        patched.setattr(worker._process, "returncode", 3)
        late = [Reader(lambda: worker._answers.put(b"{}\n")), Reader(lambda: worker._stderr.append(b"why\n"))]
        patched.setattr(worker, "_readers", late)
        assert worker.receive(LONG_SECONDS) == {}
        late[0] = Reader(lambda: None)
        with pytest.raises(WorkerEnded) as caught:
            worker.receive(LONG_SECONDS)
    assert (caught.value.status, caught.value.stderr_tail) == (3, "why\nwhy")


def test_the_whole_limit_is_waited_for(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    worker = start("read forever")
    now = [10.0, 10.5, 10.9, 11.0]
    monkeypatch.setattr(processes, "POLL_SECONDS", 0.001)
    with monkeypatch.context() as patched:
        patched.setattr(processes, "time", SimpleNamespace(monotonic=lambda: now.pop(0)))
        with pytest.raises(WorkerSilent):
            worker.receive(1.0)
    assert now == []


def test_an_answer_that_came_in_time_counts_if_it_is_asked_for_late(start: Start) -> None:
    worker = start('echo "{}"; read forever')
    wait_until(lambda: not worker._answers.empty())
    assert worker.receive(-1.0) == {}


def test_the_end_is_named_with_the_last_lines_of_standard_error(start: Start) -> None:
    with pytest.raises(WorkerEnded, match="ended with exit status 3") as caught:
        start("for i in $(seq 500); do echo line $i >&2; done; exit 3").receive(LONG_SECONDS)
    assert caught.value.status == 3
    lines = caught.value.stderr_tail.splitlines()
    assert (len(lines), lines[-1]) == (STDERR_LINES, "line 500")


@pytest.mark.parametrize(("number", "name"), [(11, "SIGSEGV"), (9, "SIGKILL"), (40, "signal 40")])
def test_a_death_by_signal_is_named(start: Start, number: int, name: str) -> None:
    with pytest.raises(WorkerEnded, match=f"killed by {name}"):
        start(f"kill -{number} $$; read forever").receive(LONG_SECONDS)


def test_a_line_without_an_end_is_cut(start: Start) -> None:
    with pytest.raises(WorkerEnded) as caught:
        start("head -c 1000000 /dev/zero | tr '\\0' x >&2; exit 1").receive(LONG_SECONDS)
    assert len(caught.value.stderr_tail) <= STDERR_LINES * STDERR_LINE_BYTES


def test_a_child_that_holds_the_pipe_open_does_not_hide_the_end(start: Start) -> None:
    with pytest.raises(WorkerEnded):
        start("(exec sleep 1000) & exit 1").receive(LONG_SECONDS)


def test_silence_is_named_with_its_limit(start: Start) -> None:
    with pytest.raises(WorkerSilent, match=r"no answer in 0.1 s"):
        start("exec sleep 1000").receive(0.1)


@pytest.mark.parametrize("line", ["nonsense", "[1]", '"text"'])
def test_what_is_not_an_answer(start: Start, line: str) -> None:
    with pytest.raises(GpudoctorError, match="not a JSON object"):
        start(f"echo '{line}'; read forever").receive(1.0)
    assert start(f"echo '{line}'; echo '{{\"facts\": 1}}'; read forever").receive(LONG_SECONDS) == {"facts": 1}


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="files of Linux")
def test_the_end_takes_everything_that_was_started_and_may_come_twice(start: Start) -> None:
    worker = start('sleep 1000 & echo "{\\"pid\\": $!}"; read forever')
    child = worker.receive(LONG_SECONDS)["pid"]
    assert worker.end()
    assert worker.end()
    wait_until(lambda: not is_at_work(child))


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="files of Linux")
def test_without_an_event_at_its_start_the_session_is_ended(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on macOS."""
    monkeypatch.setattr(processes, "descendants", lambda pid: [])
    worker = start('sleep 1000 & echo "{\\"pid\\": $!}"; read forever')
    child = worker.receive(LONG_SECONDS)["pid"]
    assert worker.end()
    wait_until(lambda: not is_at_work(child))


def test_a_process_that_ignores_the_kill_is_left_behind(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing can be made to ignore SIGKILL here, so it is not sent."""
    worker = start("read forever")
    with monkeypatch.context() as patched:
        patched.setattr(processes, "GRACE_SECONDS", 0.1)
        patched.setattr(os, "killpg", lambda *_: None)
        patched.setattr(subprocess.Popen, "kill", lambda _: None)
        assert not worker.end()
    worker.kill()


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="files of Linux")
def test_nothing_stays_at_work_when_the_one_that_started_it_is_gone(tmp_path: Path) -> None:
    """The worker has started a command, and its starter is killed over it."""
    program = (
        "from gpudoctor.processes import Worker\n"
        "worker = Worker('gpudoctor.probes.workers.run')\n"
        "worker.ask({'worker': 'torch_runtime', 'arguments': {}}, 1000.0)\n"
    )
    hang = "import subprocess\nsubprocess.run(['sh', '-c', 'echo $$ > started; exec sleep 1000'])\n"
    (tmp_path / "torch.py").write_text(hang)
    folders = os.pathsep.join((str(tmp_path), str(Path(processes.__file__).parent.parent)))
    environ = {**os.environ, "PYTHONPATH": folders}
    starter = subprocess.Popen([sys.executable, "-c", program], cwd=tmp_path, env=environ)
    started = tmp_path / "started"
    wait_until(lambda: started.exists() and started.read_text().endswith("\n"))
    starter.kill()
    starter.wait()
    wait_until(lambda: not is_at_work(int(started.read_text())))


def test_the_package_of_the_working_directory_hides_no_library(tmp_path: Path) -> None:
    for name in ("json.py", "queue.py", "gpudoctor.py"):
        (tmp_path / name).write_text("raise RuntimeError('wrong module')")
    worker = Worker("gpudoctor.probes.workers.run", directory=tmp_path)
    answer = worker.ask({"worker": "read_host", "arguments": {"values": ["platform"]}}, LONG_SECONDS)
    worker.end()
    assert answer["facts"]["values"]["platform"] == {"value": sys.platform}


@pytest.mark.skipif(sys.platform != "linux", reason="/proc and orphans that are adopted")
@pytest.mark.parametrize("line", ["setsid sleep 8713.5", "setsid sleep 8713.5 &"])
def test_a_child_that_leaves_the_session_is_ended_too(line: str, tmp_path: Path) -> None:
    module = f"""
        import subprocess
        from gpudoctor.worker import take_over_streams
        def main():
            requests, answer = take_over_streams()
            started = subprocess.Popen(["sh", "-c", {line!r}])
            for request in requests:
                answer({{"value": started.poll() is None}})
    """
    (tmp_path / "leaver.py").write_text(textwrap.dedent(module))
    worker = Worker("leaver", environ={**os.environ, "PYTHONPATH": str(tmp_path)})
    worker.send({})
    wait_until(lambda: any(command_of(pid) == "sleep 8713.5" for pid in descendants(worker.pid)))
    (left,) = (pid for pid in descendants(worker.pid) if command_of(pid) == "sleep 8713.5")
    assert worker.end()
    wait_until(lambda: not is_at_work(left))


def command_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
    except OSError:
        return ""


def test_nothing_is_known_of_a_process_that_has_ended() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
        assert descendants(ended.pid) == []
