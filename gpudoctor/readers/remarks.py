"""Sentences that no tool prints, in any language: a person's remark, which may be a complaint."""

import functools
import re
from collections.abc import Iterable, Iterator

from gpudoctor.readers.text import name_table
from gpudoctor.readers.vocabulary import is_known

LEAST_WORDS = 2
LONGEST_LINE = 2000  # characters; a person's paragraph is shorter than a dump of values
_MARKS = re.compile(r"^(?:[#>*\s-]{1,10}|\d{1,2}[.)] )(?=\S)")
_OF_LSCPU = re.compile(r"(?:Flags|Vulnerability [\w ]{3,40}|Model name|Virtualization type):")
_KEY = re.compile(r"^[A-Za-z][\w ()/.#+-]{1,45}:\s")
# What tools and shells print or users type: tables, prompts, values, paths, versions, levels of a log.
_OUTPUT = re.compile(
    r"[|+=<{\[(\\/'\"$%~]|\w+@|\(\w+\)|PS |[A-Z]:\\|In \[|Out\[|\d|at |File |(?:INFO|WARNING|DEBUG|ERROR)\b"
    r"|import |from |print|def |for |\S+\s+v?\d+\.\S+|[IWEF]\d{0,4} [\w/:.]+[/:]"
)
_OF_PROGRAM = re.compile(r"\w(?:Warning|Error|Exception)\b|\w\.(?:cc|cpp|cu|h|py|rs|go):\d")
_WORD = re.compile(r"([^\W\d_]+(?:['\u2019-][^\W\d_]+)*)[.,!?;:\u2026)]{0,2}")
_SENTENCES = re.compile(r"(?<=[.!?\u2026])\s+")
_END = re.compile(r"[.!?\u2026\u3002\uff01\uff1f]['\")\u00bb\u201d]?$")
# Cyrillic, Arabic, Thai, Japanese, Chinese and Korean: some are written without spaces.
_OTHER_SCRIPT = re.compile("[\u0400-\u04ff\u0600-\u06ff\u0e00-\u0e7f\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]{2}")


def remarks(lines: Iterable[str]) -> Iterator[str]:
    """Yield the statements that a person seems to have written, with white space folded.

    These are sentences mostly of plain words, words in another language, or words that are mostly in no known report.
    A question in English is none, unless it asks why.
    """
    for line in lines:
        if len(line) < LONGEST_LINE:
            yield from _said(" ".join(line.split()))


def _said(line: str) -> Iterator[str]:
    if _OF_LSCPU.match(line) or _OF_PROGRAM.search(line):
        return
    line = _KEY.sub("", _MARKS.sub("", line))
    if not _OUTPUT.match(line):
        yield from filter(_is_remark, _SENTENCES.split(line))


def _is_remark(sentence: str) -> bool:
    if _OTHER_SCRIPT.search(sentence):
        return True
    tokens = sentence.split()
    words = _words(sentence)
    if len(words) < LEAST_WORDS or 5 * len(words) < 3 * len(tokens):
        return False
    if is_in_other_language(sentence):
        return True
    if sentence.endswith("?"):
        return "why" in words
    unknown = [word for word in words if not is_known(word)]
    is_sentence = len(words) > LEAST_WORDS and _END.search(sentence) is not None
    return is_sentence or len(unknown) >= max(LEAST_WORDS, len(words) / 2)


def is_in_other_language(sentence: str) -> bool:
    """Return whether a person's sentence has words that English lacks."""
    words = _words(sentence)
    return bool(_OTHER_SCRIPT.search(sentence)) or any(not word.isascii() or word in _foreign() for word in words)


def _words(sentence: str) -> list[str]:
    return [match[1].lower() for match in map(_WORD.fullmatch, sentence.split()) if match]


@functools.cache
def _foreign() -> frozenset[str]:
    """Return words of other languages that no tool prints; English ones are symptoms (`asks-words`)."""
    return frozenset(word for words in name_table("words_of_languages").values() for word in words.split())
