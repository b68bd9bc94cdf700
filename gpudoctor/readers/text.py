"""Clean pasted text: remove what web pages, terminals and mail programs add to it."""

import functools
import itertools
import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, cast

from gpudoctor.errors import UsageError
from gpudoctor.model.codec import json_next_to
from gpudoctor.privacy import mask_pasted
from gpudoctor.untrusted import ENDS_OF_LINES, LONGEST_LINE, readable_lines

MOST_LINES = 40_000  # a report has hundreds; the beginning and end of a longer text matter most
MOST_CHARACTERS = 400_000  # a longer text is reduced to its beginning, its end, and the new lines between them
LARGEST_BYTES = 8 * 2**20  # of one text: a long kernel log has 1 MiB
LOOKED_AT = 1000  # bytes that show the encoding
_WITHOUT_NUMBERS = dict.fromkeys(map(ord, "0123456789"))
_NOT_TEXT = 0.01  # a file with a larger share of NUL and other control characters is not text
_WITHOUT = re.compile(r"(?i)(?<![\w/.-])w/o(?= )")


class Text(NamedTuple):
    """A text, ready for the readers.

    name: where it is from, for evidence: "report.txt".
    raw: decoded but unchanged, for formats that need white space and marks (JSON, XML). A text with more than
        `MOST_LINES` is reduced to its beginning and its end, with runs of empty lines joined; one with more than
        `MOST_CHARACTERS` also keeps the lines between them that differ from others by more than numbers.
    lines: without decoration, prompts, colours and control characters, indentation kept.
    flat: the lines as one, white space folded, because messages are wrapped anywhere; "w/o" is written in full.
    lowered: the same in lower case.
    is_cut: something of the text was left out that the rest does not have.
    """

    name: str
    raw: str
    lines: tuple[str, ...]
    flat: str
    lowered: str
    is_cut: bool = False


class _Lazy:
    """A regular expression that is compiled on first use: a report needs only some of them."""

    def __init__(self, pattern: str, words: str) -> None:
        self.pattern = pattern
        self._words, self._any_case = words.split("|"), pattern.startswith("(?i")

    def __getattr__(self, name: str) -> Any:
        if self._words == [""]:
            compiled = re.compile(self.pattern)
            vars(self).update({method: getattr(compiled, method) for method in dir(compiled) if method[0] != "_"})
            return getattr(compiled, name)
        method = functools.cache(lambda: getattr(re.compile(self.pattern), name))

        def call(text: str) -> Any:
            shown = text.lower() if self._any_case else text
            for word in self._words:  # any() takes twice as long
                if word in shown:
                    return method()(text)
            return {"findall": [], "finditer": ()}.get(name)

        vars(self)[name] = call
        return call


def regex(pattern: str, words: str = "") -> re.Pattern[str]:
    """Return the expression, compiled on first use.

    words: "docker|podman" if every match contains one of these; a text without them is not searched. They are in
    lower case if the pattern begins with "(?i".
    """
    return cast("re.Pattern[str]", _Lazy(pattern, words))


def name_table(name: str) -> Any:
    """Return one of the tables of names that tools print; the file names the sources."""
    return json_next_to(__file__, "names")[name]


def read_text(data: bytes, name: str) -> Text:
    """Return the text in `data`. Raises UsageError: it is too large, or no text."""
    if len(data) > LARGEST_BYTES:
        raise UsageError(f"{name}: larger than {LARGEST_BYTES // 2**20} MiB: keep the part around the error")
    # PowerShell writes UTF-16 when output is sent to a file.
    encoding = "utf-16" if data.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig"
    if encoding != "utf-16" and _is_utf_16(data[:LOOKED_AT]):
        encoding = "utf-16-le"
    raw = data.decode(encoding, errors="replace")
    if _noise(raw) > _NOT_TEXT:
        raise UsageError(f"{name}: no text: paste what the program printed")
    return clean_text(raw, name)


def _is_utf_16(data: bytes) -> bool:
    """Return whether text has no byte order mark, but an empty second byte in most characters."""
    return len(data) > 1 and 2 * data[1::2].count(0) > len(data[1::2]) and not data[::2].count(0)


def clean_text(raw: str, name: str) -> Text:
    """Return `raw` cleaned, without names of people and hosts and without secrets."""
    bounded, is_cut = _bounded(raw)
    raw = mask_pasted(bounded)
    lines = readable_lines(raw)
    flat = _WITHOUT.sub("without", " ".join(" ".join(lines).split()))
    return Text(name=name, raw=raw, lines=lines, flat=flat, lowered=flat.lower(), is_cut=is_cut)


def _bounded(raw: str) -> tuple[str, bool]:
    """Return the text without what is too much, and whether something that is nowhere else is missing then."""
    long = any(len(line) > LONGEST_LINE for line in raw.split("\n"))
    if len(raw) <= MOST_CHARACTERS and raw.count("\n") + raw.count("\r") + raw.count("#012") < MOST_LINES:
        return raw, long
    for mark in ENDS_OF_LINES[1:]:
        raw = raw.replace(mark, "\n")
    lines = _without_gaps(line[:MOST_CHARACTERS] for line in raw.split("\n"))
    half = MOST_LINES // 2
    many = len(lines) > MOST_LINES
    lines = [*lines[:half], "", *lines[-half:]] if many else lines
    if len(_fitting(lines, MOST_CHARACTERS)) == len(lines):
        return "\n".join(lines), long or many
    beginning = len(_fitting(lines, MOST_CHARACTERS // 4))
    end = len(lines) - len(_fitting(lines[: beginning - 1 : -1], MOST_CHARACTERS // 4))
    forms = [line.translate(_WITHOUT_NUMBERS) for line in lines[:end]]
    first = dict(zip(reversed(forms), range(end - 1, -1, -1), strict=True))
    new = _without_gaps(line if n < beginning or first[forms[n]] == n else "" for n, line in enumerate(lines[:end]))
    kept = _fitting(new, 3 * MOST_CHARACTERS // 4)
    return "\n".join(_without_gaps((*kept, "", *lines[end:]))), long or many or len(kept) < len(new)


def _without_gaps(lines: Iterable[str]) -> list[str]:
    """Return the lines with runs of empty lines joined."""
    runs = itertools.groupby(lines, key=lambda line: bool(line.strip()))
    return list(itertools.chain.from_iterable(run if has_words else ("",) for has_words, run in runs))


def _fitting(lines: Sequence[str], room: int) -> list[str]:
    """Return the first lines, up to this many characters."""
    read = itertools.accumulate(min(len(line), LONGEST_LINE) for line in lines)
    return [line for line, size in zip(lines, read, strict=True) if size <= room]


def _noise(text: str) -> float:
    sample = text[:65536]
    noise = sum(character < " " and character not in "\a\t\n\r\f\x1b\b" for character in sample)
    return noise / max(len(sample), 1)
