"""Where facts come from: questions put to a machine, and the answers that came back."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from typing import Any, Protocol

from gpudoctor.model.record import record


@record
class Setting:
    """What the questions of a run depend on.

    environ: the environment variables under which programs run on the machine.
    home: home directory of the user, replaced by "~" in the snapshot.
    host_name: name of the machine, replaced by "host" in the snapshot.
    interpreter: path of the Python whose environment is diagnosed; None for the one that runs gpudoctor.
    directory: working directory, whose project is looked at.
    timeout_seconds: for each question.
    """

    environ: Mapping[str, str]
    directory: str | os.PathLike[str]
    home: str = ""
    host_name: str = ""
    interpreter: str | None = None
    fast: bool = False
    timeout_seconds: float = 30.0


@record
class Question:
    """One thing to ask a machine: a worker to run in a process of its own, with its arguments.

    worker: name of a module in gpudoctor/probes/workers that has `collect(arguments) -> facts`, both JSON.
    fresh: run it in an interpreter started anew (the one of the setting), not in a copy of this process.
    """

    name: str
    worker: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    fresh: bool = False


@record
class Answer:
    """What came back. `state` is "ok", "failed" or "timed-out"; `facts` are {} without an answer."""

    state: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    detail: str = ""
    seconds: float = 0.0


class Host(Protocol):
    """Answers questions about one machine.

    setting: what the questions depend on. taken_at: UTC time of the answers in ISO 8601.
    """

    @property
    def setting(self) -> Setting: ...

    @property
    def taken_at(self) -> str: ...

    def ask(self, questions: Iterable[Question]) -> Callable[[], Mapping[str, Answer]]:
        """Put the questions. The function returned waits for the answers and gives them by their question's name."""
