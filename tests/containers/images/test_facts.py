"""One image beside its plan: when its steps were carried out, and what its layers decide."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gpudoctor.containers.builds.plan import Plan, read_plan
from gpudoctor.containers.comparison import Moment
from gpudoctor.containers.images.facts import ImageFacts
from gpudoctor.containers.images.files import Unreadable
from gpudoctor.model.images import CopiedFiles
from tests.containers.fake_engine import SECONDS, FakeEngine, Tree

COPY, RUN = "COPY code /app # buildkit", "RUN make # buildkit"
SOURCES = {"code/a.py": "a", "code/b.py": "b"}
FILES = {"/app/a.py": "a", "/app/b.py": "b"}


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    write(tmp_path, {"Dockerfile": "FROM scratch\nCOPY code /app\nRUN make\n", **SOURCES})
    return tmp_path


def write(root: Path, texts: Mapping[str, str], seconds: float = SECONDS - 100) -> None:
    for name, text in texts.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
        os.utime(root / name, (seconds, seconds))


def facts_of(root: Path, *, version: str = "1.44", tree: Tree | None = None, **about: Any) -> ImageFacts:
    engine: Any = FakeEngine(version)
    engine.add_image("app:1", **{"tree": FILES if tree is None else tree, "history": [COPY, RUN], **about})
    return ImageFacts(engine, "app:1", read_plan(root / "Dockerfile", root, None, {}))


@pytest.mark.parametrize(
    ("at", "created", "latest"),
    [
        (SECONDS - 50, SECONDS, SECONDS - 49.0),
        (SECONDS, SECONDS + 0.5, SECONDS + 0.5),
        (SECONDS, SECONDS + 1.5, SECONDS + 1.0),
    ],
)
def test_when_a_copy_was_carried_out(root: Path, at: int, created: float, latest: float) -> None:
    found = facts_of(root, history=[(COPY, at), RUN], created=created)
    (copy,) = found.plan.copies
    assert found.moment(copy) == Moment(earliest=float(at), latest=latest, built_at=created)


@pytest.mark.parametrize("history", [[("COPY other /app # buildkit", SECONDS), RUN], [(COPY, 0), RUN], []])
def test_a_history_that_does_not_show_when(root: Path, history: Any) -> None:
    found = facts_of(root, history=history)
    assert found.moment(found.plan.copies[0]) is None


LATER = {"/app/a.py": SECONDS - 10.0}
EARLIER = {"/app/a.py": SECONDS - 99.0}


@pytest.mark.parametrize(
    ("text", "layer", "times", "size", "expected"),
    [
        pytest.param("A", {"/app/a.py": "a"}, LATER, 0, {"changed_later": ("/app/a.py",)}, id="RUN wrote it"),
        pytest.param("A", {"/app/a.py": "A"}, LATER, 0, {"stale": ("code/a.py",)}, id="it was copied so"),
        pytest.param(
            "A", {"/app/a.py": "A"}, EARLIER, 0, {"stale": ("code/a.py",)}, id="it was copied so, as its time says"
        ),
        pytest.param(
            "A", {"/app/a.py": "a"}, EARLIER, 0, {"changed_later": ("/app/a.py",)}, id="the layer has the last word"
        ),
        pytest.param(
            "A", {"/app/a.py": "a"}, EARLIER, 48 << 20, {"changed_later": ("/app/a.py",)}, id="of a middling image"
        ),
        pytest.param(
            "A", {"/app/a.py": "a"}, EARLIER, (48 << 20) + 1, {"stale": ("code/a.py",)}, id="of a large image"
        ),
        pytest.param(None, {"/app/a.py": "a"}, {}, 0, {"changed_later": ("/app/a.py",)}, id="RUN removed it"),
        pytest.param(None, {}, {}, 0, {"missing": ("code/a.py",)}, id="it was not there"),
    ],
)
def test_the_layer_of_a_copy_decides(
    root: Path, text: str | None, layer: Tree, times: dict[str, float], size: int, expected: dict[str, Any]
) -> None:
    tree = {**FILES, **({} if text is None else {"/app/a.py": text})}
    if text is None:
        del tree["/app/a.py"]
    layers = [{"/app/b.py": "b", **layer}, {}]
    history = [(COPY, SECONDS - 50), RUN]
    found = facts_of(root, tree=tree, history=history, times=times, layers=layers, Size=size)
    (item,) = found.instructions()
    item = replace(item, newest_change_at=None, may_be_kept=False)
    assert item == CopiedFiles(line=2, text="COPY code /app", stage="0", compared=2, **expected)


def test_layers_that_cannot_be_read_leave_it_unknown(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unreadable(*_: Any) -> Any:
        raise Unreadable("too slow")

    monkeypatch.setattr("gpudoctor.containers.images.stored_files.read_layers", unreadable)
    write(root, {"code/a.py": "a"}, SECONDS + 5)
    found = facts_of(root, tree={**FILES, "/app/a.py": "A"}, history=[(COPY, SECONDS - 50), RUN], times=LATER)
    assert "1 files may come from another instruction" in found.instructions()[0].unknown


def test_the_same_line_twice_is_distinguished_by_its_place(root: Path) -> None:
    write(root, {"Dockerfile": "FROM scratch\nCOPY code /app\nRUN make\nCOPY code /app\nRUN make\n"})
    tree = {**FILES, "/app/a.py": "A"}
    layers: Sequence[Tree] = [{"/app/a.py": "a"}, {}, {"/app/a.py": "A"}, {}]
    history = [(COPY, SECONDS - 50), RUN, (COPY, SECONDS - 40), RUN]
    found = facts_of(root, tree=tree, history=history, layers=layers, times=LATER).instructions()
    assert [(item.compared, item.stale, item.changed_later) for item in found] == [
        (0, (), ()),
        (2, ("code/a.py",), ()),
    ]


@pytest.mark.parametrize(
    ("base", "own", "expected"),
    [
        pytest.param({}, [COPY, RUN], (), id="built on it"),
        pytest.param(
            {}, ["COPY code /elsewhere # buildkit", RUN], ("COPY code /elsewhere # buildkit",), id="other steps"
        ),
        pytest.param({"RootFS": {"Layers": ["other"]}}, [COPY, RUN], (), id="no longer the same base"),
        pytest.param({"history": ["other"]}, [COPY, RUN], (), id="another history"),
    ],
)
def test_steps_of_the_base_are_not_the_dockerfile_s(root: Path, base: Any, own: list[str], expected: Any) -> None:
    write(root, {"Dockerfile": "FROM python:3\nCOPY code /app\nRUN make\n"})
    engine: Any = FakeEngine()
    engine.add_image("python:3", **{"history": ["base"], "RootFS": {"Layers": ["below"]}, **base})
    engine.add_image("app:1", tree=FILES, history=["base", *own], RootFS={"Layers": ["below", "own"]})
    found = ImageFacts(engine, "app:1", read_plan(root / "Dockerfile", root, None, {}))
    assert (found.fit.additional, bool(found.fit.differing)) == (expected, bool(expected))
    assert found.by_buildkit is True


@pytest.mark.parametrize(
    ("version", "history", "kind"),
    [
        ("1.44", [COPY, RUN], "plan"),
        ("1.42", [COPY, RUN], "plan"),
        ("1.41", [COPY, RUN], "by_old_buildkit"),
        ("1.9", [COPY, RUN], "by_old_buildkit"),
        ("1.44", ["/bin/sh -c #(nop) COPY dir:1 in /app ", "/bin/sh -c make"], "by_classic_builder"),
        ("1.41", ["/bin/sh -c #(nop) COPY dir:1 in /app ", "/bin/sh -c make"], "by_classic_builder"),
        ("1.44", [], "plan"),
    ],
)
def test_a_plan_is_that_of_the_builder(
    root: Path, version: str, history: list[str], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []

    def noted(self: Plan, name: str) -> Plan:
        read.append(name)
        return self

    for name in ("by_classic_builder", "by_old_buildkit"):
        monkeypatch.setattr(Plan, name, property(partial(noted, name=name)))
    found = facts_of(root, version=version, history=history)
    assert read == ([] if kind == "plan" else [kind])
    assert found.by_buildkit is (history == [COPY, RUN])


@pytest.mark.parametrize("destination", ["/app/a.py", "/app"])
def test_links_at_the_place_of_a_copied_file_are_followed(root: Path, destination: str) -> None:
    write(root, {"Dockerfile": f"FROM scratch\nCOPY code/a.py {destination}\n"})
    tree = {destination: "-> /there/first", "/there/first": "-> second", "/there/second": "A"}
    found = facts_of(root, tree=tree, history=[f"COPY code/a.py {destination} # buildkit"]).instructions()
    assert [(item.stale, item.missing) for item in found] == [(("code/a.py",), ())]


STAGES = "FROM {base} AS made\nCOPY code /app\n{run}FROM scratch\nCOPY --from=made /app /app\n"
TAKEN = "COPY /app /app # buildkit"


@pytest.mark.parametrize(
    ("base", "tree", "extra"),
    [
        pytest.param("scratch", {}, ("/app/old.py",), id="nothing else brings it"),
        pytest.param("tools:1", {"/app/old.py": "o"}, (), id="the base of the stage brings it"),
        pytest.param("tools:1", {"/app/x.py": "o"}, ("/app/old.py",), id="the base brings another file"),
        pytest.param("gone:1", {}, (), id="nobody knows the base"),
    ],
)
def test_files_that_no_copy_brings(root: Path, base: str, tree: Tree, extra: tuple[str, ...]) -> None:
    write(root, {"Dockerfile": STAGES.format(base=base, run="")})
    engine: Any = FakeEngine()
    engine.add_image("tools:1", tree=tree, created=SECONDS - 900)
    old = {**FILES, "/app/old.py": "o"}
    times = {"/app/old.py": SECONDS - 500.0}
    engine.add_image("app:1", tree=old, history=[(TAKEN, SECONDS - 50)], times=times, layers=[old])
    found = ImageFacts(engine, "app:1", read_plan(root / "Dockerfile", root, None, {})).instructions()
    assert [item.extra for item in found] == [extra]


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, ""),
        ({"code/a.py": "a"}, "code/a.py"),
        ({"code/a.py": "a", "Dockerfile": ""}, "code/a.py, the Dockerfile"),
        ({"Dockerfile": ""}, "the Dockerfile"),
        ({"code/a.py": "a", "code/b.py": "b", "Dockerfile": ""}, ""),
    ],
)
def test_what_changed_after_the_build_and_is_not_in_the_image_as_it_is(
    root: Path, changed: dict[str, str], expected: str
) -> None:
    text = "FROM scratch AS made\nCOPY code /src\nRUN make\nFROM scratch\nCOPY --from=made /out /out\n"
    write(root, {"Dockerfile": text})
    write(root, {name: text if name == "Dockerfile" else content for name, content in changed.items()}, SECONDS + 5)
    found = facts_of(root, tree={"/out/x": "x"}, history=[("COPY /out /out # buildkit", SECONDS - 50)]).instructions()
    doubt = f"{expected} changed after the build, and the image has only what was built from it"
    assert [item.unknown for item in found if item.line == 5] == [doubt if expected else ""]


def test_only_a_few_changed_files_are_named(root: Path) -> None:
    write(
        root,
        {"Dockerfile": "FROM scratch AS made\nCOPY code /src\nRUN make\nFROM scratch\nCOPY --from=made /out /out\n"},
    )
    write(root, {f"code/{name}.py": name for name in "cdef"}, SECONDS + 5)
    found = facts_of(root, tree={"/out/x": "x"}, history=[("COPY /out /out # buildkit", SECONDS - 50)]).instructions()
    assert found[-1].unknown.startswith("code/c.py, code/d.py, code/e.py changed after the build")


@pytest.mark.parametrize(
    ("base", "told"),
    [
        pytest.param("scratch", 0, id="nothing"),
        pytest.param("Scratch", 0, id="nothing, in capitals"),
        pytest.param("base:1", 1, id="the image it was built on"),
        pytest.param("newer:1", None, id="its tag was moved"),
        pytest.param("other:1", None, id="the same layers after another history"),
        pytest.param("gone:1", None, id="not there"),
    ],
)
def test_what_stood_below_the_first_instruction(root: Path, base: str, told: int | None) -> None:
    engine: Any = FakeEngine()
    layers = {"RootFS": {"Layers": ["one"]}}
    engine.add_image("base:1", history=["ADD file:1 in / "], **layers)
    engine.add_image("other:1", history=["ADD file:2 in / "], **layers)
    engine.add_image("newer:1", history=["ADD file:1 in / "], RootFS={"Layers": ["two"]})
    engine.add_image("app:1", tree=FILES, history=["ADD file:1 in / ", COPY, RUN], RootFS={"Layers": ["one", "x"]})
    found = ImageFacts(engine, "app:1", read_plan(root / "Dockerfile", root, None, {}))
    bases = {name: engine.inspect_image(name) for name in ("base:1", "newer:1", "other:1")}
    vars(found)["bases"] = bases
    below = found._below(base)
    assert (None if below is None else len(below)) == told


@pytest.mark.parametrize(
    ("changes", "is_doubted"),
    [({}, True), ({"stale": ("x",)}, False), ({"missing": ("x",)}, False), ({"extra": ("/x",)}, False)],
)
def test_only_a_copy_without_a_difference_of_its_own_is_doubted(
    root: Path, changes: dict[str, Any], is_doubted: bool
) -> None:
    item = CopiedFiles(line=2, text="COPY code /app", stage="0", **changes)
    look: Any = SimpleNamespace(changed_unseen=lambda at, seen: ("code/a.py",), traced=SimpleNamespace(inputs=()))
    found = facts_of(root, tree=FILES, history=[COPY])._with_doubt(item, look, frozenset())
    doubt = "code/a.py changed after the build, and the image has only what was built from it"
    assert found == replace(item, unknown=doubt if is_doubted else "")
