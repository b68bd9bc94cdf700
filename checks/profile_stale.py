"""The env profile in the working directory against this machine."""

from collections.abc import Iterator

from gpudoctor.model import Finding, FingerprintPart, Fix, FoundProfile
from gpudoctor.registry import check, known, skip_unless


@check(family="tool")
def profile_stale(profile: FoundProfile, fingerprint: tuple[FingerprintPart, ...]) -> Iterator[Finding]:
    """The profile in the working directory was tuned for another machine or software, or cannot be used.

    Why: batch size, precision and settings were measured there. On another device the batch may not fit in memory, and
    after an update another precision or setting may be the fastest or the safe one.
    Exception: facts that are unknown on this machine are not compared, as long as another one is known. On a machine
    with several devices, the profile fits if one of them is its device.
    Reference: https://docs.pytorch.org/docs/stable/notes/numerical_accuracy.html
    """
    if profile.problem:
        yield _finding(f"The profile {profile.path} cannot be used: {profile.problem}", profile, "profile.problem")
        return
    known(profile.fingerprint, "profile.fingerprint")
    skip_unless(fingerprint, "the profile does not say what it was tuned on")
    known(next((part.now for part in fingerprint if part.now), None), "everything that the profile was tuned on")
    differing = [part for part in fingerprint if part.fits is False]
    if differing:
        parts = ", ".join(f"{part.name} {part.was} (now {part.now})" for part in differing)
        facts = ("profile.fingerprint", *(fact for part in differing for fact in part.facts))
        yield _finding(f"The profile {profile.path} was tuned on {parts}", profile, *facts)


def _finding(summary: str, profile: FoundProfile, *facts: str) -> Finding:
    return Finding.warning(profile.path, summary, facts, Fix("tune-again"))
