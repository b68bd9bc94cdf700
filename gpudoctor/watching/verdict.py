"""From what was seen to what limited the GPU. Pure: nothing is asked of the machine here."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from statistics import median
from typing import Annotated

from gpudoctor.model.record import Fact, record
from gpudoctor.watching.samples import DeviceSample, Sample, Watch, WatchedDevice

SCHEMA = "gpudoctor/run/1"

FEWEST_SAMPLES = 5
IDLE_BELOW_PERCENT = 10
MOST_OF_THE_TIME = 0.5
THROTTLED_FROM = 0.1
"""Share of the samples. A single one says little: clocks dip for a moment when the load changes."""

MEMORY_IN_USE_BYTES = 64 * 2**20
"""Memory that a device gained meanwhile, from which on somebody uses it."""

MEMORY_NEAR_LIMIT_FROM = 0.95
FULL_CORE_FROM = 0.9
SEVERAL_CORES_FROM = 1.5
IDLE_CPU_BELOW = 0.5

_THERMAL = {"sw_thermal_slowdown", "hw_thermal_slowdown"}
_POWER = {"sw_power_cap", "hw_power_brake_slowdown"}


@record
class Reason:
    """One thing that limited the GPU, or that nothing did."""

    kind: Annotated[str, Fact("unwatched, too-short, unused, idle, thermal, power, slowdown, memory, none")]
    sentence: str
    advice: Annotated[str, Fact("what to do about it; empty if there is nothing to do")] = ""
    share: Annotated[float | None, Fact("share of the samples that show it")] = None
    nvml_index: int | None = None


@record
class WatchedRun:
    """A program that has ended, and what limited the GPU meanwhile."""

    command: tuple[str, ...]
    exit_status: int
    elapsed_seconds: float
    every_seconds: Annotated[float, Fact("interval of the samples; a long run keeps fewer")]
    profile: Annotated[str | None, Fact("file of the env profile that it ran with")] = None
    watch: Watch
    reasons: tuple[Reason, ...]


@record
class _Used:
    """A device that the program used, and its samples from the first use on, side by side with those of the program."""

    device: WatchedDevice
    samples: tuple[tuple[Sample, DeviceSample], ...]

    def values(self, field: str) -> list[float]:
        """Return the known values of a field of `DeviceSample`."""
        return _known((sample for _, sample in self.samples), field)

    def reason(self, kind: str, sentence: str, advice: str = "", share: float | None = None) -> Reason:
        """Return a reason; `sentence` continues after "GPU 0"."""
        index = self.device.nvml_index
        return Reason(kind=kind, sentence=f"GPU {index} {sentence}", advice=advice, share=share, nvml_index=index)


def _known(samples: Iterable[DeviceSample], field: str) -> list[float]:
    return [value for sample in samples if (value := getattr(sample, field)) is not None]


def what_held_back(watch: Watch) -> tuple[Reason, ...]:
    """Return what limited the GPU, the gravest first; nothing is claimed from fewer than five samples."""
    if watch.problem:
        return (Reason(kind="unwatched", sentence=f"the GPU was not watched: {watch.problem}"),)
    if len(watch.samples) < FEWEST_SAMPLES:
        return (_too_short(len(watch.samples)),)
    used = _used_devices(watch)
    if not used:
        return (_unused(watch),)
    return tuple(reason for device in used for reason in _reasons(device))


def _too_short(count: int) -> Reason:
    return Reason(
        kind="too-short",
        sentence=f"{_counted(count)} of the GPU: too few to say what limited it",
        advice="For a short program: gpudoctor run --every 0.1 -- ...",
    )


def _counted(count: int) -> str:
    return f"{count} sample" if count == 1 else f"{count} samples"


def _used_devices(watch: Watch) -> list[_Used]:
    """Return the devices that NVML lists the program on; if it lists it nowhere, those that somebody works on.

    In a container NVML does not know the program, and a device on which it lists others only is theirs.
    """
    tracks = {device.nvml_index: _track(watch.samples, device.nvml_index) for device in watch.devices}
    ours = {index for index, track in tracks.items() if any(sample.is_used_by_program for _, sample in track)}
    if ours:
        begins = {index: _first(tracks[index], lambda sample: bool(sample.is_used_by_program)) for index in ours}
    else:
        begins = {index: _perhaps_ours(track) for index, track in tracks.items()}
    return [
        _Used(device=device, samples=tuple(tracks[device.nvml_index][begin:]))
        for device in watch.devices
        if (begin := begins.get(device.nvml_index)) is not None
    ]


def _track(samples: Sequence[Sample], nvml_index: int) -> list[tuple[Sample, DeviceSample]]:
    return [(sample, device) for sample in samples for device in sample.devices if device.nvml_index == nvml_index]


def _perhaps_ours(track: Sequence[tuple[Sample, DeviceSample]]) -> int | None:
    """Return from where on the device is in use, as far as work and memory show it, and NVML does not deny it."""
    known = (sample.memory_used_bytes for _, sample in track if sample.memory_used_bytes is not None)
    least = min(known, default=math.inf)

    def is_in_use(sample: DeviceSample) -> bool:
        grown = sample.memory_used_bytes is not None and sample.memory_used_bytes - least >= MEMORY_IN_USE_BYTES
        return sample.is_used_by_program is None and (grown or bool(sample.utilization_percent))

    return _first(track, is_in_use)


def _first(track: Sequence[tuple[Sample, DeviceSample]], holds: Callable[[DeviceSample], bool]) -> int | None:
    return next((place for place, (_, sample) in enumerate(track) if holds(sample)), None)


def _unused(watch: Watch) -> Reason:
    known = [sample for each in watch.samples for sample in each.devices if sample.utilization_percent is not None]
    if not known:
        return Reason(kind="unwatched", sentence="the GPU was not watched: NVML does not report its utilisation (MIG)")
    busy = any(sample.utilization_percent for sample in known)
    detail = "other programs used it" if busy else "its utilisation was 0 % throughout"
    return Reason(
        kind="unused",
        sentence=f"the program never used the GPU in {_counted(len(watch.samples))}: {detail}",
        advice="Find out why: gpudoctor check",
        share=1.0,
    )


def _reasons(used: _Used) -> tuple[Reason, ...]:
    """Return what held this device back; from fewer than five samples since its first use, that they are too few."""
    if len(used.samples) < FEWEST_SAMPLES:
        return (_too_short(len(used.samples)),)
    found = (*_idle(used), *_throttled(used), *_memory(used))
    if found:
        return found
    utilizations = used.values("utilization_percent")
    detail = f": utilisation {median(utilizations):.0f} % (median)" if utilizations else ""
    sentence = f"nothing measured limited GPU {used.device.nvml_index}{detail}"
    return (Reason(kind="none", sentence=sentence, nvml_index=used.device.nvml_index),)


def _idle(used: _Used) -> Iterator[Reason]:
    known = [(all_, own.utilization_percent) for all_, own in used.samples if own.utilization_percent is not None]
    idle = [all_ for all_, percent in known if percent < IDLE_BELOW_PERCENT]
    share = len(idle) / len(known) if known else 0.0
    if share > MOST_OF_THE_TIME:
        cause, advice = _meanwhile([sample.cpu_cores for sample in idle if sample.cpu_cores is not None])
        yield used.reason("idle", f"was idle {share:.0%} of the time since its first use{cause}", advice, share)


def _meanwhile(cpu_cores: Sequence[float]) -> tuple[str, str]:
    """Return what the CPU did while the GPU was idle, and what that asks for."""
    if len(cpu_cores) < FEWEST_SAMPLES:
        return "", ""
    cores = median(cpu_cores)
    if cores >= SEVERAL_CORES_FROM:
        return (
            f", while the program kept {cores:.1f} CPU cores busy, so it waits for the CPU",
            "Reduce the work on the CPU, cache its result, or move it to the GPU.",
        )
    if cores >= FULL_CORE_FROM:
        return (
            f", while the program kept one CPU core busy ({cores:.2f}), probably with its input pipeline",
            "Load data in several processes: DataLoader(num_workers=4, pin_memory=True, persistent_workers=True)",
        )
    if cores < IDLE_CPU_BELOW:
        return (
            f", and so was the CPU ({cores:.2f} cores busy): the program probably waits for a disk or a network",
            "Keep the data on a local disk and prefetch it: DataLoader(num_workers=4, prefetch_factor=4)",
        )
    return f", while the program kept {cores:.2f} CPU cores busy", ""


def _throttled(used: _Used) -> Iterator[Reason]:
    known = [sample for _, sample in used.samples if sample.throttle_reasons is not None]
    for kind, names, cause, advice in (
        ("thermal", _THERMAL, "too hot", "Check its cooling: fans, air flow, dust, heat from other cards."),
        (
            "power",
            _POWER,
            "at its power limit",
            "If the limit is below the default, raise it: sudo nvidia-smi -pl WATTS",
        ),
        ("slowdown", {"hw_slowdown"}, "slowed down by its hardware", "Check the power supply and the cooling."),
    ):
        general = _THERMAL | _POWER if kind == "slowdown" else set()  # that sign goes with the two others
        reasons = [(sample, set(sample.throttle_reasons or ())) for sample in known]
        held = [sample for sample, seen in reasons if names & seen and not general & seen]
        if known and len(held) / len(known) >= THROTTLED_FROM:
            share = len(held) / len(known)
            sentence = f"was {cause} {share:.0%} of the time{_numbers(used.device, held)}"
            yield used.reason(kind, sentence, advice, share)


def _numbers(device: WatchedDevice, held: Sequence[DeviceSample]) -> str:
    """Return ": at most 87 °C, 698 of 700 W, SM clock 1,410 of 1,980 MHz" of the samples in which it was lowered."""
    parts = []
    temperatures = _known(held, "temperature_celsius")
    watts, clocks = _known(held, "power_watts"), _known(held, "clock_mhz")
    if temperatures:
        parts.append(f"up to {max(temperatures):.0f} °C")
    if watts:
        limit = "" if device.power_limit_watts is None else f" of {device.power_limit_watts:,.0f}"
        parts.append(f"{median(watts):,.0f}{limit} W")
    if clocks:
        highest = "" if device.clock_max_mhz is None else f" of {device.clock_max_mhz:,}"
        parts.append(f"SM clock {median(clocks):,.0f}{highest} MHz")
    return f": {', '.join(parts)}" if parts else ""


def _memory(used: _Used) -> Iterator[Reason]:
    total, values = used.device.memory_total_bytes, used.values("memory_used_bytes")
    if not total or not values or max(values) / total < MEMORY_NEAR_LIMIT_FROM:
        return
    share = max(values) / total
    used_gib = f"{max(values) / 2**30:.1f} of {total / 2**30:.1f} GiB ({share:.0%})"
    sentence = f"almost ran out of memory: {used_gib}, including what allocators cache"
    yield used.reason("memory", sentence, "Find a safe batch size: gpudoctor tune", share)
