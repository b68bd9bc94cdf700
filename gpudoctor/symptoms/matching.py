"""The one matcher of failure messages: returns the symptoms in a text."""

import functools
import re
import sys
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple

from gpudoctor.data.drivers import windows_driver
from gpudoctor.model import ComputeCapability, CudaVersion, Symptom
from gpudoctor.symptoms.pruning import LONG_TEXT, NOTHING, pruned, words_of
from gpudoctor.symptoms.tables import FailureMessage, in_any_order, rows_in_question

MOST_OF_A_KIND = 4
LONGEST_TEXT = 500
LONGEST_NAME = 200
MOST_WORDS = 8_000  # characters; people's descriptions are shorter, a longer text is a log
LOWER = {number: number + 32 for number in range(ord("A"), ord("Z") + 1)}  # ASCII only, as in the patterns
CASED = "(?-i:"  # in a case-sensitive pattern
REFERENCE = "(?P="  # in a pattern with a named group
MOST_PRUNED = 2  # texts for which a pattern is pruned; after that it is compiled unpruned and cached
MOST_COMPILED = 4_096  # cached patterns; the tables have 1,500
CAPITALS = re.compile(r"(\(\?P[<=]\w+[>)]|\\.)|[A-Z]")  # except in group names and \S


class Recognised(NamedTuple):
    """A symptom, and the row of the message tables that matched."""

    row: FailureMessage
    symptom: Symptom


def recognise(text: str, *, fact: str = "", source: str = "", known: Collection[str] = ()) -> list[Recognised]:
    """Return the failure messages in `text`, whose white space is collapsed, in the order of the tables.

    fact: dotted path of the fact that contains the text. source: name of the pasted text.
    known: ids of rows that another text has already matched; they are skipped.
    """
    parts, has = words_of(text.lower())
    rows = [row for row in rows_in_question(parts, has) if not row.facts or fact.startswith(tuple(row.facts))]
    rows = [row for row in rows if not (row.guess and fact) and row.id not in known]  # a library does not guess
    lowered = text.translate(LOWER)
    written = _patterns(lowered, has)
    found = ((row, _found(row, text, lowered, written, fact=fact, source=source)) for row in rows)
    return [Recognised(row, symptom) for row, symptoms in found for symptom in symptoms]


def _found(
    row: FailureMessage, text: str, lowered: str, written: Callable[[str], str], **about: str
) -> Iterator[Symptom]:
    seen: set[str] = set()
    lowered = text if CASED in row.pattern else lowered
    searched = lowered[:MOST_WORDS] if row.guess else lowered
    for expression in sorted(row.near, key=len):
        if (one := written(expression)) == NOTHING or not _compiled(one).search(searched):
            return  # most rows lack one of them; searching all of them in every order takes ten times as long
    near = [written(expression) for expression in row.near]
    pattern = "" if near else written(row.pattern)
    if pattern == NOTHING:
        return
    if row.unless and _compiled(written(row.unless)).search(lowered):
        return
    for match in _compiled(pattern or in_any_order(near, row.within)).finditer(searched):
        shown = text[match.start() : match.end()][:LONGEST_TEXT].strip()
        if shown not in seen:
            seen.add(shown)
            names = _names(match, text)
            yield Symptom(kind=row.id, text=shown, library=row.library, code=row.code, names=names, **about)
        if len(seen) >= MOST_OF_A_KIND:
            return


def _patterns(lowered: str, has: Callable[[str], bool]) -> Callable[[str], str]:
    """Return the pattern writer for a text; a part of a recent text shares that text's writer."""
    if not any(lowered in text for text, _ in _LATEST):
        most = MOST_PRUNED if len(lowered) < LONG_TEXT else sys.maxsize
        _LATEST.append((lowered, functools.cache(lambda pattern: left_of(pattern, has, most))))
    return next(written for text, written in _LATEST if lowered in text)


def left_of(pattern: str, has: Callable[[str], bool], most: int = MOST_PRUNED) -> str:
    """Return the pattern for a text with these words: unpruned after more than `most` texts."""
    _ASKED[pattern] += 1
    if _ASKED[pattern] > most or CASED in pattern or REFERENCE in pattern:
        return _lowered(pattern)
    return _lowered(pruned(pattern, has))


MOST_TEXTS = 4  # texts whose patterns are cached
_ASKED: Counter[str] = Counter()
_LATEST: deque[tuple[str, Callable[[str], str]]] = deque(maxlen=MOST_TEXTS)


@functools.lru_cache(MOST_COMPILED)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.ASCII | (re.IGNORECASE if CASED in pattern else 0))


@functools.lru_cache(MOST_COMPILED)
def _lowered(pattern: str) -> str:
    """Return the pattern for lower-case text, which matches twice as fast as IGNORECASE."""
    return pattern if CASED in pattern else CAPITALS.sub(lambda match: match[1] or match[0].lower(), pattern)


def _names(match: re.Match[str], text: str) -> dict[str, str]:
    """Return the names in the message, with encoded version numbers decoded.

    Alternative wordings of one name have the groups "kernel2", "kernel3".
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
