"""What another user owns or can write to decides nothing and is not followed."""

from __future__ import annotations

import importlib.util
import os
import py_compile
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from gpudoctor.configuration.options import load_configuration
from gpudoctor.engine.catalog import load_checks
from gpudoctor.engine.plugins import run_file
from gpudoctor.errors import UsageError
from gpudoctor.files import check_writable, new_folder, write_whole
from gpudoctor.trust import TRUST, refuse_if_writable_by_others

ROOT = Path(__file__).resolve().parent.parent
pytestmark = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="Windows has no owners of this kind")
as_root = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give a file to another user"
)
SOMEBODY = 54321


def configuration(folder: Path) -> Path:
    file = folder / "gpudoctor.toml"
    file.write_text('gpu = "optional"\n')
    return file


@as_root
def test_a_configuration_of_another_user_is_refused_with_the_way_to_allow_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.chown(configuration(tmp_path), SOMEBODY, SOMEBODY)
    (tmp_path / "src").mkdir()
    with pytest.raises(UsageError, match=f"belongs to another user; to use it anyway: export {TRUST}={tmp_path}$"):
        load_configuration(str(tmp_path / "src"))
    monkeypatch.setenv(TRUST, f"/elsewhere{os.pathsep}{tmp_path}")
    assert load_configuration(str(tmp_path)).gpu == "optional"


@pytest.mark.parametrize(("mode", "refused"), [(0o644, False), (0o664, False), (0o646, True), (0o602, True)])
def test_a_configuration_that_everybody_can_write_is_refused(mode: int, refused: bool, tmp_path: Path) -> None:
    configuration(tmp_path).chmod(mode)
    if refused:
        with pytest.raises(UsageError, match="can be written by other users"):
            load_configuration(str(tmp_path))
    else:
        assert load_configuration(str(tmp_path)).gpu == "optional"


@as_root
def test_a_group_of_others_that_can_write_is_refused(tmp_path: Path) -> None:
    file = configuration(tmp_path)
    os.chown(file, 0, SOMEBODY)
    file.chmod(0o664)
    with pytest.raises(UsageError, match="can be written by other users"):
        refuse_if_writable_by_others(str(file))
    file.chmod(0o644)
    refuse_if_writable_by_others(str(file))


@as_root
def test_sudo_trusts_its_caller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.chown(configuration(tmp_path), SOMEBODY, SOMEBODY)
    monkeypatch.setenv("SUDO_UID", str(SOMEBODY))
    assert load_configuration(str(tmp_path)).gpu == "optional"


def test_everything_is_trusted_on_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    configuration(tmp_path).chmod(0o666)
    monkeypatch.setenv(TRUST, "*")
    assert load_configuration(str(tmp_path)).gpu == "optional"


@pytest.mark.parametrize("open_one", [".", "acme.py"])
def test_a_plugin_that_others_can_write_does_not_run(open_one: str, tmp_path: Path) -> None:
    (tmp_path / "acme.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    (tmp_path / open_one).chmod(0o777)
    with pytest.raises(UsageError, match="can be written by other users"):
        load_checks(str(tmp_path))
    assert not (tmp_path / "ran").exists()


def test_planted_bytecode_of_a_plugin_does_not_run(tmp_path: Path) -> None:
    plugin, planted = tmp_path / "own.py", tmp_path / "planted.py"
    plugin.write_text("VALUE = 'own code'  # as long as the other one\n")
    planted.write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    cached = Path(importlib.util.cache_from_source(str(plugin)))
    py_compile.compile(str(planted), str(cached), str(plugin))
    state = plugin.stat()
    header = cached.read_bytes()[:8] + struct.pack("<LL", int(state.st_mtime), state.st_size)
    cached.write_bytes(header + cached.read_bytes()[16:])
    run_file("own_plugin", str(plugin))
    assert sys.modules.pop("own_plugin").VALUE == "own code"
    assert not (tmp_path / "ran").exists()


@as_root
def test_a_plugin_folder_behind_a_link_of_another_user_is_refused(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "link").symlink_to("own")
    refuse_if_writable_by_others(str(tmp_path / "link"))
    os.chown(tmp_path / "link", SOMEBODY, SOMEBODY, follow_symlinks=False)
    with pytest.raises(UsageError, match="link, a link of another user; to use it anyway"):
        refuse_if_writable_by_others(str(tmp_path / "link"))


@as_root
@pytest.mark.parametrize("link", ["report.json", "folder/report.json"])
def test_a_link_of_another_user_is_not_followed(link: str, tmp_path: Path) -> None:
    (tmp_path / "target").mkdir()
    place = tmp_path / link.split("/", maxsplit=1)[0]
    place.symlink_to(tmp_path / "target" if "/" in link else tmp_path / "target" / "report.json")
    os.lchown(place, SOMEBODY, SOMEBODY)
    for write in (check_writable, lambda path: write_whole(path, "{}")):
        with pytest.raises(UsageError, match="is a link of another user"):
            write(tmp_path / link)
    assert list((tmp_path / "target").iterdir()) == []


def test_a_private_file_is_for_its_owner_only(tmp_path: Path) -> None:
    write_whole(tmp_path / "report.json", "{}", private=True)
    assert (tmp_path / "report.json").stat().st_mode & 0o777 == 0o600
    (tmp_path / "report.json").chmod(0o640)
    write_whole(tmp_path / "report.json", "[]", private=True)
    assert (tmp_path / "report.json").stat().st_mode & 0o777 == 0o640


@as_root
def test_a_file_that_another_user_made_open_does_not_stay_open(tmp_path: Path) -> None:
    target = tmp_path / "report.json"
    target.touch()
    target.chmod(0o666)
    os.chown(target, SOMEBODY, SOMEBODY)
    write_whole(target, "{}", private=True)
    assert target.stat().st_mode & 0o777 == 0o600


def test_a_recording_is_for_its_owner_alone(tmp_path: Path) -> None:
    with new_folder(tmp_path / "recording") as folder:
        (folder / "probe.json").write_text("{}")
    assert (tmp_path / "recording").stat().st_mode & 0o777 == 0o700


def test_the_module_command_imports_nothing_from_the_working_directory(tmp_path: Path) -> None:
    for name in ("click", "json", "queue", "yaml"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    done = subprocess.run(
        [sys.executable, "-m", "gpudoctor", "--version"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert (done.returncode, (tmp_path / "ran").exists()) == (0, False), done.stderr


@as_root
def test_a_profile_of_another_user_is_not_run_with(tmp_path: Path) -> None:
    profile = tmp_path / "gpudoctor.env"
    profile.write_bytes((ROOT / "examples" / "gpudoctor.env").read_bytes())
    os.chown(profile, SOMEBODY, SOMEBODY)
    done = subprocess.run(
        [sys.executable, "-m", "gpudoctor", "run", "--", "true"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert (done.returncode, "belongs to another user" in done.stderr) == (2, True)
