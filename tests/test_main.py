"""How the program starts and ends."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize(("arguments", "status"), [(["--fast"], 0), (["--fast", "--require", "gpu>=99"], 1)])
def test_a_check_leaves_with_its_status_and_all_of_its_report(
    arguments: list[str], status: int, tmp_path: Path
) -> None:
    report = tmp_path / "report.json"
    with report.open("wb") as output:
        command = [sys.executable, "-m", "gpudoctor", "check", "--format", "json", "--fail-on", "never", *arguments]
        done = subprocess.run(command, cwd=tmp_path, stdout=output, check=False)
    assert done.returncode == status
    assert report.read_text().endswith("}\n")


@pytest.mark.skipif(sys.platform == "win32", reason="redirections of a shell")
def test_a_start_without_standard_streams_still_ends_with_its_status(tmp_path: Path) -> None:
    command = f"exec {sys.executable} -m gpudoctor check --fast --require 'gpu>=99' >&- 2>&-"
    assert subprocess.run(["sh", "-c", command], cwd=tmp_path, check=False).returncode == 1
