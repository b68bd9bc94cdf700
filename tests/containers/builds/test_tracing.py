"""Files of the context on their way through the stages into the image."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpudoctor.containers.builds.context import BuildContext
from gpudoctor.containers.builds.dockerfile import parse_dockerfile
from gpudoctor.containers.builds.stages import read_stages
from gpudoctor.containers.builds.tracing import ResolvedCopy, trace


@pytest.fixture
def context(tmp_path: Path) -> BuildContext:
    (tmp_path / "code/sub").mkdir(parents=True)
    for name in ("a.py", "sub/b.py"):
        (tmp_path / "code" / name).write_text(name)
    return BuildContext(tmp_path)


def traced(context: BuildContext, dockerfile: str) -> tuple[ResolvedCopy, ...]:
    stages = read_stages(parse_dockerfile(dockerfile), {})
    return trace(context, stages, stages[-1])


def placed(item: ResolvedCopy) -> dict[str, str]:
    """Return path in the image → path in the context."""
    return {one.image_path: one.file.path for one in item.selection.placed}


def test_a_copy_of_the_context(context: BuildContext) -> None:
    (item,) = traced(context, "FROM scratch\nCOPY code /app\n")
    assert placed(item) == {"/app/a.py": "code/a.py", "/app/sub/b.py": "code/sub/b.py"}
    assert (item.opaque, item.may_be_rewritten, item.overwritten, item.later_run) == ("", False, frozenset(), False)


@pytest.mark.parametrize(
    ("copy", "files"),
    [
        pytest.param("/src /app", {"/app/a.py": "code/a.py", "/app/sub/b.py": "code/sub/b.py"}, id="a folder"),
        pytest.param("/src/sub /app/", {"/app/b.py": "code/sub/b.py"}, id="a folder in it"),
        pytest.param("src/a.py /app/", {"/app/a.py": "code/a.py"}, id="a file, relative to the root"),
        pytest.param("/src/a.py /app/main.py", {"/app/main.py": "code/a.py"}, id="a file under another name"),
        pytest.param("/ /all", {"/all/src/a.py": "code/a.py", "/all/src/sub/b.py": "code/sub/b.py"}, id="everything"),
    ],
)
def test_a_copy_from_a_stage_brings_what_the_stage_took(
    context: BuildContext, copy: str, files: dict[str, str]
) -> None:
    (item,) = traced(context, f"FROM scratch AS made\nCOPY code /src\nFROM scratch\nCOPY --from=made {copy}\n")
    assert placed(item) == files
    assert (item.opaque, item.may_be_rewritten) == ("", False)


@pytest.mark.parametrize(
    ("copy", "inside"),
    [("/src/a.py /app", True), ("/src/a.py /app/", False), ("/src/sub /app", False), ("/src/sub /app/", False)],
)
def test_only_a_file_under_its_own_name_may_be_put_into_a_folder(
    context: BuildContext, copy: str, inside: bool
) -> None:
    (item,) = traced(context, f"FROM scratch AS made\nCOPY code /src\nFROM scratch\nCOPY --from=made {copy}\n")
    (file,) = item.selection.placed
    assert file.inside_if_folder is inside


def test_through_two_stages(context: BuildContext) -> None:
    dockerfile = "FROM scratch AS one\nCOPY code /1\nFROM scratch AS two\nCOPY --from=one /1/sub /2\nFROM scratch\n"
    (item,) = traced(context, f"{dockerfile}COPY --from=two /2 /3\n")
    assert placed(item) == {"/3/b.py": "code/sub/b.py"}


def test_a_run_in_the_other_stage_may_have_rewritten_the_files(context: BuildContext) -> None:
    dockerfile = "FROM scratch AS one\nCOPY code /1\nRUN black /1\nFROM scratch AS two\nCOPY --from=one /1 /2\n"
    (item,) = traced(context, f"{dockerfile}FROM scratch\nCOPY --from=two /2 /3\n")
    assert item.may_be_rewritten
    assert not item.later_run


def test_a_run_before_the_copy_rewrites_nothing(context: BuildContext) -> None:
    (item,) = traced(context, "FROM scratch AS one\nRUN a\nCOPY code /1\nFROM scratch\nRUN b\nCOPY --from=one /1 /2\n")
    assert (item.may_be_rewritten, item.later_run) == (False, False)


def test_a_later_run_of_the_image_itself(context: BuildContext) -> None:
    first, second = traced(context, "FROM scratch\nCOPY code /1\nRUN a\nCOPY code /2\n")
    assert (first.later_run, second.later_run) == (True, False)


def test_a_run_behind_onbuild_is_not_carried_out_here(context: BuildContext) -> None:
    (item,) = traced(context, "FROM scratch\nCOPY code /1\nONBUILD RUN a\n")
    assert not item.later_run


def test_what_a_later_copy_overwrites_says_nothing(context: BuildContext) -> None:
    first, second = traced(context, "FROM scratch\nCOPY code /app\nCOPY code/sub/b.py /app/a.py\n")
    assert first.overwritten == {"/app/a.py"}
    assert second.overwritten == frozenset()


def test_the_stage_that_it_goes_on_from_comes_first(context: BuildContext) -> None:
    first, second = traced(
        context, "FROM scratch AS one\nCOPY code /1\nFROM one\nRUN a\nCOPY --from=one /1/a.py /app/\n"
    )
    assert (sorted(placed(first)), first.later_run) == (["/1/a.py", "/1/sub/b.py"], True)
    assert (placed(second), second.later_run) == ({"/app/a.py": "code/a.py"}, False)


@pytest.mark.parametrize(
    ("dockerfile", "opaque"),
    [
        pytest.param(
            "FROM scratch\nCOPY --from=nginx /etc /etc\n", "it copies from another image, nginx", id="an image"
        ),
        pytest.param(
            "FROM scratch AS made\nRUN make\nFROM scratch\nCOPY --from=made /out /out\n",
            "stage made creates its files",
            id="made in a stage",
        ),
        pytest.param(
            "FROM scratch\nADD https://example.com/a.bin /\n",
            "https://example.com/a.bin is not a file of the context",
            id="an address",
        ),
        pytest.param(
            "FROM scratch AS one\nCOPY code /1\nFROM scratch\nCOPY --from=one /11 /app\n",
            "stage one creates its files",
            id="a name that only begins alike",
        ),
    ],
)
def test_what_cannot_be_traced_says_why(context: BuildContext, dockerfile: str, opaque: str) -> None:
    (item,) = traced(context, dockerfile)
    assert (item.opaque, placed(item)) == (opaque, {})


def test_a_later_stage_of_that_name_is_not_meant(context: BuildContext) -> None:
    """FROM and --from name stages before them; another name is an image's."""
    dockerfile = "FROM scratch AS app\nCOPY --from=late /x /x\nFROM scratch AS late\nCOPY code /x\nFROM app\n"
    (item,) = traced(context, dockerfile)
    assert item.opaque == "it copies from another image, late"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        pytest.param("/1/*.py", {"/app/a.py": "code/a.py"}, id="files"),
        pytest.param("/1/s*", {"/app/b.py": "code/sub/b.py"}, id="a folder, of which the contents are copied"),
        pytest.param("/*/sub/?.py", {"/app/b.py": "code/sub/b.py"}, id="in several names"),
        pytest.param("/1/*.txt", {}, id="nothing"),
    ],
)
def test_wildcards_in_another_stage(context: BuildContext, source: str, expected: dict[str, str]) -> None:
    (item,) = traced(context, f"FROM scratch AS one\nCOPY code /1\nFROM scratch\nCOPY --from=one {source} /app/\n")
    assert placed(item) == expected


@pytest.mark.parametrize(
    ("options", "files"),
    [
        pytest.param("--mount=type=bind,target=/s", ["code/a.py", "code/sub/b.py"], id="the context"),
        pytest.param("--mount=type=bind,source=code/sub,target=/s", ["code/sub/b.py"], id="a folder"),
        pytest.param("--mount=type=bind,source=$FOLDER,target=/s", None, id="a variable"),
        pytest.param("--mount=type=bind,source=co*,target=/s", None, id="a pattern"),
        pytest.param("--mount=type=bind,source=none,target=/s", None, id="not there"),
        pytest.param("--mount=type=cache,target=/s", None, id="no mount of the context"),
    ],
)
def test_what_a_run_sees_of_the_context(context: BuildContext, options: str, files: list[str] | None) -> None:
    found = traced(context, f"FROM scratch\nRUN {options} make\n")
    assert [sorted(file.path for file in item.inputs) for item in found] == ([] if files is None else [files])
    assert [(item.opaque, placed(item)) for item in found] == [("the files it creates cannot be traced", {})] * len(
        found
    )


@pytest.mark.parametrize(
    ("source", "whole"),
    [
        pytest.param("/s", [("/app/", "/s/")], id="the folder"),
        pytest.param("/s/", [("/app/", "/s/")], id="with a slash"),
        pytest.param("/", [("/app/s/", "/s/")], id="one that it lies in"),
        pytest.param("/s/sub", [("/app/", "/s/sub/")], id="one in it"),
        pytest.param("/s/*", [], id="names in it"),
        pytest.param("/s*", [], id="a pattern"),
        pytest.param("/s/a.py /other", [("/app/", "/s/a.py/")], id="a file, and what nobody copied"),
    ],
)
def test_folders_that_only_copies_filled(context: BuildContext, source: str, whole: list[tuple[str, str]]) -> None:
    (item,) = traced(context, f"FROM base:1 AS one\nCOPY code /s\nFROM scratch\nCOPY --from=one {source} /app/\n")
    assert [(folder.target, folder.source) for folder in item.whole] == whole
    assert {folder.base for folder in item.whole} <= {"base:1"}
