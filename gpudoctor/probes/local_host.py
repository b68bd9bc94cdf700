"""The machine that gpudoctor runs on."""

import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from gpudoctor.errors import GpudoctorError
from gpudoctor.privacy import mask, mask_text
from gpudoctor.probes.host import Answer, ProbeContext, Question
from gpudoctor.processes import Worker, WorkerEnded, WorkerSilent

MODULE = "gpudoctor.probes.workers.run"
STDERR_CHARACTERS = 4000
SOON_SECONDS = 1.0
"""If a process takes longer for one question, the others do not wait for it."""
LEFT_BEHIND = "The process ignores SIGKILL, probably because it waits inside the driver. It still runs."

Group = tuple[list[Question], Worker | OSError]
"""The questions of one process that it has yet to answer, in their order."""


class LocalHost:
    """Answers by workers, each in its own process on this machine. Answers name no person and no host."""

    def __init__(self, setting: ProbeContext) -> None:
        self.setting = setting
        self.taken_at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())

    def ask(self, questions: Iterable[Question]) -> Callable[[], Mapping[str, Answer]]:
        """Start each process with its first question. The function returned waits for the answers."""
        groups: dict[str, Group] = {}
        for question in questions:
            name = "" if question.shares else question.name
            if name not in groups:
                groups[name] = [], self._start(question)
            self._put(question, groups[name])
        return lambda: self._answers([*groups.values()])

    def _start(self, question: Question) -> Worker | OSError:
        interpreter = self.setting.interpreter if question.in_environment else None
        try:
            return Worker(MODULE, interpreter or sys.executable, self.setting.environ, self.setting.directory)
        except OSError as error:
            return error

    def _put(self, question: Question, group: Group) -> None:
        asked, worker = group
        asked.append(question)
        if isinstance(worker, Worker):
            worker.send({"worker": question.worker, "arguments": dict(question.arguments)})

    def _answers(self, groups: list[Group]) -> Mapping[str, Answer]:
        try:
            answers = [*self._collect(groups)]
        finally:
            workers = [worker for _, worker in groups if isinstance(worker, Worker)]
            for worker in workers:
                worker.kill()
        stuck = [worker for worker in workers if not worker.end()]
        return {name: _left_behind(answer) if worker in stuck else answer for name, worker, answer in answers}

    def _collect(self, groups: list[Group]) -> Iterator[tuple[str, Worker | OSError, Answer]]:
        """Yield each question's name, its process and its answer.

        A question that hangs or crashes takes no other answer with it: a new process, which is
        added to the groups, gets the rest of its questions.
        """
        late: list[tuple[Question, Worker | OSError]] = []
        for group, worker in groups:
            while len(group) > 1:
                question = group.pop(0)
                answer = self._answer(worker, question, SOON_SECONDS)
                if answer.state == "timed-out":
                    late.append((question, worker))
                else:
                    yield question.name, worker, self._masked(answer)  # now: the process is still busy with the next
                if answer.state != "ok":
                    groups.append(([], self._start(group[0])))
                    while group:
                        self._put(group.pop(0), groups[-1])
            late += [(question, worker) for question in group]
        for question, worker in late:
            yield question.name, worker, self._masked(self._answer(worker, question))

    def _answer(self, worker: Worker | OSError, question: Question, soon: float = math.inf) -> Answer:
        """Wait for the next answer of a worker, no longer than `soon`."""
        if isinstance(worker, OSError):
            return Answer(state="failed", detail=f"its interpreter cannot be started\n{worker}")
        limit = self.setting.timeout_seconds * question.time_limits
        try:
            reply = worker.receive(min(soon, worker.started + limit - time.monotonic()))
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

    def _masked(self, answer: Answer) -> Answer:
        return replace(answer, facts=mask(answer.facts, self.setting), detail=mask_text(answer.detail, self.setting))


def _detail(what: str, worker: Worker) -> str:
    """Return what went wrong, with the last lines of the worker's standard error."""
    return f"{what.strip()}\n{worker.stderr_tail()[-STDERR_CHARACTERS:]}".strip()


def _left_behind(answer: Answer) -> Answer:
    return replace(answer, detail=f"{answer.detail}\n{LEFT_BEHIND}".strip())
