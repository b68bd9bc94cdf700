"""The files in which a configuration may stand, and where in them something is: for messages."""

import os
import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from gpudoctor.errors import UsageError
from gpudoctor.model.record import record
from gpudoctor.trust import refuse_if_writable_by_others

LARGEST_BYTES = 1 << 20
_LISTS = ("select", "ignore", "require")


@record
class Source:
    """A file and the content of its section.

    path: absolute. name: as seen from the working directory. text: the whole file.
    first_line: the one with the section's title, counted from 1.
    """

    path: str
    name: str
    text: str
    content: Mapping[str, Any]
    first_line: int = 1

    def error(self, key: str, message: str, word: str = "") -> UsageError:
        """Return the error for a key; word: what in its value is wrong."""
        return UsageError(f"{self.place(key, word)}: {message}")

    def place(self, key: str, word: str = "") -> str:
        """Return file, line if it can be found, and key: "gpudoctor.toml line 3: select"."""
        line = self._line(key, word)
        return f"{self.name}{f' line {line}' if line else ''}: {key}"

    def _line(self, key: str, word: str) -> int | None:
        lines = list(enumerate(self.text.splitlines(), 1))[self.first_line - 1 :]
        titled = re.compile(rf"""\s*(\[+[^\]]*\b)?["']?{re.escape(key)}["']?\s*[=:.\]]""")
        at_key = next((number for number, line in lines if titled.match(line)), None)
        if at_key is None or not word:
            return at_key
        whole = re.compile(rf"(?<![\w.-]){re.escape(word)}(?![\w-])")
        return next((number for number, line in lines if number >= at_key and whole.search(line)), at_key)


def find_source(directory: str) -> Source | None:
    """Return the first configuration file from `directory` upwards; None if there is none.

    Raises:
        UsageError: a file that may contain it cannot be read, or other users can write to the file that contains it.
    """
    folder = os.path.abspath(directory)
    while True:
        for file, read in _FILES.items():
            path = os.path.join(folder, file)
            if os.path.isfile(path):
                source = read(path, os.path.relpath(path, directory))
                if source is not None:
                    refuse_if_writable_by_others(path)
                    return source
        parent = os.path.dirname(folder)
        if parent == folder:
            return None
        folder = parent


def _own_toml(path: str, name: str) -> Source | None:
    text = _text(path, name)
    return Source(path=path, name=name, text=text, content=_toml(text, name))


def _pyproject(path: str, name: str) -> Source | None:
    text = _text(path, name)
    if "gpudoctor" not in text:  # most are none of our business, broken ones too
        return None
    content = _table(_toml(text, name), name, "tool", "gpudoctor")
    if content is None:
        return None
    return Source(path=path, name=name, text=text, content=content, first_line=_title(text, r"\s*\[+tool\.gpudoctor\b"))


def _setup_cfg(path: str, name: str) -> Source | None:
    text = _text(path, name)
    if "[gpudoctor]" not in text:
        return None
    import configparser

    parser = configparser.RawConfigParser()
    try:
        parser.read_string(text)
    except configparser.Error as error:
        line = getattr(error, "lineno", None) or next((n for n, _ in getattr(error, "errors", ())), None)
        message = str(error.message).partition("\n")[0]
        raise UsageError(f"{name}{f' line {line}' if line else ''}: {message}") from None
    if not parser.has_section("gpudoctor"):
        return None
    content = {key: _cfg_value(key, value, name) for key, value in parser.items("gpudoctor")}
    return Source(path=path, name=name, text=text, content=content, first_line=_title(text, r"\[gpudoctor\]"))


_FILES = {"gpudoctor.toml": _own_toml, "pyproject.toml": _pyproject, "setup.cfg": _setup_cfg}


def _cfg_value(key: str, value: str, name: str) -> Any:
    """Return the value as TOML would give it: one entry of a list or table on each line."""
    lines = [line.strip() for line in value.splitlines() if line.strip()]
    if key in _LISTS:
        return lines
    return dict(_pairs(lines, name)) if key == "severity" else value.strip()


def _pairs(lines: list[str], name: str) -> Iterator[tuple[str, str]]:
    for line in lines:
        match = re.fullmatch(r"([^\s=:]+)\s*[=:]\s*(\S+)", line)
        if match is None:
            raise UsageError(f"{name}: severity: {line!r} is not of the form id = warning")
        yield match[1], match[2]


def _text(path: str, name: str) -> str:
    try:
        with open(path, "rb") as file:
            content = file.read(LARGEST_BYTES + 1)
    except OSError as error:
        raise UsageError(f"{name}: {error.strerror or error}") from None
    if len(content) > LARGEST_BYTES:
        raise UsageError(f"{name}: larger than {LARGEST_BYTES >> 20} MiB")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{name} line {line}: not UTF-8 text") from None


def _toml(text: str, name: str) -> dict[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        match = re.search(r" \(at line (\d+), column \d+\)", str(error))
        message = str(error).replace(match[0], "") if match else str(error)
        raise UsageError(f"{name}{f' line {match[1]}' if match else ''}: {message}") from None
    except RecursionError:
        raise UsageError(f"{name}: nested too deeply") from None


def _table(content: Mapping[str, Any], name: str, *steps: str) -> Mapping[str, Any] | None:
    """Return the table at these steps; None if there is none. Raises UsageError: something else is there."""
    for step in steps:
        if step not in content:
            return None
        content = content[step]
        if not isinstance(content, dict):
            raise UsageError(f"{name}: {step} is not a table")
    return content


def _title(text: str, pattern: str) -> int:
    """Return the number of the first line that begins so, 1 if there is none."""
    return next((number for number, line in enumerate(text.splitlines(), 1) if re.match(pattern, line)), 1)
