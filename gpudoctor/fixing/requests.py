"""What a fix was asked for, kept for `--continue` after a step that a person did. Each environment has its file."""

import hashlib
import json
import os
from contextlib import suppress
from pathlib import Path

from gpudoctor.errors import UsageError
from gpudoctor.files import created_without, read_bounded, write_whole
from gpudoctor.trust import refuse_if_writable_by_others, refuse_links_of_others

SCHEMA = "gpudoctor/fix-request/1"
_MOST_BYTES = 1 << 16


def remember(interpreter: str, names: tuple[str, ...]) -> None:
    """Save the requested ids; none for the root cause, which may be a different one later."""
    write_whole(made_state_file(interpreter), json.dumps({"schema": SCHEMA, "names": names}), private=True)


def remembered(interpreter: str) -> tuple[str, ...]:
    """Return the requested ids. Raises UsageError: there is nothing to continue."""
    try:
        content = json.loads(read_bounded(state_file(interpreter), _MOST_BYTES))
        if content["schema"] == SCHEMA:
            return tuple(map(str, content["names"]))
    except (OSError, ValueError, KeyError, TypeError):
        pass
    raise UsageError("there is no fix to continue: run gpudoctor fix")


def forget(interpreter: str, kind: str = "") -> None:
    """Remove the saved ids."""
    with suppress(OSError):
        state_file(interpreter, kind).unlink()


def state_file(interpreter: str, kind: str = "") -> Path:
    """Return the state file of an environment; it need not exist. kind: the end of its name.

    Raises:
        UsageError: its folder is not this user's.
    """
    folder = Path(os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state"), "gpudoctor", "fix")
    refuse_links_of_others(folder)
    if os.path.isdir(folder):
        refuse_if_writable_by_others(str(folder))
    return folder / f"{hashlib.sha256(os.path.abspath(interpreter).encode()).hexdigest()[:16]}{kind}.json"


def made_state_file(interpreter: str, kind: str = "") -> Path:
    """Return the state file of an environment, in a folder that exists.

    Raises:
        UsageError: the folder cannot be created, or is not this user's.
    """
    folder = state_file(interpreter, kind).parent
    try:
        with created_without(0o077):
            folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot create {folder} ({error.strerror}): set XDG_STATE_HOME to another folder") from None
    return state_file(interpreter, kind)
