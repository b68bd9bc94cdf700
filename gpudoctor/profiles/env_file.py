"""The file of a profile: NAME=value lines that docker, compose, systemd and a shell read the same way."""

import re
from collections.abc import Iterator
from pathlib import Path

from gpudoctor import __version__
from gpudoctor.errors import UsageError
from gpudoctor.files import write_whole
from gpudoctor.model.profile import Profile
from gpudoctor.parsers.profile_variables import ALLOWED, BadVariable, gpudoctor_variables, is_allowed, profile_from
from gpudoctor.untrusted import clean

LARGEST_BYTES = 64 * 1024
"""A profile has some dozen lines."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")


def is_name(text: str) -> bool:
    """Return whether every reader of the file takes `text` for the name of a variable."""
    return _NAME.fullmatch(text) is not None


def write_profile(path: Path, profile: Profile) -> None:
    """Write the profile to `path`, whole or not at all. Raises UsageError: it cannot be written there."""
    write_whole(path, render(profile, path.name), private=True)


def render(profile: Profile, file_name: str = "gpudoctor.env") -> str:
    """Return the text of the file. Comments are on lines of their own: a value would end in one next to it."""
    blocks = ["\n".join(f"# {_comment(line)}" for line in _header(profile, _comment(file_name)))]
    for title, variables in (
        ("", gpudoctor_variables(profile)),
        ("# Read by the frameworks\n", profile.frameworks),
        ("# Set with --set\n", profile.own),
    ):
        if variables:
            blocks.append(title + "\n".join(f"{name}={value}" for name, value in variables.items()))
    return "\n\n".join(blocks) + "\n"


def _header(profile: Profile, file_name: str) -> Iterator[str]:
    when = f" on {profile.created_at}" if profile.created_at else ""
    yield f"Profile of a GPU program, measured and written by gpudoctor {__version__}{when}."
    yield f"docker run --env-file {file_name} ..., env_file of compose, EnvironmentFile of systemd;"
    yield f"in a shell: set -a; . ./{file_name}; set +a"
    yield f'in Python: gpudoctor.load_profile("{file_name}").apply()'
    yield f"To check whether it still fits the machine: gpudoctor profile verify {file_name}"
    for warning in profile.warnings:
        yield f"Warning: {warning}"


def _comment(text: str) -> str:
    """Return `text` in one line without a backslash: at the end of a comment, systemd joins the next line to it."""
    return clean(text).replace("\\", "/")


def read_profile(path: Path) -> Profile:
    """Return the profile in the file.

    Raises:
        UsageError: there is none, or it cannot be read; the message names file and line.
    """
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_BYTES + 1)
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: {getattr(error, 'strerror', None) or error}") from None
    if len(content) > LARGEST_BYTES:
        raise UsageError(f"{path}: larger than {LARGEST_BYTES // 1024} KiB: this is not a gpudoctor profile")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{path} line {line}: not UTF-8 text") from None
    return parse(text, str(path))


def parse(text: str, where: str) -> Profile:
    """Return the profile that the text of the file `where` says.

    Raises:
        UsageError: a line cannot be read, or a variable is missing or does not fit.
    """
    variables: dict[str, str] = {}
    numbers: dict[str, int] = {}
    for number, line in enumerate(text.split("\n"), 1):
        assignment = _assignment(line.rstrip("\r"), f"{where} line {number}")
        if assignment is None:
            continue
        name, value = assignment
        if name in variables:
            raise UsageError(f"{where} line {number}: {name} is already set in line {numbers[name]}")
        variables[name], numbers[name] = value, number
    try:
        return profile_from(variables)
    except BadVariable as bad:
        place = f"{where} line {numbers[bad.name]}" if bad.name in numbers else where
        raise UsageError(f"{place}: {bad}") from None


def _assignment(line: str, place: str) -> tuple[str, str] | None:
    """Return name and value; None of an empty line or a comment. A UsageError: readers would not agree on the line."""
    if not line.strip() or line.lstrip().startswith("#"):
        return None
    name, sign, value = line.partition("=")
    if line.split(maxsplit=1)[0] == "export":
        raise UsageError(f"{place}: remove the word export: docker and systemd do not support it")
    if not sign or not is_name(name):
        raise UsageError(f"{place}: {line[:80]!r} is not of the form NAME=value")
    if value[:1] in ("'", '"'):
        raise UsageError(f"{place}: remove the quotes: docker makes them part of the value")
    if not is_allowed(value):
        raise UsageError(f"{place}: the value of {name} may contain only {ALLOWED}")
    return name, value
