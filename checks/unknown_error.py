"""An error in a pasted report that no row of the message tables knows."""

from collections.abc import Iterator

from gpudoctor.model import Finding, Fix, Symptom
from gpudoctor.registry import check, skip_unless
from gpudoctor.symptoms import of_kind

LONGEST = 200


@check(family="tool")
def unknown_error(symptoms: tuple[Symptom, ...]) -> Iterator[Finding]:
    """The report ends in an error that gpudoctor does not know.

    Why: the message tables do not contain this error, so a report without another finding does not show that the
    machine works. This is advice, because the error may have nothing to do with the GPU.
    Exception: only the error of the last traceback counts, and only if no known message is part of it.
    Reference: https://docs.python.org/3/tutorial/errors.html
    """
    unknown = of_kind(symptoms, "unknown-error")
    skip_unless(unknown, "no message reports this problem")
    text = unknown[0].text
    summary = "The report ends in an error that gpudoctor does not know: " + (
        text if len(text) <= LONGEST else f"{text[:LONGEST]}..."
    )
    facts = (unknown[0].fact,)
    yield Finding.advice(unknown[0].names.get("error", "error"), summary, facts, Fix("show-gpudoctor-more"))
