"""An error in a pasted report that no row of the table of failure messages knows."""

from collections.abc import Iterator

from gpudoctor.conclusions.messages import reported
from gpudoctor.model import Finding, Remedy, Severity, Symptom
from gpudoctor.registry import check, skip_unless

LONGEST = 200


@check(family="tool")
def unknown_error(symptoms: tuple[Symptom, ...]) -> Iterator[Finding]:
    """The report ends in an error that gpudoctor does not know.

    Why: what is not in the table of failure messages was not weighed, so a report without another finding is no proof
    that the machine is in order. It is advice: the error may have nothing to do with the GPU.
    Exception: only the error of the last traceback is looked at, and only where no known message is part of it.
    Reference: https://docs.python.org/3/tutorial/errors.html
    """
    unknown = reported(symptoms, "unknown-error")
    skip_unless(unknown, "no such message in the report")
    for fact, message in unknown[:1]:
        yield Finding(
            severity=Severity.INFO,
            summary=f"The report ends in an error that gpudoctor does not know: {_cut(message.text)}",
            subject=message.names.get("error", "error"),
            facts=(fact,),
            remedies=(
                Remedy(
                    summary="Let gpudoctor see more: run it on the machine itself, or add what these commands print",
                    commands=("gpudoctor check", "nvidia-smi", "python -m torch.utils.collect_env"),
                ),
            ),
        )


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."
