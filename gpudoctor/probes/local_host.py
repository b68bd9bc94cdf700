"""The machine that gpudoctor runs on."""

import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from gpudoctor.errors import GpudoctorError
from gpudoctor.privacy import mask, mask_text
from gpudoctor.probes.host import Answer, ProbeContext, Question
from gpudoctor.processes import Worker, WorkerEnded, WorkerSilent

MODULE = "gpudoctor.probes.workers.run"
STDERR_CHARACTERS_KEPT = 4000
LEFT_BEHIND = "The process ignores SIGKILL, probably because it waits inside the driver. It still runs."


class LocalHost:
    """Answers by workers, each in a process of its own on this machine. Answers name no person and no host."""

    def __init__(self, setting: ProbeContext) -> None:
        self.setting = setting
        self.taken_at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())

    def ask(self, questions: Iterable[Question]) -> Callable[[], Mapping[str, Answer]]:
        """Start each worker with its first question. The function returned waits for their answers."""
        groups: dict[str, tuple[list[Question], Worker | OSError]] = {}
        for question in questions:
            key = question.shares or question.name
            if key not in groups:
                groups[key] = [], self._start(question)
            group, worker = groups[key]
            group.append(question)
            if isinstance(worker, Worker):
                worker.send({"worker": question.worker, "arguments": dict(question.arguments)})
        return lambda: self._answers(tuple(groups.values()))

    def _start(self, question: Question) -> Worker | OSError:
        interpreter = self.setting.interpreter if question.in_environment else None
        try:
            return Worker(MODULE, interpreter or sys.executable, self.setting.environ, self.setting.directory)
        except OSError as error:
            return error

    def _answers(self, running: Sequence[tuple[Sequence[Question], Worker | OSError]]) -> Mapping[str, Answer]:
        workers = [worker for _, worker in running if isinstance(worker, Worker)]
        try:
            answers = [
                (question.name, worker, self._answer(worker, question.patience))
                for group, worker in running
                for question in group
            ]
        finally:
            for worker in workers:
                worker.kill()
        stuck = [worker for worker in workers if not worker.end()]
        return {name: self._masked(answer, is_stuck=worker in stuck) for name, worker, answer in answers}

    def _answer(self, worker: Worker | OSError, patience: int) -> Answer:
        """Wait for the next answer of a worker."""
        if isinstance(worker, OSError):
            return Answer(state="failed", detail=f"its interpreter cannot be started\n{worker}")
        limit = self.setting.timeout_seconds * patience
        try:
            reply = worker.receive(worker.started + limit - time.monotonic())
        except WorkerSilent:
            return Answer(
                state="timed-out",
                detail=_detail(f"no answer in {limit:g} s (--timeout sets the limit)", worker),
                seconds=limit,
            )
        except WorkerEnded as end:
            ending = str(end) if end.status < 0 else f"{end} and no answer"
            return Answer(state="failed", detail=_detail(ending, worker), seconds=worker.seconds)
        except GpudoctorError as error:
            return Answer(state="failed", detail=_detail(str(error), worker))
        if "facts" in reply:
            return Answer(state="ok", facts=reply["facts"], seconds=reply["seconds"])
        return Answer(state="failed", detail=_detail(f"{reply['error']}\n{reply['traceback']}", worker))

    def _masked(self, answer: Answer, *, is_stuck: bool) -> Answer:
        detail = f"{answer.detail}\n{LEFT_BEHIND}".strip() if is_stuck else answer.detail
        return replace(answer, facts=mask(answer.facts, self.setting), detail=mask_text(detail, self.setting))


def _detail(what: str, worker: Worker) -> str:
    """Return what went wrong, with the last lines of the worker's standard error."""
    return f"{what.strip()}\n{worker.stderr_tail()[-STDERR_CHARACTERS_KEPT:]}".strip()
