"""The machine that gpudoctor runs on."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from gpudoctor.host import Answer, Question, Setting
from gpudoctor.privacy import mask, mask_text
from gpudoctor.probes.isolate import Supervisor


class LocalHost:
    """Answers by workers, each in a process of its own on this machine. Answers name no person and no host.

    supervisor: one that was started before, in the setting's environment and directory.
    """

    def __init__(self, setting: Setting, supervisor: Supervisor | None = None) -> None:
        self.setting = setting
        self.taken_at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        self._supervisor = supervisor

    def ask(self, questions: Iterable[Question]) -> Callable[[], Mapping[str, Answer]]:
        """Put the questions, once. The function returned waits for the answers.

        Raises:
            OSError: no process can be started here.
        """
        supervisor = self._supervisor or Supervisor(self.setting.environ, self.setting.directory)
        supervisor.ask(questions, self.setting)
        return lambda: Arriving((name, self._masked(answer)) for name, answer in supervisor.answers())

    def _masked(self, answer: Answer) -> Answer:
        return replace(answer, facts=mask(answer.facts, self.setting), detail=mask_text(answer.detail, self.setting))


class Arriving(Mapping[str, Answer]):
    """Answers by the names of their questions, each waited for when it is looked up.

    What has come can be read while the rest is on its way.
    """

    def __init__(self, answers: Iterator[tuple[str, Answer]]) -> None:
        self._coming = answers
        self._here: dict[str, Answer] = {}

    def __getitem__(self, name: str) -> Answer:
        while name not in self._here:
            self._wait_for_one(name)
        return self._here[name]

    def _wait_for_one(self, name: str) -> None:
        try:
            came, answer = next(self._coming)
        except StopIteration:
            raise KeyError(name) from None
        self._here[came] = answer

    def __iter__(self) -> Iterator[str]:
        self._here.update(self._coming)
        return iter(self._here)

    def __len__(self) -> int:
        return len(list(iter(self)))
