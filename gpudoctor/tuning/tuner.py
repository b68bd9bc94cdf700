"""One run of the tuner: describe the device, compare and search each precision, recommend, try switches, advise.

What is known so far is in a TuningRun, so that an interruption or the end of the budget loses nothing.
"""

import math
from collections.abc import Callable
from dataclasses import replace

from gpudoctor.errors import UsageError, WorkloadError
from gpudoctor.model.tuning import (
    BUDGET,
    LATENCY,
    NUMERICS,
    OK,
    SIGNAL,
    UNSUPPORTED,
    Measurement,
    Numerics,
    Recommendation,
    Settings,
    Tuning,
)
from gpudoctor.tuning.executor import BUDGET_ENDED, Executor
from gpudoctor.tuning.figures import latency
from gpudoctor.tuning.known import EFFORT, Limits
from gpudoctor.tuning.recommend import recommend
from gpudoctor.tuning.saved import differences
from gpudoctor.tuning.scouting import scout
from gpudoctor.tuning.search import exhaustive, result_of, search, without_failures
from gpudoctor.tuning.settings import EFFORT as SWITCH_EFFORT
from gpudoctor.tuning.settings import (
    candidates,
    choose_transfer,
    choose_workers,
    fits_on_device,
    improve,
    trial_like,
)
from gpudoctor.tuning.tuning_run import Request, TuningRun

LIKELY_FASTEST_FIRST = ("bf16", "fp16", "tf32", "fp32", "complex64", "complex128")
"""So that a small budget is spent on what is likely to win. On the CPU that is fp32: few have arithmetic for bf16."""

SEARCH_SHARE = 0.7
"""Of the budget, for comparing and searching the precisions."""

LEAST_SHARE = 0.05
"""Of the budget, that the search of a precision gets however long the comparison before it took."""

TRIAL_SHARE, TRIAL_SECONDS = 0.03, (0.5, 3.0)
"""Of the budget, how long one trial may take, and the least and most seconds for it."""

LATENCY_STEPS = 100
"""So that the step that 99 of 100 do not exceed was seen."""

SWITCH_SHARE = 0.9
"""Of the budget: after it no switch is tried any longer; transfers and loading get what is left."""


def tune(
    executor: Executor,
    request: Request,
    say: Callable[[str], None] = lambda _: None,
    keep: Callable[[Tuning], None] = lambda _: None,
) -> Tuning:
    """Return what was measured and is recommended. An interruption (Ctrl-C) ends the run early; what is known is kept.

    Raises:
        WorkloadError: the user's own code failed.
        UsageError: there is no such device or workload.
        GpudoctorError: the library that the workload needs cannot be used.
    """
    run = TuningRun(executor, request, say, keep)
    try:
        _run(run)
    except KeyboardInterrupt:
        run.learn(interrupted=SIGNAL)
        if run.known.recommendation is None:
            run.recommend_from_measurements()
    finally:
        executor.close()
    return replace(run.known, elapsed_seconds=round(executor.now() - run.start, 3))


def _run(run: TuningRun) -> None:
    executor, request, budget = run.executor, run.request, run.request.budget_seconds
    run.say("Reading the device")
    run.learn(device=executor.describe())
    precisions = _precisions(run)
    run.learn(workload=executor.describe_workload(precisions[0] if precisions else ""))
    _continue(run)
    start_seconds = executor.now() - run.start  # another worker takes as long
    least, most = TRIAL_SECONDS
    run.limits = Limits(
        memory_bytes=run.known.device.memory_usable_bytes,
        largest_batch=min(filter(None, (request.largest_batch, run.known.workload.dataset_size)), default=None),
        smallest_batch=request.smallest_batch,
        effective_batch=request.effective_batch,
        deadline=run.start + SEARCH_SHARE * budget,
        start_seconds=start_seconds,
        drifts=run.known.device.kind == "cpu",
        effort=replace(EFFORT, limit_seconds=min(max(TRIAL_SHARE * budget, least), most)),
    )
    if request.goal == LATENCY:
        run.limits = _for_latency(run.limits)
    for number, precision in enumerate(precisions):
        left = run.limits.deadline - executor.now()
        if left <= start_seconds and run.results and not request.exhaustive:
            break
        began = executor.now()
        _search_or_leave_out(run, precision, max(left / (len(precisions) - number), LEAST_SHARE * budget))
        run.seconds[precision] = executor.now() - began
    late = run.start + SWITCH_SHARE * budget
    try:
        _search_on(run, late)
        _recommend(run, late)
    except WorkloadError as error:  # it has worked: what is measured is worth more than nothing
        run.learn(warnings=(*run.known.warnings, f"a step that had worked before failed later: {error}"))
        if run.known.recommendation is None:
            run.recommend_from_measurements()
    if executor.now() + start_seconds < run.start + budget and run.known.recommendation is not None:
        _advise(run, run.known.recommendation)
    _list_missing(run, precisions)


def _search_on(run: TuningRun, deadline: float) -> None:
    """Continue the searches that their share of the budget cut short: time is better spent so than on switches."""
    for number, (precision, found) in enumerate(reversed(run.results.items())):  # the worker at hand first
        needs = run.limits.start_seconds if number else 0.0
        if found.cut_short and run.executor.now() + needs < deadline:
            limits = replace(run.limits, deadline=deadline)
            run.results[precision] = search(run.executor, precision, limits, run.add, before=found.measurements)


def _for_latency(limits: Limits) -> Limits:
    """Return the limits of a search for the shortest step: one batch size, its steps waited for one by one."""
    size, effort = limits.smallest_batch or 1, replace(limits.effort, steps=LATENCY_STEPS, one_by_one=True)
    return replace(limits, smallest_batch=size, largest_batch=size, effort=effort)


def _continue(run: TuningRun) -> None:
    """Take over what an interrupted tuning of the same thing has measured.

    Raises:
        UsageError: it is a tuning of something else.
    """
    before = run.request.before
    if before is None:
        return
    other = next(differences(before, run.known), None)
    if other is not None:
        raise UsageError(f"--resume: the file is from another tuning: {other}")
    measured = tuple(m for m in before.measurements if m.batch_size and m.settings == Settings())
    run.learn(measurements=measured, numerics=before.numerics)
    run.say(f"Continuing after {len(measured)} measurements")


def _list_missing(run: TuningRun, precisions: list[str]) -> None:
    """Say what the budget left no time for."""
    measured = {m.precision for m in run.known.measurements}
    missing = [precision for precision in precisions if precision not in measured]
    if missing or any(found.cut_short for found in run.results.values()):
        needed = _budget_needed(run, missing)
        text = "the budget ended the search: another precision or batch size may be faster. A complete search"
        warning = f"{text} probably needs --budget {needed:.0f}"
        run.learn(interrupted=BUDGET, budget_needed_seconds=needed, warnings=(*run.known.warnings, warning))
    if run.known.recommendation is not None:
        tried = {switch.name for switch in run.known.switches if switch.why != BUDGET_ENDED}
        missing += [name for name, _ in candidates(run.known.device) if name not in tried]
        missing += [] if run.known.bandwidth else ["transfers and data loading"]
    if missing:
        text = f"not measured, because the budget ended first: {', '.join(missing)}"
        run.learn(warnings=(*run.known.warnings, text))


def _budget_needed(run: TuningRun, missing: list[str]) -> float:
    """Return the budget that a complete search probably needs: a search that was cut short counts twice."""
    whole = [
        seconds for name, seconds in run.seconds.items() if name in run.results and not run.results[name].cut_short
    ]
    typical = max([*whole, *run.seconds.values()], default=run.request.budget_seconds)
    cut = [max(2 * run.seconds.get(name, 0.0), typical) for name, found in run.results.items() if found.cut_short]
    needed = (run.limits.start_seconds + sum(whole) + sum(cut) + typical * len(missing)) / SEARCH_SHARE
    return math.ceil(max(needed, 1.5 * run.request.budget_seconds) / 30) * 30.0


def _precisions(run: TuningRun) -> list[str]:
    """Return the precisions to try, the likely fastest first; those that the device lacks are recorded as left out."""
    device = run.known.device
    wanted = run.request.precisions or device.precisions
    reasons = dict(reason.partition(": ")[::2] for reason in device.unsupported)
    for precision in wanted:
        if precision not in device.precisions:
            run.leave_out(precision, UNSUPPORTED, reasons.get(precision, "this workload does not support it"))
    found = [name for name in LIKELY_FASTEST_FIRST if name in wanted and name in device.precisions]
    return found[::-1] if device.kind == "cpu" else found


def _search_or_leave_out(run: TuningRun, precision: str, seconds: float) -> None:
    """Search one precision. If the user's code fails in it, that is its result, unless none has worked so far."""
    try:
        _search(run, precision, seconds)
    except WorkloadError as error:
        if not any(measured.status == OK for measured in run.known.measurements):
            raise
        failed = Measurement(precision=precision, batch_size=0, status=UNSUPPORTED, detail=str(error))
        measured = tuple(m for m in run.known.measurements if m.precision == precision)
        run.add(replace(failed, traceback=error.traceback, unit=run.known.workload.unit))
        if measured:  # it fails now and then
            run.results[precision] = replace(result_of(precision, measured, run.limits), cut_short=True)


def _search(run: TuningRun, precision: str, seconds: float) -> None:
    """Compare the numbers of one precision with the reference, then find its best batch size, all in `seconds`."""
    executor, request = run.executor, run.request
    deadline = executor.now() + seconds
    compared = _compare(run, precision)
    if isinstance(compared, Measurement):
        run.add(replace(compared, unit=run.known.workload.unit))
        return
    if not compared.passed:
        run.leave_out(precision, NUMERICS, compared.reason)
        return
    find = exhaustive if request.exhaustive else search
    enough = max(deadline, executor.now() + LEAST_SHARE * request.budget_seconds)
    before = tuple(m for m in run.known.measurements if m.precision == precision)
    limits = without_failures(replace(run.limits, deadline=enough), precision, run.results)
    found = find(executor, precision, limits, run.add, before=before)
    run.results[precision] = found if request.exhaustive else scout(executor, found, limits, run.add)
    if not found.cut_short:
        run.learn(ceilings=(*run.known.ceilings, executor.ceiling(precision)))


def _compare(run: TuningRun, precision: str) -> Numerics | Measurement:
    """Return how far the precision is from the reference, as an earlier part of the run found it or as it is now."""
    known = next((verdict for verdict in run.known.numerics if verdict.precision == precision), None)
    if known is not None:
        return known
    run.say(f"{precision}: measuring the numerical error")
    compared = run.executor.compare(precision)
    if isinstance(compared, Numerics):
        run.learn(numerics=(*run.known.numerics, compared))
    return compared


def _recommend(run: TuningRun, deadline: float) -> None:
    """Choose the precision and the batch size, then see which switches are worth it there.

    If the choice no longer runs, for example because another process has taken memory, choose again.
    """
    limits = replace(run.limits, deadline=deadline)
    chosen = recommend(run.executor, tuple(run.results.values()), run.known.numerics, limits, run.add)
    while chosen is not None:
        run.learn(recommendation=chosen)  # it remains if the user interrupts what follows
        tried = (chosen.precision, chosen.batch_size)
        best = next(m for m in run.known.measurements if m.status == OK and (m.precision, m.batch_size) == tried)
        before = len(run.known.switches)
        like = replace(SWITCH_EFFORT, one_by_one=run.limits.effort.one_by_one)
        improved = improve(run.executor, run.known.device, best, deadline, run.add_switch, like)
        if improved.status != OK:
            run.add(improved)
            chosen = run.recommend_from_measurements()
            continue
        kept = tuple(f"{switch.name}: {switch.why}" for switch in run.known.switches[before:] if switch.kept)
        if kept and improved.throughput is not None:
            better = replace(chosen, settings=improved.settings, why=(*chosen.why, *kept))
            rate, peak = improved.throughput, improved.peak_memory_bytes
            largest = _largest_with_switches(run, chosen, improved, limits)
            run.learn(recommendation=replace(better, throughput=rate, peak_memory_bytes=peak, max_batch_size=largest))
        if run.request.goal == LATENCY and run.known.recommendation is not None:
            seconds = (improved if kept else best).step_seconds
            run.learn(recommendation=replace(run.known.recommendation, latency=latency(seconds)))
        return


def _largest_with_switches(run: TuningRun, chosen: Recommendation, improved: Measurement, limits: Limits) -> int | None:
    """Return the largest safe batch size under the recommended switches, from a second batch size under them."""
    largest = chosen.max_batch_size
    if largest is None or replace(improved.settings, threads=None) == Settings():
        return largest
    size = min(largest, 2 * improved.batch_size)
    if size <= improved.batch_size or run.executor.now() >= limits.deadline:
        return improved.batch_size
    more = run.executor.measure(replace(trial_like(improved, improved.settings), batch_size=size), limits.effort)
    run.add(more)
    return result_of(improved.precision, (improved, more), limits).max_batch_size


def _advise(run: TuningRun, chosen: Recommendation) -> None:
    """Measure how data reaches the device, and set the switches that follow."""
    run.say("Measuring transfers and loading")
    executor, device, workload = run.executor, run.known.device, run.known.workload
    run.learn(bandwidth=executor.bandwidth(), transfers=executor.transfers())
    try:
        run.learn(loading=executor.loading(chosen.batch_size))
    except WorkloadError as error:  # all the rest is measured
        run.learn(warnings=(*run.known.warnings, f"data loading was not measured: {error}"))
    transfer = choose_transfer(run.known.transfers, pinned_in_background=workload.dataset_size is not None)
    fits = fits_on_device(workload.dataset_bytes, device.memory_usable_bytes, chosen.peak_memory_bytes)
    settings = replace(
        chosen.settings,
        pin_memory=None if transfer is None else transfer.pinned,
        non_blocking=None if transfer is None else transfer.non_blocking,
        loader_workers=choose_workers(run.known.loading),
        data_on_device=None if device.kind == "cpu" else fits,
    )
    run.learn(recommendation=replace(chosen, settings=settings))
