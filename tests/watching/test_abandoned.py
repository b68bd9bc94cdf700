"""The folder of the hook: gone at the end, and removed by the next start if gpudoctor was killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from gpudoctor.watching.inside import PREFIX, Inside

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has no such locks")

LONG = "import pathlib, time; time.sleep(3); pathlib.Path('ended').write_text('well')"


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty folder for temporary files."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    return tmp_path / "temporary"


def folders(temporary: Path) -> list[str]:
    return [path.name for path in temporary.glob(f"{PREFIX}*")]


def test_each_of_two_runs_keeps_its_folder(temporary: Path) -> None:
    first, second = Inside({}), Inside({})
    assert len(folders(temporary)) == 2
    first.remove()
    second.remove()
    assert folders(temporary) == []


def test_a_folder_without_a_lock_is_not_touched(temporary: Path) -> None:
    (temporary / f"{PREFIX}of-somebody").mkdir()
    Inside({}).remove()
    assert folders(temporary) == [f"{PREFIX}of-somebody"]


def test_the_program_goes_on_when_gpudoctor_is_killed(temporary: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "gpudoctor", "run", "--", sys.executable, "-c", LONG]
    doctor = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not list(temporary.glob(f"{PREFIX}*/seen/*.json")) and time.monotonic() < deadline:
        time.sleep(0.02)
    doctor.send_signal(signal.SIGKILL)
    doctor.wait()
    assert len(folders(temporary)) == 1
    Inside({}).remove()
    assert folders(temporary) == []
    while not (tmp_path / "ended").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert (tmp_path / "ended").read_text() == "well"


def test_a_damaged_file_does_not_take_the_report_away(temporary: Path) -> None:
    inside = Inside({})
    next(temporary.glob(f"{PREFIX}*/seen")).joinpath("7.json").write_text("{")
    assert inside.read() == []
    inside.remove()
