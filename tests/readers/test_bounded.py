"""Long texts are cut to their beginning and their end."""

from gpudoctor.readers.bounded import MOST_LINES, bounded
from gpudoctor.readers.text import clean_text


def test_a_report_stays_as_it_is() -> None:
    text = clean_text("a\n\n\nb\n", "r")
    assert bounded(text) is text


def test_runs_of_empty_lines_become_one() -> None:
    assert bounded(clean_text("a" + "\n" * MOST_LINES + "b", "r")).lines == ("a", "", "b")


def test_beginning_and_end_of_a_log_are_kept() -> None:
    lines = bounded(clean_text("\n".join(map(str, range(MOST_LINES * 2))), "r")).lines
    assert (lines[0], lines[-1], len(lines)) == ("0", str(MOST_LINES * 2 - 1), MOST_LINES + 1)
