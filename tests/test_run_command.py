"""`gpudoctor run` as a whole: the program stays itself, and the report says what held the GPU back."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.stand_ins import GIB, H100, Gpu, Nvml

ROOT = Path(__file__).parent.parent
COMMAND = [sys.executable, "-m", "gpudoctor", "run"]
PROFILE = (ROOT / "examples" / "gpudoctor.env").read_text()
BUSY_GPU = H100.but(utilization=97, memory_used=40 * GIB, clock_sm=1755, event_reasons=0)
READY = "import signal, sys, time\n{setup}\nprint('ready', flush=True)\ntime.sleep(60)"
IN_A_TERMINAL = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))"
WITH_SIGNALS = """import os, signal, sys
for number in (1, 2, 10, 15):
    signal.signal(number, signal.{disposition})
os.execv(sys.argv[1], sys.argv[1:])"""
DEFAULT_SIGNALS = [sys.executable, "-c", WITH_SIGNALS.format(disposition="SIG_DFL")]
"""Tests that run in the background of a shell inherit that SIGINT is ignored."""

IGNORED_SIGNALS = [sys.executable, "-c", WITH_SIGNALS.format(disposition="SIG_IGN")]

Install = Callable[..., dict[str, str]]


def environment(variables: Mapping[str, str] | None = None) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1", "COLUMNS": "100", **(variables or {})}


def run(
    folder: Path, *arguments: str, variables: Mapping[str, str] | None = None, text: str = ""
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments],
        cwd=folder,
        env=environment(variables),
        input=text,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def python(program: str) -> list[str]:
    return ["--", sys.executable, "-c", program]


@pytest.fixture
def no_driver(driver_stand_in: Install, tmp_path: Path) -> dict[str, str]:
    """A machine whose NVML finds no driver."""
    return driver_stand_in(tmp_path / "driver", nvml=Nvml(fail={"nvmlInit": 9}))


def with_gpu(driver_stand_in: Install, folder: Path, *devices: Gpu) -> dict[str, str]:
    return driver_stand_in(folder / "driver", nvml=Nvml(devices=devices))


def test_streams_and_status_are_the_programs(tmp_path: Path, no_driver: dict[str, str]) -> None:
    program = "import sys; print(input().upper()); print('oh', file=sys.stderr); sys.exit(7)"
    done = run(tmp_path, *python(program), variables=no_driver, text="data\n")
    assert (done.returncode, done.stdout) == (7, "DATA\n")
    assert done.stderr.startswith("oh\n")
    assert "ended with exit status 7" in done.stderr


def test_without_a_gpu_the_program_runs_all_the_same(tmp_path: Path, no_driver: dict[str, str]) -> None:
    done = run(tmp_path, *python("print('ran')"), variables=no_driver)
    assert (done.returncode, done.stdout) == (0, "ran\n")
    assert done.stderr.count("the GPU was not watched: NVML does not start: Driver Not Loaded") == 1


def test_a_driver_that_crashes_takes_nothing_with_it(driver_stand_in: Install, tmp_path: Path) -> None:
    crash = driver_stand_in(tmp_path / "driver", nvml=Nvml(fail={"nvmlInit": "crash"}))
    done = run(tmp_path, *python("print('ran')"), variables=crash)
    assert (done.returncode, done.stdout) == (0, "ran\n")
    assert "the GPU was not watched: the monitoring process failed: killed by SIGSEGV" in done.stderr


def test_a_profile_reaches_the_program(tmp_path: Path, no_driver: dict[str, str]) -> None:
    show = python("import os; print(os.environ.get('GPUDOCTOR_BATCH_SIZE'), os.environ['MINE'])")
    variables = {**no_driver, "MINE": "kept"}
    assert run(tmp_path, *show, variables=variables).stdout == "None kept\n"
    (tmp_path / "gpudoctor.env").write_text(PROFILE)
    assert run(tmp_path, *show, variables=variables).stdout == "8192 kept\n"
    other = tmp_path / "other.env"
    other.write_text(PROFILE.replace("BATCH_SIZE=8192", "BATCH_SIZE=32"))
    done = run(tmp_path, "--profile", "other.env", *show, variables={**variables, "GPUDOCTOR_BATCH_SIZE": "1"})
    assert done.stdout == "32 kept\n"
    assert "with the profile other.env" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        pytest.param(["--", "no-such-program"], 127, "cannot start no-such-program: No such file", id="not found"),
        pytest.param(["--", "/"], 127, "cannot start /: Permission denied", id="not a program"),
        pytest.param([], 2, "Missing argument", id="no command"),
        pytest.param(["--every", "0", "--", "true"], 2, "'--every': 0.0 is not in the range", id="every"),
        pytest.param(["--profile", "gone.env", "--", "true"], 2, "gone.env: No such file", id="profile"),
        pytest.param(["--output", "no/folder/x", "--", "true"], 2, "cannot write no/folder/x", id="output"),
    ],
)
def test_what_cannot_be_run_is_one_line(tmp_path: Path, arguments: list[str], status: int, message: str) -> None:
    done = run(tmp_path, *arguments)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (status, "", 1)
    assert message in done.stderr


def test_a_damaged_profile_starts_nothing(tmp_path: Path) -> None:
    (tmp_path / "gpudoctor.env").write_text("export A=1\n")
    done = run(tmp_path, *python("print('ran')"))
    assert (done.returncode, done.stdout) == (2, "")
    assert "gpudoctor.env line 1: remove the word export" in done.stderr


def test_a_program_that_a_signal_ends(tmp_path: Path, no_driver: dict[str, str]) -> None:
    done = run(tmp_path, *python("import os; os.kill(os.getpid(), 9)"), variables=no_driver)
    assert done.returncode == 128 + 9


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1])
def test_a_signal_is_passed_on(tmp_path: Path, no_driver: dict[str, str], number: signal.Signals) -> None:
    setup = f"signal.signal({int(number)}, lambda number, _: (print('got', number), sys.exit(5)))"
    process = subprocess.Popen(
        [
            *DEFAULT_SIGNALS,
            *COMMAND,
            *python(READY.format(setup=setup)),
        ],
        cwd=tmp_path,
        env=environment(no_driver),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # no terminal: the signal is for gpudoctor alone
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    output, _ = process.communicate(timeout=60)
    assert (process.returncode, output) == (5, f"got {int(number)}\n")


def test_an_ignored_signal_stays_ignored(tmp_path: Path, no_driver: dict[str, str]) -> None:
    """As under nohup."""
    show = python("import signal; print(signal.getsignal(1) == signal.SIG_IGN)")
    done = subprocess.run(
        [*IGNORED_SIGNALS, *COMMAND, *show],
        cwd=tmp_path,
        env=environment(no_driver),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "True\n"


def test_a_key_of_the_terminal_reaches_the_program_once(tmp_path: Path, no_driver: dict[str, str]) -> None:
    count = "signal.signal(2, lambda *_: print('interrupt', flush=True))"
    program = READY.format(setup=count).replace("time.sleep(60)", "time.sleep(2.5)")
    process = subprocess.Popen(
        [*DEFAULT_SIGNALS, sys.executable, "-c", IN_A_TERMINAL, *COMMAND, *python(program)],
        cwd=tmp_path,
        env=environment(no_driver),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    while b"ready" not in process.stdout.readline():
        assert process.poll() is None
    time.sleep(0.3)  # two signals before the handler runs would be one
    process.stdin.write(b"\x03")
    process.stdin.flush()
    shown, _ = process.communicate(timeout=60)
    assert (process.returncode, shown.count(b"interrupt")) == (0, 1)


def test_a_busy_gpu(driver_stand_in: Install, tmp_path: Path) -> None:
    variables = with_gpu(driver_stand_in, tmp_path, BUSY_GPU)
    done = run(tmp_path, "--every", "0.05", *python("import time; time.sleep(2.5)"), variables=variables)
    assert (done.returncode, done.stdout) == (0, "")
    assert "healthy  nothing measured limited the GPU" in done.stderr
    assert "GPU 0 NVIDIA H100 80GB HBM3 · utilisation 97 % · memory up to 40.0 of 79.6 GiB" in done.stderr


def test_a_gpu_that_is_never_used(driver_stand_in: Install, tmp_path: Path) -> None:
    variables = with_gpu(driver_stand_in, tmp_path, H100)
    done = run(tmp_path, "--every", "0.05", *python("import time; time.sleep(2.5)"), variables=variables)
    assert "error  gpu-never-used" in done.stderr
    assert "The program never used the GPU" in done.stderr
    assert "gpudoctor check" in done.stderr


def test_a_short_program_is_not_judged(driver_stand_in: Install, tmp_path: Path) -> None:
    done = run(tmp_path, *python("print(1)"), variables=with_gpu(driver_stand_in, tmp_path, BUSY_GPU))
    assert "0 samples of the GPU: too few to say what limited it" in done.stderr


def test_json_has_every_sample(driver_stand_in: Install, tmp_path: Path) -> None:
    variables = with_gpu(driver_stand_in, tmp_path, BUSY_GPU.but(event_reasons=0x40, temperature=88))
    options = ["--every", "0.05", "--format", "json", "--output", "run.json"]
    done = run(tmp_path, *options, *python("import time; time.sleep(2.5); print('ran')"), variables=variables)
    assert (done.returncode, done.stdout, done.stderr) == (0, "ran\n", "Wrote run.json\n")
    report: dict[str, Any] = json.loads((tmp_path / "run.json").read_text())
    assert report["schema"] == "gpudoctor/run/1"
    assert report["findings"][0]["check"] == "throttled"
    (device,) = report["watch"]["samples"][0]["devices"]
    assert device["utilization_percent"] == 97
    assert device["throttle_reasons"] == ["hw_thermal_slowdown"]
    assert device["temperature_celsius"] == 88


def test_a_report_that_cannot_be_written_keeps_the_status(tmp_path: Path, no_driver: dict[str, str]) -> None:
    (tmp_path / "reports").mkdir()
    program = "import os, sys; os.rmdir('reports'); sys.exit(3)"
    done = run(tmp_path, "--output", "reports/run.txt", *python(program), variables=no_driver)
    assert done.returncode == 3
    assert done.stderr == "gpudoctor: cannot write reports/run.txt: No such file or directory\n"


def test_nothing_is_left_behind(driver_stand_in: Install, tmp_path: Path) -> None:
    """The side process ends too when gpudoctor itself is killed."""
    variables = with_gpu(driver_stand_in, tmp_path, BUSY_GPU)
    mark = f"GPUDOCTOR_TEST_MARK={tmp_path}".encode()
    process = subprocess.Popen(
        [*COMMAND, *python(READY.format(setup=""))],
        cwd=tmp_path,
        env=environment({**variables, "GPUDOCTOR_TEST_MARK": str(tmp_path)}),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    process.stdout.readline()
    _wait_until(lambda: any("gpudoctor.watching" in line for line in _marked(mark).values()))
    process.kill()
    process.wait(10)
    _wait_until(lambda: not any("gpudoctor.watching" in line for line in _marked(mark).values()))
    for pid in _marked(mark):  # the program goes on without us
        os.kill(pid, signal.SIGKILL)
    process.stdout.close()


def _wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _marked(mark: bytes) -> dict[int, str]:
    """Return the processes with `mark` in their environment, and their command lines."""
    pids = [folder for folder in Path("/proc").glob("[0-9]*") if mark in _read(folder / "environ").split(b"\0")]
    return {int(folder.name): _read(folder / "cmdline").decode() for folder in pids}


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # it has ended, or is somebody else's
        return b""
