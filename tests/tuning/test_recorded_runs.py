"""Whole runs of the tuner on simulated devices: what is tried, in which order, what is recommended and why.

Each run is compared with tests/tuning/recorded_runs.json. Write it again by `python -m tests.tuning.test_recorded_runs`
after a change that is meant, and look at its difference: it is what the change does to people's settings.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from gpudoctor.errors import WorkloadError
from gpudoctor.model.codec import to_json
from gpudoctor.model.tuning import (
    OUT_OF_MEMORY,
    UNSUPPORTED,
    Bandwidth,
    Ceiling,
    Conditions,
    Loading,
    Measurement,
    Settings,
    Transfer,
    Trial,
    TunedDevice,
    TunedWorkload,
    Tuning,
)
from gpudoctor.tuning.executor import BUDGET_ENDED, Effort
from gpudoctor.tuning.recommend import SAFEST_FIRST
from gpudoctor.tuning.tuner import tune
from gpudoctor.tuning.tuning_run import Request
from tests.tuning.simulated_device import (
    GIB,
    HELD_OUT,
    SILENT,
    TUNED_ON,
    PrecisionTraits,
    Ranges,
    SimulatedDevice,
    draw,
)

FILE = Path(__file__).with_name("recorded_runs.json")
PLAIN = Settings()


class Machine(SimulatedDevice):
    """A simulated device on which switches matter and things go wrong; it writes down what it is asked.

    gains: factors of the step's time by switch. device, workload: fields that are told. fails: what happens at a trial,
    by its number: an exception, or fields of its measurement. above: batch sizes from which the user's code fails.
    """

    def __init__(
        self,
        seed: int,
        ranges: Ranges = TUNED_ON,
        *,
        noise: float = 0.01,
        gains: Mapping[str, float] | None = None,
        device: Mapping[str, Any] | None = None,
        workload: Mapping[str, Any] | None = None,
        fails: Mapping[int, Any] | None = None,
        above: int = 10**9,
        numerics: Mapping[str, Any] | None = None,
        loading: tuple[Loading, ...] = (),
        transfers: tuple[Transfer, ...] = (),
    ) -> None:
        super().__init__(draw(seed, ranges), noise)
        self.log: list[str] = []
        self.started = 0
        self.gains, self.told, self.work = gains or {}, device or {}, workload or {}
        self.fails, self.above, self.numerics = fails or {}, above, numerics or {}
        self.ways, self.loaders = transfers, loading
        if self.told.get("precisions", ("fp32",))[0].startswith("complex"):
            kinds = {name: PrecisionTraits(sample_factor=1 + number) for number, name in enumerate(SAFEST_FIRST[4:])}
            self.scenario = replace(self.scenario, precisions=kinds)

    def describe(self) -> TunedDevice:
        self._clock += 2.0
        return replace(super().describe(), **self.told)

    def describe_workload(self, precision: str) -> TunedWorkload:
        self.log.append(f"workload {precision}")
        self._clock += 1.0
        return replace(super().describe_workload(precision), **self.work)

    def measure(self, trial: Trial, effort: Effort) -> Measurement:
        on = {field.name: getattr(trial.settings, field.name) for field in fields(Settings)}
        changed = " ".join(name for name, value in on.items() if value != getattr(PLAIN, name))
        told = trial.predicted_memory_bytes
        predicted = "" if told is None else f" about {told / GIB:.3f} GiB"
        limits = f"{effort.warmup_steps}+{effort.steps} in {effort.limit_seconds:.2f} to {effort.most_seconds:.2f} s"
        self.log.append(f"{trial.precision} {trial.batch_size} {changed}{predicted}: {limits}".replace(" :", ":"))
        self.started += 1
        wrong = self.fails.get(self.started, {})
        if isinstance(wrong, BaseException):
            raise wrong
        if trial.batch_size >= self.above:
            raise WorkloadError("the workload failed: ValueError: too many", "Traceback of train.py")
        measured = replace(super().measure(trial, effort), settings=trial.settings)
        factor = 1.0
        for name, gain in self.gains.items():
            factor *= gain if on.get(name) else 1.0
        steps = tuple(second * factor for second in measured.step_seconds)
        warmup = (20.0, *measured.warmup_seconds) if trial.settings.compile else measured.warmup_seconds
        return replace(measured, **{"step_seconds": steps, "warmup_seconds": warmup, **wrong})

    def compare(self, precision: str) -> Any:
        self.log.append(f"compare {precision}")
        self._clock += 1.5
        given = self.numerics.get(precision, {})
        return given if isinstance(given, Measurement) else replace(super().compare(precision), **given)

    def ceiling(self, precision: str) -> Ceiling:
        self.log.append(f"ceiling {precision}")
        return Ceiling(precision=precision, measured_tflops=50.0)

    def bandwidth(self) -> Bandwidth:
        self.log.append("bandwidth")
        return Bandwidth(measured_gb_s=900.0)

    def transfers(self) -> tuple[Transfer, ...]:
        return self.ways

    def loading(self, batch_size: int) -> tuple[Loading, ...]:
        self.log.append(f"loading {batch_size}")
        return self.loaders

    def close(self) -> None:
        self.log.append("closed")


CPU = {"kind": "cpu", "threads": 8, "precisions": ("fp32", "bf16"), "memory_usable_bytes": 16 * GIB}
MEMORY_GONE = {"status": OUT_OF_MEMORY, "detail": "CUDA out of memory", "step_seconds": ()}
BUDGET_OVER = {"status": UNSUPPORTED, "detail": BUDGET_ENDED, "step_seconds": ()}
NO_LSTM = Measurement(precision="bf16", batch_size=0, status=UNSUPPORTED, detail="no LSTM in this type")
NOT_FINITE = {"passed": False, "reason": "the outputs are not finite"}
WAYS = tuple(
    Transfer(pinned=pinned, non_blocking=queued, gb_s=rate, copy_gb_s=alone)
    for pinned, queued, rate, alone in (
        (False, False, 8.0, None),
        (False, True, 8.1, None),
        (True, False, 6.0, 20.0),
        (True, True, 7.0, 20.5),
    )
)
LOADERS = tuple(
    Loading(workers=workers, samples_per_second=100.0 * (workers + 1), wait_fraction=wait)
    for workers, wait in ((0, 0.5), (1, 0.2), (2, 0.02), (4, 0.0))
)
THROTTLED = Conditions(throttle_reasons=("sw_power_cap",), foreign_memory_bytes=2**28)
LONG = Request(budget_seconds=1000)
GAINS = {"cudnn_benchmark": 0.9, "channels_last": 0.97, "compile": 0.6}
SMALL_DATA = {"dataset_size": 900, "sample_bytes": 4096, "unit": "images/s"}

RUNS: dict[str, tuple[dict[str, Any], Request]] = {
    **{f"family {seed}": ({"seed": seed, "noise": 0.002 * seed}, LONG) for seed in range(1, 9)},
    **{f"held out {seed}": ({"seed": seed, "ranges": HELD_OUT}, LONG) for seed in (0, 3, 5, 6)},
    **{f"no memory told {seed}": ({"seed": seed, "ranges": SILENT}, LONG) for seed in (0, 2)},
    **{f"{budget} s": ({"seed": 1}, Request(budget_seconds=budget)) for budget in (1, 8, 15, 30, 45, 70)},
    "switches that gain": (
        {"seed": 1, "gains": GAINS, "workload": SMALL_DATA, "transfers": WAYS, "loading": LOADERS},
        LONG,
    ),
    "no data set": ({"seed": 5, "gains": {"allocator": 0.95}, "transfers": WAYS}, LONG),
    "on the CPU": ({"seed": 2, "ranges": SILENT, "device": CPU, "gains": {"threads": 0.9}, "loading": LOADERS}, LONG),
    "on a Mac": ({"seed": 3, "device": {"kind": "mps", "precisions": ("fp32", "fp16")}}, LONG),
    "arrays": ({"seed": 4, "device": {"precisions": ("complex128", "complex64")}}, LONG),
    "nothing below fp32 passes": ({"seed": 5, "numerics": dict.fromkeys(("bf16", "fp16"), NOT_FINITE)}, LONG),
    "no LSTM in bf16": ({"seed": 5, "numerics": {"bf16": NO_LSTM}, "workload": SMALL_DATA}, LONG),
    "asked for fp8": (
        {"seed": 5, "device": {"unsupported": ("fp8: needs compute capability 8.9",)}},
        replace(LONG, precisions=("fp8", "fp7", "fp32")),
    ),
    "a small data set": ({"seed": 3, "workload": {"dataset_size": 40}}, replace(LONG, largest_batch=50)),
    "between 5 and 20": ({"seed": 3}, replace(LONG, smallest_batch=5, largest_batch=20)),
    "one batch size": ({"seed": 3}, replace(LONG, smallest_batch=16, largest_batch=16)),
    "an effective batch of 96": ({"seed": 3}, replace(LONG, effective_batch=96)),
    "an effective batch of 7": ({"seed": 6}, replace(LONG, effective_batch=7)),
    "everything": ({"seed": 7}, Request(exhaustive=True, budget_seconds=5.0)),
    "everything up to 30": ({"seed": 3}, Request(exhaustive=True, largest_batch=30, precisions=("fp32",))),
    "interrupted": ({"seed": 1, "fails": {9: KeyboardInterrupt()}}, LONG),
    "interrupted at a switch": ({"seed": 1, "fails": {20: KeyboardInterrupt()}, "gains": GAINS}, LONG),
    "another process takes memory": ({"seed": 1, "fails": dict.fromkeys(range(19, 25), MEMORY_GONE)}, LONG),
    "memory is gone once": ({"seed": 1, "fails": {3: MEMORY_GONE}}, LONG),
    "memory is gone from the start": ({"seed": 1, "fails": dict.fromkeys(range(1, 9), MEMORY_GONE)}, LONG),
    "the budget ends a trial": ({"seed": 1, "fails": {4: BUDGET_OVER, 22: BUDGET_OVER}}, LONG),
    "the user's code fails from 20 on": ({"seed": 1, "above": 20}, LONG),
    "throttled": ({"seed": 1, "fails": {key: {"conditions": THROTTLED} for key in range(1, 40)}}, LONG),
    "one step alone": ({"seed": 1, "fails": {key: {"step_seconds": (0.5,)} for key in range(1, 40)}}, LONG),
    "three steps": ({"seed": 1, "fails": {key: {"step_seconds": (0.5, 0.6, 0.7)} for key in range(1, 40)}}, LONG),
    "much noise": ({"seed": 1, "noise": 0.3}, LONG),
}


def outcome(name: str) -> dict[str, Any]:
    """Return what a run tried, told and found, without what the simulation drew by itself."""
    options, request = RUNS[name]
    machine = Machine(**options)
    told: list[str] = []
    tuning = tune(machine, request, told.append)
    return dict(_rounded({"asked": machine.log, "told": told, **_found(tuning)}))


def _found(tuning: Tuning) -> dict[str, Any]:
    return {
        "recommendation": to_json(tuning.recommendation),
        "numerics": [f"{n.precision}: {n.passed}" for n in tuning.numerics],
        "left out": [
            f"{m.precision} {m.unit}: {m.status}, {m.detail}" for m in tuning.measurements if not m.batch_size
        ],
        "errors": sorted({f"{m.precision}: {m.relative_error}" for m in tuning.measurements}),
        "switches": [f"{switch.name} {'kept' if switch.kept else 'left'}: {switch.why}" for switch in tuning.switches],
        "ceilings": [ceiling.precision for ceiling in tuning.ceilings],
        "end": [tuning.interrupted, tuning.elapsed_seconds, *tuning.warnings],
    }


def _rounded(value: Any) -> Any:
    """Return the value with its numbers to six digits: the last ones differ between mathematical libraries."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    return [_rounded(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("name", RUNS)
def test_a_whole_run(name: str) -> None:
    assert outcome(name) == json.loads(FILE.read_text(encoding="utf-8"))[name]


if __name__ == "__main__":
    rows = (f"{json.dumps(name)}: {json.dumps(outcome(name), indent=1)}" for name in RUNS)
    FILE.write_text("{\n" + ",\n".join(rows) + "\n}\n", encoding="utf-8")
