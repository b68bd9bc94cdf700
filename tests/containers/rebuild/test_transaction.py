"""A rebuild whose engine fails, or that is killed, at each of its steps: afterwards all is as before, or all is new."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from docker.errors import NotFound, NullResource
from requests import ConnectionError as NoEngine

from gpudoctor.containers.images.reader import LABEL
from gpudoctor.containers.rebuild import container, run, transaction
from gpudoctor.containers.rebuild.interrupts import Interrupts
from gpudoctor.containers.rebuild.steps import BuildFailed, Command, Progress
from gpudoctor.errors import GpudoctorError, UsageError


class Killed(BaseException):
    """The program is gone: nothing that it would do afterwards happens."""


class Engine:
    """An engine with a container "web" of the image "app", that fails at the change number `fails_at`.

    is_done: that change is made, and only its answer is lost. away: for so many calls after it nothing answers.
    """

    def __init__(self, fails_at: int = -1, *, is_done: bool = False, away: int = 0, error: type = NoEngine) -> None:
        self.images = {"app:latest": "old"}
        self.there: dict[str, dict[str, Any]] = {"1": {"name": "web", "image": "old", "running": True}}
        self.fails_at, self.is_done, self.away, self.error = fails_at, is_done, away, error
        self.changes = 0

    @contextlib.contextmanager
    def _change(self) -> Iterator[None]:
        self._ask()
        self.changes += 1
        fails = self.changes == self.fails_at
        if fails and not self.is_done:
            raise self.error
        yield
        if fails:
            raise self.error

    def _ask(self) -> None:
        if 0 <= self.fails_at <= self.changes and self.away > 0:
            self.away -= 1
            raise self.error

    def state(self) -> tuple[dict[str, str], list[tuple[str, str, bool]]]:
        return self.images, [(item["name"], item["image"], item["running"]) for item in self.there.values()]

    def info(self) -> dict[str, str]:
        self._ask()
        return {"ID": "the engine"}

    def _image(self, name: str) -> str | None:
        name = name if ":" in name else f"{name}:latest"
        return self.images.get(name)

    def inspect_image(self, name: str) -> dict[str, Any]:
        self._ask()
        found = self._image(name) or (name if name in self.images.values() else None)
        if found is None:
            raise NullResource(name)
        return {"Id": found, "Config": {}}

    def containers(self, **options: Any) -> list[dict[str, str]]:
        self._ask()
        is_ours = options == {"all": True, "filters": {"label": f"{LABEL}={os.getpid()}"}}
        return [{"Id": "look"}] if is_ours and "look" in self.there else []

    def inspect_container(self, name: str) -> dict[str, Any]:
        self._ask()
        key = self._key(name)
        about = self.there[key]
        return {
            "Id": key,
            "Name": f"/{about['name']}",
            "Image": about["image"],
            "Config": {"Image": about.get("made_of", "app")},
            "HostConfig": {},
            "NetworkSettings": {},
            "State": {"Running": about["running"], "ExitCode": 0},
        }

    def _key(self, name: str) -> str:
        for key, about in self.there.items():
            if name in (key, about["name"]):
                return key
        raise NotFound(name)

    def tag(self, image: str, repository: str, tag: str | None = None) -> None:
        with self._change():
            self.images[f"{repository}:{tag or 'latest'}"] = self._image(image) or image

    def remove_image(self, name: str, noprune: bool) -> None:
        assert noprune
        with self._change():
            if self.images.pop(name if ":" in name else f"{name}:latest", None) is None:
                raise NotFound(name)

    def create_container_from_config(self, config: dict[str, Any], name: str) -> dict[str, str]:
        with self._change():
            self.there["2"] = {"name": name, "image": self._image(config["Image"]), "running": False}
        return {"Id": "2"}

    def stop(self, key: str, timeout: int) -> None:
        assert timeout
        with self._change():
            self.there[key]["running"] = False

    def start(self, key: str) -> None:
        with self._change():
            self.there[key]["running"] = True

    def rename(self, key: str, name: str) -> None:
        with self._change():
            assert name not in [about["name"] for about in self.there.values()], "the engine refuses"
            self.there[key]["name"] = name

    def remove_container(self, key: str, v: bool, force: bool) -> None:
        assert (v, force) == (key in ("look", STEP), True)
        with self._change():
            del self.there[self._key(key)]


BEFORE = ({"app:latest": "old"}, [("web", "old", True)])
NEW = ({"app:latest": "new"}, [("web", "new", True)])
STEP = "0a1b2c3d4e5f" + 52 * "0"
CHANGES = 11
"""That an undisturbed rebuild makes."""


@pytest.fixture(autouse=True)
def quick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(container, "START_SECONDS", 0)
    monkeypatch.setattr(transaction, "_POLL_SECONDS", 0)
    monkeypatch.setattr(transaction, "WAIT_FOR_ENGINE_SECONDS", 0.5)
    monkeypatch.setattr(run, "build_under", lambda tag, api, *_: api.images.update({tag: "new"}))
    monkeypatch.setattr(run, "look_at_subject", lambda *_: None)


def look(engine: Engine) -> None:
    """Have a look at an image that was interrupted: its container stays."""
    engine.there["look"] = {"name": "look", "image": "new", "running": False}


def rebuild(engine: Engine, said: list[str] | None = None, *, is_killed: bool = False) -> None:
    """Rebuild the image and recreate its container, as the command does; one that is killed settles nothing."""
    work: Any = SimpleNamespace(
        subject=SimpleNamespace(image="app", container="web", dockerfile_inline=None),
        chosen=SimpleNamespace(note="", builder=None, docker=None),
        image=SimpleNamespace(image_id="old"),
        builds=True,
        recreates=True,
        stages=(),
        unseen_changes=False,
    )
    api: Any = engine
    say: Any = print if said is None else said.append
    progress = Progress(print, print, 10)
    with transaction.transaction(api, "app", 0.2, say, progress.interrupts) as journal:
        try:
            run.execute(api, work, progress, lambda _: None, journal)  # type: ignore[arg-type, return-value]
        except Killed:
            journal._path = journal._path.with_name("gone")
            raise


def left(tmp_path: Path) -> list[str]:
    return [path.name for path in tmp_path.rglob("*.json")]


def test_undisturbed_everything_is_new(tmp_path: Path) -> None:
    engine = Engine()
    rebuild(engine)
    assert (engine.state(), engine.changes, left(tmp_path)) == (NEW, CHANGES, [])


@pytest.mark.parametrize("is_done", [False, True], ids=["not done", "done, but the answer is lost"])
@pytest.mark.parametrize("away", [0, 3], ids=["at once", "after a while"])
@pytest.mark.parametrize("step", range(1, CHANGES + 1))
def test_an_engine_that_comes_back(step: int, away: int, is_done: bool, tmp_path: Path) -> None:
    engine = Engine(step, is_done=is_done, away=away)
    with contextlib.suppress(NoEngine):
        rebuild(engine)
    assert engine.state() in (BEFORE, NEW)
    assert left(tmp_path) == []


@pytest.mark.parametrize("is_done", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("step", range(1, CHANGES + 1))
def test_a_rebuild_that_is_killed_is_settled_by_the_next_call(step: int, is_done: bool, tmp_path: Path) -> None:
    engine = Engine(step, is_done=is_done, error=Killed)
    with pytest.raises(Killed):
        rebuild(engine)
    said: list[str] = []
    assert len(left(tmp_path)) == 1
    transaction.settle_interrupted(engine, said.append)  # type: ignore[arg-type]
    assert engine.state() in (BEFORE, NEW)
    assert left(tmp_path) == []
    word = "undone" if engine.state() == BEFORE else "finished"
    assert len(said) == 1
    assert said[0].endswith(f" was {word}")


def test_an_engine_that_stays_away_leaves_commands_and_the_journal(tmp_path: Path) -> None:
    engine = Engine(7, away=10**9)  # the first rename
    with pytest.raises(GpudoctorError) as caught:
        rebuild(engine)
    commands = str(caught.value).partition("by hand: ")[2].split("; ")
    assert commands[:4] == [
        "docker rm --force 2",
        "docker rename 1 web",
        "docker start web",
        "docker tag old app",
    ]
    assert commands[4].startswith("docker rmi gpudoctor-rebuild:")
    engine.away = 0
    transaction.settle_interrupted(engine, print)  # type: ignore[arg-type]
    assert (engine.state(), left(tmp_path)) == (BEFORE, [])


def test_the_journal_of_another_engine_is_left_alone(tmp_path: Path) -> None:
    with pytest.raises(Killed):
        rebuild(Engine(5, error=Killed))
    (path,) = tmp_path.rglob("*.json")
    path.write_text(json.dumps({**json.loads(path.read_text()), "engine": "another"}))
    said: list[str] = []
    transaction.settle_interrupted(Engine(), said.append)  # type: ignore[arg-type]
    assert (len(left(tmp_path)), said) == (1, [])


def test_an_image_that_another_program_built_meanwhile_stays(tmp_path: Path) -> None:
    engine = Engine()
    engine.images["app:latest"] = "another"
    with pytest.raises(BuildFailed, match="another program has built app"):
        rebuild(engine)
    assert engine.state() == ({"app:latest": "another"}, BEFORE[1])
    assert left(tmp_path) == []


def test_what_an_interrupted_look_leaves_is_removed(tmp_path: Path) -> None:
    engine = Engine()
    api: Any = engine
    with transaction.transaction(api, "app", 0.2, print, Interrupts()):
        look(engine)
    assert (engine.state(), left(tmp_path)) == (BEFORE, [])


@pytest.mark.parametrize(
    ("key", "made_of", "stays"),
    [
        pytest.param(STEP, "sha256:1", False, id="of the build"),
        pytest.param(STEP, "app:1", True, id="of a user"),
        pytest.param("9", "sha256:1", True, id="its name is the id of another"),
    ],
)
def test_the_container_of_a_build_step_is_removed(key: str, made_of: str, stays: bool, tmp_path: Path) -> None:
    engine = Engine()
    api: Any = engine
    with transaction.transaction(api, "app", 0.2, print, Interrupts()) as journal:
        engine.there[key] = {"name": STEP[:12], "image": "old", "running": False, "made_of": made_of}
        progress = Progress(print, print, 10, heard=journal.note_step)
        progress.add(
            f"Step 2/3 : RUN x\n ---> Running in {STEP[:12]}\n---> Running in web\nx ---> Running in {'1' * 12}"
        )
        assert transaction.by_hand(journal.entry) == f"docker rm --force {STEP[:12]}"
    assert (key in engine.there, left(tmp_path)) == (stays, [])


def test_one_rebuild_of_an_image_at_a_time() -> None:
    api: Any = Engine()
    said: list[str] = []
    waits = (0.2, said.append, Interrupts())
    with transaction.transaction(api, "app", *waits):
        with pytest.raises(UsageError, match="another rebuild of app:latest is still running"):
            rebuild(api, said)
        with transaction.transaction(api, "other", *waits) as other:
            assert other.entry["image"] == "other:latest"
    assert said == ["Another rebuild of app:latest is running: waiting for it to end"]
    rebuild(api)


@pytest.mark.parametrize(
    ("name", "image"),
    [
        ("app", "app:latest"),
        ("app:1", "app:1"),
        ("docker.io/library/app:1", "app:1"),
        ("r:5000/app", "r:5000/app:latest"),
        ("r:5000/team/app:1", "r:5000/team/app:1"),
    ],
)
def test_the_image_that_is_locked(name: str, image: str) -> None:
    api: Any = Engine()
    with transaction.transaction(api, name, 0.2, print, Interrupts()) as journal:
        assert journal.entry["image"] == image


def test_another_rebuild_is_waited_for_as_long_as_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    api: Any = Engine()
    said: list[str] = []
    now = iter([100.0, 104.0, 110.0, 110.5])
    slept: list[float] = []
    with transaction.transaction(api, "app", 0.2, print, Interrupts()):
        monkeypatch.setattr(transaction, "time", SimpleNamespace(monotonic=lambda: next(now), sleep=slept.append))
        with pytest.raises(UsageError), transaction.transaction(api, "app", 10, said.append, Interrupts()):
            pass
        monkeypatch.undo()
    assert (len(said), len(slept)) == (1, 2)


def test_what_builds_holds_the_lock_after_its_program() -> None:
    api: Any = Engine()
    waits = (0.2, print, Interrupts())
    with transaction.transaction(api, "app", *waits) as journal:
        other = os.fork()
        if other == 0:
            time.sleep(0.4)
            os._exit(0)
        assert journal.lock > 2
    with pytest.raises(UsageError), transaction.transaction(api, "app", *waits):
        pass
    os.waitpid(other, 0)
    with transaction.transaction(api, "app", *waits):
        pass


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_waits_if_it_may_not_interrupt(number: int, request: pytest.FixtureRequest) -> None:
    before = signal.signal(number, signal.SIG_DFL)  # a run that must survive its terminal ignores SIGHUP
    request.addfinalizer(lambda: signal.signal(number, before))
    interrupts = Interrupts()
    done: list[str] = []

    def work() -> None:
        os.kill(os.getpid(), number)
        done.append("held by default")
        with interrupts.allowed():
            done.append("never")

    with pytest.raises(KeyboardInterrupt), interrupts.listening():
        work()
    assert done == ["held by default"]
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_a_signal_interrupts_once_if_it_may() -> None:
    interrupts = Interrupts()
    done: list[str] = []

    def work() -> None:
        try:
            with interrupts.allowed(), interrupts.allowed(False):
                os.kill(os.getpid(), signal.SIGTERM)
                done.append("held")
        finally:
            with interrupts.allowed():
                os.kill(os.getpid(), signal.SIGTERM)
                done.append("what is undone is not interrupted")

    with pytest.raises(KeyboardInterrupt), interrupts.listening():
        work()
    assert done == ["held", "what is undone is not interrupted"]


def test_a_command_is_ended_before_the_rest_is_undone() -> None:
    interrupts = Interrupts()
    progress = Progress(lambda _: os.kill(os.getpid(), signal.SIGTERM), print, 10, interrupts)
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt), interrupts.listening(), interrupts.allowed():
        Command(arguments=("sh", "-c", "echo begun; sleep 60")).run(progress)
    assert time.monotonic() - start < 9


@pytest.mark.parametrize(
    ("entry", "commands"),
    [
        pytest.param({"done": True}, "", id="nothing is left"),
        pytest.param(
            {"done": True, "old": "o 1", "before": "b", "tag": "t", "kept": "k", "command": "up"},
            "docker rm --force 'o 1'; docker rmi t k; up",
            id="done",
        ),
        pytest.param(
            {"old": "o", "new": "n", "spare": "s", "name": "web", "was_running": True, "before": "b", "kept": "k"},
            "docker rm --force n; docker rename o web; docker start web; docker tag b app; docker rmi k",
            id="half done",
        ),
        pytest.param(
            {"old": "o", "spare": "s", "name": "web", "was_running": False},
            "docker rm --force s-new; docker rename o web",
            id="it did not run",
        ),
        pytest.param({"before": "b", "tag": "t"}, "docker tag b app; docker rmi t", id="no container"),
    ],
)
def test_what_is_left_to_do_by_hand(entry: dict[str, Any], commands: str) -> None:
    assert transaction.by_hand({"image": "app", **entry}) == commands


@pytest.mark.parametrize(
    "content", [None, b"{", b"\xff", b'{"schema": "other", "engine": "e"}', b'{"schema": "%s", "engine": "f"}']
)
def test_a_journal_that_is_not_ours_is_left_alone(content: bytes | None, tmp_path: Path) -> None:
    said: list[str] = []
    path = tmp_path / "journal"
    if content is not None:
        path.write_bytes(content.replace(b"%s", transaction.SCHEMA.encode()))
    transaction._settle(None, path, 0, "e", said.append)  # type: ignore[arg-type]
    assert said == []
    assert path.exists() is (content is not None)


def test_the_signals_that_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that end a program, in its main thread, unless whoever started it wants them ignored."""
    handlers: dict[int, Any] = dict.fromkeys((signal.SIGINT, signal.SIGTERM, signal.SIGHUP), "default")
    handlers[signal.SIGHUP] = signal.SIG_IGN

    def put(number: int, handler: Any) -> Any:
        before, handlers[number] = handlers[number], handler
        return before

    monkeypatch.setattr(signal, "getsignal", handlers.__getitem__)
    monkeypatch.setattr(signal, "signal", put)
    found = Interrupts()
    with found.listening():
        during = dict(handlers)
    assert during == {**dict.fromkeys((signal.SIGINT, signal.SIGTERM), found._take), signal.SIGHUP: signal.SIG_IGN}
    assert handlers[signal.SIGINT] == handlers[signal.SIGTERM] == "default"
    thread = threading.Thread(target=lambda: found.listening().__enter__())
    thread.start()
    thread.join()
    assert handlers[signal.SIGTERM] == "default"


def test_an_engine_that_is_away_is_waited_for_as_long_as_it_takes_to_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "journal.json"
    path.write_text("{}")
    now = iter([100.0, 110.0, 130.0, 130.5])
    slept: list[float] = []
    monkeypatch.setattr(transaction, "WAIT_FOR_ENGINE_SECONDS", 30.0)
    monkeypatch.setattr(transaction, "time", SimpleNamespace(monotonic=lambda: next(now), sleep=slept.append))
    api: Any = Engine(0, away=10**9)
    journal = transaction.Journal(path, 0, {"engine": "e", "image": "app", "process": 1})
    with pytest.raises(GpudoctorError, match="the rebuild of app is incomplete"):
        journal.settle(api)
    assert len(slept) == 2
