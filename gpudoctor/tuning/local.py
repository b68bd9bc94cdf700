"""Trials on a device of this machine: worker processes, one for each precision, killed and started again as needed."""

import importlib.util
import math
import os
import time
from collections.abc import Mapping
from dataclasses import field, replace
from functools import cached_property
from typing import Any

from gpudoctor.data.peaks import DevicePeak, device_peak
from gpudoctor.errors import GpudoctorError, WorkloadError
from gpudoctor.model.codec import to_json
from gpudoctor.model.record import record
from gpudoctor.model.tuning import (
    COMPLEX_PRECISIONS,
    OUT_OF_MEMORY,
    UNSUPPORTED,
    Bandwidth,
    Ceiling,
    Loading,
    Measurement,
    Numerics,
    Settings,
    Transfer,
    Trial,
    TunedDevice,
    TunedWorkload,
)
from gpudoctor.processes import WorkerEnded, WorkerSilent
from gpudoctor.tuning.answers import FAILED, Poisoned, Refused, last_line, meaning_of, read
from gpudoctor.tuning.executor import BUDGET_ENDED, Effort
from gpudoctor.tuning.worker_pool import Key, WorkerPool
from gpudoctor.tuning.workers import catalog
from gpudoctor.tuning.workers.comparing import BATCH_SIZES
from gpudoctor.tuning.workers.precision import BASELINES

COMPILE_SECONDS = 600.0

OVERTIME, LEAST_SECONDS = 0.05, 20.0
"""Share of the budget after whose end an answer is waited for, and the time for all answers after a slow start."""


@record
class Timeouts:
    """How long a worker may take, in seconds.

    start: for what comes before the first timed step: import of the library, building, warming up.
    comparison: for the steps of one comparison of numerics.
    budget: for everything; no answer is waited for longer than OVERTIME beyond it.
    """

    start: float = 120.0
    comparison: float = 10.0
    budget: float = math.inf


@record
class Target:
    """What is measured, and where.

    workload: a built-in one's name, MODULE:ATTRIBUTE or FILE.py:ATTRIBUTE.
    parameters: that the workload is built with, by name.
    device: "auto", "cpu", "cuda:1", "mps".
    arrays: the workload computes with CuPy or NumPy, not with torch; None for what is known of the built-in ones.
    memory_fraction: share of the memory free at the beginning that trials may use.
    memory_limit_bytes: what there is at most: a small device can be played on a large one.
    """

    workload: str
    mode: str = catalog.TRAINING
    parameters: Mapping[str, int] = field(default_factory=dict)
    device: str = "auto"
    arrays: bool | None = None
    memory_fraction: float = 0.9
    memory_limit_bytes: int | None = None


class LocalExecutor:
    """Runs trials of one workload in worker processes under `interpreter`.

    Use it in one thread that lives as long: on Linux the end of the thread that started a worker ends the worker.

    environ: their environment variables; those of this process if None.

    Raises:
        UsageError: no workload has that name.
    """

    def __init__(
        self,
        interpreter: str,
        target: Target,
        *,
        timeouts: Timeouts | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self._known_workload = catalog.describe(target.workload, target.mode, target.parameters)
        of_arrays = set(catalog.precisions(target.workload)) <= set(COMPLEX_PRECISIONS)
        pynvml = importlib.util.find_spec("pynvml")
        self._interpreter = interpreter
        self._timeouts = timeouts or Timeouts()
        self._order: dict[str, Any] = {
            **vars(target),
            "arrays": of_arrays if target.arrays is None else target.arrays,
            "usable_bytes": None,
            "pynvml": None if pynvml is None else pynvml.origin,  # for environments without one
        }
        self._pool = WorkerPool(
            interpreter, os.environ if environ is None else environ, self._order, self._timeouts.start
        )
        self._last: Measurement | None = None
        self._end_of_budget = self.now() + (1 + OVERTIME) * self._timeouts.budget

    def __enter__(self) -> "LocalExecutor":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def now(self) -> float:
        return time.monotonic()

    def describe(self) -> TunedDevice:
        return self._device

    @cached_property
    def _device(self) -> TunedDevice:
        """Return what the device is.

        Raises:
            UsageError: there is no such device, workload or interpreter.
            GpudoctorError: the library that the workload needs cannot be imported.
        """
        try:
            answer = self._ask((None, ""), {"ask": "describe"}, self._timeouts.start)
        except WorkerSilent as silent:
            raise GpudoctorError(f"{self._interpreter}: {silent}") from None
        except WorkerEnded as ended:
            raise GpudoctorError(f"{self._interpreter}: {ended}: {last_line(ended.stderr_tail)}") from None
        device = read(TunedDevice, answer)
        self._end_of_budget = max(self._end_of_budget, self.now() + LEAST_SECONDS)
        self._pool.on_host = device.kind == "cpu"
        self._order["usable_bytes"] = device.memory_usable_bytes
        self._order["device"] = f"{device.kind}:{device.index}" if device.kind == "cuda" else device.kind
        return device

    @cached_property
    def _peak(self) -> DevicePeak | None:
        return device_peak(self._device.name) if self._device.kind == "cuda" else None

    def describe_workload(self, precision: str) -> TunedWorkload:
        """Return what the workload, built in this precision, says about itself: little if it cannot be built."""
        described = self._unless_refused(precision, {"ask": "workload", "precision": precision}) if precision else None
        return self._known_workload if described is None else read(TunedWorkload, described)

    def measure(self, trial: Trial, effort: Effort) -> Measurement:
        """Return the measurement of the trial. It is repeated if memory ran out while another worker was kept."""
        measurement = self._measure(trial, effort)
        if measurement.status == OUT_OF_MEMORY and self._pool.workers:
            self.close()
            measurement = self._measure(trial, effort)
        return measurement

    def _measure(self, trial: Trial, effort: Effort) -> Measurement:
        request = {"ask": "measure", "trial": to_json(trial), "effort": to_json(effort)}
        seconds = effort.limit_seconds + self._timeouts.start + (COMPILE_SECONDS if trial.settings.compile else 0.0)
        answer = self._answer_or_failure(trial, request, min(seconds, effort.answer_seconds))
        if isinstance(answer, Measurement):
            return answer
        peak = self._peak.tflops.get(trial.precision) if self._peak else None
        self._last = replace(read(Measurement, answer), peak_tflops=peak)
        return self._last

    def compare(self, precision: str) -> Numerics | Measurement:
        limit = self._timeouts.comparison
        request = {"ask": "compare", "precision": precision, "limit_seconds": limit}
        answer = self._answer_or_failure(
            Trial(precision=precision, batch_size=0), request, 2 * limit + self._timeouts.start
        )
        return answer if isinstance(answer, Measurement) else read(Numerics, answer)

    def _answer_or_failure(self, trial: Trial, request: Mapping[str, Any], seconds: float) -> Any:
        """Return the answer, or the measurement of a trial that failed. seconds: what it may take."""
        try:
            return self._ask_of(trial.precision, request, seconds, trial.settings.allocator)
        except Refused as refused:
            status, detail = refused.status, refused.detail
        except WorkerSilent as silent:
            status, detail = UNSUPPORTED, BUDGET_ENDED if self.now() >= self._end_of_budget else str(silent)
        except WorkerEnded as ended:
            status, detail = meaning_of(ended)
        except Poisoned as poisoned:
            works = self._works_without(trial)
            if not works:
                raise
            status, detail = UNSUPPORTED, works + str(poisoned).removeprefix(FAILED)
        return Measurement(
            precision=trial.precision,
            batch_size=trial.batch_size,
            settings=trial.settings,
            status=status,
            detail=detail,
            predicted_memory_bytes=trial.predicted_memory_bytes,
        )

    def _works_without(self, trial: Trial) -> str:
        """Return without what the step works, as `Session.judged` finds it out; empty if it never works.

        After an error that poisons the process this takes another one.
        """
        baseline = BASELINES[trial.precision in COMPLEX_PRECISIONS]
        plain = replace(trial, settings=Settings())
        if trial.settings != plain.settings and self._works(plain):
            return "the step works without this setting: "
        sizes = (trial.batch_size,) if trial.batch_size else BATCH_SIZES
        others = (replace(plain, precision=baseline, batch_size=size) for size in sizes)
        if trial.precision != baseline and any(map(self._works, others)):
            return f"the step works in {baseline}, not in {trial.precision}: "
        return ""

    def _works(self, trial: Trial) -> bool:
        request = {"ask": "measure", "trial": to_json(trial), "effort": to_json(Effort(limit_seconds=0.0))}
        try:
            self._ask_of(trial.precision, request, self._timeouts.start, trial.settings.allocator)
        except WorkloadError:
            return False
        except (Refused, WorkerEnded, WorkerSilent):
            return True
        return True

    def ceiling(self, precision: str) -> Ceiling:
        rate = self._unless_refused(precision, {"ask": "ceiling", "precision": precision})
        return Ceiling(precision=precision, measured_tflops=rate)

    def bandwidth(self) -> Bandwidth:
        datasheet = self._peak.bandwidth_gb_s if self._peak else None
        return Bandwidth(measured_gb_s=self._unless_refused(None, {"ask": "bandwidth"}), datasheet_gb_s=datasheet)

    def transfers(self) -> tuple[Transfer, ...]:
        """Return the rates from host to device for batches as the last that ran; empty if the device is the host."""
        last = self._last or Measurement(precision=self._device.precisions[0], batch_size=1)
        request = {"ask": "transfers", "precision": last.precision, "batch_size": last.batch_size}
        return tuple(read(Transfer, item) for item in self._unless_refused(last.precision, request) or ())

    def loading(self, batch_size: int) -> tuple[Loading, ...]:
        last = self._last or Measurement(precision=self._device.precisions[0], batch_size=0)
        request = {
            "ask": "loading",
            "precision": last.precision,
            "batch_size": batch_size,
            "step_seconds": last.step_median_seconds if last.batch_size == batch_size else None,
            "limit_seconds": self._timeouts.comparison,
        }
        return tuple(read(Loading, item) for item in self._unless_refused(last.precision, request) or ())

    def _unless_refused(self, precision: str | None, request: Mapping[str, Any]) -> Any:
        """Return the answer; None if the device could not do it, which spoils nothing else."""
        try:
            return self._ask_of(precision, request, self._timeouts.start)
        except (Refused, WorkerEnded, WorkerSilent):
            return None

    def _ask_of(self, precision: str | None, request: Mapping[str, Any], seconds: float, allocator: str = "") -> Any:
        """Ask the worker of a precision; the one at hand if None."""
        self.describe()  # first of all: it says what trials may use
        seconds = min(seconds, max(self._end_of_budget - self.now(), 0.1))
        if precision is None:
            return self._ask(next(reversed(self._pool.workers), (None, "")), request, seconds)
        return self._ask((precision, allocator), request, seconds)

    def _ask(self, key: Key, request: Mapping[str, Any], seconds: float) -> Any:
        return self._pool.ask(key, request, seconds)

    def close(self) -> None:
        self._pool.close()
