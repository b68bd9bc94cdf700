"""The worker processes: what each way to fail comes to, and that none of them is left behind.

The workloads here are files of a user's that raise what the real thing raises. They need no library: the NumPy of these
workers is an empty stand-in, so that a worker starts in a moment. tests/tuning/workers has the libraries themselves.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpudoctor.errors import GpudoctorError, UsageError, WorkloadError
from gpudoctor.model.tuning import (
    OK,
    OUT_OF_MEMORY,
    UNSUPPORTED,
    Bandwidth,
    Ceiling,
    Measurement,
    Settings,
    Trial,
    TunedDevice,
)
from gpudoctor.processes import WorkerEnded, WorkerSilent
from gpudoctor.tuning import local
from gpudoctor.tuning.answers import Refused, meaning_of, read
from gpudoctor.tuning.executor import BUDGET_ENDED, Effort
from gpudoctor.tuning.local import LocalExecutor, Target, Timeouts
from gpudoctor.tuning.worker_pool import allocator_variables
from gpudoctor.tuning.workers.failures import Failure

pytestmark = pytest.mark.skipif(os.name != "posix", reason="process groups are POSIX")

EFFORT = Effort(warmup_steps=2, steps=3, limit_seconds=0.5)
TIMEOUTS = Timeouts(start=20.0, comparison=1.0)
NUMPY = "class random:\n    seed = staticmethod(lambda number: None)\n"
WORK = """
import os, signal, subprocess, sys, time

class Array:
    nbytes = 80
    def __init__(self, size):
        self.shape = (size, 10)

class Work:
    def __init__(self, device, precision):
        self.count, self.precision = 0, precision.name
    def make_batch(self, size):
        return Array(size)
    def step(self, batch):
        self.count += 1
        size = batch.shape[0]
        {body}
"""

Start = Callable[..., LocalExecutor]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Return a function that starts an executor for a workload with that body of its step."""
    (tmp_path / "numpy.py").write_text(NUMPY)
    environ = {**os.environ, "PYTHONPATH": str(tmp_path)}
    executors: list[LocalExecutor] = []

    def start(body: str = "pass", timeouts: Timeouts = TIMEOUTS, text: str = "") -> LocalExecutor:
        file = tmp_path / "train.py"
        file.write_text(text or WORK.format(body=textwrap.indent(body, " " * 8).strip()))
        target = Target(workload=f"{file}:Work", device="cpu", arrays=True)
        executors.append(LocalExecutor(sys.executable, target, timeouts=timeouts, environ=environ))
        return executors[-1]

    yield start
    for executor in executors:
        executor.close()


def measure(executor: LocalExecutor, size: int = 8, precision: str = "complex64", **settings: object) -> Measurement:
    trial = Trial(precision=precision, batch_size=size, settings=Settings(**settings))  # type: ignore[arg-type]
    return executor.measure(trial, EFFORT)


def pids(executor: LocalExecutor) -> list[int]:
    return [worker.pid for worker in executor._pool.workers.values()]


def is_alive(pid: int) -> bool:
    """Tell whether the process runs: one that has ended and waits to be asked for its status does not."""
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def gone(pid: int) -> bool:
    """Tell whether the process is gone within five seconds."""
    deadline = time.monotonic() + 5
    while is_alive(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not is_alive(pid)


class Kept:
    """A worker that does as it is told, or fails, and keeps a log."""

    def __init__(self, log: list[str], name: str, failure: BaseException | None = None) -> None:
        self.log, self.name, self.failure = log, name, failure

    def ask(self, request: Mapping[str, Any], seconds: float) -> Any:
        self.log.append(f"{request['ask']} {self.name}")
        if self.failure is not None:
            raise self.failure
        return {"value": None}

    def end(self) -> None:
        self.log.append(f"end {self.name}")


def with_workers(kind: str, *workers: Kept, seen: tuple[str, ...] = ()) -> Any:
    executor: Any = LocalExecutor(sys.executable, Target(workload="mlp"))
    vars(executor)["_device"] = TunedDevice(kind=kind, name="NVIDIA H200")
    executor._pool.on_host = kind == "cpu"
    executor._pool.workers = {(worker.name, ""): worker for worker in workers}
    executor._pool.seen = {(name, "") for name in seen}
    return executor


@pytest.mark.parametrize(
    ("kind", "seen", "log"),
    [
        pytest.param("cuda", (), ["end fp32", "end tf32"], id="a new precision has the device to itself"),
        pytest.param("cuda", ("fp32",), ["end fp32", "end tf32"], id="others that come back change nothing"),
        pytest.param("cuda", ("bf16",), ["end fp32", "release tf32"], id="one that comes back is measured in turn"),
        pytest.param("cpu", (), ["release fp32", "release tf32"], id="on the host all stay"),
    ],
)
def test_room_is_made_for_a_worker(kind: str, seen: tuple[str, ...], log: list[str]) -> None:
    done: list[str] = []
    executor = with_workers(kind, Kept(done, "fp32"), Kept(done, "tf32"), Kept(done, "bf16"), seen=seen)
    executor._pool.make_room(("bf16", ""))
    assert done == log
    ended = {line.removeprefix("end ") for line in log if line.startswith("end")}
    assert [name for name, _ in executor._pool.workers] == [n for n in ("fp32", "tf32", "bf16") if n not in ended]


@pytest.mark.parametrize(
    ("failure", "raised"),
    [
        (WorkerEnded(1, ""), False),
        (WorkerSilent(1.0), False),
        (KeyboardInterrupt(), True),
        (GpudoctorError("a worker that answers nonsense"), True),
    ],
)
def test_a_worker_that_does_not_let_go_is_ended(failure: BaseException, raised: bool) -> None:
    done: list[str] = []
    executor = with_workers("cpu", Kept(done, "fp32", failure))
    with pytest.raises(type(failure)) if raised else nullcontext():
        executor._pool.make_room(("bf16", ""))
    assert done == ["release fp32", "end fp32"]
    assert executor._pool.workers == {}


@pytest.mark.parametrize(
    "failure", [WorkerEnded(1, ""), WorkerSilent(1.0), Refused(OUT_OF_MEMORY, ""), KeyboardInterrupt()]
)
def test_what_a_device_cannot_do_spoils_nothing_else(failure: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    executor = with_workers("cpu")

    def fails(*_: object) -> Any:
        raise failure

    monkeypatch.setattr(executor, "_ask_of", fails)
    if isinstance(failure, KeyboardInterrupt):
        with pytest.raises(KeyboardInterrupt):
            executor.bandwidth()
    else:
        assert executor.ceiling("fp32") == Ceiling(precision="fp32", measured_tflops=None)
        assert executor.bandwidth() == Bandwidth()
        assert executor.describe_workload("fp32").name == "mlp"


@pytest.mark.parametrize(
    ("kind", "bandwidth", "peak"), [("cuda", 4800.0, True), ("cpu", None, False), ("mps", None, False)]
)
def test_only_a_gpu_of_nvidia_has_a_datasheet(
    kind: str, bandwidth: float | None, peak: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    executor = with_workers(kind)
    monkeypatch.setattr(executor, "_ask_of", lambda *_: None)
    assert executor.bandwidth().datasheet_gb_s == bandwidth
    assert (executor._peak is not None) is peak


@pytest.mark.parametrize(
    ("precision", "allocator", "workers", "key"),
    [
        ("bf16", "a", ("fp32",), ("bf16", "a")),
        (None, "", ("fp32", "tf32"), ("tf32", "")),
        (None, "", (), (None, "")),
    ],
)
def test_which_worker_is_asked(
    precision: str | None, allocator: str, workers: tuple[str, ...], key: tuple[str | None, str]
) -> None:
    executor = with_workers("cpu", *(Kept([], name) for name in workers))
    asked: list[Any] = []
    executor._ask = lambda *arguments: asked.append(arguments)
    executor._ask_of(precision, {"ask": "x"}, 7.0, allocator)
    assert asked == [(key, {"ask": "x"}, 7.0)]


@pytest.mark.parametrize(("left", "seconds"), [(100.0, 7.0), (5.0, 5.0), (-3.0, 0.1)])
def test_no_answer_is_waited_for_longer_than_the_budget_lasts(left: float, seconds: float) -> None:
    executor = with_workers("cpu")
    executor.now = lambda: 1000.0
    executor._end_of_budget = 1000.0 + left
    asked: list[float] = []
    executor._ask = lambda key, request, seconds: asked.append(seconds)
    executor._ask_of("fp32", {}, 7.0)
    assert asked == [seconds]


@pytest.mark.parametrize(
    ("statuses", "workers", "tried"),
    [
        pytest.param([OUT_OF_MEMORY, OK], ("fp32",), 2, id="another worker may hold what it lacks"),
        pytest.param([OUT_OF_MEMORY, OUT_OF_MEMORY], ("fp32",), 2, id="it does not"),
        pytest.param([OUT_OF_MEMORY], (), 1, id="there is none"),
        pytest.param([OK], ("fp32",), 1, id="there was memory"),
        pytest.param([UNSUPPORTED], ("fp32",), 1, id="it failed for another reason"),
    ],
)
def test_a_trial_without_memory_is_tried_again_alone(statuses: list[str], workers: tuple[str, ...], tried: int) -> None:
    done: list[str] = []
    executor = with_workers("cpu", *(Kept(done, name) for name in workers))
    answers = iter(Measurement(precision="bf16", batch_size=2, status=status) for status in statuses)
    executor._measure = lambda *_: next(answers)
    assert executor.measure(Trial(precision="bf16", batch_size=2), EFFORT).status == statuses[-1]
    assert list(answers) == []
    assert len(statuses) == tried
    assert done == (["end fp32"] if tried > 1 else [])


@pytest.mark.parametrize(("left", "detail"), [(0.0, BUDGET_ENDED), (-1.0, BUDGET_ENDED), (1.0, "no answer in 7 s")])
def test_silence_at_the_end_of_the_budget_is_the_budgets(left: float, detail: str) -> None:
    executor = with_workers("cpu")
    executor.now = lambda: 1000.0
    executor._end_of_budget = 1000.0 + left

    def silent(*_: object) -> Any:
        raise WorkerSilent(7.0)

    executor._ask_of = silent
    found = executor.measure(Trial(precision="bf16", batch_size=2), EFFORT)
    assert (found.status, found.detail.partition(",")[0]) == (UNSUPPORTED, detail.partition(",")[0])


@pytest.mark.parametrize(("settings", "seconds"), [(Settings(), 20.5), (Settings(compile=True), 620.5)])
def test_compiling_may_take_ten_minutes_more(settings: Settings, seconds: float) -> None:
    executor = with_workers("cpu")
    executor._timeouts = TIMEOUTS
    asked: list[float] = []

    def ask(key: object, request: object, seconds: float) -> Any:
        asked.append(seconds)
        return {"precision": "fp32", "batch_size": 2}

    executor._ask = ask
    executor.measure(Trial(precision="fp32", batch_size=2, settings=settings), EFFORT)
    assert asked == [seconds]


def test_a_trial_that_runs(start: Start) -> None:
    measurement = measure(start("time.sleep(0.001)"))
    assert (measurement.status, measurement.batch_size, measurement.samples_per_step) == (OK, 8, 8)
    assert measurement.throughput is not None
    assert measurement.throughput < 8000


def test_the_device_is_described_once(start: Start) -> None:
    device = start().describe()
    assert (device.kind, device.precisions) == ("cpu", ("complex128", "complex64"))
    if sys.platform == "linux":
        assert device.memory_total_bytes is not None
        assert device.memory_usable_bytes is not None
        assert device.memory_usable_bytes < device.memory_total_bytes


def test_the_workload_describes_itself(start: Start) -> None:
    workload = start().describe_workload("complex64")
    assert workload.name.endswith("train.py:Work")
    assert (workload.unit, workload.sample_bytes, workload.dataset_size) == ("samples/s", 40, None)


def test_a_workload_for_one_sample_alone_describes_itself(start: Start) -> None:
    text = WORK.format(body="pass").replace("return Array(size)", "return [Array(1)][size - 1]")
    executor = start(text=text)
    assert executor.describe_workload("complex64").sample_bytes == 80
    assert measure(executor, 1).status == OK
    with pytest.raises(WorkloadError, match="IndexError"):
        measure(executor, 2)


def test_one_worker_for_all_trials_of_a_precision(start: Start) -> None:
    executor = start()
    executor.describe()
    first = pids(executor)
    measure(executor, 2)
    measure(executor, 4)
    assert pids(executor) == first


def test_workers_on_the_host_stay_for_their_library(start: Start) -> None:
    executor = start()
    measure(executor, 2)
    first = pids(executor)
    measure(executor, 2, "complex128")
    assert set(first) < set(pids(executor))


def test_one_worker_at_a_time_on_a_gpu(start: Start) -> None:
    executor = start()
    measure(executor, 2)
    first = pids(executor)
    vars(executor)["_device"] = replace(executor.describe(), kind="cuda")  # as far as the workers are concerned
    executor._pool.on_host = False
    measure(executor, 2, "complex128")
    assert len(pids(executor)) == 1
    assert pids(executor) != first
    assert gone(first[0])


def test_two_workers_while_two_precisions_are_measured_in_turn(start: Start) -> None:
    executor = start()
    for precision in ("complex64", "complex128"):
        measure(executor, 2, precision)
    measure(executor, 2, "complex64")
    both = set(pids(executor))
    assert len(both) == 2
    for precision in ("complex128", "complex64", "complex128"):
        measure(executor, 2, precision)
    assert set(pids(executor)) == both


def test_what_a_workload_prints_does_not_spoil_the_answer(start: Start) -> None:
    body = "print('banner', '{}' * 5); os.write(1, b'noise\\n'); subprocess.run(['echo', 'child'])"
    assert measure(start(body)).status == OK


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("raise MemoryError", id="of the host"),
        pytest.param("raise RuntimeError('CUDA out of memory. Tried to allocate 2.00 GiB')", id="of CUDA"),
        pytest.param("raise RuntimeError('cuDNN error: CUDNN_STATUS_ALLOC_FAILED')", id="of cuDNN"),
        pytest.param("if self.count > 3: raise RuntimeError('CUDA error: out of memory')", id="after some steps"),
        pytest.param("os.kill(os.getpid(), signal.SIGKILL)", id="killed by the kernel"),
        pytest.param(
            "os.write(2, b\"terminate called after throwing an instance of 'std::bad_alloc'\\n\"); os.abort()",
            id="in a library",
        ),
    ],
)
def test_out_of_memory_is_an_outcome_and_the_next_trial_runs(start: Start, body: str) -> None:
    executor = start(f"if size > 4:\n    {body}")
    assert measure(executor, 4).status == OK
    before = pids(executor)
    measurement = measure(executor, 8)
    assert (measurement.status, measurement.throughput) == (OUT_OF_MEMORY, None)
    assert measurement.detail
    assert measure(executor, 2).status == OK
    assert pids(executor) != before  # a fresh process: no fragment and no state of the optimiser is left


NO_KERNEL = "raise RuntimeError('could not create a primitive descriptor for the LSTM')"


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(f"if self.precision == 'complex64': {NO_KERNEL}", id="works in the baseline"),
        pytest.param(
            f"if self.precision == 'complex64': {NO_KERNEL}\nraise MemoryError", id="the baseline needs more memory"
        ),
    ],
)
def test_a_failure_of_one_precision_is_its_result(start: Start, body: str) -> None:
    measurement = measure(start(body))
    assert (measurement.status, measurement.throughput) == (UNSUPPORTED, None)
    assert "complex128" in measurement.detail
    assert "could not create a primitive descriptor" in measurement.detail


def test_the_baseline_is_measured_in_the_same_process_after_another_precision_failed(start: Start) -> None:
    executor = start(f"if self.precision == 'complex64': {NO_KERNEL}")
    assert [measure(executor, 4, name).status for name in ("complex64", "complex128")] == [UNSUPPORTED, OK]


@pytest.mark.parametrize("precision", ["complex64", "complex128"])
def test_a_failure_of_every_precision_is_the_users_bug_whatever_it_says(start: Start, precision: str) -> None:
    with pytest.raises(WorkloadError, match="could not create a primitive descriptor") as caught:
        measure(start(NO_KERNEL), precision=precision)
    assert "train.py" in caught.value.traceback


def test_a_failure_of_the_baseline_alone_is_the_users_bug(start: Start) -> None:
    with pytest.raises(WorkloadError, match="could not create a primitive descriptor"):
        measure(start(f"if self.precision == 'complex128': {NO_KERNEL}"), precision="complex128")


def test_a_step_fails_in_one_precision_at_one_batch_size_only(start: Start) -> None:
    executor = start(f"if size > 4 and self.precision == 'complex64': {NO_KERNEL}")
    assert [measure(executor, size).status for size in (4, 8, 2)] == [OK, UNSUPPORTED, OK]


def test_a_bug_is_shown_with_its_traceback_and_never_taken_for_too_large(start: Start) -> None:
    with pytest.raises(WorkloadError, match=r"^the workload failed: KeyError: 'labels'$") as caught:
        measure(start("{}['labels']"))
    assert caught.value.exit_status == 2
    assert "train.py" in caught.value.traceback
    assert "{}['labels']" in caught.value.traceback


def test_the_users_text_cannot_reach_the_terminal(start: Start) -> None:
    with pytest.raises(WorkloadError) as caught:
        measure(start(r"raise ValueError('\x1b[2J\u202e gone')"))
    assert "\x1b" not in str(caught.value) + caught.value.traceback
    assert "\u202e" not in str(caught.value) + caught.value.traceback


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        pytest.param("raise RuntimeError('CUDA error: invalid configuration argument')", "invalid conf", id="grid"),
        pytest.param("raise RuntimeError('\"bmm\" not implemented for \\'Half\\'')", "not implemented", id="no kernel"),
        pytest.param("os.kill(os.getpid(), signal.SIGSEGV)", "killed by SIGSEGV: File ", id="crash"),
        pytest.param("os.abort()", "killed by SIGABRT", id="abort"),
    ],
)
def test_what_is_not_supported_says_why(start: Start, body: str, detail: str) -> None:
    measurement = measure(start(body))
    assert measurement.status == UNSUPPORTED
    assert detail in measurement.detail


def test_an_error_that_poisons_the_process_ends_it(start: Start) -> None:
    executor = start("if size > 4: raise RuntimeError('CUDA error: an illegal memory access was encountered')")
    measure(executor, 4)
    poisoned = pids(executor)
    assert measure(executor, 8).status == UNSUPPORTED
    assert gone(poisoned[0])
    assert measure(executor, 4).status == OK


def test_a_device_side_assert_is_the_users_bug(start: Start) -> None:
    executor = start("raise RuntimeError('CUDA error: device-side assert triggered')")
    with pytest.raises(WorkloadError, match="device-side assert"):
        measure(executor)
    assert pids(executor) == []


def test_a_process_that_the_workload_ends_is_a_bug(start: Start) -> None:
    body = "sys.stderr.write('cannot find my data\\n'); sys.stderr.flush(); os._exit(3)"
    with pytest.raises(WorkloadError, match="ended with exit status 3") as caught:
        measure(start(body))
    assert "cannot find my data" in caught.value.traceback


def test_a_hang_is_killed_with_everything_that_it_started(start: Start, tmp_path: Path) -> None:
    note = tmp_path / "child"
    body = (
        "if size > 4:\n"
        "    child = subprocess.Popen(['sleep', '60'])\n"
        f"    open({str(note)!r}, 'w').write(str(child.pid))\n"
        "    time.sleep(60)"
    )
    executor = start(body, Timeouts(start=2.0))
    assert measure(executor, 4).status == OK
    started = time.monotonic()
    measurement = measure(executor, 8)
    assert time.monotonic() - started < 10
    assert measurement.status == UNSUPPORTED
    assert measurement.detail == "no answer in 2.5 s, so the process was killed"
    assert gone(int(note.read_text()))
    assert measure(executor, 2).status == OK


def test_nothing_is_waited_for_beyond_the_budget(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "LEAST_SECONDS", 0.5)
    executor = start("time.sleep(60)", Timeouts(budget=0.1))
    executor.describe()
    started = time.monotonic()
    assert measure(executor).detail == BUDGET_ENDED
    assert time.monotonic() - started < 5


def test_a_second_try_without_the_other_worker(start: Start, tmp_path: Path) -> None:
    """Two workers are alive, and what one holds may be all that the other lacks."""
    note = tmp_path / "tries"
    body = (
        "if size == 8:\n"
        f"    with open({str(note)!r}, 'a') as file: file.write('x')\n"
        f"    if os.path.getsize({str(note)!r}) == 1: raise RuntimeError('CUDA out of memory.')"
    )
    executor = start(body)
    for precision in ("complex64", "complex128", "complex64"):
        measure(executor, 2, precision)
    assert measure(executor, 8, "complex64").status == OK
    assert len(pids(executor)) == 1


def test_an_interruption_leaves_no_worker(start: Start) -> None:
    executor = start("if size > 4: time.sleep(60)")
    measure(executor, 4)
    before = pids(executor)
    interrupt = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    interrupt.start()
    with pytest.raises(KeyboardInterrupt):
        measure(executor, 8)
    assert gone(before[0])
    assert measure(executor, 2).status == OK


def test_the_death_of_the_parent_leaves_no_worker(tmp_path: Path, start: Start) -> None:
    note = tmp_path / "worker"
    start(f"open({str(note)!r}, 'w').write(str(os.getpid())); time.sleep(60)")
    program = (
        "import sys\n"
        "from gpudoctor.model.tuning import Trial\n"
        "from gpudoctor.tuning.executor import Effort\n"
        "from gpudoctor.tuning.local import LocalExecutor, Target\n"
        f"target = Target(workload={str(tmp_path / 'train.py') + ':Work'!r}, device='cpu', arrays=True)\n"
        "LocalExecutor(sys.executable, target).measure(Trial(precision='complex64', batch_size=2), Effort())\n"
    )
    environ = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{Path(__file__).parents[2]}"}
    parent = subprocess.Popen([sys.executable, "-c", program], env=environ)
    try:
        deadline = time.monotonic() + 30
        while not (note.exists() and note.read_text()) and time.monotonic() < deadline:
            time.sleep(0.05)
    finally:
        parent.kill()
        parent.wait()
    assert gone(int(note.read_text()))


def test_close_ends_a_worker_at_once(start: Start) -> None:
    with start() as executor:
        measure(executor, 2)
        before = pids(executor)
    assert gone(before[0])
    executor.close()


def test_settings_that_arrays_do_not_have(start: Start) -> None:
    assert measure(start(), cudnn_benchmark=True).status == UNSUPPORTED


def test_a_batch_larger_than_the_data_set(start: Start) -> None:
    body = "pass\n    dataset = range(6)"
    text = WORK.format(body=body)
    executor = start(text=text)
    assert measure(executor, 6).status == OK
    measurement = measure(executor, 8)
    assert (measurement.status, measurement.detail) == (UNSUPPORTED, "the data set has only 6 samples")
    assert executor.describe_workload("complex64").dataset_size == 6


def test_a_workload_that_cannot_be_built_has_a_name_all_the_same(start: Start) -> None:
    text = "class Work:\n    def __init__(self, device, precision):\n        raise MemoryError\n"
    text += "    def make_batch(self, size): ...\n    def step(self, batch): ...\n"
    executor = start(text=text)
    assert executor.describe_workload("complex64").name.endswith(":Work")
    assert measure(executor).status == OUT_OF_MEMORY


def test_an_error_of_syntax_is_the_users(start: Start) -> None:
    with pytest.raises(WorkloadError, match="SyntaxError") as caught:
        measure(start(text="class Work(:\n"))
    assert "class Work(:" in caught.value.traceback


def test_an_attribute_that_is_not_there_is_one_line(start: Start) -> None:
    with pytest.raises(UsageError, match=r"has no Work"):
        measure(start(text="class Wark:\n    pass\n"))


def test_a_device_that_is_not_there_names_those_that_are(start: Start, tmp_path: Path) -> None:
    start()
    environ = {**os.environ, "PYTHONPATH": str(tmp_path)}
    target = Target(workload=f"{tmp_path / 'train.py'}:Work", device="cuda:3", arrays=True)
    with (
        LocalExecutor(sys.executable, target, timeouts=TIMEOUTS, environ=environ) as executor,
        pytest.raises(UsageError, match=r"^--device cuda:3: no such device; this machine has cpu$"),
    ):
        executor.describe()


def test_an_interpreter_that_is_not_there_is_one_line() -> None:
    executor = LocalExecutor("/no/such/python", Target(workload="mlp"))
    with pytest.raises(UsageError, match="--python: /no/such/python cannot be started"):
        executor.describe()


def test_a_program_that_is_no_python_is_one_line() -> None:
    with (
        LocalExecutor("/bin/false", Target(workload="mlp")) as executor,
        pytest.raises(GpudoctorError, match="status 1"),
    ):
        executor.describe()


def test_a_library_that_is_missing_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise ImportError('libcudart.so.12: cannot open shared object file')")
    environ = {**os.environ, "PYTHONPATH": str(tmp_path)}
    with (
        LocalExecutor(sys.executable, Target(workload="mlp"), environ=environ) as executor,
        pytest.raises(GpudoctorError, match=r"torch cannot be imported: ImportError: libcudart.*gpudoctor check torch"),
    ):
        executor.describe()


def test_a_library_that_hangs_is_given_up(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("import time\ntime.sleep(60)\n")
    environ = {**os.environ, "PYTHONPATH": str(tmp_path)}
    target, timeouts = Target(workload="mlp"), Timeouts(start=0.5)
    with (
        LocalExecutor(sys.executable, target, timeouts=timeouts, environ=environ) as executor,
        pytest.raises(GpudoctorError, match=r"no answer in 0\.5 s, so the process was killed"),
    ):
        executor.describe()


def test_a_device_that_does_not_work_says_what_to_do(tmp_path: Path) -> None:
    """As after an update of the driver, until the machine is started again."""
    (tmp_path / "torch.py").write_text(
        "class backends: mps = None\n"
        "class cuda:\n"
        "    is_available = staticmethod(lambda: True)\n"
        "    def device_count(): raise RuntimeError('CUDA unknown error - this may be due to an incorrect setup')\n"
    )
    environ = {**os.environ, "PYTHONPATH": str(tmp_path)}
    with (
        LocalExecutor(sys.executable, Target(workload="mlp"), environ=environ) as executor,
        pytest.raises(GpudoctorError, match=r"device auto cannot be used: RuntimeError: CUDA unknown error.*gpudoctor"),
    ):
        executor.describe()


def test_an_unknown_workload_is_refused_before_anything_starts() -> None:
    with pytest.raises(UsageError, match="no workload is called 'mpl'"):
        LocalExecutor(sys.executable, Target(workload="mpl"))


def test_the_allocator_is_set_by_both_names() -> None:
    environ = {"PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:64", "HOME": "/root"}
    assert allocator_variables("", environ) == environ
    assert allocator_variables("expandable_segments:True", environ) == {
        "PYTORCH_ALLOC_CONF": "expandable_segments:True",
        "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True",
        "HOME": "/root",
    }


def test_another_allocator_takes_another_worker(start: Start) -> None:
    executor = start()
    measure(executor, 2)
    before = pids(executor)
    assert measure(executor, 2, allocator="expandable_segments:True").status == UNSUPPORTED  # of arrays
    assert pids(executor) != before


CRASH = """Fatal Python error: Segmentation fault

Current thread 0x00007f2a (most recent call first):
  File "train.py", line 9 in step
  File "measuring.py", line 130 in step

Extension modules: torch._C, numpy (total: 27)"""


@pytest.mark.parametrize(
    ("status", "stderr_tail", "outcome"),
    [
        (-9, "", (OUT_OF_MEMORY, "killed by SIGKILL, probably because the machine ran out of memory")),
        (
            -6,
            "terminate called\n  what():  std::bad_alloc",
            (OUT_OF_MEMORY, "killed by SIGABRT: what(): std::bad_alloc"),
        ),
        (
            1,
            "RuntimeError: CUDA out of memory.",
            (OUT_OF_MEMORY, "ended with exit status 1: RuntimeError: CUDA out of memory."),
        ),
        (-11, CRASH, (UNSUPPORTED, 'killed by SIGSEGV: File "train.py", line 9 in step')),
        (-7, "", (UNSUPPORTED, "killed by SIGBUS: it gave no reason")),
    ],
    ids=["killed", "abort", "exit", "crash", "silent"],
)
def test_what_the_end_of_a_process_means(status: int, stderr_tail: str, outcome: tuple[str, str]) -> None:
    meant, detail = meaning_of(WorkerEnded(status, stderr_tail))
    assert (meant, detail) == outcome


def test_an_end_of_its_own_accord_is_the_users_bug() -> None:
    with pytest.raises(WorkloadError, match="its process ended with exit status 2") as caught:
        meaning_of(WorkerEnded(2, "usage: train.py [-h]\n\x1b[31merror"))
    assert caught.value.traceback == "usage: train.py [-h]\n\\x1b[31merror"


def test_texts_are_clean() -> None:
    measurement = read(
        Measurement,
        {"precision": "fp32", "batch_size": 2, "detail": "a\x1b[2J\tb", "warnings": ["x\u202e"]},
    )
    assert measurement.detail == "a[2J b"
    assert measurement.warnings == ("x",)


def test_a_traceback_keeps_its_lines() -> None:
    failure = read(Failure, {"kind": "workload", "detail": "", "traceback": 'File "a.py"\n    step(\x1b)'})
    assert failure.traceback == 'File "a.py"\n    step(\\x1b)'


@pytest.mark.parametrize("data", [None, [], {"precision": 3, "batch_size": 2}, {"batch_size": 2}])
def test_what_is_no_such_record(data: object) -> None:
    with pytest.raises(GpudoctorError, match="answer of the worker"):
        read(Measurement, data)
