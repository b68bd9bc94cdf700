"""The question of a name that is asked of a machine, for the tests of this folder."""

from gpudoctor.probes.host import ProbeContext, Question
from gpudoctor.probes.questions import questions


def asked(name: str, setting: ProbeContext) -> Question:
    """Return the question to this machine.

    Raises:
        StopIteration: it is not asked in this setting.
    """
    return next(question for question in questions(setting) if question.name == name)
