"""A pasted text made readable: what the web, the terminal and the mail put around it is taken off."""

import itertools
import re
from typing import Any, NamedTuple, cast

from gpudoctor.errors import UsageError
from gpudoctor.model.codec import json_beside
from gpudoctor.privacy import mask_pasted
from gpudoctor.untrusted import ENDS_OF_LINES, readable_lines

MOST_LINES = 40_000  # a report has hundreds; the beginning and end of a longer text say the most
LARGEST_BYTES = 8 * 2**20  # of one text: a long kernel log has 1 MiB
_NOT_TEXT = 0.01  # share of NUL and other control characters from which on a file is not text


class Text(NamedTuple):
    """A text, ready for the readers.

    name: where it is from, for evidence: "report.txt".
    raw: as it was, decoded, for kinds that need white space and marks (JSON, XML). Of a text with more than
        `MOST_LINES`, runs of empty lines are one, and its beginning and its end are left.
    lines: without decoration, prompts, colours and control characters, indentation kept.
    flat: the lines as one, white space folded: messages are wrapped anywhere.
    lowered: the same in lower case.
    """

    name: str
    raw: str
    lines: tuple[str, ...]
    flat: str
    lowered: str


class _Lazy:
    """An expression that is not compiled yet: a report needs some of them."""

    def __init__(self, pattern: str) -> None:
        self._written = pattern

    def __getattr__(self, name: str) -> Any:
        compiled = re.compile(self._written)
        vars(self).update({method: getattr(compiled, method) for method in dir(compiled) if method[0] != "_"})
        return getattr(compiled, name)


def regex(pattern: str) -> re.Pattern[str]:
    """Return the expression, which is compiled when it is first used."""
    return cast("re.Pattern[str]", _Lazy(pattern))


def name_table(name: str) -> Any:
    """Return one of the tables of names that tools print; their source is in the file."""
    return json_beside(__file__, "names")[name]


def read_text(data: bytes, name: str) -> Text:
    """Return the text in `data`. Raises UsageError: it is too large, or no text."""
    if len(data) > LARGEST_BYTES:
        raise UsageError(f"{name}: larger than {LARGEST_BYTES // 2**20} MiB: keep the part around the error")
    # PowerShell writes UTF-16 when output is sent to a file.
    encoding = "utf-16" if data.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig"
    raw = data.decode(encoding, errors="replace")
    if _noise(raw) > _NOT_TEXT:
        raise UsageError(f"{name}: no text: paste what the program printed")
    return clean_text(raw, name)


def clean_text(raw: str, name: str) -> Text:
    """Return `raw` made readable, without the names of people and hosts, and without secrets."""
    raw = mask_pasted(_bounded(raw))
    lines = readable_lines(raw)
    flat = " ".join(" ".join(lines).split())
    return Text(name=name, raw=raw, lines=lines, flat=flat, lowered=flat.lower())


def _bounded(raw: str) -> str:
    if raw.count("\n") + raw.count("\r") - raw.count("\r\n") + raw.count("#012") < MOST_LINES:
        return raw
    for end in ENDS_OF_LINES[1:]:
        raw = raw.replace(end, "\n")
    runs = itertools.groupby(raw.split("\n"), key=lambda line: bool(line.strip()))
    lines = list(itertools.chain.from_iterable(run if has_words else ("",) for has_words, run in runs))
    half = MOST_LINES // 2
    return "\n".join(lines if len(lines) <= MOST_LINES else (*lines[:half], "", *lines[-half:]))


def _noise(text: str) -> float:
    sample = text[:65536]
    noise = sum(character < " " and character not in "\a\t\n\r\f\x1b\b" for character in sample)
    return noise / max(len(sample), 1)
