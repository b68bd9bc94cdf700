"""What is reported about an image and its container, with a stand-in for the engine."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpudoctor.containers import running
from gpudoctor.containers.builds.plan import read_plan
from gpudoctor.containers.images import facts, other_images
from gpudoctor.containers.packages import shadowing
from gpudoctor.containers.project_images import UNTOLD, look_at_image
from gpudoctor.containers.running import look_at_container
from gpudoctor.model.images import CopiedFiles, Mounted, ProjectImage, RunningContainer
from tests.containers.fake_engine import SECONDS, FakeEngine, Tree, time_of

__all__ = ["facts", "look_at_container", "other_images", "shadowing"]  # what is looked through
FILES = {"/app/a.py": "a", "/app/pkg/b.py": "b"}
COPY = "COPY code /app # buildkit"
DOCKERFILE = "FROM scratch\nCOPY code /app\n"
COPIED = CopiedFiles(line=2, text="COPY code /app", stage="0", compared=2)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a project whose files were written before the image was built."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    write(tmp_path, {"Dockerfile": DOCKERFILE, "code/a.py": "a", "code/pkg/b.py": "b"}, SECONDS - 100)
    return tmp_path


def write(root: Path, texts: Mapping[str, str], seconds: float = SECONDS - 100) -> None:
    for name, text in texts.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
        os.utime(root / name, (seconds, seconds))


def look(
    engine: FakeEngine, root: Path, image: str = "app:1", container: str | None = None, **given: Any
) -> ProjectImage:
    plan = read_plan(root / "Dockerfile", root, given.pop("target", None), given)
    return look_at_image(engine, image, plan, container, service="web")  # type: ignore[arg-type]  # all that it asks


def told(identity: str, **changes: Any) -> ProjectImage:
    known = ProjectImage(
        image="app:1", service="web", image_id=identity, built_at=SECONDS, by_buildkit=True, differing_lines=(),
        base="scratch", instructions=(COPIED,),
    )  # fmt: skip
    return replace(known, **changes)


def test_an_image_with_the_files_of_the_context(root: Path) -> None:
    engine = FakeEngine()
    identity = engine.add_image("app:1", tree=FILES, history=[COPY])
    assert look(engine, root) == told(identity)


@pytest.mark.parametrize(
    ("tree", "changes"),
    [
        ({"/app/a.py": "A", "/app/pkg/b.py": "b"}, {"stale": ("code/a.py",)}),
        ({"/app/a.py": "a"}, {"missing": ("code/pkg/b.py",)}),
        ({"/app/pkg/b.py": "bb"}, {"missing": ("code/a.py",), "stale": ("code/pkg/b.py",)}),
    ],
)
def test_an_image_with_other_files(root: Path, tree: Tree, changes: dict[str, Any]) -> None:
    engine = FakeEngine()
    identity = engine.add_image("app:1", tree=tree, history=[COPY])
    engine.add_image("app:2", tree=FILES, history=[COPY], created=SECONDS + 1)
    engine.add_image("app:3", tree={}, history=[COPY], created=SECONDS + 2)
    write(root, {"code/a.py": "a", "code/pkg/b.py": "b"}, SECONDS + 5)
    found = look(engine, root)
    changed = replace(COPIED, newest_change_at=SECONDS + 5, **changes)
    assert found == told(identity, instructions=(changed,), fresh_tags=("app:2",))


def test_an_image_without_a_history_has_no_lines_to_compare(root: Path) -> None:
    engine = FakeEngine()
    identity = engine.add_image("app:1", tree=FILES)
    unknown = {"by_buildkit": None, "differing_lines": None, "unknown": UNTOLD}
    assert look(engine, root) == told(identity, **unknown)


@pytest.mark.parametrize(
    ("history", "by_buildkit", "changes"),
    [
        ([COPY, ("RUN make # buildkit", SECONDS)], True, {"additional_steps": ("RUN make # buildkit",)}),
        (["/bin/sh -c #(nop) COPY dir:1 in /app "], False, {}),
        (
            ["COPY other /app # buildkit"],
            True,
            {"differing_lines": (2,), "additional_steps": ("COPY other /app # buildkit",)},
        ),
    ],
)
def test_an_image_of_other_steps(root: Path, history: Any, by_buildkit: bool, changes: dict[str, Any]) -> None:
    engine = FakeEngine()
    identity = engine.add_image("app:1", tree=FILES, history=history)
    found = look(engine, root)
    assert replace(found, instructions=()) == told(identity, by_buildkit=by_buildkit, instructions=(), **changes)


@pytest.mark.parametrize(
    ("image", "container", "unknown"),
    [
        ("app:9", None, "there is no image app:9: it has not been built"),
        ("app:1", "web", "there is no container web"),
    ],
)
def test_what_is_not_there(root: Path, image: str, container: str | None, unknown: str) -> None:
    engine = FakeEngine()
    engine.add_image("app:1", tree=FILES, history=[COPY])
    assert look(engine, root, image, container) == ProjectImage(image=image, service="web", unknown=unknown)


def test_an_engine_that_fails(root: Path) -> None:
    engine = FakeEngine()
    engine.add_image("app:1", tree=FILES, history=[COPY])
    engine.history = lambda identity: int("no")  # type: ignore[method-assign,assignment,return-value]
    unknown = "ValueError: invalid literal for int() with base 10: 'no'"
    assert look(engine, root) == ProjectImage(image="app:1", service="web", unknown=unknown)


RUNNING = RunningContainer(name="web", image_id="", is_running=True, started_at=SECONDS + 50, keeps_code=True)


def with_container(root: Path, tree: Tree | None = None, changes: Any = (), **about: Any) -> RunningContainer:
    """Return what is reported about a container whose image holds the files of the context."""
    engine = FakeEngine()
    identity = engine.add_image("app:1", tree=FILES, history=[COPY])
    container = engine.add_container("web", identity, tree, **about)
    engine.changes[container] = [{"Path": path, "Kind": kind} for path, kind in changes]
    found = look(engine, root, container="web")
    assert replace(found, container=None) == told(identity)
    assert found.container is not None
    assert found.container.image_id == identity
    assert all(removed != container for removed in engine.removed)
    return replace(found.container, image_id="")


@pytest.mark.parametrize(
    ("about", "expected"),
    [
        ({}, {}),
        ({"State": {"Running": False, "StartedAt": ""}}, {"is_running": False, "started_at": None}),
        ({"State": {"StartedAt": "0001-01-01T00:00:00Z"}}, {"is_running": False, "started_at": None}),
        ({"State": None}, {"is_running": False, "started_at": None}),
        ({"Path": "uvicorn", "Args": ["app:app", "--reload"]}, {"keeps_code": False}),
        ({"Path": "bash", "Args": None}, {"keeps_code": False}),
    ],
)
def test_a_container(root: Path, about: dict[str, Any], expected: dict[str, Any]) -> None:
    assert with_container(root, **about) == replace(RUNNING, **expected)


@pytest.mark.parametrize(
    ("tree", "changes", "modified"),
    [
        ({**FILES, "/app/a.py": "A"}, [("/app/a.py", 0)], ("/app/a.py",)),
        ({**FILES, "/app/a.py": "longer"}, [("/app/a.py", 0)], ("/app/a.py",)),
        ({**FILES, "/app/a.py": "A"}, [("/app/a.py", 1)], ("/app/a.py",)),
        (FILES, [("/app", 0), ("/app/a.py", 0)], ()),
        ({"/app/a.py": "a"}, [("/app/pkg", 2)], ("/app/pkg/b.py",)),
        ({"/app/a.py": "a"}, [("/app/pkg", 0)], ()),
        ({"/app/a.py": "a"}, [("/app/pkg", 1)], ()),
        ({**FILES, "/app/new.py": "n"}, [("/app/new.py", 1)], ()),
        ({}, [("/app/pkg/b.py", 2), ("/app/a.py", 2)], ("/app/a.py", "/app/pkg/b.py")),
    ],
)
def test_files_that_were_changed_inside(root: Path, tree: Tree, changes: Any, modified: tuple[str, ...]) -> None:
    assert with_container(root, tree, changes) == replace(RUNNING, modified=modified)


def mount(destination: str, source: Path | str, kind: str = "bind") -> dict[str, str]:
    return {"Type": kind, "Source": str(source), "Destination": destination}


def test_a_mount_of_the_context(root: Path) -> None:
    write(root, {"code/a.py": "a"}, SECONDS + 3)
    write(root, {"code/pkg/test_b.py": ""}, SECONDS + 9)
    write(root, {"code/a.txt": ""}, SECONDS + 8)
    (root / ".dockerignore").write_text("**/test_*\n*/*.txt\n", encoding="utf-8")
    engine = FakeEngine()
    identity = engine.add_image("app:1", tree=FILES, history=[COPY])
    engine.add_container("web", identity, Mounts=[mount("/app/", root / "code")], Args=["-m", "unknown.to.us"])
    shown = Mounted(
        destination="/app",
        current=("code/a.py", "code/pkg/b.py"),
        is_context=True,
        newest_change_at=SECONDS + 3,
        newest_code=str(root / "code/a.py"),
    )
    found = look(engine, root, container="web")
    assert found.container == replace(RUNNING, image_id=identity, mounts=(shown,))
    ignored = ("code/a.txt", "code/pkg/test_b.py")
    assert replace(found, container=None) == told(identity, instructions=(replace(COPIED, ignored=ignored),))


@pytest.mark.parametrize(
    ("tree", "mounts", "shown"),
    [
        pytest.param(
            {"/app/a.py": "A"},
            [mount("/app", "/v", "volume")],
            [Mounted(destination="/app", stale=("code/a.py",), missing=("code/pkg/b.py",))],
            id="old and no files",
        ),
        pytest.param(
            {"/app/a.py": "a", "/app/pkg/b.py": "B"},
            [mount("/app", "/v", "volume"), mount("/app/pkg", "/w", "volume")],
            [
                Mounted(destination="/app", current=("code/a.py",)),
                Mounted(destination="/app/pkg", stale=("code/pkg/b.py",)),
            ],
            id="one in the other",
        ),
        pytest.param(FILES, [mount("/data", "/v", "volume")], [], id="over nothing"),
        pytest.param(FILES, [mount("/data", "/elsewhere")], [], id="a folder of the host over nothing"),
        pytest.param(FILES, [mount("/app", "/pipe", "npipe")], [], id="of another kind"),
    ],
)
def test_mounts_over_copied_files(root: Path, tree: Tree, mounts: list[Any], shown: list[Mounted]) -> None:
    assert with_container(root, tree, Mounts=mounts) == replace(RUNNING, mounts=tuple(shown))


def test_the_context_mounted_where_nothing_was_copied(root: Path) -> None:
    shown = with_container(root, Mounts=[mount("/src", root)], Args=["-m", "unknown.to.us"]).mounts
    newest = max((root / "code").rglob("*.py"), key=str)
    assert shown == (
        Mounted(destination="/src", is_context=True, newest_change_at=SECONDS - 100, newest_code=str(newest)),
    )


def test_a_change_below_a_mount_is_not_one_of_the_container(root: Path) -> None:
    changes = [("/app/pkg/b.py", 0), ("/app/a.py", 0)]
    found = with_container(root, {"/app/a.py": "A", "/app/pkg/b.py": "B"}, changes, Mounts=[mount("/app/pkg", "/v")])
    assert found.modified == ("/app/a.py",)
    assert found.mounts == (Mounted(destination="/app/pkg", stale=("code/pkg/b.py",)),)


def test_what_the_image_has_otherwise_itself_is_no_work_of_a_mount(root: Path) -> None:
    """The image is old, and the mount shows what the image has."""
    engine = FakeEngine()
    identity = engine.add_image("app:1", tree={**FILES, "/app/a.py": "A"}, history=[COPY])
    engine.add_container("web", identity, Mounts=[mount("/app", "/v", "volume")])
    container = look(engine, root, container="web").container
    assert container is not None
    assert container.mounts == (Mounted(destination="/app", current=("code/a.py", "code/pkg/b.py")),)


@pytest.mark.parametrize("layers", [["shared"], ["own"]])
@pytest.mark.parametrize("line", [COPY, "COPY other /app # buildkit"])
def test_a_container_of_another_image(root: Path, layers: list[str], line: str) -> None:
    engine = FakeEngine()
    old = engine.add_image(tree={}, history=[line], RootFS={"Layers": layers})
    new = engine.add_image("app:1", tree=FILES, history=[COPY], RootFS={"Layers": ["shared"]})
    engine.add_container("web", old)
    missing = replace(COPIED, missing=("code/a.py", "code/pkg/b.py"))
    found = look(engine, root, container="web")
    older = tuple(replace(item, newest_change_at=None) for item in found.container_instructions)
    assert older == (() if layers == ["shared"] else (missing,))
    container = replace(RUNNING, image_id=old)
    assert replace(found, container_instructions=()) == told(new, container=container, container_fits=line == COPY)


def test_a_container_of_another_image_fits_as_well_as_one_that_does_not(root: Path) -> None:
    engine = FakeEngine()
    old = engine.add_image(tree=FILES, history=["COPY other /app # buildkit"])
    engine.add_image("app:1", tree=FILES, history=["COPY third /app # buildkit"])
    engine.add_container("web", old)
    assert look(engine, root, container="web").container_fits is True


@pytest.mark.parametrize(
    ("tree", "created", "about", "expected"),
    [
        pytest.param({**FILES, "/app/a.py": "A"}, 40, {}, {"stale": ("code/a.py",)}, id="stale"),
        pytest.param({"/app/a.py": "a"}, 40, {}, {"missing": ("code/pkg/b.py",)}, id="missing"),
        pytest.param(FILES, 40, {}, None, id="made after the image"),
        pytest.param(FILES, 0, {}, None, id="made with the image"),
        pytest.param(FILES, -1, {}, "", id="made before the image"),
        pytest.param({**FILES, "/app/a.py": "A"}, 40, {"Mounts": [mount("/app", "/v")]}, None, id="below a mount"),
    ],
)
def test_a_container_whose_image_is_gone(
    root: Path, tree: Tree, created: float, about: dict[str, Any], expected: Any
) -> None:
    engine = FakeEngine()
    old = engine.add_image(history=[COPY])
    new = engine.add_image("app:1", tree=FILES, history=[COPY])
    engine.add_container("web", old, tree, Created=time_of(SECONDS + created), **about)
    engine.lose_image(old)
    found = replace(look(engine, root, container="web"), container=None)
    if isinstance(expected, dict):
        assert found == told(new, container_instructions=(replace(COPIED, **expected),))
    else:
        assert replace(found, unknown="") == told(new)
        assert ("may be another one" in found.unknown) is (expected == "")


@pytest.mark.parametrize(
    ("base", "expected"),
    [
        ({}, {"base_moved": False}),
        ({"RootFS": {"Layers": ["other"]}}, {"base_moved": False}),
        ({"RootFS": {"Layers": ["other"]}, "created": SECONDS + 9}, {"base_moved": True}),
        ({"RootFS": {"Layers": ["other"]}, "created": SECONDS + 9, "Os": "windows"}, {"base_moved": None}),
        ({"RootFS": {"Layers": ["other"]}, "created": SECONDS}, {"base_moved": False}),
    ],
)
def test_the_base(root: Path, base: dict[str, Any], expected: dict[str, Any]) -> None:
    write(root, {"Dockerfile": "FROM python:3\nCOPY code /app\n"})
    engine = FakeEngine()
    engine.add_image("python:3", **{"RootFS": {"Layers": ["below"]}, "created": SECONDS - 9, **base})
    identity = engine.add_image("app:1", tree=FILES, history=[COPY], RootFS={"Layers": ["below", "own"]})
    assert look(engine, root) == told(identity, base="python:3", **expected)


@pytest.mark.parametrize(
    ("created", "given", "changes"),
    [
        (
            SECONDS - 9,
            {},
            {"base_moved": None, "differing_arguments": ("FROM: built on python:2 instead of python:3",)},
        ),
        (SECONDS + 9, {}, {"base_moved": True}),
        (
            SECONDS + 9,
            {"V": "3"},
            {"base_moved": None, "differing_arguments": ("FROM: built on python:2 instead of python:3",)},
        ),
    ],
)
def test_a_base_of_another_name(root: Path, created: int, given: dict[str, str], changes: dict[str, Any]) -> None:
    write(root, {"Dockerfile": "ARG V=3\nFROM python:$V\nCOPY code /app\n"})
    engine = FakeEngine()
    engine.add_image("python:2", history=["base"], RootFS={"Layers": ["below"]}, created=SECONDS - 9)
    engine.add_image("python:3", history=["other base"], RootFS={"Layers": ["other"]}, created=created)
    identity = engine.add_image("app:1", tree=FILES, history=["base", COPY], RootFS={"Layers": ["below", "own"]})
    copied = replace(COPIED, line=3)
    assert look(engine, root, **given) == told(identity, base="python:3", instructions=(copied,), **changes)


SITE = "/usr/local/lib/python3.12/site-packages"


@pytest.mark.parametrize(
    ("installed", "unmet"),
    [
        pytest.param({"numpy": "2.0", "six": "1.16.0"}, True, id="another version"),
        pytest.param({"numpy": "2.0", "six": "1.17.0"}, False, id="installed"),
        pytest.param({}, False, id="no Python is known"),
    ],
)
def test_requirements_are_compared_with_the_python_of_the_image(
    root: Path, installed: dict[str, str], unmet: bool
) -> None:
    text = "FROM scratch\nCOPY requirements.txt /r.txt\n"  # so that the packages are those of the base
    write(root, {"Dockerfile": text, "requirements.txt": "numpy==2.0\nsix==1.17.0\n"})
    engine = FakeEngine()
    history = ["COPY requirements.txt /r.txt # buildkit"]
    metadata = {
        f"{SITE}/{name}-{version}.dist-info/METADATA": f"Name: {name}\nVersion: {version}\n"
        for name, version in installed.items()
    }
    engine.add_image("app:1", tree={"/r.txt": "of another time", **metadata}, history=history)
    assert bool(look(engine, root).unmet_requirements) is unmet


@pytest.mark.parametrize(
    ("container", "version"), [(None, "1.1"), ("web", "1.2")], ids=["of the image", "of the container"]
)
def test_the_python_that_is_first_on_path_counts(root: Path, container: str | None, version: str) -> None:
    write(
        root,
        {"Dockerfile": "FROM scratch\nCOPY r.txt requirements.txt /\n", "r.txt": "", "requirements.txt": "six==2\n"},
    )
    places = {"1.0": "/usr/local", "1.1": "/one", "1.2": "/two"}
    tree = {
        f"{place}/lib/python3.12/site-packages/six-{number}.dist-info/METADATA": f"Name: six\nVersion: {number}\n"
        for number, place in places.items()
    }
    tree |= {f"{place}/bin/python": "" for place in places.values()} | {"/requirements.txt": "of another time"}
    configs = [{"Env": [f"PATH={place}/bin:/usr/local/bin"], "Image": "app:1"} for place in ("/one", "/two")]
    engine = FakeEngine()
    identity = engine.add_image(
        "app:1", tree=tree, history=["COPY r.txt requirements.txt / # buildkit"], Config=configs[0]
    )
    engine.add_container("web", identity, Config=configs[1])
    found = look(engine, root, container=container).unmet_requirements
    assert [item.installed for item in found] == [version]


@pytest.mark.parametrize(("linked", "files", "is_context"), [(1, 3, False), (2, 3, True), (1, 4, False), (2, 4, True)])
def test_a_mount_is_the_context_if_half_of_the_files_are(root: Path, linked: int, files: int, is_context: bool) -> None:
    shutil.rmtree(root / "code")
    names = [f"{number}.py" for number in range(files)]
    write(root, {f"code/{name}": name for name in names})
    write(root, {f"other/{name}": name for name in names[linked:]})
    for name in names[:linked]:
        (root / "other").mkdir(exist_ok=True)
        (root / "other" / name).hardlink_to(root / "code" / name)
    tree = {f"/app/{name}": name for name in names}
    engine = FakeEngine()
    identity = engine.add_image("app:1", tree=tree, history=[COPY])
    container = engine.add_container("web", identity, Mounts=[mount("/app", root / "other")])
    found = look(engine, root, container=container).container
    assert found is not None
    assert (found.name, [each.is_context for each in found.mounts]) == ("web", [is_context])


@pytest.mark.parametrize(("path", "keeps"), [("sleep", False), ("python", True)])
def test_a_container_that_waits_has_read_no_source(root: Path, path: str, keeps: bool) -> None:
    assert with_container(root, Path=path, Args=["infinity"]).keeps_code is keeps


@pytest.mark.parametrize(
    ("state", "pid"), [({"Running": True, "Pid": 77}, 77), ({"Running": False, "Pid": 0}, 0), ({"Running": False}, 0)]
)
def test_the_process_whose_mounts_are_looked_at(
    root: Path, state: dict[str, Any], pid: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    monkeypatch.setattr(running, "_is_deleted", lambda pid, destination: seen.append(pid))
    engine = FakeEngine()
    identity = engine.add_image("app:1", tree=FILES, history=[COPY])
    mounts = [mount("/app/a.py", root / "code/a.py")]
    engine.add_container("web", identity, State={"StartedAt": "", **state}, Mounts=mounts)
    look(engine, root, container="web")
    assert seen == [pid]
