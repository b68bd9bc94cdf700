"""What a terminal can show: colour or not, how wide, which characters."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TextIO

import click

from gpudoctor.model.record import record
from gpudoctor.untrusted import clean

WIDEST = 100
"""Longer lines are hard to read."""

NARROWEST = 20
_COLORS = {"error": "red", "warning": "yellow", "info": "blue", "healthy": "green"}


@record
class Screen:
    """What the table is written for.

    width, height: in columns and lines. verbosity: -1 for the verdict only, 1 for everything.
    """

    color: bool = False
    width: int = 80
    height: int = 24
    verbosity: int = 0

    @property
    def columns(self) -> int:
        """The columns to fill."""
        return max(self.width, NARROWEST)


def paint(text: str, kind: str, *, color: bool) -> str:
    """Return `text` in the colour of `kind` ("error", "info", ..., or its name), or bold; "" is as it is."""
    if not color or not kind:
        return text
    return click.style(text, bold=True) if kind == "bold" else click.style(text, fg=_COLORS.get(kind, kind))


def use_color(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Return whether to write colours to `stream`. The option --no-color of a command wins over the environment.

    NO_COLOR wins over FORCE_COLOR and CLICOLOR_FORCE, as in Python itself (https://no-color.org, https://force-color.org).
    """
    command = click.get_current_context(silent=True)
    if environ.get("NO_COLOR") or (command is not None and command.color is False):
        return False
    if any(environ.get(name, "") not in ("", "0") for name in ("FORCE_COLOR", "CLICOLOR_FORCE")):
        return True
    return environ.get("TERM") != "dumb" and stream.isatty()


def width(environ: Mapping[str, str], stream: TextIO) -> int:
    """Return how many columns to fill: COLUMNS, else the terminal's width, else 80; at most 100."""
    columns = environ.get("COLUMNS", "")
    if columns.isascii() and columns.isdigit() and len(columns) < 6 and int(columns) > 0:
        return min(int(columns), WIDEST)
    return min(_size(stream)[0] or 80, WIDEST)


def height(stream: TextIO) -> int:
    """Return how many lines fit: those of the terminal, else 24."""
    return _size(stream)[1] or 24


def _size(stream: TextIO) -> tuple[int, int]:
    try:
        return os.get_terminal_size(stream.fileno())
    except (OSError, ValueError, AttributeError):  # no terminal, or a stream without a file
        return 0, 0


def encodable(text: str, encoding: str | None) -> str:
    """Return `text` with what `encoding` lacks written out: a stream in ASCII must not end a report."""
    name = encoding or "ascii"
    return text.encode(name, "backslashreplace").decode(name)


@contextmanager
def progress(text: str, stream: TextIO) -> Iterator[Callable[[str], None]]:
    """Show `text` on `stream` while the work runs, and remove it afterwards. Silent without a terminal.

    Gives a function that shows another text in its place.
    """
    shown = stream.isatty() and os.environ.get("TERM") != "dumb"
    columns = width(os.environ, stream) - 1  # a full line would wrap, and only its last part could be taken away

    def show(text: str) -> None:
        if shown:
            stream.write(f"\r\x1b[K{encodable(clean(text)[:columns], stream.encoding)}")
            stream.flush()

    show(text)
    try:
        yield show
    finally:
        if shown:
            stream.write("\r\x1b[K")
            stream.flush()
