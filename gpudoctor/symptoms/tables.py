"""The message tables: how failure messages are recognised, what they name, and which facts they imply."""

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
BETWEEN_WORDS = 120  # characters at most between the expressions of `near`


@record
class FailureMessage:
    """A row of the table.

    contains: lower-case phrases, one of which is in every such message; searched first, because that is fast.
    pattern: regular expression (any case) for the message with white space collapsed; its groups are the names.
    says: what the message means, in a sentence.
    code: the error code that it reports: "cuda-803", "nvml-18"; empty without one.
    answers: findings for which the message is enough: {"check", "severity", "summary", "subject", "certain", "fixes"};
        a fix is {"fix": name, ...arguments}. See gpudoctor/symptoms/answers.py.
    gives: "section.field" → value, a fact that follows from the message; "{name}" is one of its names.
    role: "failure"; "works" if the message shows that a program uses the GPU; "context" if it shows neither; "harmless"
        if it is removed from a report before anything else is searched.
    tried: regular expression for commands that, by the message, were already run or cannot be run.
    guess: a finding as in `answers`, made if nothing else decides: people's words are not a message.
    near: expressions that must occur in any order, at most `within` characters apart.
    unless: regular expression for words anywhere in the text that change the meaning.
    facts: the only facts that are searched ("cupy_runtime.import_error"), because the message means nothing elsewhere;
        () for all texts. A table may name them for all of its rows.

    In the file a row may have `near` instead of a pattern: expressions close to each other, in any order.
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
        """Return the compiled pattern. ASCII, because an English word also ends before a Chinese letter."""
        return re.compile(self.pattern, re.IGNORECASE | re.ASCII)


def failure_messages() -> tuple[FailureMessage, ...]:
    """Return every row, table by table."""
    return tuple(map(_message, _rows()))


def rows_in_question(parts: Set[str], has: Callable[[str], bool]) -> list[FailureMessage]:
    """Return the rows with a phrase in the text that `words_of` has read."""
    possible = (phrases for part, phrases in _phrases().items() if len(part) < PART or part in parts)
    found = {kind for phrase, kind in itertools.chain.from_iterable(possible) if has(phrase)}
    return [_message(kind) for kind in _rows() if kind in found]


def row_of(kind: str) -> FailureMessage | None:
    """Return the row with this id; None if no table has it, as for return codes."""
    return _message(kind) if kind in _rows() else None


@functools.cache
def _rows() -> Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Return all raw rows by id, each with its table: a report needs only a few of them parsed."""
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
    """Return a pattern for these expressions with at most `within` characters between neighbours."""
    return "|".join(map(f".{{0,{within}}}?".join, itertools.permutations(near)))


def _spelled_out(pattern: str, vocabulary: Mapping[str, str]) -> str:
    """Return the pattern with vocabulary names replaced by their words, which may contain names too."""
    for _ in range(3):
        if "%" not in pattern or not vocabulary:
            break
        pattern = re.sub(r"%([a-z-]+)%", lambda match: f"(?:{vocabulary[match[1]]})", pattern)
    return pattern
