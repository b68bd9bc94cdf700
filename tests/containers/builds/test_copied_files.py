"""Which files a COPY takes, and where they end: the cases that the engine answers too, and what it cannot be asked."""

from __future__ import annotations

import gzip
import hashlib
import tarfile
from pathlib import Path

import pytest

from gpudoctor.containers.builds import context as build_context
from gpudoctor.containers.builds import copied_files
from gpudoctor.containers.builds.context import ContextFile, TooLarge, read_context
from gpudoctor.containers.builds.copied_files import NotRead, Selection, select_files, unpacked
from gpudoctor.containers.builds.dockerfile import parse_dockerfile
from gpudoctor.containers.builds.stages import read_stages
from tests.containers.archives import archive, member
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


@pytest.mark.parametrize(("sources", "taken", "content"), [("<<EOF EOF", "EOF", None), ("EOF <<EOF", "<<EOF", "a\n")])
def test_a_file_with_the_name_of_a_here_document(root: Path, sources: str, taken: str, content: str | None) -> None:
    (root / "EOF").write_text("x")
    (placed,) = selection(root, f"COPY {sources} /x/\na\nEOF").placed
    assert (placed.file.path, placed.file.content) == (taken, content)


def test_parents_and_exclude(root: Path) -> None:
    selected = selection(root, "COPY --parents --exclude=*.csv data common/sub/deep.py /x/")
    paths = [placed.image_path for placed in selected.placed]
    assert paths == ["/x/data/read.me", "/x/common/sub/deep.py"]


@pytest.mark.parametrize(("chmod", "expected"), [("755", True), ("0644", False), ("u+x", False)])
def test_chmod_decides_the_executable_bit(root: Path, chmod: str, expected: bool) -> None:
    (placed,) = selection(root, f"COPY --chmod={chmod} a.txt /x").placed
    assert placed.file.is_executable is expected


def test_a_context_with_too_many_files(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entries = sum(1 for _ in root.rglob("*"))
    monkeypatch.setattr(build_context, "MAXIMUM_ENTRIES", entries)
    assert selection(root, "COPY . /x").placed
    monkeypatch.setattr(build_context, "MAXIMUM_ENTRIES", entries - 1)
    with pytest.raises(TooLarge, match=f"more than {entries - 1} files"):
        selection(root, "COPY . /x")


def test_a_wrong_dockerignore_is_named(root: Path) -> None:
    (root / ".dockerignore").write_text("a\n[b\n")
    with pytest.raises(ValueError, match=r"\.dockerignore: line 2: '\[b' is not a pattern"):
        read_context(root, root / "Dockerfile")


FILE = ContextFile(path="code.tar", size_bytes=10, changed_at=5.0)


def names(path: Path, data: bytes) -> dict[str, ContextFile]:
    path.write_bytes(data)
    found = unpacked(path, FILE)
    assert found is not None
    return dict(found)


def test_the_files_of_an_archive(tmp_path: Path) -> None:
    data = archive(
        member("./pkg", type=tarfile.DIRTYPE),
        member("./pkg/a.py", b"abc", mode=0o755),
        member("pkg/link", type=tarfile.SYMTYPE, linkname="a.py"),
    )
    found = names(tmp_path / "code.tar", data)
    assert found["pkg/a.py"].digest == hashlib.sha256(b"abc").hexdigest()
    assert (found["pkg/a.py"].path, found["pkg/a.py"].is_executable) == ("code.tar", True)
    assert found["pkg/link"].link_target == "a.py"
    assert found.keys() == {"pkg/a.py", "pkg/link"}


def test_names_that_lead_out_and_devices_are_passed_over(tmp_path: Path) -> None:
    data = archive(
        member("../a", b"x"), member("/b", b"x"), member("c/../../d", b"x"), member("e", type=tarfile.CHRTYPE)
    )
    assert names(tmp_path / "code.tar", data) == {}


@pytest.mark.parametrize("data", [b"text", b"PK\x03\x04" + bytes(600), b""])
def test_what_is_no_archive_is_copied_as_it_is(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "code.tar").write_bytes(data)
    assert unpacked(tmp_path / "code.tar", FILE) is None


def test_a_bomb_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copied_files, "MAXIMUM_BYTES", 1000)
    link = member("link", type=tarfile.SYMTYPE, linkname="a")
    assert len(names(tmp_path / "code.tar", archive(member("a", bytes(600)), link, member("b", bytes(400))))) == 3
    (tmp_path / "code.tar").write_bytes(archive(member("a", bytes(600)), member("b", bytes(401))))
    with pytest.raises(NotRead, match="more files than"):
        unpacked(tmp_path / "code.tar", FILE)


def test_an_archive_that_ends_too_early(tmp_path: Path) -> None:
    data = gzip.compress(archive(member("a", b"x" * 9000), member("b", b"x" * 9000)))
    (tmp_path / "code.tar").write_bytes(data[:-20])
    with pytest.raises(NotRead):
        unpacked(tmp_path / "code.tar", FILE)


def test_the_names_in_a_folder_of_the_context(root: Path) -> None:
    context = read_context(root, root / "Dockerfile")
    assert "a.txt" in context.names("")
    assert (context.names("a.txt"), context.names("none")) == ([], [])


def test_too_many_members(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copied_files, "MAXIMUM_MEMBERS", 3)
    assert len(names(tmp_path / "code.tar", archive(*(member(f"{n}") for n in range(3))))) == 3
    (tmp_path / "code.tar").write_bytes(archive(*(member(f"{n}") for n in range(4))))
    with pytest.raises(NotRead, match="more files than"):
        unpacked(tmp_path / "code.tar", FILE)


def test_so_many_ignored_files_are_named(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / ".dockerignore").write_text("data/*\n")
    every = selection(root, "COPY data /d").ignored
    assert len(every) > 1
    monkeypatch.setattr(copied_files, "MAXIMUM_IGNORED", 1)
    assert selection(root, "COPY data /d").ignored == every[:1]


@pytest.mark.parametrize("name", ["x.tar.zst", "x.TZST"])
def test_an_archive_that_python_cannot_read_is_opaque(root: Path, name: str) -> None:
    (root / name).write_bytes(b"x")
    assert selection(root, f"ADD {name} /x/") == Selection(opaque=(name,))
    assert [placed.image_path for placed in selection(root, f"COPY {name} /x/").placed] == [f"/x/{name}"]
    assert [placed.image_path for placed in selection(root, "ADD a.txt /x/").placed] == ["/x/a.txt"]


def test_what_an_archive_is_unpacked_into_is_a_folder_that_is_taken_whole(root: Path) -> None:
    (root / "pack.tar").write_bytes(archive(member("pkg/a.py", b"abc")))
    selected = selection(root, "ADD pack.tar /x/")
    assert ([placed.image_path for placed in selected.placed], selected.folders) == (["/x/pkg/a.py"], ("/x/",))
    assert selection(root, "COPY pack.tar /x/").folders == ()
    assert selection(root, "ADD a.txt /x/").folders == ()
