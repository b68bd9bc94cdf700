"""What a difference between image and context means, by what may have happened to the file in between."""

from __future__ import annotations

import hashlib
import os
from dataclasses import replace
from pathlib import Path

import pytest

from gpudoctor.containers import comparison
from gpudoctor.containers.builds.context import BuildContext, ContextFile
from gpudoctor.containers.builds.copied_files import CopiedFile
from gpudoctor.containers.builds.dockerfile import parse_dockerfile
from gpudoctor.containers.builds.stages import read_stages
from gpudoctor.containers.builds.tracing import ResolvedCopy, trace
from gpudoctor.containers.comparison import STAGE_SECONDS, Moment, compare_copy, conclude, image_path_of
from gpudoctor.containers.images.files import ImageFile
from gpudoctor.model import CopiedFiles

LONG_AGO, SOON = 1_000_000.0, 1e12
COPY = "COPY code /app\n"
RUN = COPY + "RUN something\n"
STAGE = "COPY code /s\nRUN something\nFROM scratch\nCOPY --from=0 /s /app\n"


@pytest.fixture
def context(tmp_path: Path) -> BuildContext:
    (tmp_path / "code").mkdir()
    (tmp_path / "code/a.py").write_text("new")
    (tmp_path / "code/b.py").write_text("same")
    return BuildContext(tmp_path)


def copied(context: BuildContext, dockerfile: str) -> ResolvedCopy:
    stages = read_stages(parse_dockerfile(f"FROM scratch\n{dockerfile}"), {})
    return trace(context, stages, stages[-1])[-1]


def in_image(content: str, changed_at: float = LONG_AGO) -> ImageFile:
    digest = hashlib.sha256(content.encode()).hexdigest()
    return ImageFile(kind="file", size_bytes=len(content), digest=digest, changed_at=changed_at)


def compare(
    context: BuildContext,
    dockerfile: str,
    files: dict[str, ImageFile],
    copied_at: float = LONG_AGO + 10_000,
    layer: dict[str, ImageFile] | None = None,
    built_at: float = 0.0,
) -> CopiedFiles:
    traced = copied(context, dockerfile)
    moment = Moment(earliest=copied_at, latest=copied_at + 1, built_at=built_at)
    known = frozenset(placed.image_path for placed in traced.selection.placed)
    return conclude(
        context,
        compare_copy(context, traced, {"/app/b.py": in_image("same"), **files}, moment, known),
        layer,
        by_buildkit=True,
    )


def test_a_build_since_the_change_saw_the_file(context: BuildContext) -> None:
    found = compare(context, STAGE, {"/app/a.py": in_image("made")}, built_at=SOON)
    assert (found.stale, found.opaque) == ((), "stage 0 may have changed its files")


@pytest.mark.parametrize(
    ("size_is_same", "time_is_same", "is_linked", "by_buildkit", "may_be_kept"),
    [
        pytest.param(True, True, False, True, True, id="same size and time: BuildKit may"),
        pytest.param(False, True, False, True, False, id="another size"),
        pytest.param(True, False, False, True, False, id="another time"),
        pytest.param(True, True, False, False, False, id="the classic builder looks at the content"),
        pytest.param(False, False, True, False, True, id="but not at that of a hard link"),
    ],
)
def test_what_a_builder_may_have_kept(
    context: BuildContext,
    tmp_path: Path,
    size_is_same: bool,
    time_is_same: bool,
    is_linked: bool,
    by_buildkit: bool,
    may_be_kept: bool,
) -> None:
    if is_linked:
        (tmp_path / "code/other.py").hardlink_to(tmp_path / "code/a.py")
    written_at = (tmp_path / "code/a.py").stat().st_mtime
    there = in_image("old" if size_is_same else "older", written_at if time_is_same else LONG_AGO)
    traced = copied(context, COPY)
    found = compare_copy(context, traced, {"/app/a.py": there}, None, frozenset())
    assert conclude(context, found, None, by_buildkit=by_buildkit).may_be_kept is may_be_kept


def test_what_matched_a_pattern_and_is_gone(context: BuildContext) -> None:
    files = {path: in_image("x") for path in ("/app/gone.py", "/app/gone.txt", "/app/sub/gone.py")}
    found = compare(context, "COPY code/*.py /app/\n", files, layer=files)
    assert found.extra == ("/app/gone.py",)


def test_a_link_at_the_destination_is_followed(context: BuildContext) -> None:
    link = ImageFile(kind="link", link_target="real.py")
    found = compare(context, "COPY code/a.py /app/a.py\n", {"/app/a.py": link, "/app/real.py": in_image("new")})
    assert found.stale == ()


@pytest.mark.parametrize(
    ("built_at", "seen", "changed"),
    [
        pytest.param(500.0, frozenset(), ("code/a.py",), id="changed after the build"),
        pytest.param(2000.0, frozenset(), (), id="built since"),
        pytest.param(50.0, frozenset(), (), id="a new checkout: its times say nothing"),
        pytest.param(500.0, frozenset({"code/a.py"}), (), id="its content is known to be that in the image"),
    ],
)
def test_what_only_another_stage_took(
    context: BuildContext, built_at: float, seen: frozenset[str], changed: tuple[str, ...]
) -> None:
    traced = copied(context, "COPY code /s\nRUN make\nFROM scratch\nCOPY --from=0 /out /app\n")
    times = {"code/a.py": 1000.0, "code/b.py": 100.0}
    traced = replace(traced, inputs=tuple(replace(file, changed_at=times[file.path]) for file in traced.inputs))
    assert compare_copy(context, traced, {}, None, frozenset()).changed_unseen(built_at, seen) == changed


def test_what_only_the_layer_can_decide(context: BuildContext, tmp_path: Path) -> None:
    """The doubtful file, and what may be a hard link to it: a file of the same size."""
    (tmp_path / "code/link.py").write_text("abc")
    there = {"/app/a.py": in_image("old"), "/app/b.py": in_image("same"), "/app/link.py": in_image("abc")}
    look = compare_copy(context, copied(context, RUN), there, None, frozenset())
    assert look.doubtful == {"/app/a.py": 3, "/app/link.py": 3}
    assert look.seen == {"code/b.py", "code/link.py"}
    assert replace(look, differences=(), extra=("/app/c.py",)).doubtful == {"/app/c.py": -1}


def test_what_is_the_same_is_no_difference(context: BuildContext) -> None:
    found = compare(context, COPY, {"/app/a.py": in_image("new")})
    assert (found.stale, found.missing, found.extra, found.unknown, found.compared) == ((), (), (), "", 2)


def test_what_nothing_could_have_changed_is_stale(context: BuildContext) -> None:
    assert compare(context, COPY, {"/app/a.py": in_image("old")}).stale == ("code/a.py",)
    assert compare(context, COPY, {}).missing == ("code/a.py",)


def test_a_file_of_the_same_size_and_another_kind_is_stale(context: BuildContext) -> None:
    link = ImageFile(kind="link", link_target="b.py", size_bytes=3)
    assert compare(context, COPY, {"/app/a.py": link}).stale == ("code/a.py",)


@pytest.mark.parametrize(
    ("layer", "stale", "later"),
    [
        pytest.param({"/app/a.py": in_image("new")}, (), ("/app/a.py",), id="copied new, changed afterwards"),
        pytest.param({"/app/a.py": in_image("old")}, ("code/a.py",), (), id="copied old"),
    ],
)
def test_the_layer_shows_what_a_later_run_did(
    context: BuildContext, layer: dict[str, ImageFile], stale: tuple[str, ...], later: tuple[str, ...]
) -> None:
    found = compare(context, RUN, {"/app/a.py": in_image("made", SOON)}, layer=layer)
    assert (found.stale, found.changed_later) == (stale, later)


def test_without_the_layer_an_older_file_was_not_written_by_a_later_run(context: BuildContext) -> None:
    assert compare(context, RUN, {"/app/a.py": in_image("older")}).stale == ("code/a.py",)


def test_without_the_layer_a_newer_file_is_unknown(context: BuildContext) -> None:
    found = compare(context, RUN, {"/app/a.py": in_image("made", SOON)})
    assert (found.stale, bool(found.unknown)) == ((), True)


@pytest.mark.parametrize(
    ("files", "later"),
    [
        pytest.param({"/app/a.py": in_image("made", SOON + 10)}, ("/app/a.py",), id="it was written"),
        pytest.param({}, ("/app/a.py",), id="it was removed"),
        pytest.param({"/app/a.py": replace(in_image("new"), is_executable=True)}, ("/app/a.py",), id="chmod"),
    ],
)
def test_without_the_layer_a_file_that_did_not_change_since_was_copied_as_it_is(
    context: BuildContext, files: dict[str, ImageFile], later: tuple[str, ...]
) -> None:
    found = compare(context, RUN, files, copied_at=SOON)
    assert (found.stale, found.missing, found.unknown, found.changed_later) == ((), (), "", later)


def test_a_chmod_after_the_copy_leaves_no_time(context: BuildContext) -> None:
    """The context changed since: it may have had that mode before, or a later RUN has set it."""
    found = compare(context, RUN, {"/app/a.py": replace(in_image("new"), is_executable=True)})
    assert (found.stale, bool(found.unknown)) == ((), True)


def test_a_stage_may_have_set_a_mode(context: BuildContext) -> None:
    executable = replace(in_image("new"), is_executable=True)
    found = compare(context, STAGE, {"/app/a.py": executable})
    assert (found.stale, found.opaque) == ((), "stage 0 may have changed its files")


def test_what_pip_leaves_behind_is_not_extra(context: BuildContext) -> None:
    made = ("/app/build/lib/a.py", "/app/app.egg-info/PKG-INFO", "/app/__pycache__/a.cpython-311.pyc")
    files = {"/app/a.py": in_image("new"), **{path: in_image("x") for path in made}}
    assert compare(context, RUN, files, layer={path: in_image("x") for path in made}).extra == ()
    assert compare(context, COPY, files, layer={path: in_image("x") for path in made}).extra == tuple(sorted(made))


def test_in_a_new_checkout_times_do_not_show_what_is_missing(context: BuildContext) -> None:
    found = compare(context, RUN, {})  # every file of the context is newer than the image
    assert (found.missing, bool(found.unknown)) == ((), True)


def test_a_stage_may_have_rewritten_what_it_hands_on(context: BuildContext) -> None:
    found = compare(context, STAGE, {"/app/a.py": in_image("made", LONG_AGO + 9_990)})
    assert (found.stale, found.opaque) == ((), "stage 0 may have changed its files")


def test_what_is_far_older_than_the_stage_was_not_rewritten(context: BuildContext) -> None:
    assert compare(context, STAGE, {"/app/a.py": in_image("old")}).stale == ("code/a.py",)


def test_what_did_not_change_since_the_copy_was_rewritten(context: BuildContext) -> None:
    found = compare(context, STAGE, {"/app/a.py": in_image("older")}, copied_at=SOON)
    assert (found.stale, bool(found.opaque)) == ((), True)


@pytest.mark.parametrize(
    ("layer", "extra"), [({"/app/gone.py": in_image("x")}, ("/app/gone.py",)), ({}, ())], ids=["copied", "made"]
)
def test_what_no_copy_brings_is_extra_if_the_layer_has_it(
    context: BuildContext, layer: dict[str, ImageFile], extra: tuple[str, ...]
) -> None:
    files = {"/app/a.py": in_image("new"), "/app/gone.py": in_image("x")}
    assert compare(context, COPY, files, layer=layer).extra == extra


def test_an_extra_file_is_unknown_until_its_layer_is_read(context: BuildContext) -> None:
    files = {"/app/a.py": in_image("new"), "/app/gone.py": in_image("x")}
    unread = compare(context, COPY, files)
    assert (unread.extra, unread.unknown) == (
        (),
        "1 files may come from another instruction, because its layer cannot be read",
    )
    for layer in (files, {}):
        assert compare(context, COPY, files, layer=layer).unknown == ""


@pytest.mark.parametrize(
    ("latest", "built_at", "changed_at", "before"),
    [(5, 0, 5, False), (5, 0, 6, True), (5, 9, 9, False), (5, 9, 10, True), (9, 5, 8, False)],
)
def test_a_change_counts_if_it_is_after_the_instruction_and_the_last_build(
    latest: float, built_at: float, changed_at: float, before: bool
) -> None:
    file = ContextFile(path="a", size_bytes=1, changed_at=changed_at)
    assert Moment(earliest=0, latest=latest, built_at=built_at).is_before(file) is before


@pytest.mark.parametrize(
    ("dockerfile", "moment", "mine", "there", "told"),
    [
        pytest.param(RUN, 1000, {"a": 2000, "b": 1000}, None, "missing", id="the other file shows that times tell"),
        pytest.param(RUN, 1000, {"a": 2000, "b": 1001}, None, "unknown", id="all are newer: a new checkout"),
        pytest.param(RUN, 1000, {"a": 999, "b": 999}, SOON, "later", id="unchanged since"),
        pytest.param(RUN, 1000, {"a": 1000, "b": 999}, SOON, "unknown", id="changed in that second"),
        pytest.param(RUN, 1000, {"a": 1000, "b": 999}, 999, "stale", id="older than the copy"),
        pytest.param(RUN, 1000, {"a": 1000, "b": 999}, 1000, "unknown", id="as old as the copy"),
        pytest.param(STAGE, 1000, {"a": 2000, "b": 999}, 1000 - STAGE_SECONDS - 1, "stale", id="older than the stage"),
        pytest.param(STAGE, 1000, {"a": 2000, "b": 999}, 1000 - STAGE_SECONDS, "opaque", id="made in the stage"),
        pytest.param(STAGE, 1000, {"a": 1000, "b": 999}, 0, "opaque", id="seen by the build"),
        pytest.param(STAGE, 1000, {"a": 2000, "b": 999}, None, "missing", id="changed since, and not in the stage"),
        pytest.param(STAGE, 1000, {"a": 1000, "b": 999}, None, "opaque", id="removed in the stage"),
    ],
)
def test_what_the_times_show(
    context: BuildContext, dockerfile: str, moment: float, mine: dict[str, float], there: float | None, told: str
) -> None:
    traced = copied(context, dockerfile)
    placed = tuple(
        replace(item, file=replace(item.file, changed_at=mine[item.file.path[len("code/")]]))
        for item in traced.selection.placed
    )
    traced = replace(traced, selection=replace(traced.selection, placed=placed))
    files = {"/app/b.py": in_image("same"), **({} if there is None else {"/app/a.py": in_image("old", there)})}
    look = compare_copy(context, traced, files, Moment(earliest=moment, latest=moment), frozenset())
    found = conclude(context, look, None, by_buildkit=True)
    assert {
        "stale": found.stale,
        "missing": found.missing,
        "later": found.changed_later,
        "opaque": ("code/a.py",) if found.opaque else (),
        "unknown": ("code/a.py",) if found.unknown else (),
    } == {
        **dict.fromkeys(("stale", "missing", "later", "opaque", "unknown"), ()),
        told: ("/app/a.py",) if told == "later" else ("code/a.py",),
    }


@pytest.mark.parametrize(("changed_at", "is_extra"), [(LONG_AGO + 10_000, True), (LONG_AGO + 10_001, False)])
def test_what_is_as_new_as_the_end_of_the_copy_did_not_come_by_it(
    context: BuildContext, changed_at: float, is_extra: bool
) -> None:
    files = {"/app/a.py": in_image("new"), "/app/gone.py": in_image("x", changed_at)}
    assert bool(compare(context, COPY, files, layer=files).extra) is is_extra


@pytest.mark.parametrize(("seconds", "may_be_kept"), [(1, True), (-1, True), (2, False), (-2, False)])
def test_an_archive_has_whole_seconds(context: BuildContext, tmp_path: Path, seconds: int, may_be_kept: bool) -> None:
    os.utime(tmp_path / "code/a.py", (1000, 1000))
    look = compare_copy(
        context, copied(context, COPY), {"/app/a.py": in_image("old", 1000 + seconds)}, None, frozenset()
    )
    assert conclude(context, look, None, by_buildkit=True).may_be_kept is may_be_kept


@pytest.mark.parametrize(
    ("there", "copied_at", "needs"),
    [
        pytest.param({"/app/a.py": in_image("new")}, SOON, False, id="nothing differs"),
        pytest.param({"/app/a.py": in_image("made", SOON + 10)}, SOON, False, id="the times tell"),
        pytest.param({"/app/a.py": in_image("made", SOON)}, LONG_AGO, True, id="they do not"),
        pytest.param({"/app/a.py": in_image("new"), "/app/x.py": in_image("x")}, SOON, True, id="an extra file"),
    ],
)
def test_when_the_layer_is_needed(
    context: BuildContext, there: dict[str, ImageFile], copied_at: float, needs: bool
) -> None:
    moment = Moment(earliest=copied_at, latest=copied_at + 1)
    files = {"/app/b.py": in_image("same"), **there}
    known = frozenset({"/app/a.py", "/app/b.py"})
    assert compare_copy(context, copied(context, RUN), files, moment, known).needs_layer is needs


def test_a_link_that_no_copy_brings_is_extra_and_a_folder_is_not(context: BuildContext) -> None:
    link = ImageFile(kind="link", link_target="a.py", changed_at=LONG_AGO)
    files = {"/app/a.py": in_image("new"), "/app/link": link, "/app/sub": replace(link, kind="folder")}
    assert compare(context, COPY, files, layer=files).extra == ("/app/link",)


@pytest.mark.parametrize(
    ("content", "seconds", "stale"),
    [("old", 0, True), ("old", 1, False), ("older", 0, False)],
    ids=["as BuildKit keeps it", "another time", "another size"],
)
def test_a_file_that_buildkit_kept_was_not_rewritten_by_the_stage(
    context: BuildContext, tmp_path: Path, content: str, seconds: int, stale: bool
) -> None:
    """The file in the context was changed before the build, so that its time of change does not tell."""
    os.utime(tmp_path / "code/a.py", (1000.5, 1000.5))
    found = compare(context, STAGE, {"/app/a.py": in_image(content, 1000 + seconds)}, copied_at=SOON)
    assert bool(found.stale) is stale


FOLDER = ImageFile(kind="folder")


def link_to(target: str) -> ImageFile:
    return ImageFile(kind="link", link_target=target)


@pytest.mark.parametrize(
    ("inside_if_folder", "files", "path"),
    [
        pytest.param(True, {}, "/app/x", id="nothing there"),
        pytest.param(True, {"/app/x": in_image("new")}, "/app/x", id="a file"),
        pytest.param(True, {"/app/x": FOLDER}, "/app/x/a.py", id="a folder"),
        pytest.param(True, {"/app/x/a.py": in_image("new")}, "/app/x/a.py", id="a file in a folder that is not told"),
        pytest.param(True, {"/app/x": link_to("y"), "/app/y": in_image("new")}, "/app/y", id="a link to a file"),
        pytest.param(True, {"/app/x": link_to("/y")}, "/y", id="a link that leads nowhere"),
        pytest.param(True, {"/app/x": link_to("../y"), "/y": link_to("z"), "/z": FOLDER}, "/z", id="two links"),
        pytest.param(False, {"/app/x": FOLDER}, "/app/x", id="named as a file"),
        pytest.param(False, {"/app/x": link_to("y"), "/app/y": in_image("new")}, "/app/x", id="and a link"),
    ],
)
def test_where_a_file_is_in_the_image(inside_if_folder: bool, files: dict[str, ImageFile], path: str) -> None:
    file = ContextFile(path="code/a.py", size_bytes=1)
    placed = CopiedFile(file=file, image_path="/app/x", inside_if_folder=inside_if_folder)
    assert image_path_of(placed, files) == path


@pytest.mark.parametrize(("most", "path"), [(2, "/c"), (1, "/b")])
def test_so_many_links_of_the_image_are_followed(most: int, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "MAXIMUM_LINKS", most)
    files = {"/a": link_to("b"), "/b": link_to("c"), "/c": link_to("a")}
    placed = CopiedFile(file=ContextFile(path="a.py", size_bytes=1), image_path="/a", inside_if_folder=True)
    assert image_path_of(placed, files) == path
