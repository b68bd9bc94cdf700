"""Which files a COPY takes, and where they end: the cases that the engine answers too, and what it cannot be asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpudoctor.containers.builds import context as build_context
from gpudoctor.containers.builds.context import TooLarge, read_context
from gpudoctor.containers.builds.copied_files import Selection, select_files
from gpudoctor.containers.builds.dockerfile import parse_dockerfile
from gpudoctor.containers.builds.stages import read_stages
from tests.containers.copy_cases import CASES, Case, write_context


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write_context(tmp_path)
    return tmp_path


def selections(root: Path, lines: str) -> list[Selection]:
    context = read_context(root, root / "Dockerfile")
    stages = read_stages(parse_dockerfile(f"FROM scratch\n{lines}\n"), {})
    return [select_files(context, step.copy) for step in stages[0].steps if step.copy is not None]


def selection(root: Path, line: str) -> Selection:
    (only,) = selections(root, line)
    return only


@pytest.mark.parametrize("case", [pytest.param(case, id=name) for name, case in CASES.items()])
def test_where_files_end(case: Case, tmp_path: Path) -> None:
    write_context(tmp_path, case.ignore)
    found: dict[str, str] = {}
    for selected in selections(tmp_path, f"{case.before}\n{case.line}"):
        for placed in selected.placed:
            inside = placed.inside_if_folder and any(path.startswith(f"{placed.image_path}/") for path in found)
            name = placed.file.path.rpartition("/")[2]
            found[f"{placed.image_path}/{name}" if inside else placed.image_path] = placed.file.path
    assert found == case.files


def test_ignored_files_are_named_with_the_pattern(root: Path) -> None:
    (root / ".dockerignore").write_text("data/t*\n")
    assert selection(root, "COPY data /d").ignored == (("data/two.csv", "data/t*"),)


def test_a_dockerfile_with_an_ignore_file_of_its_own(root: Path) -> None:
    (root / ".dockerignore").write_text("*\n")
    (root / "Dockerfile.dockerignore").write_text("b.txt\n")
    selected = selection(root, "COPY [ab].txt /x/")
    assert [placed.file.path for placed in selected.placed] == ["a.txt"]


def test_a_pattern_that_matches_nothing_and_a_file_that_is_missing(root: Path) -> None:
    selected = selection(root, "COPY *.zip gone.txt /x/")
    assert (selected.empty_patterns, selected.missing) == (("*.zip",), ("gone.txt",))


@pytest.mark.parametrize("source", ["outside", "broken"])
def test_a_link_is_followed_inside_the_context_only(root: Path, source: str) -> None:
    selected = selection(root, f"COPY {source} /x")
    assert (selected.placed, selected.missing) == ((), (source,))


def test_a_link_that_leads_to_itself(root: Path) -> None:
    (root / "loop").symlink_to("loop")
    assert [placed.file.link_target for placed in selection(root, "COPY loop /x").placed] == ["loop"]


@pytest.mark.parametrize("line", ["ADD https://example.org/a /x", "ADD git@example.org:a/b.git /x"])
def test_sources_that_are_no_files_of_the_context(root: Path, line: str) -> None:
    selected = selection(root, line)
    assert (selected.opaque, selected.placed) == ((line.split()[1],), ())


def test_here_documents_are_copied_too(root: Path) -> None:
    (placed,) = selection(root, "COPY <<run.sh /app/\necho\nrun.sh").placed
    assert (placed.image_path, placed.file.content) == ("/app/run.sh", "echo\n")


def test_parents_and_exclude(root: Path) -> None:
    selected = selection(root, "COPY --parents --exclude=*.csv data common/sub/deep.py /x/")
    paths = [placed.image_path for placed in selected.placed]
    assert paths == ["/x/data/read.me", "/x/common/sub/deep.py"]


@pytest.mark.parametrize(("chmod", "expected"), [("755", True), ("0644", False), ("u+x", False)])
def test_chmod_decides_the_executable_bit(root: Path, chmod: str, expected: bool) -> None:
    (placed,) = selection(root, f"COPY --chmod={chmod} a.txt /x").placed
    assert placed.file.is_executable is expected


def test_a_context_with_too_many_files(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build_context, "MAXIMUM_ENTRIES", 3)
    with pytest.raises(TooLarge, match="more than 3 files"):
        selection(root, "COPY . /x")


def test_a_wrong_dockerignore_is_named(root: Path) -> None:
    (root / ".dockerignore").write_text("a\n[b\n")
    with pytest.raises(ValueError, match=r"\.dockerignore: line 2: '\[b' is no pattern"):
        read_context(root, root / "Dockerfile")
