"""One run of the tuner: describe the device, compare and search each precision, recommend, try switches, advise.

What is known so far stands in a TuningRun, so that an interruption or the end of the budget loses nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from gpudoctor.model.record import record
from gpudoctor.model.tuning import (
    NUMERICS,
    OK,
    UNSUPPORTED,
    Bandwidth,
    Ceiling,
    Loading,
    Measurement,
    Numerics,
    Recommendation,
    SettingTrial,
    Transfer,
    TunedDevice,
    TunedWorkload,
    Tuning,
)
from gpudoctor.tuning.advice import choose_transfer, choose_workers, fits_on_device
from gpudoctor.tuning.executor import Effort, Executor
from gpudoctor.tuning.knowledge import EFFORT, Limits
from gpudoctor.tuning.recommend import recommend
from gpudoctor.tuning.search import SearchResult, exhaustive, result_of, search
from gpudoctor.tuning.settings import improve

LIKELY_FASTEST_FIRST = ("bf16", "fp16", "tf32", "fp32", "complex64", "complex128")
"""So that a small budget is spent on what is likely to win. On the CPU that is fp32: few have arithmetic for bf16."""

SEARCH_SHARE = 0.7
"""Of the budget, for comparing and searching the precisions."""

LEAST_SHARE = 0.05
"""Of the budget, that the search of a precision gets however long the comparison before it took."""

TRIAL_SHARE, TRIAL_SECONDS = 0.03, (0.5, 3.0)
"""Of the budget, how long one trial may take, and the least and most seconds for it."""

SWITCH_SHARE = 0.9
"""Of the budget: after it no switch is tried any more; transfers and loading get what is left."""


@record
class Request:
    """What is asked for.

    precisions: to try; empty for all that the device supports itself.
    budget_seconds: after which nothing new is started.
    largest_batch: samples of the data set; None for no limit.
    exhaustive: measure every power of two that fits in every precision, whatever the budget.
    """

    precisions: tuple[str, ...] = ()
    budget_seconds: float = 60.0
    largest_batch: int | None = None
    exhaustive: bool = False


class TuningRun:
    """What is known so far; it makes a Tuning at any moment.

    say: is told in a few words what is going on.
    """

    def __init__(self, now: Callable[[], float], say: Callable[[str], None]) -> None:
        self.device = TunedDevice(kind="")
        self.workload = TunedWorkload(name="")
        self.limits = Limits()
        self.measurements: list[Measurement] = []
        self.numerics: dict[str, Numerics] = {}
        self.ceilings: list[Ceiling] = []
        self.switches: list[SettingTrial] = []
        self.bandwidth: Bandwidth | None = None
        self.transfers: tuple[Transfer, ...] = ()
        self.loading: tuple[Loading, ...] = ()
        self.results: dict[str, SearchResult] = {}
        self.recommendation: Recommendation | None = None
        self.interrupted = False
        self.say = say
        self._now = now
        self._start = now()

    def add(self, measurement: Measurement) -> None:
        """Take in a measurement, and tell of it."""
        compared = self.numerics.get(measurement.precision)
        error = None if compared is None else compared.relative_error
        self.measurements.append(replace(measurement, relative_error=error))
        throughput = measurement.throughput
        told = measurement.status if throughput is None else f"{throughput:,.0f} {measurement.unit}"
        self.say(f"{measurement.precision}, batch {measurement.batch_size:,}: {told}")

    def add_switch(self, switch: SettingTrial) -> None:
        """Take in a switch that was tried, and tell of it."""
        self.switches.append(switch)
        self.say(f"{switch.name}: {switch.why}")

    def left_out(self, precision: str, status: str, why: str) -> None:
        """Take in that a precision is not tried at any batch size."""
        self.add(Measurement(precision=precision, batch_size=0, status=status, detail=why, unit=self.workload.unit))

    def tuning(self) -> Tuning:
        """Return what is known."""
        return Tuning(
            device=self.device,
            workload=self.workload,
            elapsed_seconds=round(self._now() - self._start, 3),
            measurements=tuple(self.measurements),
            recommendation=self.recommendation,
            numerics=tuple(self.numerics.values()),
            switches=tuple(self.switches),
            ceilings=tuple(self.ceilings),
            bandwidth=self.bandwidth,
            transfers=self.transfers,
            loading=self.loading,
            interrupted=self.interrupted,
        )


def tune(executor: Executor, request: Request, say: Callable[[str], None] = lambda _: None) -> Tuning:
    """Return what was measured and is recommended. An interruption (Ctrl-C) ends the run early; what is known is kept.

    Raises:
        WorkloadError: the user's own code failed.
        UsageError: there is no such device or workload.
        GpudoctorError: the library that the workload needs cannot be used.
    """
    run = TuningRun(executor.now, say)
    try:
        _run(executor, request, run)
    except KeyboardInterrupt:
        run.interrupted = True
        _recommend_from_what_is_known(run)
    finally:
        executor.close()
    return run.tuning()


def _run(executor: Executor, request: Request, run: TuningRun) -> None:
    start = executor.now()
    run.say("Looking at the device")
    run.device = executor.describe()
    precisions = _precisions(request, run)
    run.workload = executor.describe_workload(precisions[0] if precisions else "")
    run.limits = Limits(
        memory_bytes=run.device.memory_usable_bytes,
        largest_batch=request.largest_batch or run.workload.dataset_size,
        deadline=start + SEARCH_SHARE * request.budget_seconds,
        effort=_effort(request.budget_seconds),
    )
    for number, precision in enumerate(precisions):
        left = run.limits.deadline - executor.now()
        if left <= 0 and run.results and not request.exhaustive:
            break
        share = max(left / (len(precisions) - number), LEAST_SHARE * request.budget_seconds)
        _search(executor, precision, share, request, run)
    _recommend(executor, start + SWITCH_SHARE * request.budget_seconds, run)
    if executor.now() < start + request.budget_seconds:
        _advise(executor, run)


def _effort(budget_seconds: float) -> Effort:
    least, most = TRIAL_SECONDS
    return replace(EFFORT, limit_seconds=min(max(TRIAL_SHARE * budget_seconds, least), most))


def _precisions(request: Request, run: TuningRun) -> list[str]:
    """Return the precisions to try, the likely fastest first; those that the device has not are noted as left out."""
    device = run.device
    wanted = request.precisions or device.precisions
    reasons = dict(reason.partition(": ")[::2] for reason in device.unsupported)
    for precision in wanted:
        if precision not in device.precisions:
            run.left_out(precision, UNSUPPORTED, reasons.get(precision, "this workload does not have it"))
    found = [name for name in LIKELY_FASTEST_FIRST if name in wanted and name in device.precisions]
    return found[::-1] if device.kind == "cpu" else found


def _search(executor: Executor, precision: str, seconds: float, request: Request, run: TuningRun) -> None:
    """Compare the numbers of one precision with the reference, then find its best batch size, all in `seconds`."""
    deadline = executor.now() + seconds
    run.say(f"{precision}: comparing its numbers")
    compared = executor.compare(precision)
    if isinstance(compared, Measurement):
        run.add(replace(compared, unit=run.workload.unit))
        return
    run.numerics[precision] = compared
    if not compared.passed:
        run.left_out(precision, NUMERICS, compared.reason)
        return
    run.ceilings.append(executor.ceiling(precision))
    find = exhaustive if request.exhaustive else search
    enough = max(deadline, executor.now() + LEAST_SHARE * request.budget_seconds)
    run.results[precision] = find(executor, precision, replace(run.limits, deadline=enough), run.add)


def _recommend(executor: Executor, deadline: float, run: TuningRun) -> None:
    """Choose the precision and the batch size, then see which switches are worth it there.

    Where the choice does not run any more, as when another process has taken memory, choose again.
    """
    limits = replace(run.limits, deadline=deadline)
    results, numerics = tuple(run.results.values()), tuple(run.numerics.values())
    chosen = recommend(executor, results, numerics, limits, run.add)
    while chosen is not None:
        run.recommendation = chosen  # it stands if the user interrupts what follows
        best = next(m for m in run.measurements if m.status == OK and _is_of(m, chosen))
        before = len(run.switches)
        improved = improve(executor, run.device, best, deadline, run.add_switch)
        if improved.status == OK:
            run.recommendation = _with_switches(chosen, improved, run.switches[before:])
            return
        run.add(improved)
        run.recommendation = chosen = recommend(None, _results(run), numerics, limits)


def _is_of(measured: Measurement, chosen: Recommendation) -> bool:
    return (measured.precision, measured.batch_size) == (chosen.precision, chosen.batch_size)


def _with_switches(chosen: Recommendation, improved: Measurement, switches: Sequence[SettingTrial]) -> Recommendation:
    """Return the recommendation with the switches that are kept."""
    kept = tuple(f"{switch.name}: {switch.why}" for switch in switches if switch.kept)
    if not kept or improved.throughput is None:
        return chosen
    return replace(
        chosen,
        settings=improved.settings,
        throughput=improved.throughput,
        peak_memory_bytes=improved.peak_memory_bytes,
        why=(*chosen.why, *kept),
    )


def _recommend_from_what_is_known(run: TuningRun) -> None:
    """Choose from the measurements that an interruption left."""
    if run.recommendation is None:
        numerics = tuple(run.numerics.values())
        run.recommendation = recommend(None, _results(run), numerics, run.limits)


def _results(run: TuningRun) -> list[SearchResult]:
    """Return what each precision comes to, by everything that was measured."""
    precisions = dict.fromkeys(m.precision for m in run.measurements if m.batch_size)
    measured = {p: tuple(m for m in run.measurements if m.precision == p) for p in precisions}
    return [result_of(precision, found, run.limits) for precision, found in measured.items()]


def _advise(executor: Executor, run: TuningRun) -> None:
    """Measure how data comes to the device, and set the switches that follow."""
    chosen = run.recommendation
    if chosen is None:
        return
    run.say("Measuring transfers and loading")
    run.bandwidth = executor.bandwidth()
    run.transfers = executor.transfers()
    run.loading = executor.loading(chosen.batch_size)
    device, workload = run.device, run.workload
    transfer = choose_transfer(run.transfers, pinned_in_background=workload.dataset_size is not None)
    settings = replace(
        chosen.settings,
        pin_memory=None if transfer is None else transfer.pinned,
        non_blocking=None if transfer is None else transfer.non_blocking,
        loader_workers=choose_workers(run.loading),
        data_on_device=fits_on_device(
            workload.sample_bytes, workload.dataset_size, device.memory_usable_bytes, chosen.peak_memory_bytes
        )
        if device.kind != "cpu"
        else None,
    )
    run.recommendation = replace(chosen, settings=settings)
