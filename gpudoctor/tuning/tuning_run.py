"""What one run of the tuner is asked for, and what it knows so far."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from gpudoctor.model.record import record
from gpudoctor.model.tuning import (
    SIGNAL,
    THROUGHPUT,
    Measurement,
    Recommendation,
    SettingTrial,
    TunedDevice,
    TunedWorkload,
    Tuning,
)
from gpudoctor.tuning.executor import BUDGET_ENDED, Executor
from gpudoctor.tuning.known import Limits
from gpudoctor.tuning.recommend import recommend
from gpudoctor.tuning.search import SearchResult, result_of


@record
class Request:
    """What is asked for.

    precisions: to try; empty for all that the device supports itself.
    budget_seconds: after which nothing new is started.
    largest_batch: samples of the data set, or what the user allows; None for no limit.
    smallest_batch: that the user allows; None for any.
    effective_batch: samples between two steps of the optimiser; None for any.
    goal: THROUGHPUT, or LATENCY: the smallest batch allowed, its steps waited for one by one.
    exhaustive: measure every power of two that fits in every precision, whatever the budget.
    before: an interrupted tuning to continue.
    """

    precisions: tuple[str, ...] = ()
    budget_seconds: float = 60.0
    largest_batch: int | None = None
    smallest_batch: int | None = None
    effective_batch: int | None = None
    goal: str = THROUGHPUT
    exhaustive: bool = False
    before: Tuning | None = None


class TuningRun:
    """A run on an executor, and what is known of it so far.

    say: gets the progress and the time left. keep: gets what is known after each measurement.
    """

    def __init__(
        self,
        executor: Executor,
        request: Request,
        say: Callable[[str], None],
        keep: Callable[[Tuning], None] = lambda _: None,
    ) -> None:
        self.executor, self.request, self._say, self._keep = executor, request, say, keep
        self.start = executor.now()
        self.known = Tuning(
            device=TunedDevice(kind=""), workload=TunedWorkload(name=""), elapsed_seconds=0.0, measurements=()
        )
        self.results: dict[str, SearchResult] = {}
        self.seconds: dict[str, float] = {}
        """What the comparison and the search of each precision took."""
        self.limits = Limits()

    def say(self, text: str) -> None:
        """Report the progress, after the seconds that are left of the budget."""
        left = max(self.request.budget_seconds - (self.executor.now() - self.start), 0.0)
        time_left = f"{left:.0f} s left" if left >= 1 else "budget used, finishing"
        self._say(text if self.request.exhaustive else f"{time_left}: {text}")

    def learn(self, **fields: Any) -> None:
        """Take in what is known now, by the fields of Tuning."""
        self.known = replace(self.known, **fields)

    def add(self, measurement: Measurement) -> None:
        """Take in a measurement, and report it."""
        if measurement.detail == BUDGET_ENDED:
            return
        errors = {verdict.precision: verdict.relative_error for verdict in self.known.numerics}
        measured = replace(measurement, relative_error=errors.get(measurement.precision))
        self.learn(measurements=(*self.known.measurements, measured))
        self._keep(replace(self.known, interrupted=SIGNAL, elapsed_seconds=self.executor.now() - self.start))
        throughput = measurement.throughput
        result = measurement.status if throughput is None else f"{throughput:,.0f} {measurement.unit}"
        self.say(f"{measurement.precision}, batch {measurement.batch_size:,}: {result}")
        if measurement.traceback:
            self._say(measurement.traceback)

    def add_switch(self, switch: SettingTrial) -> None:
        """Take in a switch that was tried, and report it."""
        self.learn(switches=(*self.known.switches, switch))
        self.say(f"{switch.name}: {switch.why}")

    def leave_out(self, precision: str, status: str, why: str) -> None:
        """Take in that a precision is not tried at any batch size."""
        unit = self.known.workload.unit
        self.add(Measurement(precision=precision, batch_size=0, status=status, detail=why, unit=unit))

    def recommend_from_measurements(self) -> Recommendation | None:
        """Choose from everything that was measured, also if a search could not end."""
        measured = self.known.measurements
        precisions = dict.fromkeys(m.precision for m in measured if m.batch_size)
        plain = measured[0].settings if measured else None
        by_precision = {
            name: tuple(m for m in measured if m.precision == name and m.settings == plain) for name in precisions
        }
        results = [
            replace(
                result_of(name, found, self.limits), cut_short=name not in self.results or self.results[name].cut_short
            )
            for name, found in by_precision.items()
        ]
        self.learn(recommendation=recommend(None, results, self.known.numerics, self.limits))
        return self.known.recommendation
