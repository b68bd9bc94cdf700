"""Which confirmed reports the words of a pasted report resemble."""

from gpudoctor.data.tables import load_table
from gpudoctor.data.word_networks import answers, telling
from gpudoctor.model import Resemblance

NETWORK = "word_weights"
WORDS_SHOWN = 4

OF_PEOPLE = {
    *("?", "i", "i'm", "i'd", "i've", "am", "me", "my", "we", "our", "it", "what", "there", "how", "do", "about"),
    *("only", "still", "but", "just", "now", "same", "when", "tried", "works", "again", "want", "here", "then", "got"),
    *("thanks", "hi", "fine", "should", "nothing", "doesn't", "don't", "can't", "any", "after"),
    *("ich", "mir", "ist", "war", "nicht", "und", "aber", "wenn", "wie", "je", "mon", "est", "pas", "les", "une"),
    *("mais", "mi", "es", "el", "los", "pero", "como", "não", "um", "uma", "il", "non", "che"),
}
"""Small words of sentences, in the languages of most reports, that programs rarely print."""

LEAST_OF_PEOPLE = 2
"""Different small words without which a report is a program's log: its error is a fault, whatever it resembles.

Of 416 reports, 241 with sentences and 175 without, this holds for 221 and 126 (2026-11-29); most of the others have a
remark or quote a program that speaks.
"""


def resemblance(words: tuple[str, ...] | None) -> Resemblance:
    """Return how probable each cause is by the words.

    Of 1,647 new sick reports in four parts, each judged by what the other parts and 6,300 older reports teach, the
    words alone name the cause first for 93 % (2026-11-29).
    """
    known = [word for word in words or () if word in load_table(NETWORK)["words"]]
    shares = answers(NETWORK, known)
    first = next((cause for cause in shares if cause), "")
    shown = telling(NETWORK, known, first)[:WORDS_SHOWN] if shares else ()
    return Resemblance(shares=shares, words=shown, known=len(known), by_person=_by_person(words or ()))


def _by_person(words: tuple[str, ...]) -> bool:
    """Return whether a person says something; a text in another alphabet does."""
    foreign = sum(not word.isascii() for word in words)
    return len(OF_PEOPLE.intersection(words)) >= LEAST_OF_PEOPLE or foreign >= LEAST_OF_PEOPLE
