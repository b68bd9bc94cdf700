"""Where the facts are from: this machine, or pasted texts from another one."""

from gpudoctor.model import Contradiction
from gpudoctor.model.conclusions import Origin


def origin(contradictions: tuple[Contradiction, ...] | None) -> Origin:
    """Return where the facts are from. Only pasted texts have the section: only texts contradict each other."""
    return Origin(is_report=contradictions is not None)
