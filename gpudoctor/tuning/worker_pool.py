"""The worker processes of one workload: one for each precision and allocator, started and ended as they are needed."""

import os
from collections.abc import Mapping
from typing import Any

from gpudoctor.errors import GpudoctorError, UsageError, WorkloadError
from gpudoctor.model.profile import ALLOCATOR_VARIABLES
from gpudoctor.model.tuning import OUT_OF_MEMORY
from gpudoctor.processes import Worker, WorkerEnded, WorkerSilent
from gpudoctor.tuning.answers import FAILED, Poisoned, Refused, read
from gpudoctor.tuning.workers.failures import LIBRARY, USAGE, WORKLOAD, Failure

Key = tuple[str | None, str]
"""Precision and allocator of a worker; the precision is None until the first trial decides it."""

MOST_WORKERS = 2
"""While two precisions are measured in turn; one at a time otherwise."""


class WorkerPool:
    """Workers under `interpreter` with the variables of `environ`.

    order: what each is sent first. start_seconds: how long one may take to let go of its workload.
    workers: the one used last comes last. on_host: the device is the host, whose workers need no room.
    """

    def __init__(
        self, interpreter: str, environ: Mapping[str, str], order: Mapping[str, Any], start_seconds: float
    ) -> None:
        self._interpreter, self._environ, self._order = interpreter, environ, order
        self._start_seconds = start_seconds
        self.workers: dict[Key, Worker] = {}
        self.seen: set[Key] = set()
        self.on_host = False

    def ask(self, key: Key, request: Mapping[str, Any], seconds: float) -> Any:
        """Return the value of the answer, or raise what failed. A worker that is of no more use is ended."""
        worker = self._worker(key)
        try:
            answer = worker.ask(request, seconds)
        except BaseException:  # an interruption too: its answer would be read as that to the next request
            self.end(key)
            raise
        if "failure" not in answer:
            return answer.get("value")
        failure = read(Failure, answer["failure"])
        if failure.poisons or failure.kind == OUT_OF_MEMORY:
            self.end(key)
        if failure.kind == WORKLOAD:
            error = Poisoned if failure.poisons else WorkloadError
            raise error(FAILED + failure.detail, failure.traceback)
        if failure.kind == USAGE:
            raise UsageError(failure.detail)
        if failure.kind == LIBRARY:
            raise GpudoctorError(f"{self._interpreter}: {failure.detail}; gpudoctor check torch shows why")
        raise Refused(failure.kind, failure.detail)

    def _worker(self, key: Key) -> Worker:
        """Return the worker of that key; of the others, at most one is kept, without its workload."""
        if next(reversed(self.workers), None) == key:
            return self.workers[key]
        for usable in (key, (None, "")):  # the one that has described the device does for any precision
            if usable in self.workers and usable[1] == key[1]:
                self.workers[key] = self.workers.pop(usable)
                break
        self.make_room(key)
        if key not in self.workers:
            environ = allocator_variables(key[1], self._environ)
            try:
                self.workers[key] = Worker("gpudoctor.tuning.workers.serve", self._interpreter, environ)
            except OSError as error:
                raise UsageError(f"--python: {self._interpreter} cannot be started: {error.strerror}") from None
            self.workers[key].send({**self._order, "parent": os.getpid()})
        self.seen.add(key)
        return self.workers[key]

    def make_room(self, key: Key) -> None:
        """End the other workers; if `key` comes back, two are measured in turn, and the last one only lets go.

        On the host none is ended: without its workload, a worker there has the library loaded, but no device context.
        """
        others = [other for other in self.workers if other != key]
        in_turn = others[1 - MOST_WORKERS :] if key in self.seen else []
        for other in others:
            if other not in in_turn and not self.on_host:
                self.end(other)
                continue
            try:
                self.workers[other].ask({"ask": "release"}, self._start_seconds)
            except BaseException as error:  # an interruption too: its answer would be read as the next one
                self.end(other)
                if not isinstance(error, (WorkerEnded, WorkerSilent)):
                    raise

    def end(self, key: Key) -> None:
        worker = self.workers.pop(key, None)
        if worker is not None:
            worker.end()

    def close(self) -> None:
        """End every worker."""
        while self.workers:
            _, worker = self.workers.popitem()
            worker.end()


def allocator_variables(allocator: str, environ: Mapping[str, str]) -> dict[str, str]:
    """Return `environ` with torch's allocator set so; as it is if `allocator` is empty.

    Both names: torch before 2.9 knows the second only, and later ones read it first.
    Source: c10/cuda/CUDAAllocatorConfig.h of torch 2.13.
    """
    if not allocator:
        return dict(environ)
    return {**environ, **dict.fromkeys(ALLOCATOR_VARIABLES, allocator)}
