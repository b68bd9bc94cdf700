"""What the side process answers becomes a watch, whatever it answers."""

from __future__ import annotations

from typing import Any

import pytest

from gpudoctor.errors import GpudoctorError
from gpudoctor.processes import WorkerEnded
from gpudoctor.watching import watcher
from gpudoctor.watching.samples import Sample, Watch, WatchedDevice

OPENED = {"devices": [{"nvml_index": 0, "name": "NVIDIA L4"}]}
GPU = WatchedDevice(nvml_index=0, name="NVIDIA L4")
END = WorkerEnded(3, "")


class SideProcess:
    """A worker that gives these answers, or raises them."""

    def __init__(self, *answers: Any) -> None:
        self._answers = list(answers)
        self.requests: list[Any] = []
        self.ends = 0

    def send(self, request: Any) -> None:
        self.requests.append(request)

    def receive(self, timeout_seconds: float) -> Any:
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def end(self) -> bool:
        self.ends += 1
        return True


@pytest.mark.parametrize(
    ("answers", "watch"),
    [
        pytest.param(
            (OPENED, {"at_seconds": 0.5}, {"at_seconds": 1.5}, END),
            Watch(devices=(GPU,), samples=(Sample(at_seconds=0.5), Sample(at_seconds=1.5))),
            id="samples until it ends",
        ),
        pytest.param(({"problem": "NVML: no answer"}, END), Watch(problem="NVML: no answer"), id="a problem"),
        pytest.param(
            (END,),
            Watch(problem="the monitoring process failed: ended with exit status 3"),
            id="ends without an answer",
        ),
        pytest.param(
            (GpudoctorError("not an object"),),
            Watch(problem="the monitoring process failed: not an object"),
            id="something else wrote to its channel",
        ),
        pytest.param(
            ({"devices": 3},),
            Watch(problem="the monitoring process failed: Watch.devices: expected list, found int"),
            id="an answer that is no watch",
        ),
        pytest.param(
            (OPENED, {"at_seconds": 0.5}, {}), Watch(devices=(GPU,), samples=(Sample(at_seconds=0.5),)), id="no sample"
        ),
    ],
)
def test_what_is_answered(answers: tuple[Any, ...], watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    process = SideProcess(*answers)
    monkeypatch.setattr(watcher, "Worker", lambda module: process)
    begun = watcher.Watcher(pid=7, every_seconds=0.5)
    begun._listener.join(60.0)
    assert begun.end() == watch
    assert (process.requests, process.ends) == ([{"pid": 7, "every_seconds": 0.5}], 1)


def test_a_process_that_cannot_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(module: str) -> None:
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr(watcher, "Worker", start)
    assert watcher.Watcher(pid=7, every_seconds=0.5).end() == Watch(
        problem="cannot start a process for it: Cannot allocate memory"
    )
