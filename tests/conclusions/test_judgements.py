"""What the user requires of the machine, judged."""

from gpudoctor.conclusions.judgements import judgements
from gpudoctor.configuration.requirements import parse_requirement
from gpudoctor.model import Driver, DriverVersion, Snapshot

MACHINE = Snapshot(driver=Driver(version=DriverVersion.parse("550.54.15")))


def test_each_requirement_has_an_answer_in_its_place() -> None:
    asked = tuple(parse_requirement(text) for text in ("driver>=570", "driver>=535"))
    assert [answer.met for answer in judgements(MACHINE, asked)] == [False, True]


def test_nothing_is_required() -> None:
    assert judgements(MACHINE, ()) == ()
