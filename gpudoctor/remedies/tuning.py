"""Tuning again."""

from gpudoctor.model import FoundProfile, Remedy
from gpudoctor.remedies.commands import quote
from gpudoctor.remedies.fixes import fix


@fix
def tune_again(*, profile: FoundProfile | None) -> Remedy:
    """Return how to write the profile of this machine, for the same work as the present one if there is one."""
    if profile is None:
        return Remedy(summary="Tune on this machine; the profile is written again", commands=("gpudoctor tune",))
    options = {
        "--workload": profile.workload,
        "--mode": profile.mode if profile.mode == "inference" else None,
        "--device": profile.device,
    }
    words = [word for option, value in options.items() if value for word in (option, quote(value))]
    return Remedy(
        summary="Tune again on this machine; the profile is written again",
        commands=(" ".join(["gpudoctor tune", *words]), f"gpudoctor profile verify {quote(profile.path)}"),
    )
