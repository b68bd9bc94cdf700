"""Whose files count: what another user owns or can write to decides nothing and is not followed."""

import os
import stat

from gpudoctor.errors import UsageError

TRUST = "GPUDOCTOR_TRUST"
"""The variable that lists folders whose configuration and plugins count whoever can write to them; * for all."""


def refuse_if_writable_by_others(path: str) -> None:
    """Refuse a file or folder that decides what runs if another user owns it or can write to it.

    As git does: https://git-scm.com/docs/git-config#Documentation/git-config.txt-safedirectory

    Raises:
        UsageError: it is one, and GPUDOCTOR_TRUST does not list its folder.
    """
    path = os.path.abspath(path)
    folder = path if os.path.isdir(path) else os.path.dirname(path)
    trusted = os.environ.get(TRUST, "").split(os.pathsep)
    if not hasattr(os, "geteuid") or "*" in trusted or folder in trusted:
        return
    state, link = os.stat(path), _link_of_others(path)
    if link:
        why = f"is reached by {link}, a link of another user"
    elif state.st_uid not in _own_users():
        why = "belongs to another user"
    elif state.st_mode & stat.S_IWOTH or (state.st_mode & stat.S_IWGRP and state.st_gid not in (0, os.getegid())):
        why = "can be written by other users"
    else:
        return
    import shlex

    raise UsageError(f"{path} {why}; to use it anyway: export {TRUST}={shlex.quote(folder)}")


def refuse_links_of_others(path: str | os.PathLike[str]) -> None:
    """Refuse to write where a symbolic link of another user leads.

    Raises:
        UsageError: the path or a folder on its way is one.
    """
    if link := _link_of_others(path):
        raise UsageError(f"cannot write {os.fspath(path)}: {link} is a link of another user")


def _link_of_others(path: str | os.PathLike[str]) -> str:
    """Return the first symbolic link of another user on the way to `path`, from its end on; "" for none."""
    place = os.path.abspath(path)
    while hasattr(os, "geteuid") and place != os.path.dirname(place):
        if os.path.islink(place) and os.lstat(place).st_uid not in _own_users():
            return place
        place = os.path.dirname(place)
    return ""


def _own_users() -> set[int]:
    """Return this user, root, and who called sudo."""
    caller = os.environ.get("SUDO_UID", "")
    return {0, os.geteuid(), *([int(caller)] if os.geteuid() == 0 and caller.isdecimal() else [])}
