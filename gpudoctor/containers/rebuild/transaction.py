"""A rebuild is a transaction: one at a time for an image, with a journal by which it is undone or finished."""

import hashlib
import json
import os
import re
import shlex
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from gpudoctor.containers.engines import APIClient
from gpudoctor.containers.engines.objects import inspect_container, inspect_image, short_name
from gpudoctor.containers.images.reader import LABEL
from gpudoctor.containers.rebuild.interrupts import Interrupts
from gpudoctor.containers.rebuild.steps import BuildFailed
from gpudoctor.errors import GpudoctorError, UsageError
from gpudoctor.files import created_without, locked, read_bounded, write_whole
from gpudoctor.trust import refuse_if_writable_by_others, refuse_links_of_others

SCHEMA = "gpudoctor/rebuild/1"
WAIT_FOR_ENGINE_SECONDS = 30.0
"""systemd starts an engine that was killed again within seconds."""

_POLL_SECONDS = 0.2
_MOST_BYTES = 1 << 20
_STEP = re.compile(r" *---> Running in ([0-9a-f]{12})")
"""What the classic builder writes of a step's container, which an engine that is killed leaves without any mark."""


class Journal:
    """What a rebuild of one image has begun, in a file that exists only meanwhile.

    lock: descriptor of the lock. The commands that build inherit it, so it is held until the last of them has ended.
    repeat: recreates the service's container from the image of that name, if compose makes it.
    entry: `engine`, `image` and `process`; `tag`, the temporary one; `before` and `after`, image ids, and `kept`, a tag
        of the former; `step`, the last container of the build; `old` and `new`, container ids, `name`, `spare` and
        `was_running`; `command` of compose; `done`.
    """

    def __init__(self, path: Path, lock: int, entry: Mapping[str, Any]) -> None:
        self._path, self.lock, self.entry = path, lock, dict(entry)
        self.repeat: Callable[[], None] = lambda: None

    def write(self, **changes: Any) -> None:
        """Note what is done next."""
        self.entry.update(changes)
        write_whole(self._path, json.dumps({"schema": SCHEMA, **self.entry}), private=True)

    def note_step(self, line: str) -> None:
        """Note the container of a build step, if the line of the build's output names it."""
        if match := _STEP.fullmatch(line):
            self.write(step=match[1])

    def settle(self, api: APIClient) -> None:
        """Undo what was begun, or finish what is done. To do it twice does no harm. Waits for an engine that is away.

        Raises:
            GpudoctorError: the engine stays away or refuses. The message names what remains; the journal remains too.
        """
        from docker.errors import DockerException
        from requests import RequestException

        deadline = time.monotonic() + WAIT_FOR_ENGINE_SECONDS
        while self._path.exists():
            try:
                self._finish(api) if self.entry.get("done") else self._undo(api)
                _remove_rest(api, self.entry)
                self._path.unlink()
                self.entry = {name: self.entry[name] for name in ("engine", "image", "process")}
            except (DockerException, RequestException, BuildFailed) as error:  # noqa: PERF203 - it waits
                if time.monotonic() > deadline:
                    raise GpudoctorError(
                        f"the rebuild of {self.entry['image']} is incomplete: the engine does not answer or refuses"
                        f" ({error}). Run gpudoctor rebuild again later, or clean up by hand: {by_hand(self.entry)}"
                    ) from None
                time.sleep(_POLL_SECONDS)

    def _undo(self, api: APIClient) -> None:
        entry, image = self.entry, self.entry["image"]
        for new in filter(None, (entry.get("new"), entry.get("spare") and f"{entry['spare']}-new")):
            if inspect_container(api, new) is not None:
                api.remove_container(new, v=False, force=True)
        found = inspect_image(api, image)
        if found is not None and found["Id"] == entry.get("after") != entry.get("before"):
            name_image(api, entry["kept"], image) if entry["before"] else remove_tag(api, image)
        old = inspect_container(api, entry["old"]) if "old" in entry else None
        if old is not None:
            if str(old["Name"]).lstrip("/") != entry["name"]:
                api.rename(entry["old"], entry["name"])
            if entry["was_running"] and not old["State"].get("Running"):
                api.start(entry["old"])
        self.repeat()

    def _finish(self, api: APIClient) -> None:
        if "old" in self.entry and inspect_container(api, self.entry["old"]) is not None:
            api.remove_container(self.entry["old"], v=False, force=True)


@contextmanager
def transaction(
    api: APIClient, image: str, wait_seconds: float, say: Callable[[str], None], interrupts: Interrupts
) -> Iterator[Journal]:
    """Give the journal of a rebuild of `image`. At the end everything is as before, or, if it is `done`, new.

    wait_seconds: for another rebuild of that image to end.

    Raises:
        UsageError: it does not end, or the journal cannot be written.
        GpudoctorError: as Journal.settle.
    """
    engine, image = _engine(api), short_name(image)
    image = image if ":" in image.rpartition("/")[2] else f"{image}:latest"
    path = _folder() / f"{hashlib.sha256(f'{engine} {image}'.encode()).hexdigest()[:16]}.json"
    start = said = time.monotonic()
    with interrupts.allowed():
        while (lock := _locked(path)) is None:
            if said == start:
                say(f"Another rebuild of {image} is running: waiting for it to end")
            said = time.monotonic()
            if said > start + wait_seconds:
                raise UsageError(f"another rebuild of {image} is still running: to wait longer, raise --timeout")
            time.sleep(_POLL_SECONDS)
    with lock:
        _settle(api, path, lock.fileno(), engine, say)
        journal = Journal(path, lock.fileno(), {"engine": engine, "image": image, "process": os.getpid()})
        try:
            journal.write()
            yield journal
        finally:
            journal.settle(api)


def settle_interrupted(api: APIClient, say: Callable[[str], None]) -> None:
    """Undo or finish what rebuilds have left that were killed. Raises GpudoctorError: as Journal.settle."""
    engine = _engine(api)
    for path in sorted(_folder().glob("*.json")):
        lock = _locked(path)
        if lock is not None:
            with lock:
                _settle(api, path, lock.fileno(), engine, say)


def _settle(api: APIClient, path: Path, lock: int, engine: str, say: Callable[[str], None]) -> None:
    try:
        entry = json.loads(read_bounded(path, _MOST_BYTES))
    except (OSError, ValueError):
        return
    if entry.get("schema") != SCHEMA or entry["engine"] != engine:
        return
    Journal(path, lock, entry).settle(api)
    say(f"An interrupted rebuild of {entry['image']} was {'finished' if entry.get('done') else 'undone'}")
    if "command" in entry and "done" not in entry:
        say(f"If the service does not run, start it: {entry['command']}")


def by_hand(entry: Mapping[str, Any]) -> str:
    """Return the commands that remove what a half-done rebuild has left."""
    is_done, old, name = "done" in entry, entry.get("old"), entry.get("name", "")
    new = entry.get("new") or f"{entry.get('spare')}-new"
    lines: list[tuple[str, ...]] = [("rm", "--force", old)] if is_done and old else []
    if old and not is_done:
        lines = [("rm", "--force", new), ("rename", old, name), ("start", name)][: 2 + entry["was_running"]]
    lines += [("tag", entry["before"], entry["image"])] if entry.get("before") and not is_done else []
    lines += [("rm", "--force", entry["step"])] if entry.get("step") else []
    lines += [("rmi", *filter(None, (entry.get("tag"), entry.get("kept"))))]
    commands = (shlex.join(("docker", *words)) for words in lines if len(words) > 1)
    return "; ".join((*commands, *filter(None, (entry.get("command"),))))


def name_image(api: APIClient, image: str, name: str) -> None:
    """Give the image another name."""
    from docker.utils import parse_repository_tag

    repository, tag = parse_repository_tag(name)
    api.tag(image, repository, tag)


def remove_tag(api: APIClient, tag: str) -> None:
    """Remove the tag; of its image only what has no other name, and never the cache below it."""
    from docker.errors import APIError

    with suppress(APIError):
        api.remove_image(tag, noprune=True)


def _remove_rest(api: APIClient, entry: Mapping[str, Any]) -> None:
    """Remove containers by which images were read, that of a build step, and temporary tags.

    The tag that kept the old image moves first: with its last tag an image goes too.
    """
    for container in api.containers(all=True, filters={"label": f"{LABEL}={entry['process']}"}):
        api.remove_container(container["Id"], v=True, force=True)
    step = inspect_container(api, entry["step"]) if entry.get("step") else None
    if step is not None and step["Id"].startswith(entry["step"]) and step["Config"]["Image"].startswith("sha256:"):
        api.remove_container(step["Id"], v=True, force=True)  # a RUN can write the line too: no user's container
    if entry.get("kept") and inspect_image(api, entry["kept"]) and inspect_image(api, entry["image"]):
        name_image(api, entry["image"], entry["kept"])
    for name in ("kept", "tag"):
        if entry.get(name):
            remove_tag(api, entry[name])


def _engine(api: APIClient) -> str:
    return str(api.info().get("ID") or "")


def _folder() -> Path:
    folder = Path(os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state"), "gpudoctor", "rebuild")
    refuse_links_of_others(folder)
    try:
        with created_without(0o077):
            folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot create {folder} ({error.strerror}): set XDG_STATE_HOME to another folder") from None
    refuse_if_writable_by_others(str(folder))  # a journal says which images are renamed and removed
    return folder


def _locked(path: Path) -> IO[str] | None:
    """Return the lock next to the journal, which lasts until it is closed; None if another process has it."""
    try:
        lock = path.with_suffix(".lock").open("a")
    except OSError as error:
        raise UsageError(f"cannot write {path.parent}: {error.strerror}") from None
    return locked(lock)
