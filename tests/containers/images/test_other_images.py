"""Other tags of the same project that hold the files of the context."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from docker.errors import NotFound

from gpudoctor.containers.builds.plan import Plan, read_plan
from gpudoctor.containers.images import other_images
from gpudoctor.containers.images.facts import ImageFacts
from gpudoctor.containers.images.other_images import (
    MAXIMUM_COMPARED,
    MAXIMUM_HISTORIES,
    fresh_tags,
    moved_sources,
    tags_of_plan,
)
from gpudoctor.model.images import CopiedFiles
from tests.containers.fake_engine import SECONDS, FakeEngine

MINE, ANOTHERS = "COPY code /app # buildkit", "RUN something else # buildkit"
GONE = "sha256:404"
FRESH = CopiedFiles(line=2, text="COPY code /app", stage="0", compared=3)


class Api:
    """An engine with images, of which some are removed while they are looked at."""

    def __init__(self, images: list[dict[str, Any]], removed: str = "") -> None:
        self._images = images
        self._removed = removed
        self.asked: list[str] = []

    def images(self) -> list[dict[str, Any]]:
        return self._images

    def history(self, image_id: str) -> list[dict[str, Any]]:
        self.asked.append(image_id)
        if image_id == self._removed:
            raise NotFound("no such image")
        line = next(image["line"] for image in self._images if image["Id"] == image_id)
        return [{"CreatedBy": line, "Created": 1, "Comment": "buildkit.dockerfile.v0"}]


def image(number: int, *tags: str, line: str = MINE) -> dict[str, Any]:
    """Return an image; the higher its number, the newer."""
    return {"Id": f"sha256:{number}", "Created": number, "RepoTags": list(tags) or None, "line": line}


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    (tmp_path / "code").mkdir()
    (tmp_path / "Dockerfile").write_text("FROM scratch\nCOPY code /app\n")
    return read_plan(tmp_path / "Dockerfile", tmp_path, None, {})


@pytest.fixture
def contents(monkeypatch: pytest.MonkeyPatch) -> dict[str, CopiedFiles]:
    """Return what the images hold, by their ids: the files of the context, where nothing else is put in."""
    held: dict[str, CopiedFiles] = {}

    def facts(api: object, image_id: str, plan: Plan) -> SimpleNamespace:
        if image_id == GONE:
            raise NotFound("no such image")
        return SimpleNamespace(instructions=lambda: (held.get(image_id, FRESH),))

    monkeypatch.setattr(other_images, "ImageFacts", facts)
    return held


def fresh(api: Api, plan: Plan) -> tuple[str, ...]:
    return fresh_tags(api, SimpleNamespace(id="sha256:1", plan=plan))  # type: ignore[arg-type]  # all that it asks of them


def test_newer_builds_come_first_with_all_their_tags(plan: Plan, contents: dict[str, CopiedFiles]) -> None:
    api = Api([image(1, "app:old"), image(2, "app:dev"), image(3, "app:new", "app:latest")])
    assert fresh(api, plan) == ("app:new", "app:latest", "app:dev")


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(image(2, "web:1", line=ANOTHERS), id="of another Dockerfile"),
        pytest.param(image(2), id="without a tag"),
        pytest.param(image(2, "<none>:<none>"), id="without a tag, in the words of older engines"),
        pytest.param(image(1, "app:alias"), id="the stale image itself, under another tag"),
    ],
)
def test_what_is_no_other_build_of_the_project(
    plan: Plan, contents: dict[str, CopiedFiles], other: dict[str, Any]
) -> None:
    assert fresh(Api([other]), plan) == ()


@pytest.mark.parametrize(
    "held",
    [
        pytest.param(replace(FRESH, stale=("code/a.py",)), id="stale too"),
        pytest.param(replace(FRESH, missing=("code/a.py",)), id="without a file"),
        pytest.param(replace(FRESH, extra=("/app/b.py",)), id="with a file that is gone"),
        pytest.param(replace(FRESH, unknown="the archive is broken"), id="not compared"),
        pytest.param(replace(FRESH, compared=0), id="nothing to compare"),
    ],
)
def test_what_does_not_hold_the_files_of_the_context(
    plan: Plan, contents: dict[str, CopiedFiles], held: CopiedFiles
) -> None:
    contents["sha256:2"] = held
    assert fresh(Api([image(2, "app:dev"), image(3, "app:new")]), plan) == ("app:new",)


def test_an_image_that_is_removed_meanwhile_is_passed_over(plan: Plan, contents: dict[str, CopiedFiles]) -> None:
    assert fresh(Api([image(2, "app:dev"), image(3, "app:new")], removed="sha256:3"), plan) == ("app:dev",)


def test_the_images_of_a_dockerfile(plan: Plan) -> None:
    images = [image(2, "app:old"), image(3, "app:new"), image(4, "web:1", line=ANOTHERS), image(1, "twin:1")]
    assert tags_of_plan(Api(images), plan) == ("app:new", "twin:1")  # type: ignore[arg-type]  # all that it asks of them


def test_an_image_that_is_removed_before_it_is_compared(plan: Plan, contents: dict[str, CopiedFiles]) -> None:
    assert fresh(Api([image(2, "app:dev"), image(404, "app:gone")]), plan) == ("app:dev",)


def test_only_so_many_are_compared(plan: Plan, contents: dict[str, CopiedFiles]) -> None:
    api = Api([image(number, f"app:{number}") for number in range(2, 20)])
    assert len(fresh(api, plan)) == MAXIMUM_COMPARED
    assert len(api.asked) == MAXIMUM_COMPARED, "no further image is asked for its history"


def test_only_the_newest_are_asked_for_their_history(plan: Plan, contents: dict[str, CopiedFiles]) -> None:
    api = Api([image(number, f"web:{number}", line=ANOTHERS) for number in range(2, 100)] + [image(0, "app:0")])
    assert fresh(api, plan) == ()
    assert api.asked == [f"sha256:{number}" for number in range(99, 99 - MAXIMUM_HISTORIES, -1)]


TOOLS = {"/bin/a": "a", "/bin/sub/b": "b"}
TAKEN = {f"/tools{path.removeprefix('/bin')}": text for path, text in TOOLS.items()}
FROM_TOOLS = "COPY --from=tools:1 /bin/ /tools/"
BY_STAGE = "FROM tools:1 AS more\n{}FROM scratch\nCOPY --from=more /bin /tools\n"


def moved(
    folder: Path, monkeypatch: pytest.MonkeyPatch, text: str, tools: Mapping[str, str] | None, created: float = 9
) -> tuple[str, ...]:
    """Return the images out of which other files would come, of an image of `text` that has TAKEN."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
    text = text if text.startswith("FROM") else f"FROM scratch\n{text}\n"
    (folder / "Dockerfile").write_text(text)
    engine: Any = FakeEngine()
    if tools is not None:
        engine.add_image("tools:1", tree=tools, created=SECONDS + created)
    lines = text.rpartition("FROM scratch\n")[2].splitlines()
    engine.add_image("app:1", tree=TAKEN, history=[f"{line} # buildkit" for line in lines])
    facts = ImageFacts(engine, "app:1", read_plan(folder / "Dockerfile", folder, None, {}))
    return moved_sources(engine, facts)


OTHER = {**TOOLS, "/bin/sub/b": "B"}


@pytest.mark.parametrize(
    ("text", "tools", "created", "found"),
    [
        pytest.param(FROM_TOOLS, OTHER, 9, True, id="another file"),
        pytest.param(FROM_TOOLS, {**TOOLS, "/bin/new": "n"}, 9, True, id="a new file"),
        pytest.param(FROM_TOOLS, {**TOOLS, "/bin/sub/b": "-> a"}, 9, True, id="a link"),
        pytest.param(FROM_TOOLS, TOOLS, 9, False, id="the same files"),
        pytest.param(FROM_TOOLS, {"/bin/a": "a"}, 9, False, id="a file less"),
        pytest.param(FROM_TOOLS, {"/usr/x": "x"}, 9, False, id="nothing of that name"),
        pytest.param(FROM_TOOLS, None, 9, False, id="no such image"),
        pytest.param(FROM_TOOLS, OTHER, 0, False, id="as old as the image"),
        pytest.param(f"{FROM_TOOLS}\nRUN make", OTHER, 9, False, id="a later RUN"),
        pytest.param("COPY --from=tools:1 /bin/* /tools/", OTHER, 9, False, id="a wildcard"),
        pytest.param("COPY --from=tools:1 /bin/a /tools/", OTHER, 9, False, id="another file than that"),
        pytest.param("COPY --from=tools:1 bin/a /tools/", {"/bin/a": "A"}, 9, True, id="one file into a folder"),
        pytest.param("COPY --from=tools:1 /bin/x /tools/a", {"/bin/x": "A"}, 9, True, id="one file by another name"),
        pytest.param("COPY --from=tools:1 /bin/x /tools/a", {"/bin/x": "a"}, 9, False, id="the same by another name"),
        pytest.param(BY_STAGE.format(""), OTHER, 9, True, id="by the name of a stage"),
        pytest.param(BY_STAGE.format("ENV A=1\n"), OTHER, 9, True, id="by a stage that changes no file"),
        pytest.param(BY_STAGE.format("RUN make\n"), OTHER, 9, False, id="out of a stage that runs something"),
        pytest.param(BY_STAGE.format("COPY a.txt /\n"), OTHER, 9, False, id="out of a stage that copies something"),
        pytest.param(BY_STAGE.format("ADD a.txt /\n"), OTHER, 9, False, id="out of a stage that adds something"),
    ],
)
def test_images_that_files_are_copied_out_of(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    text: str,
    tools: Mapping[str, str] | None,
    created: float,
    found: bool,
) -> None:
    (tmp_path / "a.txt").write_text("")
    assert moved(tmp_path, monkeypatch, text, tools, created) == (("tools:1",) if found else ())


@pytest.mark.parametrize(("limit", "found"), [(2, ("tools:1",)), (1, ())])
def test_large_folders_are_not_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int, found: tuple[str, ...]
) -> None:
    monkeypatch.setattr(other_images, "MAXIMUM_BYTES", limit)
    assert moved(tmp_path, monkeypatch, FROM_TOOLS, OTHER) == found


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        (["COPY a /", "COPY b /", "COPY c /", "COPY d /"], True),
        (["COPY a /", "COPY b /", "COPY c /", "COPY x /"], True),
        (["COPY a /", "COPY b /", "COPY x /", "COPY y /"], False),
        (["COPY a /", "COPY b /", "COPY c /"], True),
        (["COPY a /", "COPY b /"], False),
        (["COPY x /", "COPY y /", "COPY z /", "COPY w /"], False),
    ],
)
def test_an_image_of_most_steps_of_the_dockerfile(tmp_path: Path, lines: list[str], found: bool) -> None:
    for name in "abcd":
        (tmp_path / name).write_text("")
    (tmp_path / "Dockerfile").write_text("FROM scratch\nCOPY a /\nCOPY b /\nCOPY c /\nCOPY d /\n")
    engine: Any = FakeEngine()
    engine.add_image("app:1", history=[f"{line} # buildkit" for line in lines])
    plan = read_plan(tmp_path / "Dockerfile", tmp_path, None, {})
    assert tags_of_plan(engine, plan) == (("app:1",) if found else ())


def test_steps_without_a_copy_are_everybody_s(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("")
    (tmp_path / "Dockerfile").write_text("FROM scratch\nENV A=1\nENV B=2\nCOPY a /\n")
    engine: Any = FakeEngine()
    engine.add_image("app:1", history=["ENV A=1 # buildkit", "ENV B=2 # buildkit"])
    assert tags_of_plan(engine, read_plan(tmp_path / "Dockerfile", tmp_path, None, {})) == ()


@pytest.mark.parametrize(("tag", "name"), [("a:1", "a"), ("r:5000/a:1", "r:5000/a"), ("r:5000/b/a:x", "r:5000/b/a")])
def test_the_repository_of_a_tag(tag: str, name: str) -> None:
    assert other_images.repository_of(tag) == name


def test_an_image_of_unknown_age_is_looked_at_last() -> None:
    unknown, old = {**image(9, "unknown:1"), "Created": None}, image(1, "old:1")
    assert other_images._newest(Api([unknown, old])) == [old, unknown]  # type: ignore[arg-type]
