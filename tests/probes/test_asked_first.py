"""What is asked before the command line is read."""

from __future__ import annotations

from gpudoctor.probes.asked_first import first_questions
from gpudoctor.probes.host import setting
from gpudoctor.probes.snapshot import questions


def test_a_check_without_options_asks_the_same_again_and_gets_the_answer_at_hand() -> None:
    usual = setting(None, 30.0, fast=False)
    asked = questions(usual)
    assert all(question in asked for question in first_questions(usual))


def test_a_fast_check_asks_nothing_else_but_containers() -> None:
    fast = setting(None, 30.0, fast=True)
    later = [question.name for question in questions(fast) if question not in first_questions(fast)]
    assert set(later) <= {"images", "containers"}
