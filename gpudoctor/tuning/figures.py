"""What follows from the raw values of a tuning: quartiles, noise, curves, the best of a precision."""

import statistics
from collections.abc import Sequence

from gpudoctor.model.tuning import (
    OK,
    Conditions,
    Latency,
    Loading,
    Measurement,
    Numerics,
    Recommendation,
    RunnerUp,
    Settings,
    Transfer,
    Tuning,
)

WIDE_NOISE = 0.10
"""Interquartile range over median from which a timing is doubtful. Source: torch.utils.benchmark, which warns there."""

CLOCK_CHANGE = 0.05
FEW_STEPS = 4
"""With fewer there are no quartiles."""

FOREIGN_BYTES_FROM = 256 * 2**20
"""A desktop and its browser use this much without any measurable effect."""


def quartiles(values: Sequence[float]) -> tuple[float, float, float] | None:
    """Return lower quartile, median and upper quartile; None for fewer than four values."""
    if len(values) < 4:
        return None
    low, median, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, median, high


def latency(seconds: Sequence[float]) -> Latency | None:
    """Return the percentiles of the timed steps; None for fewer than four."""
    found = quartiles(seconds)
    if found is None:
        return None
    ordered = sorted(seconds)
    p95, p99 = (ordered[min(int(share * len(ordered)), len(ordered) - 1)] for share in (0.95, 0.99))
    return Latency(median_seconds=found[1], p95_seconds=p95, p99_seconds=p99)


def spread_seconds(measurement: Measurement) -> float | None:
    """Return the interquartile range of the timed steps; None for fewer than four."""
    found = quartiles(measurement.step_seconds)
    return None if found is None else found[2] - found[0]


def noise(measurement: Measurement) -> float | None:
    """Return the interquartile range as a share of the median."""
    found = quartiles(measurement.step_seconds)
    return (found[2] - found[0]) / found[1] if found and found[1] else None


def spoilt_by(measurement: Measurement, before: Conditions | None = None) -> tuple[str, ...]:
    """Return the possible disturbances of a measurement.

    before: the conditions when its timed steps began; None if they are not known any longer.
    """
    after, spread, steps = measurement.conditions, noise(measurement), measurement.step_seconds
    clock = before.clock_mhz if before else None
    warnings = []
    if after.throttle_reasons:
        warnings.append(f"throttled: {', '.join(reason.replace('_', ' ') for reason in after.throttle_reasons)}")
    if clock and after.clock_mhz and abs(after.clock_mhz / clock - 1) > CLOCK_CHANGE:
        warnings.append(f"the SM clock changed from {clock} to {after.clock_mhz} MHz")
    if after.foreign_memory_bytes is not None and after.foreign_memory_bytes >= FOREIGN_BYTES_FROM:
        warnings.append(f"another process uses {after.foreign_memory_bytes / 2**30:.1f} GiB")
    if steps and len(steps) < FEW_STEPS:
        warnings.append(f"only {len(steps)} step{'s were' if len(steps) > 1 else ' was'} timed")
    if spread is not None and spread > WIDE_NOISE:
        warnings.append(f"step times vary by {100 * spread:.0f} % of the median")
    if measurement.allocation_retries:
        warnings.append(
            f"the allocator emptied its cache {measurement.allocation_retries} times: memory is nearly full"
        )
    return tuple(warnings)


def throughput_quartiles(measurement: Measurement) -> tuple[float, float] | None:
    """Return the throughput of the slower and of the faster quartile of the steps; None for fewer than four."""
    found = quartiles(measurement.step_seconds)
    if found is None or not found[0] or measurement.status != OK:
        return None
    return measurement.samples_per_step / found[2], measurement.samples_per_step / found[0]


def fraction_of_ceiling(tuning: Tuning, measurement: Measurement) -> float | None:
    """Return the achieved rate as a share of what a large matrix product reached on this device.

    None above 1: something disturbed the measurement of the product.
    """
    ceiling = next((c.measured_tflops for c in tuning.ceilings if c.precision == measurement.precision), None)
    share = measurement.tflops / ceiling if measurement.tflops is not None and ceiling else None
    return share if share is None or share <= 1 else None


def precisions(tuning: Tuning) -> tuple[str, ...]:
    """Return every precision that was measured or compared, in that order."""
    measured, compared = (m.precision for m in tuning.measurements), (n.precision for n in tuning.numerics)
    return tuple(dict.fromkeys((*measured, *compared)))


def numerics_of(tuning: Tuning, precision: str) -> Numerics | None:
    """Return how a precision compares with the reference; None if it was not compared."""
    return next((item for item in tuning.numerics if item.precision == precision), None)


def curve(tuning: Tuning, precision: str) -> tuple[Measurement, ...]:
    """Return one measurement for each batch size, in rising order, under the settings that were searched with.

    Of several at one batch size, one that failed represents all (what failed once may fail again), then the one
    with the most timed steps.
    """
    found = [m for m in tuning.measurements if m.precision == precision and m.batch_size > 0]
    points: dict[int, Measurement] = {}
    for measured in found:
        if measured.settings == found[0].settings:
            held = points.get(measured.batch_size, measured)
            points[measured.batch_size] = max(held, measured, key=lambda m: (m.status != OK, len(m.step_seconds)))
    return tuple(points[size] for size in sorted(points))


def best(tuning: Tuning, precision: str) -> Measurement | None:
    """Return the measurement that represents a precision: at the batch size that the recommendation or a runner-up
    names, else the fastest; None if nothing ran."""
    ran = {m.batch_size: m for m in curve(tuning, precision) if m.throughput is not None}
    advice = tuning.recommendation
    named: tuple[Recommendation | RunnerUp, ...] = () if advice is None else (advice, *advice.runners_up)
    sizes = [item.batch_size for item in named if item.precision == precision and item.batch_size in ran]
    return ran[sizes[0]] if sizes else max(ran.values(), key=lambda m: m.throughput or 0.0, default=None)


def memory_limit_bytes(tuning: Tuning) -> int | None:
    """Return what the trials could use of the device's memory, else all of it."""
    usable = tuning.device.memory_usable_bytes
    return tuning.device.memory_total_bytes if usable is None else usable


def recommended_transfer(tuning: Tuning) -> Transfer | None:
    """Return the measured way from host to device that is recommended; None if there is none."""
    settings = tuning.recommendation.settings if tuning.recommendation else Settings()
    wanted = (settings.pin_memory, settings.non_blocking)
    return next((item for item in tuning.transfers if (item.pinned, item.non_blocking) == wanted), None)


def recommended_loading(tuning: Tuning) -> Loading | None:
    """Return the result of the recommended number of workers; None without one."""
    wanted = tuning.recommendation.settings.loader_workers if tuning.recommendation else None
    return next((item for item in tuning.loading if item.workers == wanted), None)
