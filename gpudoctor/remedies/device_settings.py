"""Settings of a device that nvidia-smi changes."""

from __future__ import annotations

from gpudoctor.model import Remedy, System
from gpudoctor.remedies.commands import with_sudo
from gpudoctor.remedies.fixes import fix


def _for_root(command: str, system: System | None) -> str:
    return command if system is not None and system.os == "windows" else with_sudo(command, system)


@fix
def cool_or_power_gpu(*, reasons: str = "", nvml_index: int | None = None) -> Remedy:
    """Return what to do about clocks that are held down.

    reasons: why they are, in the words of NVML, nvidia-smi or DCGM; heat and power are tried in turn if they name none.
    """
    heat = (
        "Cool the GPU, whose temperature is at its limit: clean fans and filters, let more air through, do without "
        "neighbours in the next slot"
    )
    power = "Look at the power supply and its cables: it asks the GPU to draw less (on a laptop: the charger)"
    if "power" in reasons.lower():
        summary = power
    elif "thermal" in reasons.lower():
        summary = heat
    else:
        summary = f"{heat}; if it is cool: {power[0].lower()}{power[1:]}"
    one = "" if nvml_index is None else f"-i {nvml_index} "
    return Remedy(
        summary=summary,
        commands=(f"nvidia-smi {one}-q -d PERFORMANCE,TEMPERATURE,POWER,CLOCK",),
        reference="https://docs.nvidia.com/deploy/nvml-api/group__nvmlClocksEventReasons.html",
    )
