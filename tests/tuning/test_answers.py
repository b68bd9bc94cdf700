"""What comes back from a worker."""

from __future__ import annotations

import pytest

from gpudoctor.errors import GpudoctorError, WorkloadError
from gpudoctor.model.tuning import OUT_OF_MEMORY, UNSUPPORTED, Measurement
from gpudoctor.processes import WorkerEnded
from gpudoctor.tuning.answers import meaning_of, read
from gpudoctor.tuning.workers.failures import Failure

CRASH = """Fatal Python error: Segmentation fault

Current thread 0x00007f2a (most recent call first):
  File "train.py", line 9 in step
  File "measuring.py", line 130 in step

Extension modules: torch._C, numpy (total: 27)"""


@pytest.mark.parametrize(
    ("status", "stderr_tail", "outcome"),
    [
        (-9, "", (OUT_OF_MEMORY, "killed by SIGKILL, as the kernel does when the machine's memory is full")),
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
        (-7, "", (UNSUPPORTED, "killed by SIGBUS: it wrote no reason")),
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
