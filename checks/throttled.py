"""Clocks that were lowered while a program ran."""

from collections.abc import Iterator

from gpudoctor.model import Finding, Fix, Run, measured, share_text
from gpudoctor.registry import check, skip_unless

LEAST_SHARE = 0.1
"""Of the samples. A single one says little: clocks dip for a moment when the load changes."""

FEWEST_SAMPLES = 5
_CAUSES = {"thermal": "too hot", "power": "slowed down by its power supply", "slowdown": "slowed down by its hardware"}


@check(family="run")
def throttled(run: Run) -> Iterator[Finding]:
    """The GPU lowered its clocks while the program ran.

    Why: heat and the power supply make every step slower, whatever the program does.
    Exception: a slowdown in less than a tenth of the samples passes. Under full load every GPU runs at its power limit:
    that passes.
    Reference: https://docs.nvidia.com/deploy/nvml-api/group__nvmlClocksEventReasons.html
    """
    used = [gpu for gpu in run.gpus if gpu.is_used is not False and gpu.samples >= FEWEST_SAMPLES]
    skip_unless(used, "the program used no GPU long enough")
    for gpu in used:
        if gpu.throttled and gpu.throttled_share >= LEAST_SHARE:
            clocks = ""
            saved = None
            if gpu.clock_mhz and gpu.clock_max_mhz:
                clocks = f": SM clock {gpu.clock_mhz:,.0f} of {gpu.clock_max_mhz:,} MHz"
                saved = gpu.throttled_share * max(1 - gpu.clock_mhz / gpu.clock_max_mhz, 0.0)
            heat = "" if gpu.temperature_peak_celsius is None else f", up to {gpu.temperature_peak_celsius:.0f} °C"
            time = f"{share_text(gpu.throttled_share)} of the time"
            summary = f"GPU {gpu.nvml_index} was {_CAUSES[gpu.throttled]} {time}{clocks}{heat}"
            path = f"run.gpus[{run.gpus.index(gpu)}]"
            facts = tuple(f"{path}.{name}" for name in ("throttled", "throttled_share", "clock_mhz"))
            fix = Fix("cool-or-power-gpu", reasons=gpu.throttled, nvml_index=gpu.nvml_index)
            details = measured(gpu.throttled_share, saved=saved)
            yield Finding.warning(f"GPU {gpu.nvml_index}", summary, facts, fix, details=details)
