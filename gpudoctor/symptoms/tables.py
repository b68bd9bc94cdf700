"""Messages with which programs fail: by what they are known, what they name, and which facts they give."""

import functools
import itertools
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import field
from typing import Any

from gpudoctor.data.tables import source_of
from gpudoctor.model.record import record
from gpudoctor.symptoms.pruning import PART

FOLDER = os.path.join(os.path.dirname(__file__), "tables")
BETWEEN_WORDS = 120  # characters, most of them, between the expressions of `near`


@record
class FailureMessage:
    """A row of the table.

    contains: phrases in lower case, every such message contains one: looked for first, because that is fast.
    pattern: regular expression (no case) of the message with white space folded; its groups are what it names.
    says: what the message means, in a sentence.
    code: the error code that it reports: "cuda-803", "nvml-18"; empty for none.
    answers: findings for which the message is enough: {"check", "severity", "summary", "subject", "certain", "fixes"};
        a fix is {"fix": name, ...arguments}. See gpudoctor/symptoms/answers.py.
    gives: "section.field" → value, a fact that follows from the message; "{name}" is what it names.
    role: "failure"; "works" if the message shows that a program uses the GPU; "context" if it shows neither.
    tried: regular expression of commands that the message says were run already or cannot be run.
    guess: the finding that it suggests if nothing else decides, as in `answers`: people's words are not a message.
    near: the expressions that the pattern puts in every order, `within` so many characters of each other.
    unless: regular expression of what makes it mean something else, anywhere in the text.
    facts: where alone it is looked for ("cupy_runtime.import_error"), as it means nothing elsewhere; () for all texts.
        A table may name them for all of its rows.

    In the file a row may have `near` in place of a pattern: expressions close to each other, in any order.
    "%gpu%" in a pattern is what the table calls "gpu" under `vocabulary`.
    """

    id: str
    library: str
    contains: Sequence[str]
    pattern: str
    says: str
    code: str
    gives: Mapping[str, Any]
    source: str
    answers: Sequence[Mapping[str, Any]] = ()
    role: str = "failure"
    tried: str = ""
    guess: Mapping[str, Any] = field(default_factory=dict)
    near: Sequence[str] = ()
    within: int = BETWEEN_WORDS
    unless: str = ""
    facts: Sequence[str] = ()

    def expression(self) -> re.Pattern[str]:
        """Return the compiled pattern. A word of English ends where Chinese letters follow it: hence ASCII."""
        return re.compile(self.pattern, re.IGNORECASE | re.ASCII)


def failure_messages() -> tuple[FailureMessage, ...]:
    """Return every row, table by table."""
    return tuple(map(_message, _rows()))


def rows_in_question(parts: Set[str], has: Callable[[str], bool]) -> list[FailureMessage]:
    """Return the rows with a phrase in the text of which `words_of` gives these."""
    possible = (phrases for part, phrases in _phrases().items() if len(part) < PART or part in parts)
    found = {kind for phrase, kind in itertools.chain.from_iterable(possible) if has(phrase)}
    return [_message(kind) for kind in _rows() if kind in found]


def row_of(kind: str) -> FailureMessage | None:
    """Return the row with this id; None if the tables have none, as for return codes."""
    return _message(kind) if kind in _rows() else None


@functools.cache
def _rows() -> Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Return every row by its id, with its table, as they are in the files: a report needs few of them whole."""
    rows: dict[str, tuple[Mapping[str, Any], Mapping[str, Any]]] = {}
    for name in sorted(name for name in os.listdir(FOLDER) if name.endswith(".json")):
        with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
            table = json.load(file)
        rows |= {row["id"]: (table, row) for row in table["messages"]}
    return rows


@functools.cache
def _phrases() -> Mapping[str, Sequence[tuple[str, str]]]:
    """Return the phrases, each with the id of its row, by their first characters."""
    phrases: dict[str, list[tuple[str, str]]] = {}
    for kind, (_, row) in _rows().items():
        for phrase in _contained(row):
            phrases.setdefault(phrase[:PART], []).append((phrase, kind))
    return phrases


def _contained(row: Mapping[str, Any]) -> Sequence[str]:
    return [row["contains"]] if isinstance(row["contains"], str) else row["contains"]


@functools.cache
def _message(kind: str) -> FailureMessage:
    table, row = _rows()[kind]
    contains = _contained(row)
    within = row.get("within", BETWEEN_WORDS)
    vocabulary = table.get("vocabulary", {})
    near = tuple(f"(?:{_spelled_out(words, vocabulary)})" for words in row.get("near", ()))
    return FailureMessage(
        id=row["id"],
        library=row["library"],
        contains=contains,
        pattern=in_any_order(near, within)
        or _spelled_out(row.get("pattern") or "|".join(map(re.escape, contains)), vocabulary),
        says=row["says"],
        code=row.get("code", ""),
        gives=row.get("gives", {}),
        source=source_of(table, row),
        answers=row.get("answers", ()),
        role=row.get("role", "failure"),
        tried=row.get("tried", ""),
        guess=row.get("guess", {}),
        near=near,
        within=within,
        unless=_spelled_out(row.get("unless", ""), vocabulary),
        facts=row.get("facts", table.get("facts", ())),
    )


def in_any_order(near: Sequence[str], within: int) -> str:
    """Return the pattern of these expressions with at most `within` characters between one and the next."""
    return "|".join(map(f".{{0,{within}}}?".join, itertools.permutations(near)))


def _spelled_out(pattern: str, vocabulary: Mapping[str, str]) -> str:
    """Return the pattern with the words of the vocabulary in place of their names; they may name others."""
    for _ in range(3 if vocabulary else 0):
        pattern = re.sub(r"%([a-z-]+)%", lambda match: f"(?:{vocabulary[match[1]]})", pattern)
    return pattern
