"""What is asked of a machine, in which order, and where it is answered."""

import pytest

from gpudoctor.probes.host import ProbeContext, Question
from gpudoctor.probes.questions import questions

HOST = ["kernel-log", "system", "driver-files", "nvml", "container", "toolkit", "project", "profile"]
SLOW = ["torch-runtime", "cupy-runtime"]


def asked(**setting: object) -> list[Question]:
    return list(questions(ProbeContext(environ={}, directory="/work", **setting)))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("fast", "names"), [(False, [*SLOW, *HOST, "python", "cuda-driver"]), (True, [*HOST, "python", "cuda-driver"])]
)
def test_what_takes_longest_comes_first_and_what_may_crash_last(*, fast: bool, names: list[str]) -> None:
    assert [question.name for question in asked(fast=fast)] == names


@pytest.mark.parametrize(("interpreter", "elsewhere"), [(None, SLOW), ("/venv/bin/python", [*SLOW, "python"])])
def test_the_interpreter_diagnosed_answers_for_itself(interpreter: str | None, elsewhere: list[str]) -> None:
    """All else is answered by one process, under gpudoctor's own."""
    found = asked(interpreter=interpreter)
    assert [question.name for question in found if question.in_environment] == elsewhere
    assert [question.name for question in found if not question.shares] == elsewhere
