"""What an answer of the worker that reads tells, and what it leaves unknown."""

from __future__ import annotations

from typing import Any

import pytest

from gpudoctor.probes import reading

FACTS: dict[str, Any] = {
    "files": {
        "/a": {"text": "A"},
        "/b/c": {"text": ""},
        "/d": {"error": "EACCES Permission denied"},
        "/e": {"error": "ENOENT No such file or directory"},
        "/f": {"error": "ENOTDIR Not a directory"},
    },
    "listings": {
        "/x/*": {"paths": ["/x/1", "/x/2"]},
        "/y/*": {"paths": [], "error": "EACCES Permission denied"},
        "/z/*": {"paths": ["/z/1"], "error": "EACCES Permission denied"},
        "/none/*": {"paths": []},
    },
    "links": {"/l": {"target": "/m"}, "/n": {"error": "ENOENT No such file or directory"}},
    "commands": {
        "good": {"status": 0, "stdout": "yes"},
        "bad": {"status": 1, "stdout": "no"},
        "hung": {"status": None, "stdout": "", "error": "no answer in 5 s"},
    },
    "values": {"platform": {"value": "linux"}, "euid": {"value": 0}, "odd": {"error": "OSError"}},
    "which": {"nvcc": {"path": "/bin/nvcc", "target": "/x"}, "gone": None},
}


@pytest.mark.parametrize(
    ("paths", "text"),
    [(("/a",), "A"), (("/d", "/b/c", "/a"), ""), (("/d", "/e"), None), (("/unasked",), None), ((), None)],
)
def test_the_first_file_that_can_be_read(paths: tuple[str, ...], text: str | None) -> None:
    assert reading.file_text(FACTS, *paths) == text
    assert reading.file_text({}, *paths) is None


@pytest.mark.parametrize(
    ("pattern", "texts"), [("/*", {"/a": "A", "/b/c": ""}), ("/b/*", {"/b/c": ""}), ("/a", {"/a": "A"}), ("/d", {})]
)
def test_the_texts_of_files(pattern: str, texts: dict[str, str]) -> None:
    assert reading.file_texts(FACTS, pattern) == texts
    assert reading.file_texts({}, pattern) == {}


def test_a_bracket_in_a_path_is_no_pattern() -> None:
    assert reading.file_texts({"files": {"/[x]": {"text": "X"}}}, "/[x]") == {"/[x]": "X"}


@pytest.mark.parametrize(("pattern", "is_unreadable"), [("/*", True), ("/d", True), ("/e", False), ("/f", False)])
def test_whether_a_file_is_there_that_cannot_be_read(pattern: str, is_unreadable: bool) -> None:
    assert reading.unreadable(FACTS, pattern) is is_unreadable
    assert reading.unreadable({}, pattern) is False


@pytest.mark.parametrize(
    ("pattern", "paths"),
    [
        ("/x/*", ("/x/1", "/x/2")),
        ("/y/*", None),
        ("/z/*", ("/z/1",)),
        ("/none/*", ()),
        ("/unasked/*", None),
    ],
)
def test_what_a_folder_lists(pattern: str, paths: tuple[str, ...] | None) -> None:
    assert reading.listed(FACTS, pattern) == paths


def test_every_listed_path() -> None:
    assert reading.all_listed(FACTS) == ("/x/1", "/x/2", "/z/1")
    assert reading.all_listed({}) == ()


@pytest.mark.parametrize(("path", "target"), [("/l", "/m"), ("/n", None), ("/unasked", None)])
def test_where_a_link_leads(path: str, target: str | None) -> None:
    assert reading.link_target(FACTS, path) == target


@pytest.mark.parametrize(("command", "text"), [("good", "yes"), ("bad", None), ("hung", None), ("unasked", None)])
def test_the_output_of_a_command(command: str, text: str | None) -> None:
    assert reading.output(FACTS, command) == text


@pytest.mark.parametrize(("name", "value"), [("platform", "linux"), ("euid", 0), ("odd", None), ("unasked", None)])
def test_a_value(name: str, value: Any) -> None:
    assert reading.value(FACTS, name) == value


@pytest.mark.parametrize(("name", "path"), [("nvcc", "/bin/nvcc"), ("gone", ""), ("unasked", None)])
def test_a_command_on_path(name: str, path: str | None) -> None:
    found = reading.found(FACTS, name)
    assert (type(found), found) == (type(path), path)


@pytest.mark.parametrize(("platform", "is_linux"), [("linux", True), ("win32", False), (None, False)])
def test_linux(platform: str | None, is_linux: bool) -> None:
    assert reading.is_linux({"values": {"platform": {"value": platform}}}) is is_linux
    assert reading.is_linux({}) is False


@pytest.mark.parametrize(("path", "name"), [("/a/b.so", "b.so"), ("C:\\a\\b.dll", "b.dll"), ("b", "b"), ("/a/", "")])
def test_the_last_part_of_a_path(path: str, name: str) -> None:
    assert reading.file_name(path) == name


@pytest.mark.parametrize(
    ("number", "known"),
    [(0, None), (1, 1), (5, 5), (6, None), (True, None), ("3", None), (3.0, None), (None, None)],
)
def test_a_whole_number_between_bounds(number: Any, known: int | None) -> None:
    assert reading.whole(number, 1, 5) == known
