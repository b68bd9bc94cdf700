"""The env profile in the working directory against this machine."""

from collections.abc import Iterable, Iterator

from gpudoctor.model import Cupy, Device, Driver, Finding, FoundProfile, Remedy, Severity, Torch
from gpudoctor.profiles.fingerprint import Part, compare
from gpudoctor.registry import check, known, skip_unless
from gpudoctor.remedies.commands import quote


@check(family="tool")
def profile_stale(
    profile: FoundProfile,
    devices: tuple[Device, ...] | None = None,
    driver: Driver | None = None,
    torch: Torch | None = None,
    cupy: Cupy | None = None,
) -> Iterator[Finding]:
    """The profile in the working directory was tuned on something else than this machine, or cannot be used.

    Why: batch size, precision and settings were measured there. On another device the batch may not fit in memory, and
    after an update another precision or setting may be the fastest or the safe one.
    Exception: what is not known of this machine is passed over as long as something else can be compared. The profile
    fits where its device is one of several.
    Reference: https://docs.pytorch.org/docs/stable/notes/numerical_accuracy.html
    """
    if profile.problem:
        yield _finding(f"The profile {profile.path} cannot be used: {profile.problem}", profile, ("profile.problem",))
        return
    fingerprint = known(profile.fingerprint, "profile.fingerprint")
    parts = compare(fingerprint, devices=devices, driver=driver, torch=torch, cupy=cupy)
    skip_unless(parts, "the profile does not say what it was tuned on")
    known(next((part.now for part in parts if part.now is not None), None), "everything that the profile was tuned on")
    differing = [part for part in parts if part.fits is False]
    if differing:
        facts = ("profile.fingerprint", *(fact for part in differing for fact in part.facts))
        yield _finding(f"The profile {profile.path} was tuned on {_described(differing)}", profile, facts)


def _described(differing: Iterable[Part]) -> str:
    return ", ".join(f"{part.name} {part.was} (now {part.now})" for part in differing)


def _finding(summary: str, profile: FoundProfile, facts: tuple[str, ...]) -> Finding:
    return Finding(
        severity=Severity.WARNING,
        summary=summary,
        subject=profile.path,
        facts=facts,
        remedies=(_tune_again(profile),),
    )


def _tune_again(profile: FoundProfile) -> Remedy:
    options = {
        "--workload": profile.workload,
        "--mode": profile.mode if profile.mode == "inference" else None,
        "--device": profile.device,
    }
    words = [word for option, value in options.items() if value for word in (option, quote(value))]
    return Remedy(
        summary="Tune again on this machine; the profile is written anew",
        commands=(" ".join(["gpudoctor tune", *words]), f"gpudoctor profile verify {quote(profile.path)}"),
    )
