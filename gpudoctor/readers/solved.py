"""Which problems in a text are current and the writer's own, not solved and not somebody else's."""

import itertools
import re
from collections.abc import Callable, Iterator, Sequence

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
# Names of tests that quote an error message: of pytest and of unittest.
_PASSED_TEST = regex(
    r"\S{1,200}::.{1,300}? (?:PASSED|XFAIL|SKIPPED)\b"
    r"|(?:\[gw\d{1,3}\] )?(?:\[ {0,2}\d{1,3}%\] )?(?:PASSED|XFAIL|SKIPPED) \S{1,200}::"
    r"|\w{1,200} \([\w.]{1,300}\).{0,200} \.\.\. ok$",
    "PASSED|XFAIL|SKIPPED|... ok",
)
_MACHINE = r"(?i)\W{0,6}(?:\w+ ){0,3}(?:laptop|desktop|server|workstation|machine|PC|computer|cluster|box)\b"
_WORKING_MACHINE = regex(
    _MACHINE + r"(?!.{0,40}(?:n't|\bnot|\bfails?|\bbroken)\b).{0,40}\b(?:works?|working|fine|OK|good)\b.{0,8}:\W{0,3}"
)
_OTHER_MACHINE = regex(_MACHINE + r".{0,60}:\W{0,3}")
_CLAUSE = regex(r"[.!?;,()\u3002\uff01\uff1f\uff1b\uff0c]|:(?!\S)|\n\n")


def own_present(text: Text) -> Text:
    """Return the part of a text that describes the writer's machine now: the whole text if no words say otherwise."""
    lines = [line for line in text.lines if not _PASSED_TEST.match(line.strip())]
    whole = "\n".join(_without_working_machine(lines)).strip()
    present = _after_solution(whole[-MOST_WORDS:])
    if present is None and len(whole) <= LONGEST_ADVICE:
        present = _own(whole)
    present = whole if present is None else present
    return text if present == "\n".join(text.lines).strip() else clean_text(present, text.name)


def _without_working_machine(lines: Sequence[str]) -> Iterator[str]:
    """Yield the lines, without those under the heading of a machine that works if there is one of another machine.

    "Laptop (works):", "Server (doesn't):"
    """
    headings = [line for line in lines if _OTHER_MACHINE.fullmatch(line)]
    compared = len(headings) > 1 and any(map(_WORKING_MACHINE.fullmatch, headings))
    works = False
    for line in lines:
        if compared and line in headings:
            works = _WORKING_MACHINE.fullmatch(line) is not None
        if not works:
            yield line


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
    """Return the text from the first solution that leaves no trouble; None without such a solution.

    After a title that says "solved", what is left is a new question, and no failure before it counts.
    """
    marked = _TITLE.match(whole) is not None
    left = [*itertools.islice(_left(whole, _SHOWN if marked else _SOLVED), _MOST_LEFT)]
    present = next(itertools.filterfalse(_is_troubled, left), None)
    paragraph, _, rest = whole.partition("\n\n")
    is_past = marked and not _RESTRICTED.search(paragraph) and not _NEXT.search(paragraph)
    if present is None and is_past and not _is_troubled(rest):
        return rest
    if present is None and (marked or _fails(left[-1] if left else "")):
        return next(iter(left[-1:]), None)
    return present


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
