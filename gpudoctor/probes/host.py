"""Where facts come from: questions to a machine, and its answers."""

import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from typing import Any, Protocol

from gpudoctor.errors import UsageError
from gpudoctor.model.record import record


@record
class ImageRequest:
    """What the container checks examine. By default it is found in the working directory.

    build_arguments: "NAME=VALUE" each.
    """

    image: str | None = None
    container: str | None = None
    compose: str | None = None
    service: str | None = None
    dockerfile: str | None = None
    context: str | None = None
    target: str | None = None
    build_arguments: tuple[str, ...] = ()


@record
class ProbeContext:
    """The context of a run's questions.

    environ: the environment variables under which programs run on the machine.
    home: home directory of the user, replaced by "~" in the snapshot.
    host_name: name of the machine, replaced by "host" in the snapshot.
    interpreter: path of the Python whose environment is diagnosed; None for the one that runs gpudoctor.
    directory: working directory, whose project is looked at.
    timeout_seconds: for each question.
    images: what the container checks look at.
    profile: path of the env profile to look at; None for the one in the working directory.
    """

    environ: Mapping[str, str]
    directory: str | os.PathLike[str]
    home: str = ""
    host_name: str = ""
    interpreter: str | None = None
    fast: bool = False
    timeout_seconds: float = 30.0
    images: ImageRequest = ImageRequest()
    profile: str | None = None

    @property
    def user_names(self) -> tuple[str, ...]:
        """The names of the user, replaced by "user" in the snapshot's paths."""
        named = (self.environ.get(name, "") for name in ("USER", "LOGNAME", "USERNAME", "SUDO_USER"))
        return (*named, os.path.basename(self.home))


@record
class Question:
    """One thing to ask a machine: a worker to run in its own process, with its arguments.

    worker: name of a module in gpudoctor/probes/workers that has `collect(arguments) -> facts`, both JSON.
    in_environment: run it under the interpreter that is diagnosed, not under gpudoctor's own.
    shares: whether it shares a process with all others that do, which answers them in their order.
    time_limits: how many time limits the answer may take. A worker that limits each of its own waits has more than one.
    """

    name: str
    worker: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    in_environment: bool = False
    shares: bool = False
    time_limits: int = 1


@record
class Answer:
    """The result of a question. `state` is "ok", "failed" or "timed-out"; `facts` are {} without an answer."""

    state: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    detail: str = ""
    seconds: float = 0.0


class Host(Protocol):
    """Answers questions about one machine.

    setting: what the questions depend on. taken_at: UTC time of the answers in ISO 8601.
    """

    @property
    def setting(self) -> ProbeContext: ...

    @property
    def taken_at(self) -> str: ...

    def ask(self, questions: Iterable[Question]) -> Callable[[], Mapping[str, Answer]]:
        """Ask the questions. The returned function waits for the answers and returns them by question name."""


def setting(interpreter: str | None, timeout: float, *, fast: bool, images: ImageRequest | None = None) -> ProbeContext:
    """Return the context of the questions to this machine.

    Raises:
        UsageError: the working directory is gone, or the interpreter is not a program.
    """
    try:
        directory = os.getcwd()
    except OSError:
        raise UsageError("the working directory no longer exists: change to one that does") from None
    return ProbeContext(
        environ=dict(os.environ),
        directory=directory,
        home=os.path.expanduser("~"),
        host_name=os.uname().nodename if hasattr(os, "uname") else os.environ.get("COMPUTERNAME", ""),
        interpreter=interpreter_meant(os.environ) if interpreter is None else executable(interpreter),
        fast=fast,
        timeout_seconds=timeout,
        images=images or ImageRequest(),
    )


def interpreter_meant(environ: Mapping[str, str], prefix: str = sys.prefix) -> str | None:
    """Return the default interpreter; None for the one that runs gpudoctor.

    In an environment of its own, the activated environment is meant.
    """
    return interpreter_of(active_environment(environ)) if is_own_environment(prefix) else None


def is_own_environment(prefix: str = sys.prefix) -> bool:
    """Return whether pipx or uv made the environment at `prefix` for gpudoctor.

    `pipx run` and `uvx` leave the same files in it as an installation, but uvx without an installation only has its
    place in uv's cache.
    """
    has_receipt = any(os.path.isfile(os.path.join(prefix, name)) for name in ("pipx_metadata.json", "uv-receipt.toml"))
    return has_receipt or re.fullmatch(r"archive-v\d+", os.path.basename(os.path.dirname(prefix))) is not None


def active_environment(environ: Mapping[str, str]) -> str:
    """Return the folder of the environment that the shell has activated; "" for none."""
    return environ.get("VIRTUAL_ENV") or environ.get("CONDA_PREFIX") or ""


def interpreter_of(folder: str) -> str | None:
    """Return the interpreter of an environment; None if it does not exist."""
    places = ("Scripts/python.exe", "python.exe") if sys.platform == "win32" else ("bin/python",)
    paths = (os.path.join(folder, *place.split("/")) for place in places if folder)
    return next((path for path in paths if os.access(path, os.X_OK)), None)


def executable(interpreter: str) -> str:
    """Return the path of the interpreter named, links not resolved: a link is what makes a virtual environment.

    Raises:
        UsageError: there is no such program.
    """
    import shutil

    found = shutil.which(interpreter)
    if found is None:
        raise UsageError(f"--python: {interpreter} is not a program that can be run")
    return os.path.abspath(found)
