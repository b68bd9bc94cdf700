"""Whatever the umask is: files with facts of the machine are for their owner, and nobody else can write any other."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gpudoctor.commands.reports import _append_summary
from gpudoctor.containers.rebuild.transaction import _folder
from gpudoctor.errors import UsageError
from gpudoctor.files import created_without, new_folder, write_whole
from gpudoctor.model.profile import Profile
from gpudoctor.profiles.env_file import write_profile

ROOT = Path(__file__).resolve().parent.parent
pytestmark = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="Windows has no permissions of this kind")
as_root = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give a file to another user"
)
SOMEBODY = 54321
OPEN = "import os, sys; os.umask(0); os.execv(sys.executable, [sys.executable, '-m', 'gpudoctor', *sys.argv[1:]])"
PRIVATE = {"report.json", "snapshot.json", "difference.json", "run.json", "exported.txt", "recording"}


def gpudoctor(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command for which everybody may write whatever it creates."""
    home = {"HOME": str(folder / "home"), "XDG_DATA_HOME": "", "XDG_CONFIG_HOME": "", "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-c", OPEN, *arguments],
        cwd=folder,
        env={**os.environ, **home, **variables},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_without_a_umask_nothing_is_open(tmp_path: Path) -> None:
    shutil.copy(ROOT / "examples" / "gpudoctor.env", tmp_path / "tuned.env")
    before = {*tmp_path.rglob("*"), tmp_path / "home"}
    summary = {"GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md")}
    for arguments in (
        ("check", "--fast", "--format", "json", "--output", "report.json"),
        ("check", "--fast", "--format", "github"),
        ("snapshot", "--fast", "--output", "snapshot.json"),
        ("diff", "snapshot.json", "snapshot.json", "--format", "json", "--output", "difference.json"),
        ("run", "--format", "json", "--output", "run.json", "--", "true"),
        ("profile", "export", "tuned.env", "--format", "json", "--output", "exported.txt"),
        ("record", "recording"),
        ("init",),
        ("completion", "bash", "--install"),
        ("completion", "fish", "--install"),
        ("check", "--fast"),  # takes the configuration that init wrote
    ):
        done = gpudoctor(tmp_path, *arguments, **summary)
        assert done.returncode in (0, 1), done.stderr
    modes = {path: path.stat().st_mode & 0o777 for path in {*tmp_path.rglob("*")} - before}
    assert {path.name for path in modes} >= {*PRIVATE, "summary.md", "gpudoctor.toml", ".bashrc", "gpudoctor.fish"}
    for path, mode in modes.items():
        inner = path.relative_to(tmp_path).parts[0]
        assert mode & (0o077 if inner in PRIVATE else 0o002) == 0, f"{path}: {mode:o}"


def test_a_profile_is_for_its_owner_and_keeps_what_its_owner_allows(tmp_path: Path) -> None:
    profile = Profile(
        device="cpu", precision="fp32", batch_size=8, max_batch_size=None, workload="mlp", fingerprint="device:cpu"
    )
    with created_without(0):
        write_profile(tmp_path / "gpudoctor.env", profile)
    assert (tmp_path / "gpudoctor.env").stat().st_mode & 0o777 == 0o600
    (tmp_path / "gpudoctor.env").chmod(0o644)
    write_profile(tmp_path / "gpudoctor.env", profile)
    assert (tmp_path / "gpudoctor.env").stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o027, 0o077])
def test_the_umask_is_given_back_and_counts(mask: int, tmp_path: Path) -> None:
    before = os.umask(mask)
    try:
        write_whole(tmp_path / "plain", "")
        with pytest.raises(KeyError), created_without(0o002):
            raise KeyError
    finally:
        given_back = os.umask(before)
    assert given_back == mask
    assert (tmp_path / "plain").stat().st_mode & 0o777 == 0o664 & ~mask


@as_root
@pytest.mark.parametrize("place", ["gpudoctor.toml", "folder"])
def test_nothing_is_created_where_a_link_of_another_user_leads(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "target"
    target.mkdir()
    link = tmp_path / place
    link.symlink_to(target if place == "folder" else target / "gpudoctor.toml")
    os.lchown(link, SOMEBODY, SOMEBODY)
    folder = link if place == "folder" else tmp_path
    done = gpudoctor(tmp_path, "init", "--folder", str(folder))
    assert (done.returncode, "is a link of another user" in done.stderr) == (2, True)
    if place == "folder":
        with pytest.raises(UsageError, match="link of another user"), new_folder(link / "recording"):
            pass
        done = gpudoctor(tmp_path, "completion", "bash", "--install", XDG_DATA_HOME=str(link))
        assert (done.returncode, "is a link of another user" in done.stderr) == (2, True)
        _append_summary("text", str(link / "summary.md"))
        monkeypatch.setenv("XDG_STATE_HOME", str(link))
        with pytest.raises(UsageError, match="is a link of another user"):
            _folder()
    assert list(target.iterdir()) == []


@as_root
def test_journals_of_another_user_are_not_worked_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    folder = _folder()
    assert folder.stat().st_mode & 0o777 == 0o700
    assert _folder() == folder
    os.chown(folder, SOMEBODY, SOMEBODY)
    with pytest.raises(UsageError, match="belongs to another user"):
        _folder()
