"""Whether the machine meets what the user requires of it."""

from gpudoctor.model import Snapshot
from gpudoctor.model.requirement import Judgement, MachineRequirement


def judgements(snapshot: Snapshot, requirements: tuple[MachineRequirement, ...]) -> tuple[Judgement, ...]:
    """Return the answer to each requirement, in their order."""
    if not requirements:
        return ()
    from gpudoctor.conclusions.requirements.judging import judge  # most runs require nothing

    return judge(requirements, snapshot)
