"""Texts that another program wrote, made fit to be read, shown and kept."""

import re
from typing import Any

from gpudoctor.privacy import mask_secrets

MAXIMUM_CHARACTERS = 1000
MAXIMUM_ITEMS = 256
_SHOWN_CHARACTERS = 400
LONGEST_FIX = 2000  # characters: a fix names versions, platforms and what else to consider
LONGEST_LINE = 4000  # characters; tools that are read line by line print no longer lines

# Patterns are texts, which `re` compiles when one is asked for: a live machine gives no occasion.
_ESCAPES = r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)|[@-Z\\-_]|[ -/]+[0-~])"
_CONTROLS = r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufffe]"
_PLAIN = str.maketrans(
    "\u00a0\u2007\u202f\u3000\u2018\u2019\u201b\u201c\u201d\uff1a\uff08\uff09\uff0c\u2212", """    '''"":(),-"""
)

ENDS_OF_LINES = ("\n", "\r\n", "\r", "#012")  # the last one by rsyslog, within a message

# A line around code in Markdown, with the name of a language at most. What else is on the line was pasted.
_FENCE = r"^\s*`{3,}\s?[\w+#.-]{0,16}\s*$"
# Marks before a line that do not belong to it: quote marks, a fence, frames of pip's output, names of processes.
_DECORATION = (
    r"^(?:\s{0,3}>(?!>>)\s?)+|^\s*`{3,}\s?|^\s*[│┃]\s?|^\s*\((?:\w+ )?pid=\d+(?:, ip=[\d.]+)?\)\s?|^\[rank\d+\]:\s?"
)
_SHELL_MARKS = "$❯➜%"  # noqa: RUF001 - prompts of several shells
_PROMPT = (
    r"^\s*(?:\([\w.@/+-]{1,60}\)\s*)?"  # the environment that is active
    r"(?:[\w.-]{1,40}@[\w.-]{1,60}[: ][^$#>\n]{0,120}[$#]\s+|\[[\w.-]+@[\w.-]+[^\]\n]{0,80}\]\s*[$#]\s+"
    r"|(?:PS )?[A-Za-z]:\\[^>\n]{0,150}>\s*"
    rf"|[~/][\w./~-]{{0,120}}\s?[#>{_SHELL_MARKS}]\s+|>>>\s|\.\.\.\s|In ?\[\d*\]:\s|[{_SHELL_MARKS}]\s+)"
)


def readable_lines(raw: str) -> tuple[str, ...]:
    """Return the lines of `raw` without decoration, prompts, colours and control characters, indentation kept."""
    plain = re.sub(_ESCAPES, "", raw) if "\x1b" in raw else raw
    for end in ENDS_OF_LINES[1:]:
        plain = plain.replace(end, "\n")
    plain = plain.expandtabs(8)
    plain = plain.replace("\\'", "'")  # as in a list of strings that was printed
    plain = re.sub(_CONTROLS, "", plain).translate(_PLAIN)
    lines = (line[:LONGEST_LINE] for line in plain.split("\n") if not re.fullmatch(_FENCE, line))
    return tuple(_without(_PROMPT, _without(_DECORATION, line)).rstrip() for line in lines)


def _without(beginning: str, line: str) -> str:
    match = re.match(beginning, line)
    return line[match.end() :] if match else line


def cleaned(value: Any) -> Any:
    """Return `value` (as JSON gives it) with every text in one line, free of control characters, and bounded."""
    if isinstance(value, str):
        return _cleaned_text(value)
    if isinstance(value, list):
        return [cleaned(item) for item in value[:MAXIMUM_ITEMS]]
    if isinstance(value, dict):
        return {str(name): cleaned(item) for name, item in value.items()}
    return value


def _cleaned_text(text: str) -> str:
    line = " ".join(text[: 4 * MAXIMUM_CHARACTERS].split())
    printable = "".join(character for character in line if character.isprintable())
    return printable if len(printable) <= MAXIMUM_CHARACTERS else printable[: MAXIMUM_CHARACTERS - 3] + "..."


def clean(text: str, limit: int | None = _SHOWN_CHARACTERS) -> str:
    r"""Return `text` in one line: control and invisible characters written out ("\x1b"), the rest of a long text cut.

    Text from a machine may hold terminal escapes that hide, move or colour what stands around it, and secrets.
    """
    text = mask_secrets(text)
    cut = text if limit is None else text[:limit]
    shown = cut if cut.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in cut)
    return shown if len(cut) == len(text) else f"{shown}... ({len(text)} characters)"


# What a value may be made of: words that are no keys, names of devices, and paths without a folder that is a key.
_WORD = (
    r"[\w.+-]{0,20}|[a-z_]{1,40}|[a-z]{2,20}(?:_[a-z0-9]{1,20}){1,5}|/?[a-z.-]{1,30}(?:/[a-z.-]{1,30}){1,5}|\*{3}"
    r"|(?:(?:GPU|MIG)-)*[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4,12}){4}(?:/\d{1,2}){0,2}"
)
_WORDS = rf"(?a)(?:{_WORD})(?:[,;:=<>|%!*$ \[\]\"'{{}}()]+(?:{_WORD}))*"
_PATH = (
    r"(?:[A-Za-z]:)?(?:[/\\~.$%*][\w ./\\~$%{}()+@,=!*#&'^-]{0,1000})?"
    r"|[\w-]{1,24}|[a-z0-9_.-]{1,24}(?:/[a-z0-9_.-]{1,24}){1,9}"
)
_KEY = r"(?<![\w+=-])(?=[^/\\]{0,90}\d)(?=[^/\\]{0,90}[A-Za-z])[A-Za-z0-9+=]{32,}(?![\w+=-])|[\w+=-]{90,}"
_LONGEST_WORDS = 4000  # characters: NVIDIA_REQUIRE_CUDA of an image lists dozens of drivers
HIDDEN = "(hidden)"


def shown_value(value: str, paths: bool = False) -> str:
    """Return the value of a variable, or "(hidden)" if it contains anything but a word or path: it may be a key."""
    if paths:
        windows = ";" in value or re.match(r"[A-Za-z]:", value)
        shown = all(re.fullmatch(_PATH, p) and not re.search(_KEY, p) for p in value.split(";" if windows else ":"))
    else:
        shown = len(value) <= _LONGEST_WORDS and re.fullmatch(_WORDS, value) is not None
    return value if shown else HIDDEN
