"""Failure messages in a text, what they name, and the facts that follow from them."""

import functools
import re
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from gpudoctor.model import Device, Snapshot, Symptom
from gpudoctor.model.codec import from_json
from gpudoctor.readers.facts import Facts, joined
from gpudoctor.readers.remarks import is_in_other_language, remarks
from gpudoctor.readers.text import Text
from gpudoctor.symptoms.matching import LONGEST_TEXT, Recognised, recognise
from gpudoctor.symptoms.tables import FailureMessage

LINES_OF_AN_ERROR = 12
SHORTEST_WRAPPED = 40  # characters; a shorter line was not wrapped by a terminal or a mail program
_LISTS_OF_WORDS = {"architectures"}

UNKNOWN = "unknown-error"
REMARK, PRAISE = "asks-remark", "satisfaction-reported"
MERE_WORDS = ("asks-words", "asks-but")
WORDS = ("asks-", "place-", "about-", "topic-")
HARMLESS = "harmless"  # the role of messages that a working machine prints too
_PUNCTUATION = "\"'`.,:;()[]"
_QUOTED = "`> \t"  # around a line that Markdown quotes
_TRACEBACK = "Traceback (most recent call last)"
_WORD, _END_OF_WORD = re.compile("[A-Za-z0-9]+"), re.compile("[A-Za-z0-9]+$")
LONGEST_WORD = 24
LEAST_QUOTED = 3  # words in a row
_ERROR = re.compile(r"(?:[A-Za-z_]\w{0,60}\.){0,6}[A-Z]\w{0,80}(?:Error|Exception|Exit)(?:: .{1,2000})?$")


def read(text: Text) -> Facts:
    """Return the symptoms in `text` and the facts that follow from them."""
    found, flat = recognise(text.flat, source=text.name), text.flat
    harmless = [row for row, _ in found if row.role == HARMLESS]
    if harmless:
        flat = functools.reduce(lambda rest, row: row.expression().sub(" ", rest), harmless, text.flat)
        found = recognise(flat, source=text.name)
    found = list(_quoted(found, text))
    unknown = tuple(_unknown_error(text, [item for item in found if not item.row.id.startswith(WORDS)]))
    fails = unknown or any(row.role == "failure" and row.id not in MERE_WORDS for row, _ in found)
    return {
        **joined(*(_facts(row, symptom) for row, symptom in found)),
        "symptoms": (*(symptom for _, symptom in found), *(unknown if fails else _remark(text, flat, found))),
    }


def _remark(text: Text, flat: str, found: Sequence[Recognised]) -> Iterator[Symptom]:
    """Yield what a person says in a report without any failure: it may be a complaint that no row knows.

    flat: the text without harmless messages.
    """
    fine = [symptom.text for row, symptom in found if row.role == "works" or row.id == PRAISE]
    for said in remarks(text.lines):
        if said in flat and not any(words in said or said in words for words in fine):
            names = {"language": "other"} if is_in_other_language(said) else {}
            yield Symptom(kind=REMARK, text=said[:LONGEST_TEXT], names=names, source=text.name)
            return


def _quoted(found: Sequence[Recognised], text: Text) -> Iterator[Recognised]:
    """Yield the symptoms with quotes of people's words as a reader expects them.

    No word is cut, and a slash is where a new line begins and no punctuation says so.
    """
    ends = _ends_of_lines(text.lines)
    for row, symptom in found:
        start = text.flat.find(symptom.text) if _is_said(row) else -1
        quote = _quote(text.flat, start, start + len(symptom.text), ends) if start >= 0 else symptom.text
        yield Recognised(row, replace(symptom, text=quote))


def _quote(flat: str, start: int, end: int, ends_of_lines: frozenset[int]) -> str:
    start, quote = _whole_words(flat, start, end)
    first = flat.count(" ", 0, start)
    *words, last = quote.split(" ")
    return " ".join((*(f"{word} /" if first + n in ends_of_lines else word for n, word in enumerate(words)), last))


def _whole_words(flat: str, start: int, end: int) -> tuple[int, str]:
    """Return the quote with the rest of the words that it begins and ends in, and where it starts."""
    before = _END_OF_WORD.search(flat, max(start - LONGEST_WORD, 0), start + 1)
    after = _WORD.match(flat, end - 1, end + LONGEST_WORD)
    start = before.start() if before else start
    return start, flat[start : after.end() if after else end]


def _is_said(row: FailureMessage) -> bool:
    """Return whether the row is for words of people, not of a program."""
    return bool(row.guess) or row.library in ("user", "prose") or row.id.endswith("-reported")


def _ends_of_lines(lines: Sequence[str]) -> frozenset[int]:
    """Return the numbers of the words, counted from the beginning, that end a line which was not wrapped."""
    ends, count = set[int](), 0
    for line, following in zip(lines, (*lines[1:], ""), strict=True):
        words = line.split()
        count += len(words)
        is_end = len(line.strip()) < SHORTEST_WRAPPED or not following.strip()
        if words and is_end and words[-1][-1] not in ".,:;!?":
            ends.add(count - 1)
    return frozenset(ends)


def _unknown_error(text: Text, known: Sequence[Recognised]) -> Iterator[Symptom]:
    """Yield the last error, after a traceback if there is one, unless it contains, or is part of, a known symptom."""
    starts = [number for number, line in enumerate(text.lines) if _TRACEBACK in line]
    lines = [line.strip(_QUOTED) for line in text.lines]
    possible = range(starts[-1], len(lines)) if starts else range(len(lines))
    errors = [n for n in possible if _ERROR.match(lines[n]) and (starts or ": " in lines[n])]
    if not errors:
        return
    last = errors[-1]
    begin = last if starts else max(last - LINES_OF_AN_ERROR, 0)  # the lines before it are part of it then
    # An error message may continue on the next lines.
    around = " ".join(line[:LONGEST_TEXT] for line in lines[begin : last + LINES_OF_AN_ERROR])
    shown = " ".join(around.split())
    first = " ".join(lines[last].split())[:LONGEST_TEXT]
    rows = {item.row.id for item in known if not _is_said(item.row)}  # what people say explains only what they quote
    quoted = any(_overlap(first, item.symptom.text) for item in known)
    if not quoted and not any(item.row.id in rows for item in recognise(shown)):
        yield Symptom(kind=UNKNOWN, text=first, source=text.name, names={"error": first.partition(":")[0]})


def _overlap(error: str, quote: str) -> bool:
    """Return whether a quote has words of the error, one after the other, or one of its identifiers."""
    words, quoted = error.split(), quote.replace(" / ", " ").split()
    size = min(LEAST_QUOTED, len(words), len(quoted))
    runs = {tuple(words[n : n + size]) for n in range(len(words) - size + 1)}
    names = {word.strip(_PUNCTUATION) for word in words if "_" in word}
    in_a_row = any(tuple(quoted[n : n + size]) in runs for n in range(len(quoted) - size + 1))
    return in_a_row or any(word.strip(_PUNCTUATION) in names for word in quoted)


def _facts(row: FailureMessage, symptom: Symptom) -> Facts:
    """Return the sections that the symptom fills, without facts whose value the symptom does not name."""
    fields: dict[str, dict[str, Any]] = {}
    for path, template in row.gives.items():
        value = _filled(template, {**symptom.names, "text": symptom.text})
        section, _, field = path.partition(".")
        if value is not None and _is_valid(section, field, value):
            fields.setdefault(section, {})[field] = value
    return {section: _section(section, values) for section, values in fields.items()}


def _is_valid(section: str, field: str, value: Any) -> bool:
    """Return whether the fact can have this value: a text may say "driver version 0.00"."""
    try:
        _section(section, {field: value})
    except ValueError:
        return False
    return True


def _filled(template: Any, names: Mapping[str, str]) -> Any:
    try:
        return template.format_map(names) if isinstance(template, str) else template
    except KeyError:
        return None


def _section(section: str, values: Mapping[str, Any]) -> Any:
    """Return the section with these fields, each parsed by its type."""
    kind = Device if section == "devices" else typing.get_args(_field_types(Snapshot)[section])[0]
    if section == "environment":
        return from_json(kind, {"variables": dict(values)})
    hints = _field_types(kind)
    typed = {name: _as(name, hints[name], value) for name, value in values.items()}
    return (from_json(kind, {"nvml_index": 0, **typed}),) if section == "devices" else from_json(kind, typed)


def _as(name: str, hint: Any, value: Any) -> Any:
    """Return the value in the type of its field: a single text becomes a tuple, a list of words is split."""
    choices = typing.get_args(hint) or (hint,)
    if isinstance(value, str) and any(typing.get_origin(choice) is tuple for choice in choices):
        return re.split(r"[\s,]+", value.strip()) if name in _LISTS_OF_WORDS else [value]
    return int(value) if isinstance(value, str) and int in choices else value


@functools.cache
def _field_types(kind: type) -> Mapping[str, Any]:
    return typing.get_type_hints(kind)
