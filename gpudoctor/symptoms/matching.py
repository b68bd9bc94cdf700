"""The one matcher of failure messages: a text in, the symptoms in it out."""

import functools
import re
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import NamedTuple

from gpudoctor.data.drivers import windows_driver
from gpudoctor.model import ComputeCapability, CudaVersion, Symptom
from gpudoctor.symptoms.pruning import pruned, words_of
from gpudoctor.symptoms.tables import FailureMessage, failure_messages

MOST_OF_A_KIND = 4
LONGEST_TEXT = 500
LONGEST_NAME = 200
MOST_WORDS = 8_000  # characters in which people describe what they see; a longer text is a log
BEGINNING = 6  # characters of a phrase
LOWER = {number: number + 32 for number in range(ord("A"), ord("Z") + 1)}  # of ASCII alone, as the patterns ask
CASED = "(?-i:"  # in a pattern for which capitals count
REFERENCE = "(?P="  # in a pattern that names one of its groups
MOST_PRUNED = 2  # texts for which a pattern is made smaller: after that it is compiled whole, and kept
CAPITALS = re.compile(r"(\(\?P[<=]\w+[>)]|\\.)|[A-Z]")  # but those of a group's name and of \S


class Recognised(NamedTuple):
    """A symptom, and the row of the message tables by which it is known."""

    row: FailureMessage
    symptom: Symptom


def recognise(text: str, *, fact: str = "", source: str = "", known: Collection[str] = ()) -> list[Recognised]:
    """Return the failure messages in `text`, whose white space is folded, in the order of the tables.

    fact: dotted path of the fact that contains the text. source: name of the pasted text.
    known: ids of the rows that are not looked for, as another text has shown them.
    """
    rows = [row for row in rows_in_question(text.lower()) if not row.facts or fact.startswith(tuple(row.facts))]
    rows = [row for row in rows if not (row.guess and fact) and row.id not in known]  # a library does not guess
    lowered = text.translate(LOWER)
    expressions = _expressions(lowered)
    found = ((row, _found(row, text, lowered, expressions, fact=fact, source=source)) for row in rows)
    return [Recognised(row, symptom) for row, symptoms in found for symptom in symptoms]


def rows_in_question(lowered: str) -> list[FailureMessage]:
    """Return the rows with a phrase in the text, which is in lower case.

    One pass finds the beginnings of phrases, and only their phrases are looked for: to look for all 1800
    in 200 kB took 95 to 115 ms, this takes 40 ms (CPython 3.11, 2026-11).
    """
    rows = failure_messages()
    there = {lowered[n : n + BEGINNING] for n in range(len(lowered))}
    short, by_beginning = _phrases()
    looked_for = [*short, *(pair for beginning in there & by_beginning.keys() for pair in by_beginning[beginning])]
    return [rows[number] for number in sorted({number for phrase, number in looked_for if phrase in lowered})]


@functools.cache
def _phrases() -> tuple[list[tuple[str, int]], Mapping[str, list[tuple[str, int]]]]:
    """Return each phrase with the number of its row: those shorter than a beginning, and the others by theirs."""
    pairs = [(phrase, number) for number, row in enumerate(failure_messages()) for phrase in row.contains]
    by_beginning: dict[str, list[tuple[str, int]]] = {}
    for phrase, number in pairs:
        by_beginning.setdefault(phrase[:BEGINNING], []).append((phrase, number))
    return [pair for pair in pairs if len(pair[0]) < BEGINNING], by_beginning


def _found(
    row: FailureMessage, text: str, lowered: str, expressions: Callable[[str], re.Pattern[str]], **about: str
) -> Iterator[Symptom]:
    seen: set[str] = set()
    lowered = text if CASED in row.pattern else lowered
    told = lowered[:MOST_WORDS] if row.guess else lowered
    if not all(expressions(words).search(told) for words in row.near):
        return  # most rows lack one of them: to look for all in every order takes ten times as long
    if row.unless and expressions(row.unless).search(lowered):
        return
    for match in expressions(row.pattern).finditer(told):
        shown = text[match.start() : match.end()][:LONGEST_TEXT].strip()
        if shown not in seen:
            seen.add(shown)
            names = _names(match, text)
            yield Symptom(kind=row.id, text=shown, library=row.library, code=row.code, names=names, **about)
        if len(seen) >= MOST_OF_A_KIND:
            return


def _expressions(lowered: str) -> Callable[[str], re.Pattern[str]]:
    """Return what makes patterns for a text; a part of one of the latest texts has its own: facts are of a report."""
    if not any(lowered in text for text, _ in _LATEST):
        has = words_of(lowered)
        _LATEST.append((lowered, functools.cache(lambda pattern: _expression(pattern, has))))
    return next(expressions for text, expressions in _LATEST if lowered in text)


def _expression(pattern: str, has: Callable[[str], bool]) -> re.Pattern[str]:
    """Return the pattern for a text that has these words: whole if it was asked for in several texts before."""
    _ASKED[pattern] += 1
    if _ASKED[pattern] > MOST_PRUNED or CASED in pattern or REFERENCE in pattern:
        return _whole(pattern)
    return re.compile(pruned(_lowered(pattern), has), re.ASCII)


MOST_TEXTS = 4  # whose expressions are kept
_ASKED: Counter[str] = Counter()
_LATEST: deque[tuple[str, Callable[[str], re.Pattern[str]]]] = deque(maxlen=MOST_TEXTS)


@functools.cache
def _whole(pattern: str) -> re.Pattern[str]:
    """Return the pattern for texts in lower case, in which it finds in half the time what IGNORECASE finds."""
    return re.compile(*((pattern, re.IGNORECASE | re.ASCII) if CASED in pattern else (_lowered(pattern), re.ASCII)))


def _lowered(pattern: str) -> str:
    return CAPITALS.sub(lambda match: match[1] or match[0].lower(), pattern)


def _names(match: re.Match[str], text: str) -> dict[str, str]:
    """Return what the message names, with numbers that code a version written as one.

    If several wordings name one thing, the groups of the others are called "kernel2", "kernel3".
    """
    names = {
        name.rstrip("0123456789"): text[slice(*match.span(name))].strip()[:LONGEST_NAME]
        for name, value in match.groupdict().items()
        if value
    }
    if "sm" in names:
        names["capability"] = str(ComputeCapability.parse(f"sm_{names.pop('sm').lower().removeprefix('sm_')}"))
    if "cuda_number" in names:
        names["cuda"] = str(CudaVersion.from_number(int(names.pop("cuda_number"))))
    if "wddm" in names:
        names["driver"] = str(windows_driver(names.pop("wddm")))
    return names
