"""Read what a reading list names: files, folders, links, device nodes, small commands and values of this machine.

Standard library only, from Python 3.8 on. Nothing here judges and nothing blocks: only regular files are read, device
nodes are opened without waiting, each command has its own time limit, and everything is bounded.

A reading list, and the answer, which always has these keys and no others:

    files      paths or globs      {path: {"text": ..., "truncated": true} or {"error": "EACCES Permission denied"}}
    listings   paths or globs      {glob: {"paths": [...], "error": ...}}, the error of a folder that cannot be listed
    links      paths or globs      {path: {"target": ...} or {"error": ...}}, links resolved
    nodes      paths or globs      {path: {"mode": "666", "accessible": true, "error": ""}}
    commands   {name: argv}        {name: {"argv": ..., "status": 0 or null, "stdout": ..., "stderr": ..., "error":
                                   why there is no status}}
    values     names               {name: {"value": ...} or {"error": ...}}
    which      names               {name: {"path": ..., "target": ...} or null}

    lines      {name or glob: words}  of that command's standard output, and of files that match, only the lines that
                                   hold one of the words
    instead    {name: other name}  that command is run only if the other, before it, cannot be started

In a glob, `**` matches any number of folders, and a folder that is not there matches nothing.
"""

from __future__ import annotations

import errno
import fnmatch
import functools
import os
import re
import stat
import subprocess
import sys
import threading
import time
from bisect import bisect_left, bisect_right
from contextlib import suppress
from itertools import islice
from operator import attrgetter

TYPE_CHECKING = False
if TYPE_CHECKING:  # the module typing takes as long to import as all of this one
    from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence

    Facts = Dict[str, Any]

FILE_BYTES = 256 * 1024
ALL_FILES_BYTES = 16 * 2**20
OUTPUT_BYTES = 1024 * 1024
READ_BYTES = 65536  # at once
MOST_MATCHES = 4096
MOST_ENTRIES = 20_000
DEEPEST_FOLDERS = 6
COMMAND_SECONDS = 5.0
PLAIN_FOLDERS = re.compile(r"(?:[^*?[/]*/)*")  # at the beginning of a glob
FOLDS_CASE = os.path.normcase("A") == "a"


def collect(arguments: Mapping[str, Any]) -> Facts:
    """Return the answer to the reading list `arguments`."""
    _scan.cache_clear()
    running = _start_commands(arguments)
    lines = arguments.get("lines") or {}
    return {
        "files": _read_files(arguments),
        "listings": {pattern: _list(pattern) for pattern in arguments.get("listings") or ()},
        "links": _each(arguments, "links", _resolve),
        "nodes": _each(arguments, "nodes", _try_node),
        "values": {name: _value(name) for name in arguments.get("values") or ()},
        "which": {name: _which(name) for name in arguments.get("which") or ()},
        "commands": {name: command.finish(lines.get(name)) for name, command in running.items()},
    }


def _start_commands(arguments: Mapping[str, Any]) -> Dict[str, _Command]:
    instead = arguments.get("instead") or {}
    running: Dict[str, _Command] = {}
    for name, argv in (arguments.get("commands") or {}).items():
        if name not in instead or running[instead[name]].process is None:
            running[name] = _Command(argv)
    return running


def _each(arguments: Mapping[str, Any], kind: str, read: Callable[[str], Facts]) -> Facts:
    """Return what `read` says of each path; a glob over a folder that cannot be listed has its error."""
    answer: Facts = {}
    for pattern in arguments.get(kind) or ():
        paths, error = _expand(pattern)
        if error:
            answer[pattern] = {"error": error}
        for path in paths:
            answer[path] = read(path)
    return answer


def _error(error: BaseException) -> str:
    """Return "EACCES Permission denied": the name of the errno is the same in every language and on every system."""
    number = getattr(error, "errno", None)
    if number is None:
        return "%s %s" % (type(error).__name__, error)
    return "%s %s" % (errno.errorcode.get(number, str(number)), os.strerror(number))


def _expand(pattern: str) -> tuple[List[str], Optional[str]]:
    """Return the paths that match, sorted, and why a folder on the way could not be listed. A plain path is itself."""
    plain = _unescape(pattern)
    if plain is not None:
        return [plain], None
    errors: List[str] = []
    drive, rest = os.path.splitdrive(re.sub("/+", "/", pattern.replace(os.sep, "/")))
    beginning = PLAIN_FOLDERS.match(rest)
    assert beginning is not None  # it matches nothing too
    paths = [drive + beginning[0]]
    for part in filter(None, rest[beginning.end() :].split("/")):
        paths = list(islice(_step(paths, part, errors), MOST_MATCHES))
    return sorted({path for path in paths if os.path.lexists(path)}), errors[0] if errors else None


def _unescape(pattern: str) -> Optional[str]:
    """Return the path that a pattern without a wildcard names ("[[]" is a bracket); None if there is a wildcard."""
    if not any(sign in pattern for sign in "*?["):
        return pattern
    rest = re.sub(r"\[[*?[]\]", "", pattern)
    return None if re.search(r"[*?[]", rest) else re.sub(r"\[([*?[])\]", r"\1", pattern)


def _step(folders: Iterable[str], part: str, errors: List[str]) -> Iterator[str]:
    plain = _unescape(part)
    for folder in folders:
        if plain is not None:
            yield os.path.join(folder, plain)
        elif part == "**":
            yield from _folders_below(folder, DEEPEST_FOLDERS, errors)
        else:
            names = list(_entries(folder, errors))
            yield from (os.path.join(folder, name) for name in _matching(names, part))


def _matching(names: List[str], part: str) -> List[str]:
    beginning = re.split(r"[*?[]", part, maxsplit=1)[0]
    if not FOLDS_CASE:  # of a sorted list, those that begin so are together
        names = names[bisect_left(names, beginning) : bisect_right(names, beginning + "\U0010ffff")]
    found = fnmatch.filter(names, part) if names else []
    return found if part.startswith(".") else [name for name in found if not name.startswith(".")]


def _folders_below(folder: str, depth: int, errors: List[str]) -> Iterator[str]:
    yield folder
    if depth:
        entries = _entries(folder, errors)
        for name in (name for name in entries if _is_folder(entries[name])):
            yield from _folders_below(os.path.join(folder, name), depth - 1, errors)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    """Return whether it is a folder and no link to one."""
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def _entries(folder: str, errors: List[str]) -> Mapping[str, os.DirEntry[str]]:
    """Return what is in `folder` by its name, sorted."""
    entries, error = _scan(folder)
    if error:
        errors.append(error)
    return entries


@functools.lru_cache(maxsize=None)  # many patterns of a reading list go through the same folders
def _scan(folder: str) -> tuple[Dict[str, os.DirEntry[str]], str]:
    try:
        with os.scandir(folder or ".") as entries:
            found = sorted(islice(entries, MOST_ENTRIES), key=attrgetter("name"))
            return {entry.name: entry for entry in found}, ""
    except OSError as error:
        return {}, "" if error.errno in (errno.ENOENT, errno.ENOTDIR) else _error(error)


def _list(pattern: str) -> Facts:
    plain = _unescape(pattern)
    if plain is None:
        found, failure = _expand(pattern)
        paths = [path for path in found if os.path.exists(path)]
        return {"paths": paths, "error": failure} if failure else {"paths": paths}
    try:
        os.stat(plain)
        return {"paths": [plain]}
    except (OSError, ValueError) as error:
        missing = getattr(error, "errno", None) in (errno.ENOENT, errno.ENOTDIR)
        return {"paths": []} if missing else {"paths": [], "error": _error(error)}


def _resolve(path: str) -> Facts:
    try:
        os.lstat(path)
        return {"target": os.path.realpath(path)}
    except (OSError, ValueError) as error:
        return {"error": _error(error)}


def _which(name: str) -> Optional[Facts]:
    path = _on_path(name)
    return None if path is None else {"path": path, "target": os.path.realpath(path)}


def _on_path(name: str) -> Optional[str]:
    if os.name == "nt":
        import shutil  # takes as long to import as to answer a reading list

        return shutil.which(name)
    paths = (os.path.join(folder, name) for folder in os.get_exec_path())
    return next((path for path in paths if os.path.isfile(path) and os.access(path, os.X_OK)), None)


def _read_files(arguments: Mapping[str, Any]) -> Facts:
    left = ALL_FILES_BYTES
    lines = arguments.get("lines") or {}

    def read(path: str) -> Facts:
        nonlocal left
        if left <= 0:
            return {"error": "not read: the files before it hold more than %d bytes" % ALL_FILES_BYTES}
        answer = _read_file(path)
        words = next((words for pattern, words in lines.items() if fnmatch.fnmatchcase(path, pattern)), None)
        if words is not None and "text" in answer:
            answer["text"] = _lines_with(words, answer["text"])
        left -= len(answer.get("text", ""))
        return answer

    return _each(arguments, "files", read)


def _read_file(path: str) -> Facts:
    try:
        # looked at before it is opened: opening a pipe waits for its writer, opening a device may start something
        if not stat.S_ISREG(os.stat(path).st_mode):
            return {"error": "not a regular file"}
        content = _read_bytes(path)
    except (OSError, ValueError) as error:
        return {"error": _error(error)}
    text = content[:FILE_BYTES].decode("utf-8", "replace")
    return {"text": text, "truncated": True} if len(content) > FILE_BYTES else {"text": text}


def _read_bytes(path: str) -> bytes:
    """Return what is longer than the limit if the file is."""
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        content = bytearray()
        while len(content) <= FILE_BYTES:
            chunk = os.read(descriptor, READ_BYTES)
            if not chunk:
                break
            content += chunk
        return bytes(content)
    finally:
        os.close(descriptor)


def _try_node(path: str) -> Facts:
    """Say whether this user can open a device; for reading only if its mode lets nobody write (nvidia-caps)."""
    try:
        status = os.stat(path)
    except (OSError, ValueError) as error:
        return {"mode": "", "accessible": False, "error": _error(error)}
    mode = "%o" % stat.S_IMODE(status.st_mode)
    if not stat.S_ISCHR(status.st_mode):
        return {"mode": mode, "accessible": False, "error": "not a device"}
    access = os.O_RDWR if status.st_mode & 0o222 else os.O_RDONLY
    try:
        os.close(os.open(path, access | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC))
    except OSError as error:
        return {"mode": mode, "accessible": False, "error": _error(error)}
    return {"mode": mode, "accessible": True, "error": ""}


class _Command:
    """A command at work. Its output is read to the end, and the start of it kept."""

    def __init__(self, argv: Sequence[str]) -> None:
        self.argv = list(argv)
        self.deadline = time.monotonic() + COMMAND_SECONDS
        self.failure: Optional[str] = None
        self.outputs: Dict[str, bytearray] = {"stdout": bytearray(), "stderr": bytearray()}
        self.threads: List[threading.Thread] = []
        self.process: Optional[subprocess.Popen[bytes]] = None
        try:
            self.process = subprocess.Popen(
                self.argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=dict(os.environ, LC_ALL="C"),  # the parsers read English
            )
        except (OSError, ValueError) as error:
            self.failure = _error(error)
            return
        for name, pipe in (("stdout", self.process.stdout), ("stderr", self.process.stderr)):
            thread = threading.Thread(target=_drain, args=(pipe, self.outputs[name]), daemon=True)
            thread.start()
            self.threads.append(thread)

    def finish(self, words: Optional[Sequence[str]]) -> Facts:
        """Wait for the end or the time limit. With `words`, only lines with one of them are kept of the output."""
        status = None if self.process is None else self._wait(self.process)
        texts = {name: bytes(output).decode("utf-8", "replace") for name, output in self.outputs.items()}
        if words is not None:
            texts["stdout"] = _lines_with(words, texts["stdout"])
        answer: Facts = {"argv": self.argv, "status": status, **texts}
        if self.failure:
            answer["error"] = self.failure
        return answer

    def _wait(self, process: subprocess.Popen[bytes]) -> Optional[int]:
        status: Optional[int] = None
        try:
            status = process.wait(max(0.0, self.deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.failure = "no answer in %g s" % COMMAND_SECONDS
            process.kill()
            with suppress(subprocess.TimeoutExpired):  # one that waits inside the driver is left behind
                process.wait(1)
        for thread in self.threads:  # processes that it left behind may keep its pipes open
            thread.join(max(0.1, self.deadline - time.monotonic()))
        return status


def _lines_with(words: Sequence[str], text: str) -> str:
    return "".join(line for line in text.splitlines(True) if any(word in line for word in words))


def _drain(pipe: Any, output: bytearray) -> None:
    with pipe:
        while True:
            chunk = os.read(pipe.fileno(), READ_BYTES)
            if not chunk:
                break
            output.extend(chunk[: max(0, OUTPUT_BYTES - len(output))])


def _value(name: str) -> Facts:
    kind, _, argument = name.partition(":")
    try:
        return {"value": VALUES[kind](argument)}
    except Exception as error:  # not on this system, or not allowed
        return {"error": _error(error)}


def _uname(_: str) -> Facts:
    if hasattr(os, "uname"):
        system = os.uname()
        return {"system": system.sysname, "release": system.release, "machine": system.machine}
    import platform

    return {"system": platform.system(), "release": platform.version(), "machine": platform.machine()}


def _libc(_: str) -> Optional[str]:
    """Return "glibc 2.35"; None if the C library is another."""
    return os.confstr("CS_GNU_LIBC_VERSION") if "CS_GNU_LIBC_VERSION" in os.confstr_names else None


def _affinity(_: str) -> Optional[int]:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def _memlock(_: str) -> int:
    """Return RLIMIT_MEMLOCK in bytes, -1 for unlimited."""
    import resource

    limit = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    return -1 if limit == resource.RLIM_INFINITY else limit


def _statvfs(path: str) -> Dict[str, int]:
    status = os.statvfs(path)
    return {"total_bytes": status.f_frsize * status.f_blocks}


def _filesystem(path: str) -> Optional[str]:
    """Return the type of the filesystem mounted last at `path`."""
    with open("/proc/self/mounts", encoding="utf-8", errors="replace") as file:
        mounts = (line.split(" ") for line in file)
        kinds = [fields[2] for fields in mounts if fields[1] == path]
    return kinds[-1] if kinds else None


def _running(name: str) -> bool:
    """Return whether a process of this name runs. The kernel keeps the first 15 bytes of a name."""
    with os.scandir("/proc") as entries:
        folders = [entry.path for entry in islice(entries, MOST_ENTRIES) if entry.name.isdigit()]
    for folder in folders:
        try:
            with open(folder + "/comm", "rb") as file:
                if file.read().rstrip(b"\n") == name.encode()[:15]:
                    return True
        except OSError:  # it has ended
            pass
    return False


def _profile(path: str) -> List[str]:
    """Return the lines of an env profile that are gpudoctor's own: what else is in it is nobody's business."""
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise ValueError("not a regular file")
    lines = _read_bytes(path)[:FILE_BYTES].decode("utf-8-sig", "replace").splitlines()
    return [line[:1000] for line in lines if line.startswith("GPUDOCTOR_")][:100]


VALUES: Dict[str, Callable[[str], Any]] = {
    "platform": lambda _: sys.platform,
    "uname": _uname,
    "libc": _libc,
    "euid": lambda _: os.geteuid(),
    "cpu_affinity": _affinity,
    "memlock": _memlock,
    "statvfs": _statvfs,
    "filesystem": _filesystem,
    "running": _running,
    "profile": _profile,
    "variable": os.environ.get,
    "is_set": lambda name: name in os.environ,
}
