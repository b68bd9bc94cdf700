"""The examples work as they stand."""

import os
import subprocess
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.mark.parametrize(("status", "started"), [(0, True), (1, False), (3, False)])
def test_run_if_healthy(status: int, started: bool, tmp_path: Path) -> None:
    stand_in = tmp_path / "gpudoctor"
    stand_in.write_text(f'#!/bin/sh\ntest "$*" = "check --fail-on error" || exit 9\necho report\nexit {status}\n')
    stand_in.chmod(0o755)
    done = subprocess.run(
        [EXAMPLES / "run_if_healthy.sh", "echo", "training"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"},
    )
    assert (done.returncode, done.stdout) == (status, "training\n" if started else "")
    assert done.stderr == "report\n"
