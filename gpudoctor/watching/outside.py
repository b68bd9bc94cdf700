"""The outside view as facts: what each GPU did while the program ran. Pure: nothing is asked of the machine here."""

import math
from collections.abc import Callable, Iterable, Sequence
from statistics import median

from gpudoctor.model import RunGpu
from gpudoctor.watching.samples import DeviceSample, Sample, Watch, WatchedDevice

FEWEST_SAMPLES = 5
"""Nothing is claimed from fewer."""

IDLE_BELOW_PERCENT = 10
MEMORY_IN_USE_BYTES = 64 * 2**20
"""Memory that a device gained meanwhile, from which on somebody uses it."""

_THERMAL = {"sw_thermal_slowdown", "hw_thermal_slowdown"}
_POWER = {"hw_power_brake_slowdown"}
Track = Sequence[tuple[Sample, DeviceSample]]


def gpus_of(watch: Watch) -> tuple[RunGpu, ...]:
    """Return what each GPU of the job did; since its first use by the program, if it used it."""
    tracks = {device.nvml_index: _track(watch.samples, device.nvml_index) for device in watch.devices}
    begins = _first_uses(tracks)
    return tuple(_gpu(device, tracks[device.nvml_index], begins) for device in watch.devices)


def idle_cpu_cores(watch: Watch) -> float | None:
    """Return how many CPU cores the program kept busy while the GPUs that it used were idle; None for too few looks."""
    used = {gpu.nvml_index for gpu in gpus_of(watch) if gpu.is_used}
    cores = [
        sample.cpu_cores
        for sample in watch.samples
        if sample.cpu_cores is not None
        and any(_is_idle(device) for device in sample.devices if device.nvml_index in used)
    ]
    return median(cores) if len(cores) >= FEWEST_SAMPLES else None


def _is_idle(sample: DeviceSample) -> bool:
    return sample.utilization_percent is not None and sample.utilization_percent < IDLE_BELOW_PERCENT


def _track(samples: Sequence[Sample], nvml_index: int) -> Track:
    return [(sample, device) for sample in samples for device in sample.devices if device.nvml_index == nvml_index]


def _first_uses(tracks: dict[int, Track]) -> dict[int, int | None]:
    """Return for each device from which sample on the program uses it.

    If NVML lists the program nowhere, as in a container, it is where somebody works, and NVML does not list others. A
    load below 10 % is none: a desktop causes that too.
    """
    ours = {index: _first(track, lambda sample: bool(sample.is_used_by_program)) for index, track in tracks.items()}
    if any(begin is not None for begin in ours.values()):
        return ours
    return {index: _perhaps_ours(track) for index, track in tracks.items()}


def _perhaps_ours(track: Track) -> int | None:
    known = (sample.memory_used_bytes for _, sample in track if sample.memory_used_bytes is not None)
    least = min(known, default=math.inf)

    def is_in_use(sample: DeviceSample) -> bool:
        grown = sample.memory_used_bytes is not None and sample.memory_used_bytes - least >= MEMORY_IN_USE_BYTES
        works = sample.utilization_percent is not None and sample.utilization_percent >= IDLE_BELOW_PERCENT
        return sample.is_used_by_program is None and (grown or works)

    return _first(track, is_in_use)


def _may_be_ours(track: Track) -> bool:
    """Return whether somebody used a device a little whom NVML does not list."""
    return any(sample.is_used_by_program is None and sample.utilization_percent for _, sample in track)


def _first(track: Track, holds: Callable[[DeviceSample], bool]) -> int | None:
    return next((place for place, (_, sample) in enumerate(track) if holds(sample)), None)


def _gpu(device: WatchedDevice, track: Track, begins: dict[int, int | None]) -> RunGpu:
    begin = begins[device.nvml_index]
    seen = [sample for _, sample in track[begin or 0 :]]
    utilizations, used = _known(seen, "utilization_percent"), _known(seen, "memory_used_bytes")
    others, reasons = _known(seen, "other_bytes"), _known(seen, "throttle_reasons")
    cause, lowered = _throttled(seen)
    return RunGpu(
        nvml_index=device.nvml_index,
        name=device.name,
        is_used=True if begin is not None else None if _may_be_ours(track) or not utilizations else False,
        samples=len(seen),
        utilization_percent=median(utilizations) if utilizations else None,
        idle_share=sum(value < IDLE_BELOW_PERCENT for value in utilizations) / len(utilizations)
        if utilizations
        else None,
        memory_total_bytes=device.memory_total_bytes,
        memory_peak_bytes=int(max(used)) if used else None,
        other_bytes=int(median(others)) if others else None,
        throttled=cause,
        throttled_share=len(lowered) / len(reasons) if reasons else 0.0,
        clock_mhz=median(_known(lowered, "clock_mhz")) if _known(lowered, "clock_mhz") else None,
        clock_max_mhz=device.clock_max_mhz,
        temperature_peak_celsius=max(_known(lowered, "temperature_celsius"), default=None),
        is_mig=device.is_mig,
    )


def _known(samples: Iterable[DeviceSample], field: str) -> list[float]:
    return [value for sample in samples if (value := getattr(sample, field)) is not None]


def _throttled(samples: Sequence[DeviceSample]) -> tuple[str, list[DeviceSample]]:
    """Return why the clocks were lowered most often, and when; ("", []) if they were not."""
    found: dict[str, list[DeviceSample]] = {"thermal": [], "power": [], "slowdown": []}
    for sample in samples:
        reasons = set(sample.throttle_reasons or ())
        for kind, names in (("thermal", _THERMAL), ("power", _POWER)):
            if reasons & names:
                found[kind].append(sample)
        if "hw_slowdown" in reasons and not reasons & (_THERMAL | _POWER):  # that sign goes with the two others
            found["slowdown"].append(sample)
    cause = max(found, key=lambda kind: len(found[kind]))
    return (cause, found[cause]) if found[cause] else ("", [])
