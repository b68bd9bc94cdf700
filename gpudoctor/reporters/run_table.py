"""A watched run: what limited the GPU, then a line of numbers for each GPU; or as JSON, schema gpudoctor/run/1."""

import json
import shlex
from collections.abc import Iterator
from statistics import median

from gpudoctor.model.codec import to_json
from gpudoctor.privacy import mask_document
from gpudoctor.reporters.quantities import duration, gibibytes
from gpudoctor.reporters.terminal import NARROWEST, encodable
from gpudoctor.reporters.text import wrap, wrap_painted, wrap_parts
from gpudoctor.untrusted import clean
from gpudoctor.watching.samples import DeviceSample, WatchedDevice
from gpudoctor.watching.verdict import SCHEMA, WatchedRun

_KINDS = {"none": "healthy", "unused": "error", "unwatched": "info", "too-short": "info"}


def render_json(run: WatchedRun) -> str:
    """Return the run as one JSON object, with every sample. A value that is not known is left out."""
    return json.dumps({"schema": SCHEMA, **mask_document(to_json(run))}, indent=2, allow_nan=False) + "\n"


def render(run: WatchedRun, *, color: bool, width: int, encoding: str | None = "utf-8") -> str:
    """Return the report in lines of `width` columns. encoding: of the stream; what it cannot show is written out."""
    width = max(width, NARROWEST)
    lines = [*_headline(run, width)]
    for reason in run.reasons:
        kind = _KINDS.get(reason.kind, "warning")
        lines += wrap_painted(reason.kind, f"  {clean(reason.sentence)}", kind, color, width)
        lines += [f"  {clean(reason.advice, None)}"] if reason.advice else []  # whole, to be copied
    for device in run.watch.devices if run.watch.samples else ():
        lines += wrap_parts(_parts(run, device), " · ", width)
    return encodable("\n".join(lines) + "\n", encoding)


def _headline(run: WatchedRun, width: int) -> list[str]:
    end = f"gpudoctor run: {clean(shlex.join(run.command), 60)} ended with exit status {run.exit_status}"
    profile = "" if run.profile is None else f", with the profile {clean(run.profile)}"
    return wrap(f"{end} after {duration(run.elapsed_seconds)}{profile}", width, "", "  ")


def _parts(run: WatchedRun, device: WatchedDevice) -> Iterator[str]:
    samples = [own for each in run.watch.samples for own in each.devices if own.nvml_index == device.nvml_index]
    yield f"GPU {device.nvml_index} {clean(device.name or '')}".rstrip()
    if values := _values(samples, "utilization_percent"):
        yield f"utilisation {median(values):.0f} %"
    if values := _values(samples, "memory_used_bytes"):
        yield f"memory up to {gibibytes(max(values))} of {gibibytes(device.memory_total_bytes)} GiB"
    if values := _values(samples, "clock_mhz"):
        yield f"SM clock {median(values):,.0f} MHz"
    if values := _values(samples, "power_watts"):
        limit = "" if device.power_limit_watts is None else f" of {device.power_limit_watts:,.0f}"
        yield f"{median(values):,.0f}{limit} W"
    if values := _values(samples, "temperature_celsius"):
        yield f"up to {max(values)} °C"
    cpu = [sample.cpu_cores for sample in run.watch.samples if sample.cpu_cores is not None]
    if cpu:
        yield f"CPU {median(cpu):.1f} cores"
    yield f"{len(samples)} samples"


def _values(samples: list[DeviceSample], field: str) -> list[float]:
    return [value for sample in samples if (value := getattr(sample, field)) is not None]
