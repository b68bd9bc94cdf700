"""Whether the machine meets the user's requirements."""

from gpudoctor.model import Snapshot
from gpudoctor.model.requirement import Judgement, MachineRequirement


def judgements(snapshot: Snapshot, requirements: tuple[MachineRequirement, ...]) -> tuple[Judgement, ...]:
    """Return the judgement of each requirement, in their order."""
    if not requirements:
        return ()
    from gpudoctor.conclusions.requirements.judging import judge  # most runs require nothing

    return judge(requirements, snapshot)
