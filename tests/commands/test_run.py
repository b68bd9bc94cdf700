"""How the report of `gpudoctor run` is written: for the screen, and for a file."""

from __future__ import annotations

import io
import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from gpudoctor.commands import run
from gpudoctor.model import Run
from gpudoctor.watching.samples import Watch
from gpudoctor.watching.watched import WatchedRun

WATCHED = WatchedRun(
    command=("python", "train.py"),
    exit_status=0,
    elapsed_seconds=41.0,
    every_seconds=1.0,
    watch=Watch(problem="no driver"),
    run=Run(inside="no “it”"),
)


class Screen(io.TextIOWrapper):
    """Standard error, in an encoding of its own."""

    def __init__(self, encoding: str) -> None:
        super().__init__(io.BytesIO(), encoding=encoding)


@pytest.mark.parametrize(
    ("encoding", "output", "shown"),
    [
        ("utf-8", None, "The steps were not watched: no “it”."),
        ("ascii", None, "The steps were not watched: no \\u201cit\\u201d."),
        ("ascii", "report.txt", "The steps were not watched: no “it”."),
    ],
)
def test_a_file_has_no_colour_and_every_character(
    encoding: str, output: str | None, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr(sys, "stderr", Screen(encoding))
    assert run.render_run(WATCHED, "table", output, sys.stderr).splitlines()[2] == shown


def test_json_is_the_same_for_both() -> None:
    both = [run.render_run(WATCHED, "json", output, sys.stderr) for output in (None, "report.json")]
    assert both[0] == both[1]
    assert json.loads(both[0])["schema"] == "gpudoctor/run/1"


@pytest.mark.parametrize("host", ["127.0.0.1", "", "no host"])
def test_nothing_is_started_if_the_metrics_cannot_be_served(host: str, tmp_path: Path) -> None:
    started = tmp_path / "started"
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        options = ["--metrics-host", host, "--metrics-port", str(port)]
        program = [sys.executable, "-c", f"open({str(started)!r}, 'w')"]
        result = subprocess.run(
            [sys.executable, "-m", "gpudoctor", "run", *options, "--", *program],
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
    assert (result.returncode, result.stderr.count("\n")) == (2, 1)
    assert f"--metrics-port: cannot listen on {host}:{port}" in result.stderr
    assert not started.exists()
