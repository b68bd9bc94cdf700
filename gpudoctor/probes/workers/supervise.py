"""Run workers side by side, each in a process of its own with a time limit, and write down how each one ended.

Orders come on standard input, a line of JSON each, with `questions`: `number`, `worker`, `arguments` and `interpreter`
(null for a copy of this process). The last one, and only it, has `timeout_seconds` and `wanted`: the numbers to answer;
what was asked before and is not among them is killed. For each question two lines go to standard output, those of what
takes longest last: how it ended (`number`, `state`, `status`, `seconds`, `errors`), and the worker's answer as it wrote
it.

A small process forks in a moment; the program that asks, with all its modules, would not. When standard input ends,
because the asker is gone, every worker is killed. Standard library only, from Python 3.8 on.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import importlib
import json
import os
import select
import subprocess
import sys
import threading
import time

TYPE_CHECKING = False
if TYPE_CHECKING:  # the module typing takes as long to import as all of this one's
    from typing import IO, Any, Callable, Dict, Iterable, Iterator, List, Mapping, NoReturn, Sequence, Tuple

run = importlib.import_module("run")

FOLDER = os.path.dirname(os.path.abspath(__file__))
MAXIMUM_ANSWER_BYTES = 64 * 2**20
STDERR_BYTES_KEPT = 4000
USUAL = ("read_host", "read_kernel_log", "python_environment", "nvml_devices", "cuda_driver")
READING = ("read_host", "python_environment")
NOT_ASKED = -1
MOST_DESCRIPTORS = 256  # more than this process has open: a few, and two for each worker
PROCESSORS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
TURN_SECONDS = 0.01
GRACE_SECONDS = 2.0  # a process that waits inside the driver ignores SIGKILL: it is left behind after this long


class Running:
    """A worker at work: its process, the pipe of its answers and the file of its standard error.

    numbers: of the questions that it answers, in their order.
    """

    def __init__(
        self, numbers: List[int], pid: int, wait: Callable[[], int], output: IO[bytes], errors: IO[bytes]
    ) -> None:
        self.numbers = numbers
        self.pid = pid
        self.wait = wait
        self.output = output
        self.errors = errors
        self.started = time.monotonic()
        self.answers: List[bytes] = []
        self.status: Any = None
        self.seconds = 0.0
        self.listener = threading.Thread(target=self.listen, daemon=True)

    def listen(self) -> None:
        """Read the answers, a line each, then wait for the end. What the worker left behind is not waited for."""
        for _ in self.numbers:
            line = self.output.readline(MAXIMUM_ANSWER_BYTES)
            if not line:
                break
            self.answers.append(line)
        self.status = self.wait()
        self.seconds = time.monotonic() - self.started

    def finish(self, timeout_seconds: float) -> Iterator[Tuple[Dict[str, Any], bytes]]:
        """Wait for the worker, kill it at its limit, and yield how it ended and its answer for each question."""
        self.listener.join(max(0.0, self.started + timeout_seconds - time.monotonic()))
        state = "ended"
        if self.listener.is_alive():
            state = "timed-out"
            self.kill()
            self.listener.join(GRACE_SECONDS)
            self.seconds = timeout_seconds
        ending = {"state": state, "status": self.status, "seconds": self.seconds, "errors": _last_words(self.errors)}
        for place, number in enumerate(self.numbers):
            if place < len(self.answers):
                yield {**ending, "number": number, "state": "ended"}, self.answers[place]
            else:
                yield {**ending, "number": number}, b""

    def kill(self) -> None:
        """Kill the worker with all that it started."""
        with contextlib.suppress(OSError):  # it has ended, or has no session of its own yet
            if hasattr(os, "killpg"):
                os.killpg(self.pid, 9)
        with contextlib.suppress(OSError):
            os.kill(self.pid, 9 if hasattr(os, "killpg") else 15)


def start(questions: List[Mapping[str, Any]]) -> Running:
    """Start the worker of one question, or of some that one copy of this process answers one after the other.

    Raises:
        OSError: its interpreter cannot be started.
    """
    if questions[0]["interpreter"] or not hasattr(os, "fork"):
        return _spawn(questions[0])
    return _fork(questions)


def _shared(questions: Iterable[Mapping[str, Any]]) -> List[List[Mapping[str, Any]]]:
    """Return the questions that one process answers: those that read mere files and values, which nothing can hold up.

    A command or a device node may hang in the driver. Each other question has a process of its own. Those about this
    machine are answered before the one about the environment, whose folder may be on a file server that is gone.
    """
    together: List[Mapping[str, Any]] = []
    groups: List[List[Mapping[str, Any]]] = []
    for question in questions:
        if _only_reads(question) and hasattr(os, "fork"):
            together.append(question)
        else:
            groups.append([question])
    together.sort(key=lambda question: bool(question["worker"] != "read_host"))
    return [*groups, together] if together else groups


def _only_reads(question: Mapping[str, Any]) -> bool:
    reads = question["worker"] in READING and not question["interpreter"]
    return reads and not question["arguments"].keys() & {"commands", "nodes"}


def _spawn(question: Mapping[str, Any]) -> Running:
    errors = _scratch_file()
    worker = os.path.join(FOLDER, question["worker"] + ".py")
    process = subprocess.Popen(
        [question["interpreter"] or sys.executable, "-X", "faulthandler", os.path.join(FOLDER, "run.py"), worker],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        start_new_session=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(json.dumps(question["arguments"]).encode())
        process.stdin.close()
    except BrokenPipeError:  # it is no Python, or has ended already
        pass
    return Running([question["number"]], process.pid, process.wait, process.stdout, errors)


def _fork(questions: List[Mapping[str, Any]]) -> Running:
    reader, writer = os.pipe()
    errors = _scratch_file()
    pid = os.fork()
    if pid == 0:
        _work(questions, writer, errors.fileno())
    os.close(writer)
    numbers = [question["number"] for question in questions]
    return Running(numbers, pid, lambda: _exit_status(pid), os.fdopen(reader, "rb"), errors)


def _work(questions: List[Mapping[str, Any]], output: int, errors: int) -> NoReturn:
    """In the copy: deliver the answers and leave the process."""
    try:
        os.setpgid(0, 0)
        for source, target in ((os.open(os.devnull, os.O_RDONLY), 0), (output, 1), (errors, 2)):
            os.dup2(source, target)
        os.closerange(3, MOST_DESCRIPTORS)  # nobody waits for the end of a pipe that this copy holds open
        asked = [(importlib.import_module(question["worker"]).collect, question["arguments"]) for question in questions]
        sys.path.remove(FOLDER)  # a library must not find the workers under its modules' names
        faulthandler.enable()
        run.deliver(*asked)
    except BaseException as error:
        os.write(2, (type(error).__name__ + ": " + str(error) + "\n").encode())
    finally:
        os._exit(70)


def _exit_status(pid: int) -> int:
    """Wait for a copy of this process; return its exit status, negative for a signal."""
    status = os.waitpid(pid, 0)[1]
    return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def _take_turns(workers: Iterable[Running]) -> None:
    """On few processors, let a copy at work answer before another one starts.

    Most take a few milliseconds, in which they would keep the processor from the program that asks and from each other.
    One that waits for a driver or a command keeps nobody from anything: it is not waited for longer than that.
    """
    if not hasattr(os, "fork"):  # Windows, where there are no copies
        return
    outputs = [worker.output for worker in workers]
    answered = select.select(outputs, [], [], 0)[0]
    at_work = [output for output in outputs if output not in answered]
    if len(at_work) >= max(1, PROCESSORS - 1):
        select.select(at_work, [], [], TURN_SECONDS)


def _scratch_file() -> IO[bytes]:
    """Return an unnamed file for a worker's standard error."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("errors"), "w+b")
    import tempfile

    return tempfile.TemporaryFile()


def _last_words(errors: IO[bytes]) -> str:
    size = errors.seek(0, os.SEEK_END)
    errors.seek(max(0, size - STDERR_BYTES_KEPT))
    return errors.read().decode("utf-8", "replace").strip()


def _leave_with(workers: Sequence[Running]) -> NoReturn:
    """Wait until the asker is gone, then leave nothing at work."""
    sys.stdin.buffer.read()
    for worker in workers:
        if worker.status is None:  # the number of one that has ended may be another process's by now
            worker.kill()
    os._exit(1)


def _order(workers: Sequence[Running]) -> Dict[str, Any]:
    """Return the next order. Where the asker is gone instead, leave nothing at work."""
    line = sys.stdin.buffer.readline()
    if not line:
        _leave_with(workers)
    order: Dict[str, Any] = json.loads(line)
    return order


def _start_at_once(names: Sequence[str]) -> Dict[str, Running]:
    """Start the workers of these names, which need no arguments."""
    waiting: Dict[str, Running] = {}
    for name in names:
        with contextlib.suppress(OSError):  # no process is to be had now: it is tried again when it is asked
            _take_turns(waiting.values())
            waiting[name] = _fork([{"number": NOT_ASKED, "worker": name, "arguments": {}}])
    return waiting


def _start_asked(
    asked: Iterable[Mapping[str, Any]], waiting: Mapping[str, Running], workers: List[Running]
) -> List[Dict[str, Any]]:
    """Add the workers of an order to `workers`; return the endings of those that cannot be started.

    waiting: workers that started without an order, by name.
    """
    failed: List[Dict[str, Any]] = []
    for questions in _shared(asked):
        question = questions[0]
        at_work = None if question["arguments"] or question["interpreter"] else waiting.get(question["worker"])
        if at_work is not None:
            at_work.numbers = [question["number"]]
            continue
        try:
            _take_turns(workers)
            # what runs commands takes longest, and its answer is waited for last
            workers.insert(len(waiting) if _only_reads(question) else len(workers), start(questions))
        except OSError as error:
            ending = {"state": "not-started", "seconds": 0.0, "errors": str(error)}
            failed += [{**ending, "number": item["number"]} for item in questions]
    return failed


def _write_answers(workers: Iterable[Running], order: Mapping[str, Any], output: IO[bytes]) -> None:
    """Wait for the workers in their order, and write how each ended and what it answered."""
    wanted = set(order["wanted"])
    asked = [worker for worker in workers if not wanted.isdisjoint(worker.numbers)]
    for worker in workers:
        if worker not in asked:
            worker.kill()
        worker.listener.start()
    for worker in asked:
        for ending, answer in worker.finish(order["timeout_seconds"]):
            if ending["number"] in wanted:
                output.write(json.dumps(ending).encode() + b"\n" + answer.rstrip(b"\n") + b"\n")
        output.flush()  # what is known stays known if this process is killed


def main(at_once: Sequence[str] = ()) -> NoReturn:
    """Take the orders, run the workers, write how they ended. `sys.path` starts with this folder.

    at_once: workers that start without an order: a question to one of them without arguments gets that answer.
    """
    gc.disable()  # the process lives for a moment, and a collection would copy the memory that the copies share
    for name in USUAL:  # in the time before the order comes, so that no copy needs to
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    waiting = _start_at_once(at_once)
    workers = list(waiting.values())
    failed: List[Dict[str, Any]] = []
    order: Dict[str, Any] = {}
    while "wanted" not in order:  # no thread before the last copy is made
        order = _order(workers)
        failed += _start_asked(order["questions"], waiting, workers)
    threading.Thread(target=_leave_with, args=(workers,), daemon=True).start()
    _write_answers(workers, order, output)
    for ending in failed:
        output.write(json.dumps(ending).encode() + b"\n\n")
    output.flush()
    os._exit(0)
