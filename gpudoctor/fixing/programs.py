"""Run pip and uv: no shell, no working directory on the path, and nothing that installs elsewhere."""

import contextlib
import os
import re
import signal
import subprocess
from collections.abc import Mapping, Sequence
from itertools import chain, pairwise
from typing import IO

from gpudoctor.errors import UsageError
from gpudoctor.fixing.progress import IDLE_SECONDS, Progress
from gpudoctor.privacy import mask_secrets
from gpudoctor.remedies.commands import quote

_POLL_SECONDS = 1.0
_END_SECONDS = 10.0
_SHOWN_LINES = 3
# Settings by which pip and uv would install elsewhere, or print something else than what is read here.
_ELSEWHERE = (
    *("PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_USER", "PIP_PYTHON", "PIP_DRY_RUN", "PIP_REPORT", "PIP_QUIET"),
    *("PIP_NO_DEPS", "PIP_IGNORE_INSTALLED", "PIP_FORCE_REINSTALL", "PIP_UPGRADE", "PIP_REQUIREMENT", "PIP_EDITABLE"),
    *("PIP_BREAK_SYSTEM_PACKAGES", "PIP_NO_COMPILE", "PIP_LOG", "UV_PYTHON", "UV_SYSTEM_PYTHON", "UV_TARGET"),
    *("UV_PREFIX", "UV_BREAK_SYSTEM_PACKAGES", "UV_REINSTALL", "UV_NO_INSTALLER_METADATA", "PYTHONPATH", "PYTHONHOME"),
    "COLUMNS",  # uv breaks its lines there
)
_SILENT = ("conda", "poetry", "pixi")  # they say nothing while they look for a solution
_NETWORK = frozenset(("install", "download", "compile", "add", "lock", "update"))
_NO_NETWORK = frozenset(("--no-index", "--offline"))
_UNREACHABLE = (
    r"(?i)failed to establish a new connection|name or service not known|failure in name resolution|dns error"
    r"|connection refused|network is unreachable|no route to host|timed out|tunnel connection failed|proxyerror"
    r"|certificate verify failed|error sending request|network was disabled"
)
_DISK = r"(?i)no space left on device|disk quota exceeded|errno 28\b|os error 28\b"


class Refused(UsageError):
    """The fix is not applied, and nothing was changed. The message is one line: why, and the right way."""


class Failed(Exception):
    """A command failed. The message is one line of its output."""


def environment_of(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables under which an installer runs."""
    kept = {name: value for name, value in environ.items() if name not in _ELSEWHERE}
    return {**kept, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1", "NO_COLOR": "1", "PYTHONUTF8": "1"}


def run(
    command: Sequence[str],
    environ: Mapping[str, str],
    kept_open: tuple[int, ...] = (),
    folder: str | None = None,
) -> str:
    """Run the command in its own session, and return its standard output.

    kept_open: descriptors that it inherits. folder: that it works in.

    Raises:
        Refused: an index cannot be reached or is too slow, or the disk is full.
        Failed: it did not succeed.
    """
    out, error, status = run_to_end(command, environ, kept_open, folder)
    if status == 0:
        return out
    said = mask_secrets(f"{out}\n{error}")
    if full := full_disk(said, command[0]):
        raise Refused(full)
    if re.search(_UNREACHABLE, said):
        raise Refused(
            f"{_index(command, environ, said)} cannot be reached: check the network, the proxy or the index settings"
        )
    raise Failed(complaint(said) or f"{command[0]} ended with exit status {status}")


def full_disk(said: str, program: str) -> str:
    """Return the sentence if a full disk is the reason; "" if it is not. program: of the environment.

    Some versions of Python keep a compiled file that a full disk has cut short.
    Source: https://github.com/python/cpython/issues/126606
    """
    if re.search(_DISK, said):
        return "the disk is full: make room, then run gpudoctor fix again"
    if "EOFError: marshal data too short" in said:
        environment = quote(os.path.dirname(os.path.dirname(program)))
        return (
            f"a full disk has cut a compiled file short: make room, then run find {environment} -name '*.pyc' -delete"
        )
    return ""


def run_to_end(
    command: Sequence[str],
    environ: Mapping[str, str],
    kept_open: tuple[int, ...] = (),
    folder: str | None = None,
) -> tuple[str, str, int]:
    """Run the command, and return its standard output, its standard error and its exit status.

    Raises:
        Refused: it made no progress for IDLE_SECONDS, or took longer than LONGEST_SECONDS.
    """
    process = _start(command, environ, subprocess.PIPE, subprocess.PIPE, folder, kept_open)
    is_silent = os.path.basename(command[0]) in _SILENT
    progress = Progress(process.pid, IDLE_SECONDS * (3 if is_silent else 1))
    try:
        while True:
            out, error_text, has_ended = _wait(process)
            if has_ended:
                return out, error_text, process.returncode
            if why := progress.ended(out, error_text):
                raise Refused(_too_slow(command, environ, progress.said, why))
    finally:
        _end(process)


def _wait(process: subprocess.Popen[str]) -> tuple[str, str, bool]:
    """Return what the process has said so far, and whether it has ended, after a moment in which it may."""
    try:
        return (*process.communicate(timeout=_POLL_SECONDS), True)
    except subprocess.TimeoutExpired as waiting:
        return _decoded(waiting.output), _decoded(waiting.stderr), False


def _decoded(said: bytes | str | None) -> str:
    return said.decode("utf-8", "replace") if isinstance(said, bytes) else said or ""


def _too_slow(command: Sequence[str], environ: Mapping[str, str], said: str, why: str) -> str:
    name = command[command.index("-m") + 1] if "-m" in command else os.path.basename(command[0])
    if not _NETWORK.isdisjoint(command) and _NO_NETWORK.isdisjoint(command):
        advice = f"with {_index(command, environ, said)}: check the network, the proxy or the index settings"
    else:
        advice = f"and was ended: run {name} by hand to see where it stops"
    return f"{name} {why} {advice}"


def wait_for(command: Sequence[str], environ: Mapping[str, str], said: IO[str], folder: str, seconds: float) -> int:
    """Run the command in a folder, and return its exit status. Its own child processes are not waited for.

    said: the file for its standard error.

    Raises:
        Refused: it cannot be run.
        Failed: it takes longer than that many seconds.
    """
    process = _start(command, environ, subprocess.DEVNULL, said, folder, ())
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        raise Failed(f"{os.path.basename(command[0])} took longer than {seconds:.0f} s") from None
    finally:
        _end(process)


def _start(
    command: Sequence[str],
    environ: Mapping[str, str],
    out: int,
    error: int | IO[str],
    folder: str | None,
    kept_open: tuple[int, ...],
) -> subprocess.Popen[str]:
    try:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=error,
            env=environment_of(environ),
            text=True,
            errors="replace",
            start_new_session=True,
            pass_fds=kept_open,
            cwd=folder,
        )
    except OSError as problem:
        raise Refused(f"{command[0]} cannot be run: {problem.strerror}") from None


def _end(process: subprocess.Popen[str]) -> None:
    for number in (signal.SIGTERM, getattr(signal, "SIGKILL", signal.SIGTERM)):
        if process.poll() is None:
            with contextlib.suppress(OSError):
                os.killpg(process.pid, number) if hasattr(os, "killpg") else process.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_END_SECONDS)
    for stream in filter(None, (process.stdout, process.stderr)):
        stream.close()


def _index(command: Sequence[str], environ: Mapping[str, str], said: str) -> str:
    """Return which index it was: as the installer says, else as the command or a variable of uv names it."""
    found = re.search(r"Failed to fetch: `?(https?://[^\s`]+)|Looking in indexes: ([^\s,]+)", said)
    named = [address for option, address in pairwise(command) if option == "--index-url"]
    if os.path.basename(command[0]) == "uv":
        named += [environ.get(name, "") for name in ("UV_DEFAULT_INDEX", "UV_INDEX_URL")]
    address = next(filter(None, chain(found.groups() if found else (), named)), "")
    return f"the index {mask_secrets(address)}" if address else "the index that the installer is configured with"


def complaint(said: str) -> str:
    """Return what pip or uv complains about, in one line; "" if it said nothing."""
    caused = re.search(r"The conflict is caused by:\n((?:[ \t]+\S.*\n)+)", said)
    if caused:
        return "; ".join(line.strip() for line in caused[1].splitlines())
    tampered = re.search(r"DO NOT MATCH THE HASHES[^\n]*\n\s+(\S+)", said)
    if tampered:
        return f"{tampered[1]} is not the file that the index announced: its hash differs"
    missing = re.search(r"ERROR: No matching distribution found for (.+)", said)
    if missing:
        versions = re.search(r"\(from versions: (.+)\)", said)
        there = f": it has {versions[1]}" if versions and versions[1] != "none" else ""
        return f"the index has no {missing[1].strip()} for this Python{there}"
    because = re.search(r"(?:cause:|╰─▶) +((?:Because|Cannot solve) .+(?:\n +\S.*)*)", said)
    if because:
        hint = re.search(r"(?m)^hint: (An index .+)", said)  # the cause, if an index refused to answer
        return re.sub(r"\s+", " ", f"{because[1]} {hint[1]}" if hint else because[1])
    raised = re.findall(r"(?m)^[A-Za-z_][\w.]*(?:Error|Exception)\b.*", said) if "Traceback (most rec" in said else []
    if raised:
        return str(raised[-1])
    lines = [line.strip() for line in said.splitlines() if line.strip() and line.strip() != "ERROR: Exception:"]
    errors = [text for line in lines if (text := re.sub(r"(?i)^(?:(?:error|cause):|[×╰─▶]+)[\s×]*", "", line)) != line]  # noqa: RUF001 - uv, pixi
    return re.sub(r"\s+", " ", "; ".join(errors[:_SHOWN_LINES] or lines[-1:]))
