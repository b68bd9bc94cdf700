"""The switches beside precision and batch size: each tried at the chosen point, kept where it is worth it."""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from gpudoctor.model.tuning import OK, Measurement, Settings, SettingTrial, Trial, TunedDevice
from gpudoctor.tuning.executor import Effort, Executor
from gpudoctor.tuning.throughput import relative_error

WORTH_IT = 0.02
"""A switch that gains less is left as it is: each one makes a program harder to reproduce."""

NOISES = 2.0
"""A gain must also be this many times the standard error of the two medians' ratio."""

EFFORT = Effort(warmup_steps=3, steps=15)


def candidates(device: TunedDevice) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield what to try on `device`, cheapest first: the name, and the fields of Settings that it changes.

    torch.compile comes last: it takes the longest, and what it is worth depends on the others.
    """
    if device.kind == "cuda":
        yield "cudnn_benchmark", {"cudnn_benchmark": True}
        yield "allocator", {"allocator": "expandable_segments:True"}
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
) -> Measurement:
    """Return the best measurement found from `chosen` on, one switch after another.

    It has failed where the best one found did not run a second time: another process may have taken memory since.

    deadline: of executor.now(); no further switch is tried after it.
    observe: is told of each switch tried.
    """
    best = chosen
    for name, changes in candidates(device):
        if executor.now() >= deadline:
            break
        reference = executor.measure(_trial(best, best.settings), EFFORT)
        if reference.status != OK:
            return reference
        switch = _try(executor, name, reference, replace(best.settings, **changes))
        observe(switch)
        best = switch.measurement if switch.kept else best
    return best


def _try(executor: Executor, name: str, reference: Measurement, settings: Settings) -> SettingTrial:
    """Measure the switch right after what it is compared with: so little time leaves the clocks little to drift."""
    measured = executor.measure(_trial(reference, settings), EFFORT)
    if measured.throughput is None or reference.throughput is None:
        return SettingTrial(
            name=name, measurement=measured, gain=None, kept=False, why=measured.detail or measured.status
        )
    gain = measured.throughput / reference.throughput - 1
    needed = max(WORTH_IT, NOISES * math.hypot(*(relative_error(m.step_seconds) for m in (measured, reference))))
    kept = gain > needed
    why = f"{gain:+.1%}" if kept else f"{gain:+.1%}, not above {needed:.1%}"
    return SettingTrial(
        name=name, measurement=measured, gain=gain, kept=kept, why=f"{why}{_pay_off(measured, reference)}"
    )


def _trial(like: Measurement, settings: Settings) -> Trial:
    return Trial(precision=like.precision, batch_size=like.batch_size, settings=settings)


def _pay_off(measured: Measurement, reference: Measurement) -> str:
    """Return after how many steps the time that the compilation took is won back; empty where nothing is compiled."""
    saved = (reference.step_median_seconds or 0.0) - (measured.step_median_seconds or 0.0)
    if not measured.settings.compile or reference.settings.compile or saved <= 0:
        return ""
    spent = sum(measured.warmup_seconds) - len(measured.warmup_seconds) * (measured.step_median_seconds or 0.0)
    return f", compiled in {spent:.0f} s, won back after {math.ceil(max(spent, 0.0) / saved):,} steps"
