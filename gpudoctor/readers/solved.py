"""Which problems in a text are current and the writer's own, not solved and not somebody else's."""

import itertools
import re
from collections.abc import Callable, Iterator

from gpudoctor.readers.text import Text, clean_text, name_table, regex
from gpudoctor.symptoms.matching import MOST_WORDS, left_of, recognise
from gpudoctor.symptoms.pruning import words_of

LONGEST_ADVICE = 2000  # characters; a longer text shows what a program printed
_LONGEST_CLAUSE = 100  # characters that are read before a statement
_MOST_LEFT = 24  # statements that are checked; a person makes a few

_WORDS = {name: "|".join(expressions) for name, expressions in name_table("solved").items()}
_TITLE, _DENIED, _RESTRICTED, _TROUBLE, _EXPLAINED, _ELSEWHERE, _ADVICE, _OWN, _PLACE, _RESTARTED, _NEXT = (
    regex(f"(?im){_WORDS[name]}")
    for name in [
        *("title", "denied", "restricted", "trouble", "explained", "elsewhere"),
        *("advice", "own", "place", "restarted", "next"),
    ]
)
_SOLVED = f"(?P<past>{_WORDS['solved']})|{_WORDS['works']}"
_SHOWN = f"{_SOLVED}|{_WORDS['shown']}"
_SENTENCE = regex(r"(?<=[.!?;])[\"')]?\s+|(?<=[\u3002\uff01\uff1f\uff1b])|\n(?!\n*[\"\u201c])")
_CLAUSE = regex(r"[.!?;,()\u3002\uff01\uff1f\uff1b\uff0c]|:(?!\S)|\n\n")


def own_present(text: Text) -> Text:
    """Return the part of a text that describes the writer's machine now: the whole text if no words say otherwise."""
    whole = "\n".join(text.lines).strip()
    present = _after_solution(whole[-MOST_WORDS:])
    if present is None and len(whole) <= LONGEST_ADVICE:
        present = _own(whole)
    return text if present in (None, whole) else clean_text(present, text.name)


def _own(whole: str) -> str | None:
    """Return the text without the parts about other machines; None if the writer describes the own machine."""
    advice = _ADVICE.search(whole)
    if _OWN.search(whole) is not None and (advice is None or advice.start() > 0):
        return None
    return _without(
        whole,
        lambda said: (_ELSEWHERE.search(said) and not _NEXT.search(said)) or (advice is not None and _fails(said)),
    )


def _without(whole: str, left_out: Callable[[str], object]) -> str:
    for said in filter(left_out, _SENTENCE.split(whole)):
        whole = whole.replace(said, "")
    return whole


def _after_solution(whole: str) -> str | None:
    """Return the text from the first solution that leaves no trouble; None without such a solution."""
    marked = _TITLE.match(whole) is not None
    left = [*itertools.islice(_left(whole, _SHOWN if marked else _SOLVED), _MOST_LEFT)]
    present = next(itertools.filterfalse(_is_troubled, left), None)
    paragraph, _, rest = whole.partition("\n\n")
    is_past = marked and not _RESTRICTED.search(paragraph) and not _NEXT.search(paragraph)
    if present is None and is_past and not _is_troubled(rest):
        return rest
    return next(filter(_fails, left[-1:]), None) if present is None else present


def _left(whole: str, solution: str) -> Iterator[str]:
    """Yield each candidate for the present state, after a statement that something is solved or works now.

    First the text with the statement, then without its sentence, then without explanations of what was wrong.
    """
    # The flags are outside the pattern, because pruning may remove the alternative that has them.
    for found in re.finditer(left_of(solution, words_of(whole.lower())[1]), whole, re.IGNORECASE | re.MULTILINE):
        past = found.groupdict().get("past")
        clause = _CLAUSE.split(whole[max(found.start() - _LONGEST_CLAUSE, 0) : found.start()])[-1]
        sentence = _SENTENCE.split(whole[found.end() : found.end() + MOST_WORDS])[0]
        if _DENIED.search(clause) or _RESTRICTED.search(sentence) or sentence.endswith(("?", "\uff1f")):
            continue
        said = f"{clause} {found[0]} {sentence}"
        if not past and (_PLACE.search(said) or _RESTARTED.search(said)):
            continue  # it works elsewhere, or only until the next time
        yield whole[found.start() :]
        if past and not _NEXT.search(sentence):
            yield _without(whole[found.start() :], _EXPLAINED.search)
            yield _without(whole[found.end() + len(sentence) :], _EXPLAINED.search)


def _is_troubled(said: str) -> bool:
    return _TROUBLE.search(said) is not None or _RESTRICTED.search(said) is not None or _fails(said)


def _fails(said: str) -> bool:
    """Return whether the text contains a failure message."""
    rows = (found.row for found in recognise(" ".join(said.split())))
    return any((row.role == "failure" and not row.id.startswith("asks-")) or row.answers or row.guess for row in rows)
