"""Where the facts are from: this machine, or pasted texts of another one."""

from gpudoctor.model import Contradiction
from gpudoctor.model.conclusions import Origin


def origin(contradictions: tuple[Contradiction, ...] | None) -> Origin:
    """Return where the facts are from. Only texts can contradict each other, so only there the section is known."""
    return Origin(is_report=contradictions is not None)
