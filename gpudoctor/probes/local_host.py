"""The machine that gpudoctor runs on."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, replace

from gpudoctor.host import Answer, Question, Setting
from gpudoctor.model.record import record
from gpudoctor.privacy import mask, mask_text
from gpudoctor.probes import isolate


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


@record
class LocalHost:
    """Answers by workers, each in a process of its own on this machine. Answers name no person and no host."""

    setting: Setting
    taken_at: str = field(default_factory=_now)

    def ask(self, questions: Iterable[Question]) -> Callable[[], Mapping[str, Answer]]:
        """Start the workers. The function returned waits for them.

        Raises:
            OSError: the interpreter of the setting cannot be started.
        """
        running = isolate.start(questions, self.setting)

        def wait() -> Mapping[str, Answer]:
            answers = isolate.collect(running, self.setting.timeout_seconds)
            return {name: self._masked(answer) for name, answer in answers.items()}

        return wait

    def _masked(self, answer: Answer) -> Answer:
        return replace(answer, facts=mask(answer.facts, self.setting), detail=mask_text(answer.detail, self.setting))
