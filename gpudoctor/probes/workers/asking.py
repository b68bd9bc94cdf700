"""Call a library that may lack a function, or fail in it: for the workers that import one.

Standard library only, from Python 3.8 on.
"""

from __future__ import annotations

import traceback
from typing import Any, Callable, Dict, Iterable, List
from warnings import WarningMessage

MAXIMUM_CHARACTERS = 2000
MAXIMUM_WARNINGS = 20
TRACEBACK_CHARACTERS = 4000


def ask(question: Callable[[], Any]) -> Any:
    """Return the answer; None if this build lacks it or raises."""
    try:
        return question()
    except Exception:
        return None


def attempt(question: Callable[[], Any]) -> Any:
    """Return the answer and "", or None and the exception's text."""
    try:
        return question(), ""
    except Exception as error:
        return None, error_text(error)


def put_known(facts: Dict[str, Any], name: str, question: Callable[[], Any]) -> None:
    """Put the answer into `facts`, unless it is unknown."""
    answer = ask(question)
    if answer is not None:
        facts[name] = answer


def error_text(error: BaseException) -> str:
    """Return the last lines of a traceback."""
    return "".join(traceback.format_exception_only(type(error), error)).strip()[:MAXIMUM_CHARACTERS]


def traceback_text() -> str:
    """Return the end of the traceback of the exception at hand."""
    return traceback.format_exc()[-TRACEBACK_CHARACTERS:]


def warning_texts(caught: Iterable[WarningMessage]) -> List[str]:
    """Return the texts of warnings, each once."""
    texts = dict.fromkeys(str(warning.message).strip() for warning in caught)
    return [text[:MAXIMUM_CHARACTERS] for text in texts][:MAXIMUM_WARNINGS]
