"""A profile, and whether it still fits, for a screen."""

from collections.abc import Mapping, Sequence

from gpudoctor.conclusions.fingerprint import FITS, STALE, fit, parts_of
from gpudoctor.model.profile import FingerprintPart, Profile
from gpudoctor.privacy import mask_document
from gpudoctor.reporters.terminal import paint
from gpudoctor.untrusted import clean

_UNKNOWN = "not known here"
_COLORS = {FITS: "healthy", STALE: "error"}


def render(profile: Profile) -> str:
    """Return the profile as text: settings, the machine it was measured on, and the variables for other tools."""
    blocks = [
        _aligned(_recommended(profile)),
        ["tuned on", *_indented(parts_of(profile.fingerprint))],
        ["read by the frameworks", *_indented(profile.frameworks)] if profile.frameworks else [],
        ["asked for with --set", *_indented(profile.own)] if profile.own else [],
    ]
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _recommended(profile: Profile) -> dict[str, str]:
    limit = "largest safe one unknown" if profile.max_batch_size is None else f"at most {profile.max_batch_size}"
    switches = ("channels_last", "cudnn_benchmark", "compile", "pinned_memory", "non_blocking")
    rows = {
        "workload": f"{profile.workload} {profile.mode}".rstrip(),
        "device": profile.device,
        "precision": profile.precision,
        "batch size": f"{profile.batch_size} ({limit})",
        "throughput": "" if profile.throughput is None else f"{profile.throughput:,.1f} {profile.unit}".rstrip(),
        "search": "cut short by the budget" if profile.search else "",
        "settings": ", ".join(name for name in switches if getattr(profile, name)) or "none",
        "workers": "" if profile.workers is None else str(profile.workers),
        "created": profile.created_at,
    }
    return {name: value for name, value in rows.items() if value}


def _aligned(rows: Mapping[str, str]) -> list[str]:
    width = len(max(rows, key=len, default=""))
    masked = ((name, *mask_document({name: value}).values()) for name, value in rows.items())
    return [f"{clean(name):{width}}  {clean(value)}" for name, value in masked]


def _indented(rows: Mapping[str, str]) -> list[str]:
    return [f"  {line}" for line in _aligned(rows)]


def render_fit(parts: Sequence[FingerprintPart], *, color: bool) -> str:
    """Return the answer, and each part of the fingerprint with its old and new value."""
    answer = fit(parts)
    lines = [paint(answer, _COLORS.get(answer, "warning"), color=color)]
    lines += _indented({part.name: _change(part) for part in parts})
    return "\n".join(lines) + "\n"


def _change(part: FingerprintPart) -> str:
    return part.was if part.fits else f"{part.was} → {part.now or _UNKNOWN}"
