"""A watched run as OpenMetrics text: the last sample, the steps so far, and the findings."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gpudoctor.reporters.run_words import PARTS
from gpudoctor.untrusted import clean
from gpudoctor.watching.watched import WatchedRun

_OF_DEVICES = {
    "utilization_percent": ("gpu_utilization_ratio", "Share of the last moment in which a kernel ran.", 0.01),
    "memory_used_bytes": ("gpu_memory_used_bytes", "Memory that all processes use.", 1),
    "other_bytes": ("gpu_memory_others_bytes", "Memory that other programs use.", 1),
    "power_watts": ("gpu_power_watts", "Power draw.", 1),
    "temperature_celsius": ("gpu_temperature_celsius", "Temperature.", 1),
    "clock_mhz": ("gpu_sm_clock_hertz", "SM clock.", 1e6),
    "received_bytes_per_second": ("gpu_pcie_received_bytes_per_second", "Received over PCIe.", 1),
}
"""Field of a sample → metric, its help, and what a value is multiplied by."""


def render(run: WatchedRun) -> str:
    """Return the metrics. Those that are unknown are left out."""
    lines: list[str] = []
    last = run.watch.samples[-1] if run.watch.samples else None
    for field, (name, about, factor) in _OF_DEVICES.items() if last is not None else ():
        values = {device.nvml_index: getattr(device, field) for device in last.devices} if last else {}
        known = [({"gpu": str(gpu)}, value * factor) for gpu, value in values.items() if value is not None]
        lines += _metric(name, about, known)
    if last is not None:
        for name, about, value in (
            ("cpu_cores", "CPU cores that the program keeps busy.", last.cpu_cores),
            ("memory_bytes", "Memory of the program's processes.", last.memory_bytes),
            ("processes", "Processes of the program.", last.processes),
        ):
            lines += _metric(name, about, [({}, value)] if value is not None else [])
    steps = run.run.steps
    if steps is not None:
        lines += _metric("step_seconds", "Mean duration of a step.", [({}, steps.step_ms / 1000)])
        shares = [({"part": part.removesuffix("_share")}, getattr(steps, part)) for part in PARTS]
        lines += _metric("step_share_ratio", "Share of a step.", shares)
    found = [({"check": finding.check_id}, finding.details.get("speedup") or 1.0) for finding in run.findings]
    lines += _metric("finding_speedup_ratio", "The most that the change can gain; 1 if that is unknown.", found)
    return "\n".join([*lines, "# EOF"]) + "\n"


def _metric(name: str, about: str, values: Sequence[tuple[Mapping[str, str], Any]]) -> Iterator[str]:
    if values:
        yield f"# TYPE gpudoctor_{name} gauge"
        yield f"# HELP gpudoctor_{name} {about}"
    for labels, value in values:
        inside = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
        yield f"gpudoctor_{name}{f'{{{inside}}}' if inside else ''} {float(value):.10g}"


def _escaped(text: str) -> str:
    return clean(text).replace("\\", "\\\\").replace('"', '\\"')
