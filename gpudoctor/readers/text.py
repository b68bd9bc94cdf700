"""A pasted text made readable: what the web, the terminal and the mail put around it is taken off."""

from __future__ import annotations

import re
from typing import NamedTuple

from gpudoctor.errors import UsageError
from gpudoctor.privacy import mask_pasted

LARGEST_BYTES = 8 * 2**20  # of one text: a long kernel log has 1 MiB
LONGEST_LINE = 4000  # characters; a longer line is no output of a tool that is read line by line
_NOT_TEXT = 0.01  # share of NUL and other control characters from which on a file is no text

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)|[@-Z\\-_]|[ -/]+[0-~])")
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufffe]")
_PLAIN = {
    0x00A0: " ",
    0x2007: " ",
    0x202F: " ",
    0x3000: " ",
    0x2018: "'",
    0x2019: "'",
    0x201B: "'",
    0x201C: '"',
    0x201D: '"',
    0xFF1A: ":",
    0xFF08: "(",
    0xFF09: ")",
    0xFF0C: ",",
    0x2212: "-",
}

_RSYSLOG_NEWLINE = "#012"  # within a message

# What stands before a line and is no part of it: quote marks, frames of pip's output, names of processes.
_DECORATION = re.compile(
    r"^(?:\s{0,3}>(?!>>)\s?)+|^\s*[│┃]\s?|^\s*\((?:\w+ )?pid=\d+(?:, ip=[\d.]+)?\)\s?|^\[rank\d+\]:\s?"
)
_SHELL_MARKS = "$❯➜%"  # noqa: RUF001 - prompts of several shells
_PROMPT = re.compile(
    r"^\s*(?:\([\w.@/+-]{1,60}\)\s*)?"  # the environment that is active
    r"(?:[\w.-]{1,40}@[\w.-]{1,60}[: ][^$#>\n]{0,120}[$#]\s+"
    r"|\[[\w.-]+@[\w.-]+[^\]\n]{0,80}\]\s*[$#]\s+"
    r"|(?:PS )?[A-Za-z]:\\[^>\n]{0,150}>\s*"
    rf"|[~/][\w./~-]{{0,120}}\s?[#>{_SHELL_MARKS}]\s+"
    rf"|>>>\s|\.\.\.\s|In ?\[\d*\]:\s|[{_SHELL_MARKS}]\s+)"
)


class Text(NamedTuple):
    """A text, ready for the readers.

    name: where it comes from, for evidence: "report.txt".
    raw: as it was, decoded, for kinds of which white space and marks are a part (JSON, XML).
    lines: without decoration, prompts, colours and control characters, indentation kept.
    flat: the lines as one, white space folded: messages are wrapped anywhere.
    lowered: the same in lower case.
    """

    name: str
    raw: str
    lines: tuple[str, ...]
    flat: str
    lowered: str


def read_text(data: bytes, name: str) -> Text:
    """Return the text in `data`.

    Raises:
        UsageError: it is too large, or no text.
    """
    if len(data) > LARGEST_BYTES:
        raise UsageError(f"{name}: larger than {LARGEST_BYTES // 2**20} MiB: keep the part around the error")
    raw = _decoded(data)
    if _noise(raw) > _NOT_TEXT:
        raise UsageError(f"{name}: no text: paste what the program printed")
    return clean_text(raw, name)


def clean_text(raw: str, name: str) -> Text:
    """Return `raw` made readable, without the names of people and hosts, and without secrets."""
    raw = mask_pasted(raw)
    plain = _ESCAPES.sub("", raw) if "\x1b" in raw else raw
    plain = plain.replace("\r\n", "\n").replace("\r", "\n").replace(_RSYSLOG_NEWLINE, "\n").expandtabs(8)
    plain = plain.replace("\\'", "'")  # as in a list of strings that was printed
    plain = _CONTROLS.sub("", plain).translate(_PLAIN)
    lines = tuple(_undecorated(line[:LONGEST_LINE]) for line in plain.split("\n") if not line.strip().startswith("```"))
    flat = " ".join(" ".join(lines).split())
    return Text(name=name, raw=raw, lines=lines, flat=flat, lowered=flat.lower())


def _decoded(data: bytes) -> str:
    """Return the text; PowerShell writes UTF-16 when output is sent to a file."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", errors="replace")
    return data.decode("utf-8-sig", errors="replace")


def _noise(text: str) -> float:
    sample = text[:65536]
    noise = sum(character < " " and character not in "\t\n\r\f\x1b\b" for character in sample)
    return noise / max(len(sample), 1)


def _undecorated(line: str) -> str:
    line = _DECORATION.sub("", line, count=1)
    return _PROMPT.sub("", line, count=1).rstrip()
