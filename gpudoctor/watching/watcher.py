"""The watch over a program: the side process that takes samples is started, listened to, and ended."""

import math
import threading
from dataclasses import replace

from gpudoctor.errors import GpudoctorError
from gpudoctor.model.codec import from_json
from gpudoctor.processes import Worker, WorkerEnded
from gpudoctor.watching.samples import Sample, Thinned, Watch

LAST_ANSWER_SECONDS = 5.0
"""A driver that hangs keeps nobody from the end of the program for longer."""


class Watcher:
    """Watches the program `pid`, None for none, from now on. every_seconds: between two samples.

    has_ended: whether the side process has ended, so that no sample follows.
    """

    def __init__(self, pid: int | None, every_seconds: float) -> None:
        self._watch = Watch(problem="the driver does not answer")
        self._opened = threading.Event()
        self._samples = Thinned()
        self._worker: Worker | None = None
        self.has_ended = False
        try:
            self._worker = Worker("gpudoctor.watching.sampler")
        except OSError as error:
            self._watch = Watch(problem=f"cannot start a process for it: {error.strerror}")
            self.has_ended = True
            return
        self._worker.send({"pid": pid, "every_seconds": every_seconds})
        self._listener = threading.Thread(target=self._listen, args=(self._worker,), daemon=True)
        self._listener.start()

    def _listen(self, worker: Worker) -> None:
        try:
            self._watch = from_json(Watch, worker.receive(math.inf))
            self._opened.set()
            while True:
                self._samples.add(from_json(Sample, worker.receive(math.inf)))
        except (WorkerEnded, GpudoctorError, ValueError) as end:
            if not self._opened.is_set():
                self._watch = Watch(problem=f"the monitoring process failed: {end}")
            self._opened.set()
            self.has_ended = True

    def now(self) -> Watch:
        """Return what was seen so far."""
        return replace(self._watch, samples=self._samples.all())

    def end(self) -> Watch:
        """End the watch and return what was seen."""
        if self._worker is None:
            return self._watch
        self._opened.wait(LAST_ANSWER_SECONDS)
        watch = self._watch
        self._worker.end()
        self._listener.join(LAST_ANSWER_SECONDS)
        return replace(watch, samples=self._samples.all())
