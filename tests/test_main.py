"""How the program starts: a check of this machine asks it before anything else is done, and nothing else does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize(
    ("arguments", "environ", "asked"),
    [
        (["check", "--fast"], {}, True),
        (["check", "--select", "driver-missing"], {}, True),
        (["check", "--help"], {}, False),
        (["check", "--from", "report.txt"], {}, False),
        (["check", "--from=report.txt"], {}, False),
        (["list"], {}, False),
        ([], {}, False),
        (["check"], {"_GPUDOCTOR_COMPLETE": "bash_complete"}, False),
    ],
    ids=str,
)
def test_only_a_check_of_this_machine_starts_the_probes(
    arguments: list[str], environ: dict[str, str], asked: bool, tmp_path: Path
) -> None:
    program = (
        "import sys\n"
        "from gpudoctor import __main__ as program\n"
        "program._begin_probing = lambda: sys.exit('asked')\n"
        "program.main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env={**os.environ, **environ},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stderr == "asked\n") == asked


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
