"""The switches next to precision and batch size: each tried at the chosen point, kept if it is worth it."""

import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from gpudoctor.model.record import record
from gpudoctor.model.tuning import OK, Loading, Measurement, Settings, SettingTrial, Transfer, Trial, TunedDevice
from gpudoctor.tuning.executor import Effort, Executor
from gpudoctor.tuning.throughput import relative_error

WORTH_IT = 0.02
"""A switch that gains less is left as it is: each one makes a program harder to reproduce."""

NOISES = 2.0
"""A gain must also be this many times the standard error of the two medians' ratio."""

FEWEST_ROUNDS, MOST_ROUNDS = 2, 4
CLEAR = 0.01
"""A switch is measured in turns with what it is compared with, until its gain is so far from what is worth it."""

FEWEST_STEPS = 3
"""No switch is tried in a time that has fewer: they show no noise."""

EXPANDABLE = "expandable_segments:True"

EFFORT = Effort(warmup_steps=3, steps=15)


def candidates(device: TunedDevice) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield what to try on `device`, cheapest first: the name, and the fields of Settings that it changes.

    torch.compile comes last: it takes the longest, and what it is worth depends on the others.
    """
    if device.kind == "cuda":
        yield "cudnn_benchmark", {"cudnn_benchmark": True}
        if EXPANDABLE.partition(":")[0] not in device.allocator:  # whoever has set it, has decided
            yield "allocator", {"allocator": ",".join(filter(None, (device.allocator, EXPANDABLE)))}
    yield "channels_last", {"channels_last": True}
    if device.kind == "cpu":
        used = device.threads or 1
        for threads in (used // 2, used * 2) if used > 1 else ():  # hyper-threads may help or hurt
            yield f"threads={threads}", {"threads": threads}
    yield "compile", {"compile": True}


def improve(
    executor: Executor,
    device: TunedDevice,
    chosen: Measurement,
    deadline: float,
    observe: Callable[[SettingTrial], None],
    like: Effort = EFFORT,
) -> Measurement:
    """Return the best measurement found from `chosen` on, one switch after another.

    It has failed if the best one found did not run a second time: another process may have taken memory since.

    deadline: of executor.now(); no further switch is tried after it.
    observe: is given of each switch tried.
    like: how the steps of each trial are timed.
    """
    best = chosen
    for name, changes in candidates(device):
        left = (deadline - executor.now()) / (2 * FEWEST_ROUNDS)
        if left <= FEWEST_STEPS * (chosen.step_median_seconds or 0.0):
            break
        effort = replace(like, limit_seconds=min(EFFORT.limit_seconds, left), most_seconds=left)
        rounds = _rounds(executor, best, replace(best.settings, **changes), effort, deadline)
        if rounds[-1].reference.status != OK:
            return rounds[-1].reference
        switch = _judged(name, rounds)
        observe(switch)
        best = switch.measurement if switch.kept else best
    return best


@record
class Round:
    """A switch, measured right after what it is compared with: so little time leaves the clocks little to drift."""

    reference: Measurement
    measured: Measurement

    @property
    def gain(self) -> float | None:
        """Return the relative gain in throughput; None if one of them did not run."""
        before, after = self.reference.throughput, self.measured.throughput
        return None if before is None or after is None else after / before - 1


def _rounds(executor: Executor, best: Measurement, settings: Settings, effort: Effort, deadline: float) -> list[Round]:
    """Return the rounds of one switch: one if it fails or is slower, else until the gain is clear, or time is up."""
    rounds: list[Round] = []
    while len(rounds) < MOST_ROUNDS:
        started = executor.now()
        reference = executor.measure(trial_like(best, best.settings), effort)
        if reference.status != OK:
            return [*rounds, Round(reference=reference, measured=reference)]
        rounds.append(Round(reference=reference, measured=executor.measure(trial_like(best, settings), effort)))
        gains = [item.gain for item in rounds if item.gain is not None]
        if len(gains) < len(rounds) or gains[0] < WORTH_IT:
            break
        is_clear = len(rounds) >= FEWEST_ROUNDS and abs(statistics.median(gains) - WORTH_IT) > CLEAR
        if is_clear or 2 * executor.now() - started > deadline:
            break
    return rounds


def _judged(name: str, rounds: Sequence[Round]) -> SettingTrial:
    """Return whether the switch is kept: a gain in each of several rounds, and more than the noise of the steps."""
    failed = next((item.measured for item in rounds if item.measured.throughput is None), None)
    if failed is not None:
        return SettingTrial(name=name, measurement=failed, gain=None, kept=False, why=failed.detail or failed.status)
    measured = together([item.measured for item in rounds])
    reference = together([item.reference for item in rounds])
    gains = [item.gain or 0.0 for item in rounds]
    gain = statistics.median(gains)
    needed = max(WORTH_IT, NOISES * math.hypot(*(relative_error(m.step_seconds) for m in (measured, reference))))
    doubt = ""
    if gain <= needed:
        doubt = f", less than the {100 * needed:.1f} % that noise allows"
    elif min(gains) <= 0:
        doubt = f", but {100 * min(gains):+.1f} % when it was repeated"
    elif len(rounds) < FEWEST_ROUNDS or min(len(m.step_seconds) for m in (measured, reference)) < FEWEST_STEPS:
        doubt = ", but the budget ended before it was repeated"
    why = f"{100 * gain:+.1f} %{doubt}{_pay_off(rounds[0].measured, reference)}"
    return SettingTrial(name=name, measurement=measured, gain=gain, kept=not doubt, why=why)


def together(taken: Sequence[Measurement]) -> Measurement:
    """Return one measurement with the steps of all."""
    return replace(
        taken[-1], step_seconds=tuple(second for measurement in taken for second in measurement.step_seconds)
    )


def trial_like(like: Measurement, settings: Settings) -> Trial:
    """Return a trial of the same precision and batch size under other settings."""
    peak = like.peak_memory_bytes
    return Trial(precision=like.precision, batch_size=like.batch_size, settings=settings, predicted_memory_bytes=peak)


def _pay_off(measured: Measurement, reference: Measurement) -> str:
    """Return after how many steps the time that the compilation took is won back; empty if nothing is compiled."""
    saved = (reference.step_median_seconds or 0.0) - (measured.step_median_seconds or 0.0)
    if not measured.settings.compile or reference.settings.compile or saved <= 0:
        return ""
    spent = sum(measured.warmup_seconds) - len(measured.warmup_seconds) * (measured.step_median_seconds or 0.0)
    return f"; compilation took {spent:.0f} s and pays off after {math.ceil(max(spent, 0.0) / saved):,} steps"


NEAR_BEST = 0.97
"""A simpler setting is preferred if it reaches this share of the best."""


def choose_transfer(transfers: Sequence[Transfer], *, pinned_in_background: bool = False) -> Transfer | None:
    """Return the simplest way of copying that is nearly as fast as the fastest; None if none was measured.

    Pageable memory is simpler than pinned, and waiting than not waiting.
    pinned_in_background: a thread of the DataLoader copies into pinned memory, while the device computes.
    """
    rates = [(pinned_in_background and transfer.copy_gb_s) or transfer.gb_s for transfer in transfers]
    near = [each for each, rate in zip(transfers, rates, strict=True) if rate >= NEAR_BEST * max(rates)]
    return min(near, key=lambda transfer: (transfer.pinned, transfer.non_blocking), default=None)


def choose_workers(loadings: Sequence[Loading]) -> int | None:
    """Return the smallest number of workers with which steps are nearly as fast as with any; None if none was measured.

    A step that waits for a share `w` of its time runs at 1 - w of its speed. If the time of a step is unknown, the
    samples a second count.
    """
    waits = [loading.wait_fraction for loading in loadings if loading.wait_fraction is not None]
    speeds = [1.0 - wait for wait in waits]
    if len(waits) < len(loadings):
        speeds = [loading.samples_per_second for loading in loadings]
    near = [each for each, speed in zip(loadings, speeds, strict=True) if speed >= NEAR_BEST * max(speeds)]
    return min((loading.workers for loading in near), default=None)


def fits_on_device(dataset_bytes: int | None, usable_bytes: int | None, peak_bytes: int | None) -> bool | None:
    """Return whether the whole data set fits next to the step, and so should live on the device; None if unknown.

    usable_bytes: what the device has for this program; peak_bytes: what the recommended step takes of it.
    """
    if dataset_bytes is None or usable_bytes is None or peak_bytes is None:
        return None
    return dataset_bytes <= usable_bytes - peak_bytes


def wait_fraction(batch_seconds: float, step_seconds: float | None, workers: int) -> float | None:
    """Return the share of a step's time that waits for its batch; None if the time of a step is unknown.

    batch_seconds: in which one batch is loaded. Workers load while the device computes; without any, the step begins
    when the batch is there.
    """
    if step_seconds is None:
        return None
    waiting = batch_seconds if workers == 0 else max(0.0, batch_seconds - step_seconds)
    return waiting / (waiting + step_seconds) if waiting else 0.0
