"""Files that are written whole or not at all, and files of a project, which is not trusted, read up to a limit."""

import contextlib
import errno
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from gpudoctor.errors import UsageError
from gpudoctor.trust import refuse_links_of_others


def write_whole(path: Path, text: str, *, private: bool = False) -> None:
    """Write `text` to `path` by a temporary file next to it and a rename; straight into a device or pipe.

    A link stays one, and what it names is written; a file that is there keeps its permissions. A new file that is
    `private` can be read by its owner only.

    Raises:
        UsageError: it cannot be written there, or a link of another user leads there; nothing half-written remains.
    """
    refuse_links_of_others(path)
    if path.exists() and not path.is_file():
        _write_straight(path, text)
        return
    try:
        target = Path(os.path.realpath(path))
        descriptor, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from None
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        if not private or _is_own(target):  # mkstemp made it private
            os.chmod(temporary, _mode(target))
        os.replace(temporary, target)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        if isinstance(error, OSError):
            raise UsageError(f"cannot write {path}: {error.strerror}") from None
        raise


def check_writable(path: Path) -> None:
    """Check whether `write_whole` can write to `path`, before long work whose result is written there.

    Raises:
        UsageError: it cannot.
    """
    refuse_links_of_others(path)
    try:
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if path.exists() and not path.is_file():
            if not os.access(path, os.W_OK):  # opening a pipe would wait for its reader
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        else:
            tempfile.TemporaryFile(dir=Path(os.path.realpath(path)).parent).close()
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from None


def _is_own(path: Path) -> bool:
    """Return whether the file exists and its permissions were this user's choice."""
    return path.exists() and (not hasattr(os, "getuid") or path.stat().st_uid == os.getuid())


def _mode(path: Path) -> int:
    """Return the permissions of the file, of a new one if there is none."""
    with created_without(0o002) as mask:
        return stat.S_IMODE(path.stat().st_mode) if path.exists() else 0o666 & ~mask


def _write_straight(path: Path, text: str) -> None:
    """Write to what is not a regular file, such as /dev/null: a rename would put a file in its place."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from None


@contextlib.contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Yield a private temporary folder next to `path` to fill; it becomes `path`, which may be an empty folder by now.

    Raises:
        UsageError: a link of another user leads there.
        OSError: it cannot be made; nothing half-written remains, whatever the reason.
    """
    refuse_links_of_others(path)
    with created_without(0o022):
        path.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}."))
    try:
        yield temporary
        if path.is_dir():
            path.rmdir()
        temporary.rename(path)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


@contextlib.contextmanager
def created_without(permissions: int) -> Iterator[int]:
    """Leave the permissions out of what the block creates, in addition to those of the umask. Gives all of them.

    Not for threads: the umask is that of the process.
    """
    before = os.umask(0)
    os.umask(before | permissions)
    try:
        yield before | permissions
    finally:
        os.umask(before)


def read_bounded(path: Path, maximum_bytes: int) -> bytes:
    """Return the content of a regular file; a huge one, or a pipe that nobody writes to, stops nothing.

    Raises:
        ValueError: it is larger, or not a regular file; the message names it.
    """
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ValueError(f"{path}: not a regular file")
        data = file.read(maximum_bytes + 1)
    if len(data) > maximum_bytes:
        raise ValueError(f"{path}: larger than {maximum_bytes:,} bytes")
    return data


def locked(lock: IO[str]) -> IO[str] | None:
    """Return the file with a lock that lasts until it is closed; None, and it is closed, if another process has it."""
    with contextlib.suppress(ImportError):  # Windows has no such lock
        import fcntl

        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.close()
            return None
    return lock
