"""Read what the NVIDIA driver wrote to the kernel log.

The answer is {"kernel_log": {"source": ..., "lines": [...]}}, or {"kernel_log": {"error": ...}} if all refused.
Standard library only, from Python 3.8 on. Only lines of the driver are kept, and the newest of them.
"""

from __future__ import annotations

import os
import subprocess
from collections import deque

TYPE_CHECKING = False
if TYPE_CHECKING:  # the module typing takes as long to import as all of this one
    from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence

DEVICE = "/dev/kmsg"
READ_BYTES = 16 * 2**20
MOST_LINES = 400
LONGEST_LINE = 1000
RECORD_BYTES = 8192  # the longest record; a smaller buffer fails with EINVAL
COMMAND_SECONDS = 5.0
WORDS = (b"nvrm", b"xid", b"nvidia")
# dmesg has another door to the same log; a member of "adm" or "systemd-journal" may read the journal only
COMMANDS = (("dmesg",), ("journalctl", "--dmesg", "--boot", "--quiet", "--no-pager", "--output=cat", "--lines=20000"))


def collect(arguments: Mapping[str, Any]) -> Dict[str, Any]:
    """Return the driver's lines of the kernel log, or why it cannot be read."""
    return {"kernel_log": read_kernel_log(arguments.get("device", DEVICE), COMMANDS)}


def read_kernel_log(device: str, commands: Iterable[Iterable[str]]) -> Dict[str, Any]:
    """Return the lines from the first source that has some: the device, then the commands."""
    try:
        lines = _read_records(device)
        if lines is not None:
            return {"source": device, "lines": lines}
        failure = device + ": empty"
    except OSError as error:
        failure = str(error)
    for argv in commands:
        output = _output(list(argv))
        # a kernel has always said something: no output means no permission
        if output.strip():
            return {"source": next(iter(argv)), "lines": _newest(map(_decode, _of_the_driver(output.splitlines())))}
    return {"error": failure}


def _output(argv: List[str]) -> bytes:
    try:
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=COMMAND_SECONDS,
            check=False,
            env=dict(os.environ, LC_ALL="C"),
        )
    except (OSError, ValueError, subprocess.SubprocessError):
        return b""
    return done.stdout if done.returncode == 0 else b""


def _read_records(device: str) -> Optional[List[str]]:
    """Return the driver's lines in /dev/kmsg, which gives one record for each read; None if it contains no record."""
    descriptor = os.open(device, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        records = list(_records(descriptor))
        return _newest(map(_text, _of_the_driver(records))) if records else None
    finally:
        os.close(descriptor)


def _records(descriptor: int) -> Iterator[bytes]:
    seen = 0
    while seen < READ_BYTES:
        try:
            record = os.read(descriptor, RECORD_BYTES)
        except BlockingIOError:
            return
        except BrokenPipeError:  # overwritten before it was read: the next read continues after it
            continue
        if not record:
            return
        seen += len(record)
        yield record


def _text(record: bytes) -> str:
    """Return the line that dmesg prints for "4,1234,5678901,-;text"."""
    prefix, _, text = _decode(record).partition(";")
    fields = prefix.split(",")
    first_line = text.partition("\n")[0]
    if len(fields) < 3 or not fields[2].isdigit():
        return first_line
    return "[%5d.%06d] %s" % (*divmod(int(fields[2]), 1_000_000), first_line)


def _decode(line: bytes) -> str:
    return line.decode("utf-8", "replace")


def _of_the_driver(lines: Sequence[bytes]) -> List[bytes]:
    """Return the lines that the driver wrote. What follows in a record of /dev/kmsg are its properties."""
    if not _names_driver(b"\n".join(lines)):  # most logs: ten times as fast as line by line
        return []
    return [line for line in lines if _names_driver(line.partition(b"\n")[0])]


def _names_driver(text: bytes) -> bool:
    lowered = text.lower()
    return any(word in lowered for word in WORDS)


def _newest(lines: Iterable[str]) -> List[str]:
    return list(deque((line[:LONGEST_LINE] for line in lines), MOST_LINES))
