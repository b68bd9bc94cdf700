"""What is left of the answers when a probe or the machine fails: python tests/benchmarks/faults.py

Each probe hangs, crashes, ends silently, prints 200 MB or garbage, leaves a child that keeps its pipe or leaves its
session; the machine has no memory, processes, files, /dev/shm or room in /tmp, and its standard streams are closed or
full. A row has the answers that are the same as without the fault, of those that the fault leaves possible, seconds,
the exit status, and what stays behind: processes, and files in the folder for temporary files. Linux; the rows of the
machine need root. `--only WORD` selects rows.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
MARK = "29876.5"
"""Seconds that no other `sleep` waits: its processes are known by it."""
TIMEOUT_SECONDS = 6
CHANGING = ("taken_at", "seconds", "detail", "symptoms", "reports")

# Comes with PYTHONPATH into every worker, and breaks `collect` of one module when that is imported.
HOOK = f"""
import importlib.abc, importlib.machinery, os, sys
WORKER, FAULT = os.environ["FAULT"].split(":")
def collect(_):
    import signal, subprocess, time
    if FAULT == "hang": time.sleep(10000)
    if FAULT == "crash": os.kill(os.getpid(), signal.SIGSEGV)
    if FAULT == "silent exit": os._exit(0)
    if FAULT == "memory": x = [b"x" * 2**20 for _ in range(2**20)]
    if FAULT == "200 MB":
        for _ in range(200): os.write(1, b"x" * 2**20)
    if FAULT == "garbage":
        for number in range(3, 64):
            try: os.write(number, os.urandom(4096) + b"\\n{{]\\n")
            except OSError: pass
        os._exit(0)
    if FAULT == "keeps the pipe": subprocess.Popen(["sleep", "{MARK}"], close_fds=False); os._exit(0)
    if FAULT == "leaves the session":
        subprocess.Popen(["setsid", "sleep", "{MARK}"], close_fds=False); time.sleep(0.2)
        raise RuntimeError("after it")
    if FAULT == "leaves the session twice":
        subprocess.Popen(["sh", "-c", "setsid sleep {MARK} &"], close_fds=False).wait(); time.sleep(0.2)
        raise RuntimeError("after it")
class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name != "gpudoctor.probes.workers." + WORKER: return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        load = spec.loader.exec_module
        def exec_module(module):
            load(module)
            module.collect = collect
        spec.loader.exec_module = exec_module
        return spec
if WORKER == "no":
    import subprocess
    def refuse(*_, **__): raise BlockingIOError(11, "Resource temporarily unavailable")
    subprocess.Popen = refuse
elif FAULT: sys.meta_path.insert(0, Finder())
"""
PROBE_FAULTS = (
    *("hang", "crash", "silent exit", "200 MB", "garbage", "keeps the pipe", "leaves the session"),
    *("leaves the session twice", "memory"),
)
# Worker → the probes that it answers, which a fault takes with it.
LOST = {
    "read_host": ("system", "driver-files", "container", "toolkit", "project", "profile"),
    "nvml_devices": ("nvml",),
    "read_kernel_log": ("kernel-log",),
    "python_environment": ("python",),
    "cuda_driver": ("cuda-driver",),
    "torch_runtime": ("torch-runtime",),
    "cupy_runtime": ("cupy-runtime",),
}
PROGRAM_FAULTS = {
    "hang": f"exec sleep {MARK}",
    "crash": "kill -SEGV $$",
    "silent exit": "exit 0",
    "200 MB": "head -c 200000000 /dev/zero",
    "garbage": "head -c 1000000 /dev/urandom; head -c 10000 /dev/urandom >&2",
    "keeps the pipe": f"sleep {MARK} & exit 0",
    "leaves the session": f"setsid sleep {MARK} & exit 0",
}
PROGRAMS = ("nvidia-smi", "nvcc", "gcc", "cc", "docker", "podman", "lspci", "systemd-detect-virt", "conda")
LOST_TO_PROGRAMS = ("nvml", "toolkit", "container")


class Row(NamedTuple):
    """One run: `command` of a shell, in which "gpudoctor" is the program; `lost`: probes that the fault may take."""

    where: str
    fault: str
    command: str
    environ: Mapping[str, str] = {}
    lost: tuple[str, ...] = ()
    statuses: tuple[int, ...] = (0,)
    printed: bool = True


def rows(folder: Path) -> Iterator[Row]:
    """Yield every fault."""
    snapshot = f"gpudoctor snapshot --timeout {TIMEOUT_SECONDS}"
    for worker, lost in LOST.items():
        for fault in PROBE_FAULTS:
            limit = "ulimit -v 2000000; " if fault == "memory" else ""
            yield Row(worker, fault, limit + snapshot, {"FAULT": f"{worker}:{fault}"}, lost)
    for fault, script in PROGRAM_FAULTS.items():
        programs = folder / fault.replace(" ", "-")
        programs.mkdir()
        for name in PROGRAMS:
            (programs / name).write_text(f"#!/bin/sh\n{script}\n")
            (programs / name).chmod(0o755)
        path = f"{programs}:{os.environ['PATH']}"
        yield Row("programs", fault, snapshot, {"PATH": path}, LOST_TO_PROGRAMS)
    inside = "unshare --mount sh -c"
    tiny = 'mount -t tmpfs -o size=4k none "$TMPDIR"; '
    closed = "mount -t tmpfs -o size=4k,mode=000 none /dev/shm; mount -o remount,ro /dev/shm; "
    every = tuple({name for names in LOST.values() for name in names})
    yield Row("machine", "no memory", f"ulimit -v 300000; {snapshot}", lost=every, statuses=(0, 3))
    yield Row(
        "machine",
        "no processes",
        f"prlimit --nproc=3 {snapshot}",
        {"FAULT": "no:processes"},
        lost=every,
        statuses=(0, 3),
    )
    yield Row("machine", "no files", f"ulimit -n 24; {snapshot}", lost=every, statuses=(0, 3))
    yield Row("machine", "hardly a file", f"ulimit -n 6; {snapshot}", lost=every, statuses=(0, 3), printed=False)
    yield Row("machine", "no /dev/shm", f"{inside} '{closed}{snapshot}'")
    yield Row("machine", "full /tmp", f"{inside} '{tiny}head -c 9999 /dev/zero >\"$TMPDIR/x\" 2>/dev/null; {snapshot}'")
    yield Row("machine", "read-only /tmp", f"{inside} '{tiny}mount -o remount,ro \"$TMPDIR\"; {snapshot}'")
    yield Row("machine", "no /tmp", snapshot, {"TMPDIR": "/nonexistent"})
    yield Row(
        "machine", "folder removed", f"mkdir gone; cd gone; rmdir ../gone; {snapshot}", printed=False, statuses=(2,)
    )
    yield Row("streams", "no standard input", f"{snapshot} <&-")
    yield Row("streams", "no standard output", f"{snapshot} >&-", printed=False, statuses=(0, 3))
    yield Row("streams", "none at all", f"{snapshot} <&- >&- 2>&-", printed=False, statuses=(0, 3))
    yield Row("streams", "output to /dev/full", f"{snapshot} >/dev/full", printed=False, statuses=(3,))
    yield Row("streams", "both to /dev/full", f"{snapshot} >/dev/full 2>&1", printed=False, statuses=(3,))
    yield Row("streams", "errors to /dev/full", f"{snapshot} 2>/dev/full")
    yield Row("streams", "file in a full folder", f"{snapshot} --output /dev/full", printed=False, statuses=(0, 2, 3))
    yield Row("streams", "check to /dev/full", "gpudoctor check --fast >/dev/full", printed=False, statuses=(3,))


def run(row: Row, folder: Path) -> tuple[int, float, str, str, list[str]]:
    """Return exit status, seconds, both outputs, and what was left behind, which is then removed."""
    temporary = Path(tempfile.mkdtemp(dir=folder))
    work = Path(tempfile.mkdtemp(dir=folder))
    program = f"{sys.executable} -m gpudoctor"
    environ = {**os.environ, "TMPDIR": str(temporary), "FAULT": ":", **row.environ}
    environ["PYTHONPATH"] = f"{folder / 'hook'}:{ROOT}"
    started = time.monotonic()
    output, errors = work / ".out", work / ".err"
    with output.open("wb") as stdout, errors.open("wb") as stderr:
        command = row.command.replace("gpudoctor", program)
        process = subprocess.Popen(["sh", "-c", command], cwd=work, env=environ, stdout=stdout, stderr=stderr)
        try:
            status = process.wait(120)
        except subprocess.TimeoutExpired:
            process.kill()
            status = -1
    seconds = time.monotonic() - started
    time.sleep(0.3)
    left = [f"file {path.name}" for path in temporary.rglob("*")]
    for listed in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = listed.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if (
            MARK in line or ("gpudoctor.probes.workers" in line and str(folder) in _environ(listed))
        ) and "faults.py" not in line:
            left.append(f"process {line.strip()[:40]}")
            subprocess.run(["kill", "-9", listed.parent.name], check=False)
    return status, seconds, output.read_text(errors="replace"), errors.read_text(errors="replace"), left


def _environ(listed: Path) -> str:
    try:
        return (listed.parent / "environ").read_bytes().decode(errors="replace")
    except OSError:
        return ""


def answers(text: str) -> dict[str, Any]:
    """Return probe and section → state, of a snapshot; {} where none was printed."""
    try:
        snapshot = json.loads(text)
    except ValueError:
        return {}
    return {f"{one['probe']}/{one['section']}": one["state"] for one in snapshot["reports"]}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="")
    only = parser.parse_args().only
    folder = Path(tempfile.mkdtemp(prefix="faults-"))
    failed = 0
    try:
        (folder / "hook").mkdir()
        (folder / "hook" / "sitecustomize.py").write_text(HOOK)
        (folder / "programs").mkdir()
        everything = answers(run(Row("", "", "gpudoctor snapshot"), folder)[2])
        print(f"Without a fault: {len(everything)} answers.\n")
        print(
            "| where | fault | answers kept | seconds | exit status | left behind |",
            "| --- | --- | --- | --- | --- | --- |",
            sep="\n",
        )
        for row in rows(folder / "programs"):
            if only not in f"{row.where} {row.fault}":
                continue
            status, seconds, output, errors, left = run(row, folder)
            possible = {key: state for key, state in everything.items() if key.partition("/")[0] not in row.lost}
            found = answers(output)
            kept = sum(found.get(key) == state for key, state in possible.items())
            said = f"{kept} of {len(possible)}" if row.printed else "-"
            own = "internal error" in errors or "Traceback" in errors
            wrong = own or left or status not in row.statuses or (row.printed and kept < len(possible))
            failed += bool(wrong)
            behind = (", ".join(left) or "nothing") + (" **" if wrong else "")
            print(
                f"| {row.where} | {row.fault} | {said} | {seconds:.1f} | {status} | {behind} |",
                flush=True,
            )
            if wrong:
                print("    ", errors.strip()[-600:].replace("\n", "\n     "), file=sys.stderr)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"\n{failed} rows are wrong (marked **).")


if __name__ == "__main__":
    main()
