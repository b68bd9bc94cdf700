"""Where trials run: worker processes on a device, a simulated device, or a recording of one."""

import math
from typing import Protocol

from gpudoctor.model.record import record
from gpudoctor.model.tuning import (
    Bandwidth,
    Ceiling,
    Loading,
    Measurement,
    Numerics,
    Transfer,
    Trial,
    TunedDevice,
    TunedWorkload,
)

BUDGET_ENDED = "the budget ended before an answer came"
"""Detail of a trial that is not a result: it was ended because the time was over."""


@record
class Effort:
    """How long one trial may take.

    warmup_steps: full steps before anything is timed or believed; at least two, because the first creates the
        optimiser's state.
    steps: full steps to time.
    limit_seconds: after which no further step starts; those done count. A trial that is silent far beyond is killed.
    most_seconds: a slow step may go beyond `limit_seconds` up to here, until there are enough to compare.
    one_by_one: wait for each step before the next one starts, as latency is measured.
    answer_seconds: after which a trial that gives no answer is killed; of no meaning to the worker.
    """

    warmup_steps: int = 2
    steps: int = 9
    limit_seconds: float = 10.0
    most_seconds: float = 10.0
    one_by_one: bool = False
    answer_seconds: float = math.inf


class Executor(Protocol):
    """Runs trials, one at a time. Out of memory, an unsupported precision or a hang is a Measurement, not an exception.

    Every method may raise WorkloadError: the user's own code failed, which never counts as "too large".
    """

    def now(self) -> float:
        """Return the seconds of a clock that only goes forward; a simulated device has its own."""

    def describe(self) -> TunedDevice:
        """Return the device and the precisions that it supports natively."""

    def describe_workload(self, precision: str) -> TunedWorkload:
        """Return the description of the workload, built in this precision."""

    def measure(self, trial: Trial, effort: Effort) -> Measurement:
        """Return the measurement of the trial."""

    def compare(self, precision: str) -> Numerics | Measurement:
        """Return how far the workload in this precision is from the reference; why it does not run if it does not."""

    def ceiling(self, precision: str) -> Ceiling:
        """Return the rate of a large matrix product in this precision."""

    def bandwidth(self) -> Bandwidth:
        """Return the rate of the device's memory."""

    def transfers(self) -> tuple[Transfer, ...]:
        """Return the rates from host to device; empty if the device is the host."""

    def loading(self, batch_size: int) -> tuple[Loading, ...]:
        """Return the loading times of the workload's own DataLoader; empty if it has none."""

    def close(self) -> None:
        """End every worker."""
