"""Files of a project, which is not trusted: a huge one, or a pipe that nobody writes to, stops nothing."""

import os
import stat
from pathlib import Path


def read_bounded(path: Path, maximum_bytes: int) -> bytes:
    """Return the content of a regular file.

    Raises:
        ValueError: it is larger, or no regular file; the message names it.
    """
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ValueError(f"{path}: no regular file")
        data = file.read(maximum_bytes + 1)
    if len(data) > maximum_bytes:
        raise ValueError(f"{path}: larger than {maximum_bytes:,} bytes")
    return data
