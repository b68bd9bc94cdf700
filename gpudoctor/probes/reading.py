"""Look things up in the answer of the worker read_host."""

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

from gpudoctor.model.codec import json_next_to

Facts = Mapping[str, Any]


def known_paths(name: str) -> tuple[str, ...]:
    """Return one of the lists of what to read; the file says which system each path is of."""
    return tuple(json_next_to(__file__, "reading_lists")[name])


def file_text(facts: Facts, *paths: str) -> str | None:
    """Return the text of the first readable file; None if no file can be read."""
    files = facts.get("files", {})
    return next((files[path]["text"] for path in paths if "text" in files.get(path, {})), None)


def file_texts(facts: Facts, pattern: str) -> dict[str, str]:
    """Return the texts of the files whose path matches, by path."""
    texts = {path: entry["text"] for path, entry in facts.get("files", {}).items() if "text" in entry}
    return {path: text for path, text in texts.items() if path == pattern or fnmatchcase(path, pattern)}


def unreadable(facts: Facts, pattern: str) -> bool:
    """Return whether a file exists, or may exist, that could not be read."""
    files = facts.get("files", {})
    errors = (entry["error"] for path, entry in files.items() if "error" in entry and fnmatchcase(path, pattern))
    return any(not error.startswith(("ENOENT", "ENOTDIR")) for error in errors)


def listed(facts: Facts, pattern: str) -> tuple[str, ...] | None:
    """Return the paths listed for `pattern`; None if that was not asked or a folder could not be listed."""
    listing = facts.get("listings", {}).get(pattern)
    if listing is None or (listing.get("error") and not listing["paths"]):
        return None
    return tuple(listing["paths"])


def all_listed(facts: Facts) -> tuple[str, ...]:
    """Return every path of every listing, in their order."""
    return tuple(path for listing in facts.get("listings", {}).values() for path in listing["paths"])


def link_target(facts: Facts, path: str) -> str | None:
    """Return what the link resolves to; None if it is not there."""
    target: str | None = facts.get("links", {}).get(path, {}).get("target")
    return target


def output(facts: Facts, command: str) -> str | None:
    """Return the standard output of a command that succeeded; None for any other."""
    answer = facts.get("commands", {}).get(command, {})
    return answer["stdout"] if answer.get("status") == 0 else None


def value(facts: Facts, name: str) -> Any:
    """Return a value of the machine; None if it could not be obtained."""
    return facts.get("values", {}).get(name, {}).get("value")


def found(facts: Facts, name: str) -> str | None:
    """Return the path of a command on PATH; "" if there is none, None if that was not asked."""
    which = facts.get("which", {})
    if name not in which:
        return None
    return which[name]["path"] if which[name] else ""


def is_linux(facts: Facts) -> bool:
    """Return whether the machine runs Linux."""
    return bool(value(facts, "platform") == "linux")


def file_name(path: str) -> str:
    """Return the last part of a path of any system."""
    return path.replace("\\", "/").rpartition("/")[2]


def whole(value: Any, least: int, most: int) -> int | None:
    """Return a whole number between `least` and `most`; anything else is unknown."""
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if least <= value <= most else None
