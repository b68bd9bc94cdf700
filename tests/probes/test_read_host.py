"""The worker that reads files and runs small commands, on a folder of its own and on this machine."""

from __future__ import annotations

import io
import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gpudoctor.probes.workers import read_host
from tests.stand_ins import facts_of

KEYS = {"files", "listings", "links", "nodes", "commands", "values", "which"}
linux_only = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="files of Linux")
not_root = pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")


def collect(**arguments: Any) -> dict[str, Any]:
    answer = read_host.collect(arguments)
    assert set(answer) == KEYS
    json.dumps(answer)
    return answer


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("a.txt", "b.txt", ".hidden.txt", "deep/er/c.txt", "[odd]/d.txt"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"text of {name}", encoding="utf-8")
    (tmp_path / "link").symlink_to(tmp_path / "deep")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    return tmp_path


@pytest.fixture
def locked(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "locked"
    folder.mkdir()
    (folder / "secret.txt").write_text("x", encoding="utf-8")
    folder.chmod(0)
    yield folder
    folder.chmod(0o755)


def test_nothing_asked() -> None:
    assert collect() == {key: {} for key in KEYS}


def test_files_by_path_and_by_glob(tree: Path) -> None:
    files = collect(files=[f"{tree}/a.txt", f"{tree}/*.txt", f"{tree}/**/c.txt"])["files"]
    assert files == {
        f"{tree}/a.txt": {"text": "text of a.txt"},
        f"{tree}/b.txt": {"text": "text of b.txt"},
        f"{tree}/deep/er/c.txt": {"text": "text of deep/er/c.txt"},
    }


def test_an_escaped_bracket_is_a_character(tree: Path) -> None:
    assert collect(files=[f"{tree}/[[]odd]/*.txt"])["files"] == {f"{tree}/[odd]/d.txt": {"text": "text of [odd]/d.txt"}}
    assert list(collect(files=[f"{tree}/[[]odd]/d.txt"])["files"]) == [f"{tree}/[odd]/d.txt"]


def test_a_missing_file_is_an_error_and_a_glob_without_a_match_is_none(tree: Path) -> None:
    files = collect(files=[f"{tree}/z.txt", f"{tree}/z*.txt", f"{tree}/nowhere/*", f"{tree}/a.txt/*"])["files"]
    assert list(files) == [f"{tree}/z.txt"]
    assert files[f"{tree}/z.txt"]["error"].startswith("ENOENT ")


def test_bytes_that_are_no_text(tree: Path) -> None:
    (tree / "a.txt").write_bytes(b"\xff\xfeName\x00=\xe9")
    assert collect(files=[f"{tree}/a.txt"])["files"][f"{tree}/a.txt"] == {"text": "��Name\x00=�"}


def test_a_long_file_is_cut(tree: Path) -> None:
    (tree / "a.txt").write_bytes(b"x" * (read_host.FILE_BYTES + 1))
    (tree / "b.txt").write_bytes(b"x" * read_host.FILE_BYTES)
    files = collect(files=[f"{tree}/*.txt"])["files"]
    assert files[f"{tree}/a.txt"] == {"text": "x" * read_host.FILE_BYTES, "truncated": True}
    assert files[f"{tree}/b.txt"] == {"text": "x" * read_host.FILE_BYTES}


@pytest.mark.parametrize("limit", [5, len("text of a.txt")])
def test_all_files_together_are_bounded(tree: Path, monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    monkeypatch.setattr(read_host, "ALL_FILES_BYTES", limit)
    files = collect(files=[f"{tree}/a.txt", f"{tree}/b.txt"])["files"]
    assert "text" in files[f"{tree}/a.txt"]
    assert files[f"{tree}/b.txt"]["error"].startswith("not read")


@linux_only
@pytest.mark.parametrize("kind", ["folder", "pipe", "device"])
def test_what_is_no_file_is_not_opened(tmp_path: Path, kind: str) -> None:
    path = {"folder": tmp_path, "pipe": tmp_path / "pipe", "device": Path("/dev/zero")}[kind]
    if kind == "pipe":
        os.mkfifo(path)
    started = time.monotonic()
    answer = collect(files=[str(path)], nodes=[str(path)] if kind != "device" else [])
    assert answer["files"][str(path)] == {"error": "not a regular file"}
    assert time.monotonic() - started < 2
    if kind != "device":
        assert answer["nodes"][str(path)]["error"] == "not a device"


@not_root
def test_a_locked_folder_is_an_error(locked: Path) -> None:
    answer = collect(files=[f"{locked}/*.txt", f"{locked}/secret.txt"], listings=[f"{locked}/*", f"{locked}/x"])
    assert answer["files"][f"{locked}/*.txt"]["error"].startswith("EACCES ")
    assert answer["files"][f"{locked}/secret.txt"]["error"].startswith("EACCES ")
    assert answer["listings"][f"{locked}/*"]["error"].startswith("EACCES ")
    assert answer["listings"][f"{locked}/x"]["error"].startswith("EACCES ")


def test_a_folder_that_cannot_be_listed(tmp_path: Path) -> None:
    """A link to itself is refused to root too."""
    (tmp_path / "loop").symlink_to("loop")
    glob = f"{tmp_path}/loop/*"
    error = {"error": "ELOOP Too many levels of symbolic links"}
    answer = collect(files=[glob], listings=[glob], links=[glob], nodes=[glob])
    assert [answer[kind][glob] for kind in ("files", "listings", "links", "nodes")] == [
        error,
        {"paths": [], **error},
        error,
        error,
    ]


@pytest.mark.parametrize("path", ["", "a\x00b"])
def test_a_path_that_cannot_be(path: str) -> None:
    answer = collect(files=[path], listings=[path], links=[path], nodes=[path])
    assert "error" in answer["files"][path]
    assert answer["listings"][path]["paths"] == []
    assert "error" in answer["links"][path]
    assert answer["nodes"][path]["accessible"] is False


def test_listings(tree: Path) -> None:
    listings = collect(listings=[f"{tree}/*", f"{tree}/a.txt", f"{tree}/none", f"{tree}/none/*"])["listings"]
    # a link that leads nowhere is no file that could be loaded
    assert listings[f"{tree}/*"] == {
        "paths": [f"{tree}/{name}" for name in ("[odd]", "a.txt", "b.txt", "deep", "link")]
    }
    assert listings[f"{tree}/a.txt"] == {"paths": [f"{tree}/a.txt"]}
    assert listings[f"{tree}/none"] == {"paths": []}
    assert listings[f"{tree}/none/*"] == {"paths": []}
    assert collect(listings=[f"{tree}/a.txt/x", f"{tree}/a.txt/*"])["listings"] == {
        f"{tree}/a.txt/x": {"paths": []},
        f"{tree}/a.txt/*": {"paths": []},
    }


def test_matches_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_host, "MOST_MATCHES", 10)
    for number in range(30):
        (tmp_path / f"{number}.txt").touch()
    assert len(collect(listings=[f"{tmp_path}/*"])["listings"][f"{tmp_path}/*"]["paths"]) == 10


def test_links(tree: Path) -> None:
    links = collect(links=[f"{tree}/*[kg]", f"{tree}/none"])["links"]
    assert links[f"{tree}/link"] == {"target": str(tree.resolve() / "deep")}
    assert links[f"{tree}/dangling"] == {"target": str(tree.resolve() / "nowhere")}
    assert links[f"{tree}/none"]["error"].startswith("ENOENT ")


@linux_only
def test_device_nodes() -> None:
    nodes = collect(nodes=["/dev/nul[l]", "/dev/none"])["nodes"]
    assert nodes["/dev/null"] == {"mode": "666", "accessible": True, "error": ""}
    assert nodes["/dev/none"] == {"mode": "", "accessible": False, "error": "ENOENT No such file or directory"}


@linux_only
@not_root
def test_a_device_that_may_not_be_opened() -> None:
    node = collect(nodes=["/dev/kmsg"])["nodes"]["/dev/kmsg"]
    assert node["accessible"] is False
    assert node["error"].startswith(("EACCES ", "EPERM "))


def test_commands() -> None:
    say = "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"
    commands = collect(commands={"python": [sys.executable, "-c", say], "none": ["no-such-command-anywhere"]})[
        "commands"
    ]
    assert commands["python"]["status"] == 3
    assert commands["python"]["stdout"].split() == ["out"]
    assert commands["python"]["stderr"].split() == ["err"]
    assert commands["python"]["argv"] == [sys.executable, "-c", say]
    assert commands["none"] == {
        "argv": ["no-such-command-anywhere"],
        "status": None,
        "stdout": "",
        "stderr": "",
        "error": "ENOENT No such file or directory",
    }


def test_only_lines_with_a_word(tree: Path) -> None:
    (tree / "a.txt").write_text("one\ntwo\nonce more one\n", encoding="utf-8")
    argv = [sys.executable, "-c", "print('one'); print('two')"]
    answer = collect(
        files=[f"{tree}/?.txt"], commands={"count": argv}, lines={"count": ["two"], "*/a.txt": ["one", "1"]}
    )
    assert answer["files"][f"{tree}/a.txt"]["text"] == "one\nonce more one\n"
    assert answer["files"][f"{tree}/b.txt"]["text"] == "text of b.txt"
    assert answer["commands"]["count"]["stdout"] == "two\n"


@pytest.mark.parametrize(("first", "run"), [(sys.executable, ["first"]), ("/nowhere/cc", ["first", "second"])])
def test_a_command_instead_of_one_that_is_not_there(first: str, run: list[str]) -> None:
    commands = {"first": [first, "--version"], "second": [sys.executable, "--version"]}
    assert list(collect(commands=commands, instead={"second": "first"})["commands"]) == run


def test_no_shell() -> None:
    argv = [sys.executable, "-c", "import sys; print(sys.argv[1])", "$(id); rm *"]
    assert collect(commands={"x": argv})["commands"]["x"]["stdout"].strip() == "$(id); rm *"


def test_a_command_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_host, "COMMAND_SECONDS", 0.5)
    sleep = [sys.executable, "-c", "import time; time.sleep(60)"]
    started = time.monotonic()
    commands = collect(commands={"one": sleep, "two": sleep})["commands"]
    assert time.monotonic() - started < 5
    assert commands["one"]["status"] is None
    assert commands["one"]["error"] == "no answer in 0.5 s"
    assert commands["two"]["error"] == "no answer in 0.5 s"


def test_long_output_is_cut_and_the_command_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_host, "OUTPUT_BYTES", 1000)
    argv = [sys.executable, "-c", "print('x' * 3_000_000)"]
    command = collect(commands={"long": argv})["commands"]["long"]
    assert (command["status"], len(command["stdout"])) == (0, 1000)


def test_commands_speak_english(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    argv = [sys.executable, "-c", "import os; print(os.environ['LC_ALL'])"]
    assert collect(commands={"x": argv})["commands"]["x"]["stdout"].strip() == "C"


def test_which(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = tmp_path / "real-tool"
    tool.write_text("#!/bin/sh\n", encoding="utf-8")
    tool.chmod(0o755)
    (tmp_path / "tool").symlink_to(tool)
    monkeypatch.setenv("PATH", str(tmp_path))
    which = collect(which=["tool", "none"])["which"]
    assert which == {"tool": {"path": str(tmp_path / "tool"), "target": str(tool.resolve())}, "none": None}


@linux_only
def test_which_takes_programs_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("folder/tool", "text", "bin"):
        (tmp_path / name).mkdir(parents=True)
    for name, mode in (("text/tool", 0o644), ("bin/tool", 0o755)):
        (tmp_path / name).touch(mode)
    monkeypatch.setenv("PATH", ":".join(str(tmp_path / name) for name in ("none", "folder", "text", "bin")))
    assert collect(which=["tool"])["which"]["tool"]["path"] == str(tmp_path / "bin" / "tool")


def test_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_HOME", "/opt/cuda")
    monkeypatch.delenv("CUDA_PATH", raising=False)
    names = [
        "platform",
        "uname",
        "cpu_affinity",
        "variable:CUDA_HOME",
        "variable:CUDA_PATH",
        "is_set:CUDA_PATH",
        "nonsense",
    ]
    values = collect(values=names)["values"]
    assert values["platform"] == {"value": sys.platform}
    assert set(values["uname"]["value"]) == {"system", "release", "machine"}
    assert values["cpu_affinity"]["value"] >= 1
    assert values["variable:CUDA_HOME"] == {"value": "/opt/cuda"}
    assert values["variable:CUDA_PATH"] == {"value": None}
    assert values["is_set:CUDA_PATH"] == {"value": False}
    assert "error" in values["nonsense"]


@linux_only
def test_values_of_linux() -> None:
    me = Path("/proc/self/comm").read_text(encoding="utf-8").strip()
    names = ["libc", "euid", "memlock", "statvfs:/", "filesystem:/proc", f"running:{me}"]
    values = collect(values=[*names, "running:no-such-process", "statvfs:/none"])["values"]
    assert values["euid"] == {"value": os.geteuid()}
    assert values["statvfs:/"]["value"]["total_bytes"] > 0
    assert values["statvfs:/none"]["error"].startswith("ENOENT ")
    assert values["filesystem:/proc"] == {"value": "proc"}
    assert values[f"running:{me}"] == {"value": True}
    assert values["running:no-such-process"] == {"value": False}


@linux_only
@pytest.mark.parametrize(
    ("mode", "access"),
    [(mode, os.O_RDONLY) for mode in (0o20444, 0o20400, 0o20555)]
    + [(mode, os.O_RDWR) for mode in (0o20200, 0o20020, 0o20002, 0o20666)],
)
def test_a_device_that_nobody_may_write_is_opened_for_reading(
    mode: int, access: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[int] = []
    monkeypatch.setattr(os, "stat", lambda path: SimpleNamespace(st_mode=mode))

    def open_node(path: str, flags: int) -> int:
        opened.append(flags)
        return 99

    monkeypatch.setattr(os, "open", open_node)
    monkeypatch.setattr(os, "close", lambda descriptor: None)
    assert read_host._try_node("/dev/x") == {"mode": f"{mode & 0o777:o}", "accessible": True, "error": ""}
    assert opened == [access | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC]


MOUNTS = (
    "none / overlay rw 0 0\nbroken /data\nnone /data ext4 rw 0 0\nnone /data/x nfs rw 0 0\nnone /data tmpfs rw 0 0\n"
)


@linux_only
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("filesystem:/data", "tmpfs"),
        ("filesystem:/data/x", "nfs"),
        ("filesystem:/none", None),
        ("running:nvidia-persistenced", True),
        ("running:nvidia-persist", False),
        ("running:Xorg", True),
        ("cpu_affinity", 3),
        ("libc", "glibc 2.35"),
        ("memlock", 65536),
        ("statvfs:/data", {"total_bytes": 8192}),
    ],
)
def test_what_the_system_answers(name: str, value: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"/proc/self/mounts": MOUNTS, "/proc/7/comm": "nvidia-persiste\n", "/proc/8/comm": "Xorg\n"}

    def open_text(path: str, mode: str = "r", **_: Any) -> Any:
        if path not in files:
            raise OSError
        return io.StringIO(files[path]) if mode == "r" else io.BytesIO(files[path].encode())

    entries = [SimpleNamespace(name=name, path=f"/proc/{name}") for name in ("6", "7", "8")]
    monkeypatch.setattr(read_host, "open", open_text, raising=False)
    monkeypatch.setattr(os, "scandir", lambda path: nullcontext(entries))
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {4, 5, 6} if pid == 0 else {1}, raising=False)
    monkeypatch.setattr(os, "confstr", lambda name: "glibc 2.35")
    monkeypatch.setattr(os, "statvfs", lambda path: SimpleNamespace(f_frsize=4096, f_bsize=512, f_blocks=2, f_bfree=1))
    monkeypatch.setattr("resource.getrlimit", lambda kind: (65536, -1))
    assert read_host._value(name) == {"value": value}


@linux_only
def test_systems_that_answer_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "confstr_names", {})
    monkeypatch.setattr("resource.getrlimit", lambda kind: (-1, 5))
    monkeypatch.delattr(os, "sched_getaffinity")
    assert read_host._value("libc") == {"value": None}
    assert read_host._value("memlock") == {"value": -1}
    assert read_host._value("cpu_affinity") == {"value": os.cpu_count()}
    monkeypatch.delattr(os, "uname")
    assert read_host._value("uname")["value"]["system"] == "Linux"


def test_the_lines_of_a_profile_are_only_gpudoctor_s(tmp_path: Path) -> None:
    (tmp_path / "env").write_text("\ufeffGPUDOCTOR_A=1\nSECRET=2\n GPUDOCTOR_B=3\nGPUDOCTOR_C=4\n", encoding="utf-8")
    assert read_host._value(f"profile:{tmp_path}/env") == {"value": ["GPUDOCTOR_A=1", "GPUDOCTOR_C=4"]}
    assert read_host._value(f"profile:{tmp_path}") == {"error": "ValueError not a regular file"}


@pytest.mark.parametrize(
    ("pattern", "path"),
    [("/a/b", "/a/b"), ("/a[[]b", "/a[b"), ("/[*]/[?]", "/*/?"), ("/a[[]*", None), ("/[ab]", None), ("/a]", "/a]")],
)
def test_a_pattern_without_a_wildcard_is_a_path(pattern: str, path: str | None) -> None:
    assert read_host._unescape(pattern) == path


@pytest.mark.parametrize("folds_case", [False, True])
@pytest.mark.parametrize(
    ("part", "found"),
    [
        ("a*", ["a", "ab", "ab.c"]),
        ("*", ["[x", "a", "ab", "ab.c", "b"]),
        (".*", [".a", ".b"]),
        ("ab?c", ["ab.c"]),
        ("[[]*", ["[x"]),
        ("c*", []),
    ],
)
def test_names_that_match(folds_case: bool, part: str, found: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert read_host.FOLDS_CASE is (sys.platform == "win32")
    monkeypatch.setattr(read_host, "FOLDS_CASE", folds_case)
    names = sorted([".a", ".b", "a", "ab", "ab.c", "b", "[x"])
    assert read_host._matching(names, part) == found
    if folds_case:  # then those that begin so do not stand together
        assert sorted(read_host._matching(names[::-1], part)) == found


def test_in_a_process_of_its_own(tree: Path) -> None:
    facts = facts_of("read_host", files=[f"{tree}/a.txt"])
    assert facts["files"] == {f"{tree}/a.txt": {"text": "text of a.txt"}}


def test_folders_are_gone_through_to_a_depth(tmp_path: Path) -> None:
    folder = tmp_path
    for depth in range(read_host.DEEPEST_FOLDERS + 2):
        (folder / "x.txt").touch()
        folder = folder / str(depth)
        folder.mkdir()
    found = collect(listings=[f"{tmp_path}/**/x.txt"])["listings"][f"{tmp_path}/**/x.txt"]["paths"]
    assert len(found) == read_host.DEEPEST_FOLDERS + 1


@pytest.mark.parametrize(("there", "flags"), [({"O_NONBLOCK": 0x800}, 0x800), ({"O_BINARY": 0x8000}, 0x8000), ({}, 0)])
def test_how_a_file_is_opened(
    there: dict[str, int], flags: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Windows has no O_NONBLOCK, and others no O_BINARY."""
    (tmp_path / "x").write_bytes(b"text")
    opened: list[int] = []
    real = os.open

    def open_file(path: str, given: int) -> int:
        opened.append(given)
        return real(path, os.O_RDONLY)

    for name in ("O_NONBLOCK", "O_BINARY"):
        monkeypatch.delattr(os, name, raising=False)
    for name, value in there.items():
        monkeypatch.setattr(os, name, value, raising=False)
    monkeypatch.setattr(os, "open", open_file)
    assert read_host._read_bytes(str(tmp_path / "x")) == b"text"
    assert opened == [os.O_RDONLY | flags]
