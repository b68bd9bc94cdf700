"""What differs between two tunings, in sentences: the machine, the recommendation, the rates beyond their noise."""

from collections.abc import Iterator

from gpudoctor.model.tuning import Measurement, Recommendation, Tuning
from gpudoctor.tuning import figures
from gpudoctor.tuning.saved import differences
from gpudoctor.tuning.throughput import error_of, rate

ERRORS_APART = 2.0
MEMORY_CHANGE = 0.02
"""Share by which the peak memory may differ without being mentioned: allocators round."""


def compare(before: Tuning, now: Tuning) -> Iterator[str]:
    """Yield what changed from an earlier tuning to this one."""
    yield from differences(before, now)
    old, new = before.workload, now.workload
    if (old.name, old.mode, old.parameters) != (new.name, new.mode, new.parameters):
        yield "The rates are not compared, because the workloads differ."
        return
    yield f"recommended before: {_advice(before.recommendation)}"
    yield f"recommended now: {_advice(now.recommendation)}"
    if before.recommendation is not None and now.recommendation is not None:
        yield from _largest(before.recommendation, now.recommendation)
    for precision in figures.precisions(now):
        yield from _precision(before, now, precision)


def _advice(advice: Recommendation | None) -> str:
    if advice is None:
        return "nothing"
    digits = 0 if advice.throughput >= 100 else 2
    return f"{advice.precision}, batch {advice.batch_size:,}, {advice.throughput:,.{digits}f} {advice.unit}"


def _largest(before: Recommendation, now: Recommendation) -> Iterator[str]:
    was, is_now = before.max_batch_size, now.max_batch_size
    if before.precision == now.precision and was is not None and is_now is not None and was != is_now:
        yield f"largest safe batch: {was:,} before, {is_now:,} now"


def _precision(before: Tuning, now: Tuning, precision: str) -> Iterator[str]:
    """Yield how a precision does at the largest batch size that ran in both tunings."""
    earlier = {m.batch_size: m for m in figures.curve(before, precision) if m.throughput}
    common = [
        (earlier[m.batch_size], m) for m in figures.curve(now, precision) if m.throughput and m.batch_size in earlier
    ]
    if not common:
        if earlier or any(m.throughput for m in figures.curve(now, precision)):
            yield f"{precision}: no batch size ran in both tunings"
        return
    old, new = common[-1]
    yield f"{precision} at batch {new.batch_size:,}: {_change(old, new)}"
    if old.peak_memory_bytes and new.peak_memory_bytes:
        share = new.peak_memory_bytes / old.peak_memory_bytes - 1
        if abs(share) > MEMORY_CHANGE:
            yield f"{precision} at batch {new.batch_size:,}: peak memory {100 * share:+.1f} %"


def _change(old: Measurement, new: Measurement) -> str:
    gain, noise = rate(new) / rate(old) - 1, ERRORS_APART * error_of(old, new)
    if noise > 1:
        return "too noisy to compare"
    if abs(gain) <= noise:
        return f"{100 * gain:+.1f} %, within the noise of {100 * noise:.1f} %"
    return f"{100 * abs(gain):.1f} % {'faster' if gain > 0 else 'slower'} than before"
