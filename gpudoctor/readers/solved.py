"""Which problems in a text are current and the writer's own: not solved ones, and not those of other people."""

import itertools
import re
from collections.abc import Callable, Iterator

from gpudoctor.readers.text import Text, clean_text, name_table, regex
from gpudoctor.symptoms.matching import MOST_WORDS, left_of, recognise
from gpudoctor.symptoms.pruning import words_of

LONGEST_ADVICE = 2000  # characters; a longer text shows what a program printed
_LONGEST_CLAUSE = 100  # characters of it that are read
_MOST_LEFT = 24  # statements that are looked at; a person makes a few

_TOLD = {name: "|".join(expressions) for name, expressions in name_table("told").items()}
_TITLE, _DENIED, _RESTRICTED, _TROUBLE, _EXPLAINED, _ELSEWHERE, _ADVICE, _OWN, _PLACE, _RESTARTED, _NEXT = (
    regex(f"(?im){_TOLD[name]}")
    for name in [
        *("title", "denied", "restricted", "trouble", "explained", "elsewhere"),
        *("advice", "own", "place", "restarted", "next"),
    ]
)
_SOLVED = f"(?P<past>{_TOLD['solved']})|{_TOLD['works']}"
_SHOWN = f"{_SOLVED}|{_TOLD['shown']}"
_SENTENCE = regex(r"(?<=[.!?;])[\"')]?\s+|(?<=[\u3002\uff01\uff1f\uff1b])|\n(?!\n*[\"\u201c])")
_CLAUSE = regex(r"[.!?;,:()\u3002\uff01\uff1f\uff1b\uff0c]|\n\n")


def own_present(text: Text) -> Text:
    """Return what a text says about its writer's machine as it is now: the whole text, if no words say otherwise."""
    whole = "\n".join(text.lines).strip()
    told = _after_solution(whole[-MOST_WORDS:])
    advice = _ADVICE.search(whole)
    is_own = _OWN.search(whole) is not None and (advice is None or advice.start() > 0)
    if told is None and len(whole) <= LONGEST_ADVICE and not is_own:
        told = _without(
            whole,
            lambda said: (_ELSEWHERE.search(said) and not _NEXT.search(said)) or (advice is not None and _fails(said)),
        )
    return text if told in (None, whole) else clean_text(told, text.name)


def _without(whole: str, left_out: Callable[[str], object]) -> str:
    for said in filter(left_out, _SENTENCE.split(whole)):
        whole = whole.replace(said, "")
    return whole


def _after_solution(whole: str) -> str | None:
    """Return what is said from the first solution on after which no trouble is left; None if there is none."""
    marked = _TITLE.match(whole) is not None
    left = [*itertools.islice(_left(whole, _SHOWN if marked else _SOLVED), _MOST_LEFT)]
    present = next(itertools.filterfalse(_is_troubled, left), None)
    paragraph, _, rest = whole.partition("\n\n")
    is_past = marked and not _RESTRICTED.search(paragraph) and not _NEXT.search(paragraph)
    if present is None and is_past and not _is_troubled(rest):
        return rest
    return next(filter(_fails, left[-1:]), None) if present is None else present


def _left(whole: str, solution: str) -> Iterator[str]:
    """Yield what may be the present after each statement that something is solved, or works now.

    It is what follows with the statement, then without its sentence, and without explanations of what was wrong.
    """
    # Flags here: inside the pattern, they would go with an alternative that is left out.
    for found in re.finditer(left_of(solution, words_of(whole.lower())[1]), whole, re.IGNORECASE | re.MULTILINE):
        past = found.groupdict().get("past")
        clause = _CLAUSE.split(whole[max(found.start() - _LONGEST_CLAUSE, 0) : found.start()])[-1]
        sentence = _SENTENCE.split(whole[found.end() : found.end() + MOST_WORDS])[0]
        if _DENIED.search(clause) or _RESTRICTED.search(sentence) or sentence.endswith(("?", "\uff1f")):
            continue
        told = f"{clause} {found[0]} {sentence}"
        if not past and (_PLACE.search(told) or _RESTARTED.search(told)):
            continue  # it works there and not here, or until the next time
        yield whole[found.start() :]
        if past and not _NEXT.search(sentence):
            yield _without(whole[found.start() :], _EXPLAINED.search)
            yield _without(whole[found.end() + len(sentence) :], _EXPLAINED.search)


def _is_troubled(said: str) -> bool:
    return _TROUBLE.search(said) is not None or _RESTRICTED.search(said) is not None or _fails(said)


def _fails(said: str) -> bool:
    """Return whether there is a failure message in what is said."""
    rows = (found.row for found in recognise(" ".join(said.split())))
    return any((row.role == "failure" and not row.id.startswith("asks-")) or row.answers or row.guess for row in rows)
