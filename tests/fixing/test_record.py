"""What a record of an environment brings back, whatever happened in between."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from gpudoctor.fixing import record
from gpudoctor.fixing.record import LARGEST_COPY_BYTES, Scope, differences, read_manifest, restore, scope_of, take

pytestmark = pytest.mark.skipif(os.name != "posix", reason="links and modes are those of POSIX")
LARGE = b"large" * LARGEST_COPY_BYTES


@pytest.fixture
def env(tmp_path: Path) -> Path:
    """Return an environment with a package of small and large files, a link and a program."""
    packages = tmp_path / "venv" / "lib" / "site-packages"
    for path, content in {
        "torch/__init__.py": b"import torch._C\n",
        "torch/lib/libtorch.so": LARGE,
        "torch/empty/deep/file.txt": b"",
        "torch-2.13.0.dist-info/RECORD": b"torch/__init__.py,,\n",
        "other/__init__.py": b"untouched",
    }.items():
        (packages / path).parent.mkdir(parents=True, exist_ok=True)
        (packages / path).write_bytes(content)
    (packages / "torch" / "link").symlink_to("lib/libtorch.so")
    (tmp_path / "venv" / "bin").mkdir()
    program = tmp_path / "venv" / "bin" / "torchrun"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    return tmp_path / "venv"


def state(env: Path) -> dict[str, tuple[int, int, str]]:
    found = {}
    for path in sorted(env.rglob("*")):
        inside = path.relative_to(env)
        if inside.parts[0] != ".gpudoctor":
            about = path.lstat()
            content = os.readlink(path) if path.is_symlink() else "" if path.is_dir() else _hash(path)
            is_file = path.is_file() and not path.is_symlink()
            found[str(inside)] = (about.st_mode, about.st_mtime_ns if is_file else 0, content)
    return found


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def scope(env: Path, *more: str) -> Scope:
    packages = env / "lib" / "site-packages"
    paths = ["torch/__init__.py", "torch-2.13.0.dist-info/RECORD", "../../bin/torchrun", "new/file.py", *more]
    return scope_of(str(env), [str(packages)], [str(packages / path) for path in paths])


def taken(env: Path) -> Path:
    folder = env / ".gpudoctor" / "pending"
    folder.parent.mkdir()
    take(scope(env), folder, {"executable": "python"})
    return folder


def replace_files(env: Path) -> None:
    packages = env / "lib" / "site-packages"
    shutil.rmtree(packages / "torch" / "empty")
    for path, content in (("torch/__init__.py", b"other\n"), ("torch/lib/libtorch.so", b"short")):
        (packages / path).unlink()
        (packages / path).write_bytes(content)
    (packages / "torch" / "added.py").touch()
    (packages / "new" / "deep").mkdir(parents=True)
    (packages / "new" / "file.py").touch()


def leave_half(env: Path) -> None:
    packages = env / "lib" / "site-packages"
    (packages / "torch").rename(packages / "~orch")
    shutil.rmtree(packages / "torch-2.13.0.dist-info")
    (env / "bin" / "torchrun").unlink()


def swap_kinds(env: Path) -> None:
    packages = env / "lib" / "site-packages"
    shutil.rmtree(packages / "torch" / "lib")
    (packages / "torch" / "lib").write_text("a file now")
    (packages / "torch" / "link").unlink()
    (packages / "torch" / "link").mkdir()
    (packages / "torch" / "__init__.py").unlink()
    (packages / "torch" / "__init__.py").symlink_to("/etc/passwd")


def change_modes(env: Path) -> None:
    (env / "bin" / "torchrun").chmod(0o600)
    os.utime(env / "lib" / "site-packages" / "torch" / "__init__.py", (1, 1))


@pytest.mark.parametrize("change", [replace_files, leave_half, swap_kinds, change_modes, lambda _: None])
def test_everything_comes_back(env: Path, change: Callable[[Path], None]) -> None:
    before = state(env)
    folder = taken(env)
    change(env)
    assert restore(str(env), folder) == []
    assert state(env) == before
    assert restore(str(env), folder) == []  # once more does no harm
    assert state(env) == before


@pytest.mark.parametrize("of_somebody", [False, True])
def test_a_folder_that_the_change_made_goes_unless_somebody_uses_it(env: Path, of_somebody: bool) -> None:
    before = state(env)
    folder = env / ".gpudoctor" / "pending"
    folder.parent.mkdir()
    take(scope(env, "../../share/man/page.1"), folder, {})
    (env / "share" / "man").mkdir(parents=True)
    (env / "share" / "man" / "page.1").touch()
    if of_somebody:
        (env / "share" / "mine").touch()
    assert restore(str(env), folder) == []
    assert not (env / "share" / "man").exists()
    assert (env / "share" / "mine").exists() == of_somebody
    assert of_somebody or state(env) == before


def test_an_interrupted_restore_is_run_again(env: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before, chance = state(env), random.Random(3)
    folder = taken(env)
    put_back = record._put_back
    for _ in range(10):
        replace_files(env)
        left = chance.randrange(8)

        def stop(*arguments: object) -> None:
            nonlocal left
            left -= 1
            if left < 0:
                raise KeyboardInterrupt
            put_back(*arguments)  # type: ignore[arg-type]

        monkeypatch.setattr(record, "_put_back", stop)
        with pytest.raises(KeyboardInterrupt):
            restore(str(env), folder)
        monkeypatch.setattr(record, "_put_back", put_back)
        assert restore(str(env), folder) == []
        assert state(env) == before


def test_small_files_are_copied_and_large_ones_linked(env: Path) -> None:
    manifest = read_manifest(taken(env))
    assert manifest is not None
    entries = manifest["entries"]
    assert entries["lib/site-packages/torch/__init__.py"]["sha256"]
    assert entries["lib/site-packages/torch/lib/libtorch.so"]["sha256"] == ""
    assert (env / "lib" / "site-packages" / "torch" / "lib" / "libtorch.so").stat().st_nlink == 2


def test_an_edit_in_place_of_a_linked_file_is_named(env: Path) -> None:
    folder = taken(env)
    library = env / "lib" / "site-packages" / "torch" / "lib" / "libtorch.so"
    with library.open("r+b") as file:
        file.write(b"changed")
    os.utime(library, (1, 1))
    assert restore(str(env), folder) == ["lib/site-packages/torch/lib/libtorch.so"]


def test_what_is_not_in_the_scope_stays(env: Path) -> None:
    folder = taken(env)
    other = env / "lib" / "site-packages" / "other" / "__init__.py"
    other.write_text("changed by somebody")
    restore(str(env), folder)
    assert other.read_text() == "changed by somebody"


def test_a_path_that_leads_out_is_left_out(env: Path, tmp_path: Path) -> None:
    outside = tmp_path / "home"
    outside.mkdir()
    (outside / "file").write_text("mine")
    (env / "lib" / "site-packages" / "away").symlink_to(outside)
    found = scope(
        env, "../../../home/file", "/etc/passwd", "away/file", "../../../../../etc/passwd", "..", ".", "../../bin"
    )
    assert found.roots == (
        "bin/torchrun",
        *(f"lib/site-packages/{name}" for name in ("new", "torch", "torch-2.13.0.dist-info")),
    )


def test_a_record_that_was_not_finished_is_none(env: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = env / ".gpudoctor" / "pending"
    folder.parent.mkdir()

    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(record, "_write_synced", fail)
    with pytest.raises(OSError, match="disk full"):
        take(scope(env), folder, {})
    assert not folder.exists()
    assert read_manifest(folder) is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        pytest.param("roots", ["../home"], id="above"),
        pytest.param("roots", ["/etc"], id="absolute"),
        pytest.param("folders", ["lib/../../home"], id="by a detour"),
        pytest.param("listings", {"..": []}, id="a listing"),
        pytest.param("absent", ["../home"], id="a folder to remove"),
        pytest.param("entries", {"../x": {"kind": "folder", "mode": 0}}, id="an entry"),
        pytest.param("entries", {"x": {"kind": "file", "saved": "../x"}}, id="a saved file"),
    ],
)
def test_a_record_with_paths_that_lead_out_is_none(env: Path, key: str, value: object) -> None:
    folder = taken(env)
    manifest = read_manifest(folder)
    assert manifest is not None
    (folder / record.MANIFEST).write_text(json.dumps({**manifest, key: value}))
    assert read_manifest(folder) is None


def test_without_hard_links_everything_is_copied(env: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError("not supported")

    monkeypatch.setattr(os, "link", refuse)
    before, folder = state(env), taken(env)
    replace_files(env)
    assert restore(str(env), folder) == []
    assert state(env) == before


def test_differences_are_named(env: Path) -> None:
    manifest = read_manifest(taken(env))
    assert manifest is not None
    (env / "bin" / "torchrun").unlink()
    (env / "lib" / "site-packages" / "torch" / "more.py").touch()
    assert differences(scope(env), manifest["entries"]) == ["bin/torchrun", "lib/site-packages/torch/more.py"]
