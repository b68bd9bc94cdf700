"""The machine that gpudoctor runs on."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from gpudoctor.privacy import mask, mask_text
from gpudoctor.probes.host import Answer, Question, Setting
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
        asked = tuple(questions)
        supervisor.ask(asked, self.setting)
        coming = ((name, self._masked(answer)) for name, answer in supervisor.answers())
        return lambda: Arriving([question.name for question in asked], coming)

    def _masked(self, answer: Answer) -> Answer:
        return replace(answer, facts=mask(answer.facts, self.setting), detail=mask_text(answer.detail, self.setting))


class Arriving(Mapping[str, Answer]):
    """Answers by the names of their questions, each waited for when it is looked up.

    What has come can be read while the rest is on its way.
    """

    def __init__(self, names: Sequence[str], answers: Iterator[tuple[str, Answer]]) -> None:
        self._names = names
        self._coming = answers
        self._here: dict[str, Answer] = {}

    def __getitem__(self, name: str) -> Answer:
        if name not in self._names:
            raise KeyError(name)
        while name not in self._here:
            came, answer = next(self._coming)
            self._here[came] = answer
        return self._here[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)
