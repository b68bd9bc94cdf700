"""A long text cut to the lines that a reader looks at one by one."""

from __future__ import annotations

import itertools

from gpudoctor.readers.text import Text

MOST_LINES = 40_000  # a report has hundreds; of a longer text its beginning and its end tell the most


def bounded(text: Text) -> Text:
    """Return the text with one line for every run of empty ones, and at most `MOST_LINES`."""
    if len(text.lines) <= MOST_LINES:
        return text
    filled = (tuple(run) if has_words else ("",) for has_words, run in itertools.groupby(text.lines, key=bool))
    lines = tuple(itertools.chain.from_iterable(filled))
    if len(lines) > MOST_LINES:
        half = MOST_LINES // 2
        lines = (*lines[:half], "", *lines[-half:])
    return text._replace(lines=lines)
