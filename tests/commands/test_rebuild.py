"""`gpudoctor rebuild` where no engine is: what it does in turn, what it says, and its exit status."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from docker.errors import APIError
from requests import ConnectionError as Refused

from gpudoctor.commands import rebuild as command
from gpudoctor.containers import requested
from gpudoctor.containers.engines import connection
from gpudoctor.containers.rebuild import run, transaction
from gpudoctor.containers.rebuild.container import NotStarted
from gpudoctor.containers.rebuild.run import RebuildPlan, Verdict
from gpudoctor.containers.rebuild.steps import BuildFailed
from gpudoctor.containers.requested import Subject
from gpudoctor.errors import GpudoctorError, UsageError
from gpudoctor.model import ProjectImage

FRESH = Verdict(state="fresh", causes=(), text="image app is up to date")
OLDER = Verdict(state="stale", causes=("container-runs-older-image",), text="image app is stale")
HIDDEN = Verdict(state="stale", causes=("mount-shadows-copy",), text="image app is hidden")
NOTE = "app: the container still uses the old image; add --recreate to replace it"
MOUNT = "app: a mount hides the files of the image, and a rebuild does not change that"


def plan(verdict: Verdict = FRESH, *, builds: bool = False, recreates: bool = False) -> Any:
    subject = Subject(dockerfile=Path("Dockerfile"), context=Path(), image="app", build_arguments={})
    chosen: Any = None
    return RebuildPlan(
        subject=subject,
        image=ProjectImage(image="app", dockerfile="Dockerfile", context="."),
        verdict=verdict,
        chosen=chosen,
        builds=builds,
        recreates=recreates,
    )


class Engine:
    """An engine that is asked in turn; `log` has what for. outcomes: of each execution, by the image."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.api = SimpleNamespace()
        self.plans: dict[str | None, Any] = {"app": plan()}
        self.outcomes: dict[str, Verdict | Exception] = {}
        self.failure: Exception | None = None

    def close(self) -> None:
        self.log.append("close")

    def find_subjects(self, _client: Any, arguments: Mapping[str, Any], _environ: Any) -> tuple[Subject, ...]:
        if self.failure is not None:
            raise self.failure
        wanted = arguments["service"]
        return tuple(replace(p.subject, image=name) for name, p in self.plans.items() if wanted in (None, name))

    def prepare(self, _api: Any, subject: Subject, _asked: Any, _judge: Any, *, recreates: bool) -> Any:
        self.log.append(f"prepare {subject.image}{' recreates' if recreates else ''}")
        return replace(self.plans[subject.image], subject=subject)

    def execute(self, _api: Any, work: RebuildPlan, _progress: Any, _judge: Any, _journal: Any) -> Verdict:
        self.log.append(f"execute {work.name}")
        outcome = self.outcomes.get(work.name, FRESH)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    @contextmanager
    def transaction(self, _api: Any, image: str, *_: Any) -> Iterator[Any]:
        self.log.append(f"begin {image}")
        yield SimpleNamespace(
            lock=3, settle=lambda _api: self.log.append(f"settle {image}"), note_step=lambda _line: None
        )
        self.log.append(f"end {image}")


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Engine:
    engine = Engine()
    monkeypatch.setattr(connection, "connect", lambda _environ, _seconds: engine)
    monkeypatch.setattr(requested, "find_subjects", engine.find_subjects)
    monkeypatch.setattr(run, "named", lambda _api, subject: subject)
    monkeypatch.setattr(run, "prepare", engine.prepare)
    monkeypatch.setattr(run, "execute", engine.execute)
    monkeypatch.setattr(run, "describe", lambda _api, work: [f"docker build {work.name}"])
    monkeypatch.setattr(transaction, "transaction", engine.transaction)
    monkeypatch.setattr(transaction, "settle_interrupted", lambda _api, _say: engine.log.append("look for others"))
    return engine


def status_of(*arguments: str) -> Any:
    with pytest.raises(SystemExit) as ended:
        command.rebuild.main(list(arguments), standalone_mode=False)
    return ended.value.code


@pytest.mark.parametrize(
    ("work", "options", "outcome", "status", "told", "noted"),
    [
        pytest.param(plan(), (), FRESH, 0, "app: nothing is stale", [], id="fresh"),
        pytest.param(plan(OLDER), (), FRESH, 1, OLDER.text, [NOTE], id="the container is asked for"),
        pytest.param(plan(OLDER), ("--recreate",), FRESH, 1, OLDER.text, [], id="it cannot be recreated"),
        pytest.param(plan(HIDDEN), (), FRESH, 1, HIDDEN.text, [MOUNT], id="a mount"),
        pytest.param(plan(OLDER, builds=True), (), FRESH, 0, f"app: rebuilt; {FRESH.text}", [OLDER.text], id="rebuilt"),
        pytest.param(
            plan(OLDER, builds=True), (), OLDER, 1, f"app: rebuilt; {OLDER.text}", [OLDER.text, NOTE], id="still stale"
        ),
        pytest.param(
            plan(OLDER, recreates=True),
            ("--recreate",),
            FRESH,
            0,
            f"app: recreated; {FRESH.text}",
            [OLDER.text],
            id="recreated",
        ),
        pytest.param(
            plan(OLDER, builds=True),
            (),
            BuildFailed("the build failed", ("E: one", "E: two")),
            1,
            "",
            [OLDER.text, "    E: one", "    E: two", "app: the build failed; image and container are as before"],
            id="the build failed",
        ),
        pytest.param(
            plan(OLDER, recreates=True),
            ("--recreate",),
            NotStarted("it does not run"),
            1,
            "",
            [OLDER.text, "app: it does not run; image and container are as before"],
            id="the new container does not run",
        ),
    ],
)
def test_one_image(
    engine: Engine,
    capsys: pytest.CaptureFixture[str],
    work: Any,
    options: tuple[str, ...],
    outcome: Any,
    status: int,
    told: str,
    noted: list[str],
) -> None:
    engine.plans, engine.outcomes = {"app": work}, {"app": outcome}
    assert status_of(*options) == status
    shown = capsys.readouterr()
    assert (shown.out.splitlines(), shown.err.splitlines()) == ([told] if told else [], noted)
    recreates = " recreates" if options else ""
    executed = ["execute app", "settle app"] if work.builds or work.recreates else []
    assert engine.log == ["look for others", "begin app", f"prepare app{recreates}", *executed, "end app", "close"]


def test_one_that_stays_stale_decides_the_exit_status(engine: Engine) -> None:
    engine.plans = {"db": plan(), "app": plan(OLDER), "web": plan()}
    assert status_of() == 1
    assert status_of("db") == 0
    assert status_of("db", "web") == 0
    assert status_of("app", "db") == 1


def test_a_dry_run_prints_commands_and_begins_nothing(engine: Engine, capsys: pytest.CaptureFixture[str]) -> None:
    engine.plans = {"app": plan(OLDER, builds=True), "db": plan()}
    assert status_of("--dry-run") == 0
    assert capsys.readouterr().out == "docker build app\ndocker build db\n"
    assert engine.log == ["prepare app", "prepare db", "close"]


@pytest.mark.parametrize("options", [("--image", "app"), ("--container", "web")])
def test_a_service_is_not_named_twice(engine: Engine, options: tuple[str, ...]) -> None:
    with pytest.raises(UsageError, match="cannot be combined with a service"):
        status_of("app", *options)
    assert status_of(*options) == 0


@pytest.mark.parametrize("failure", [ValueError("no such service"), OSError("no such file")])
def test_what_is_asked_for_is_wrong(engine: Engine, failure: Exception) -> None:
    engine.failure = failure
    with pytest.raises(UsageError, match=str(failure)):
        status_of()


def test_nothing_to_rebuild(engine: Engine) -> None:
    engine.plans = {}
    for services, message in (((), "nothing to rebuild:"), (("app",), "service app has nothing to build:")):
        with pytest.raises(UsageError, match=message):
            status_of(*services)


@pytest.mark.parametrize(
    ("failure", "message"),
    [(APIError("no space left"), "no space left"), (Refused("broken"), "ConnectionError: broken")],
)
def test_an_engine_that_refuses_is_no_bug(engine: Engine, failure: Exception, message: str) -> None:
    engine.failure = failure
    with pytest.raises(GpudoctorError, match=message):
        status_of()
    assert engine.log[-1] == "close"


def test_no_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    def connect(_environ: Any, _seconds: float) -> Any:
        raise connection.EngineUnavailable("no engine found")

    monkeypatch.setattr(connection, "connect", connect)
    with pytest.raises(GpudoctorError, match="no engine found"):
        status_of()
