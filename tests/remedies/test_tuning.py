"""Tuning again."""

from gpudoctor.conclusions import Facts
from gpudoctor.model import Fix, FoundProfile, Snapshot
from gpudoctor.remedies.fixes import remedies_of


def commands(profile: FoundProfile | None) -> tuple[str, ...]:
    (remedy,) = remedies_of((Fix("tune-again"),), Facts(Snapshot(profile=profile)))
    return remedy.commands


def test_without_a_profile_there_is_nothing_to_verify() -> None:
    assert commands(None) == ("gpudoctor tune",)


def test_the_same_work_is_tuned_again_and_what_is_hostile_in_it_is_quoted() -> None:
    hostile = FoundProfile(device="cuda:0", workload="x; reboot", mode="inference")
    assert commands(hostile) == (
        "gpudoctor tune --workload 'x; reboot' --mode inference --device cuda:0",
        "gpudoctor profile verify gpudoctor.env",
    )
