"""Tunings read from their JSON, compared, and continued."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from gpudoctor.errors import UsageError
from gpudoctor.model.tuning import Measurement, Recommendation, Settings, TunedDevice, TunedWorkload, Tuning
from gpudoctor.reporters import tuning_json
from gpudoctor.tuning.comparison import compare
from gpudoctor.tuning.known import Limits
from gpudoctor.tuning.saved import parse_tuning
from gpudoctor.tuning.search import search
from gpudoctor.tuning.tuner import tune
from gpudoctor.tuning.tuning_run import Request
from tests.tuning.simulated_device import SimulatedDevice, draw


def measured(size: int, seconds: float, memory: int = 1000, noise: float = 0.0) -> Measurement:
    steps = tuple(seconds * (1 + noise * step) for step in (-2, -1, 0, 1, 2))
    return Measurement(
        precision="fp32", batch_size=size, step_seconds=steps, samples_per_step=size, peak_memory_bytes=memory
    )


def tuning(*measurements: Measurement, batch_size: int = 8, throughput: float = 80.0, **device: Any) -> Tuning:
    advice = Recommendation(
        precision="fp32",
        batch_size=batch_size,
        max_batch_size=64,
        settings=Settings(),
        throughput=throughput,
        unit="images/s",
        why=(),
    )
    return Tuning(
        device=TunedDevice(kind="cuda", name="NVIDIA L4", **{"torch_version": "2.13.0+cu130", **device}),
        workload=TunedWorkload(name="cnn", mode="training", unit="images/s"),
        elapsed_seconds=3.5,
        measurements=measurements,
        recommendation=advice,
    )


BEFORE = tuning(measured(4, 0.1), measured(8, 0.1))


def test_what_is_written_is_read_again() -> None:
    assert parse_tuning(tuning_json.render(BEFORE).encode(), "a.json") == BEFORE


@pytest.mark.parametrize(
    ("data", "message"),
    [
        pytest.param(b"", "a.json: not a tuning", id="empty"),
        pytest.param(b"[1]", "a.json: its schema is 'None'", id="a list"),
        pytest.param(b'{"schema": "gpudoctor/tuning/9"}', "its schema is 'gpudoctor/tuning/9'", id="newer"),
        pytest.param(b'{"schema": "gpudoctor/tuning/1"}', "a.json: not a tuning", id="nothing in it"),
        pytest.param(b"[" * 100_000, "a.json: not a tuning", id="deep"),
    ],
)
def test_what_is_no_tuning_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_tuning(data, "a.json")


@pytest.mark.parametrize(
    ("now", "lines"),
    [
        pytest.param(
            BEFORE,
            ["recommended before: fp32, batch 8, 80.00 images/s", "recommended now: fp32, batch 8, 80.00 images/s",
             "fp32 at batch 8: +0.0 %, within the noise of 0.0 %"],
            id="nothing",
        ),
        pytest.param(
            tuning(measured(8, 0.05), batch_size=8, throughput=160.4),
            ["recommended before: fp32, batch 8, 80.00 images/s", "recommended now: fp32, batch 8, 160 images/s",
             "fp32 at batch 8: 100.0 % faster than before"],
            id="faster",
        ),
        pytest.param(
            tuning(measured(4, 0.2, memory=1500)),
            ["recommended before: fp32, batch 8, 80.00 images/s", "recommended now: fp32, batch 8, 80.00 images/s",
             "fp32 at batch 4: 50.0 % slower than before", "fp32 at batch 4: peak memory +50.0 %"],
            id="slower, and larger, at the largest that ran in both",
        ),
        pytest.param(
            tuning(measured(16, 0.2)),
            ["recommended before: fp32, batch 8, 80.00 images/s", "recommended now: fp32, batch 8, 80.00 images/s",
             "fp32: no batch size ran in both tunings"],
            id="nothing in common",
        ),
        pytest.param(
            tuning(measured(8, 0.101, noise=0.01)),
            ["recommended before: fp32, batch 8, 80.00 images/s", "recommended now: fp32, batch 8, 80.00 images/s",
             "fp32 at batch 8: -1.0 %, within the noise of 1.7 %"],
            id="noise",
        ),
        pytest.param(
            tuning(measured(8, 0.1), torch_version="2.14.0+cu130"),
            ["PyTorch version: 2.13.0+cu130 before, 2.14.0+cu130 now",
             "recommended before: fp32, batch 8, 80.00 images/s", "recommended now: fp32, batch 8, 80.00 images/s",
             "fp32 at batch 8: +0.0 %, within the noise of 0.0 %"],
            id="another version",
        ),
        pytest.param(
            replace(BEFORE, workload=TunedWorkload(name="mlp", mode="training")),
            ["workload: cnn before, mlp now", "The rates are not compared, because the workloads differ."],
            id="another workload",
        ),
        pytest.param(
            replace(BEFORE, recommendation=None),
            ["recommended before: fp32, batch 8, 80.00 images/s", "recommended now: nothing",
             "fp32 at batch 8: +0.0 %, within the noise of 0.0 %"],
            id="no recommendation",
        ),
    ],
)  # fmt: skip
def test_what_changed(now: Tuning, lines: list[str]) -> None:
    assert list(compare(BEFORE, now)) == lines


def test_the_largest_safe_batch_of_the_same_precision_is_compared() -> None:
    assert BEFORE.recommendation is not None
    grown = replace(BEFORE, recommendation=replace(BEFORE.recommendation, max_batch_size=128))
    assert "largest safe batch: 64 before, 128 now" in compare(BEFORE, grown)


class Interrupted(SimulatedDevice):
    """A device whose run is interrupted at a trial."""

    def __init__(self, at: int) -> None:
        super().__init__(draw(1))
        self.at = at

    def measure(self, trial: Any, effort: Any) -> Measurement:
        if len(self.trials) == self.at:
            raise KeyboardInterrupt
        return super().measure(trial, effort)


def test_an_interrupted_search_continues_where_it_was() -> None:
    kept: list[Tuning] = []
    tune(Interrupted(6), Request(budget_seconds=1000), keep=kept.append)
    assert [len(known.measurements) for known in kept] == [1, 2, 3, 4, 5, 6]
    assert kept[-1].interrupted == "signal"
    saved = parse_tuning(tuning_json.render(kept[-1]).encode(), "a.json")
    device, whole = SimulatedDevice(draw(1)), SimulatedDevice(draw(1))
    continued = tune(device, Request(budget_seconds=1000, before=saved))
    alone = tune(whole, Request(budget_seconds=1000))
    assert continued.measurements[:6] == saved.measurements
    assert len(device.trials) == len(whole.trials) - 6
    assert continued.recommendation is not None
    assert alone.recommendation is not None
    assert continued.recommendation.batch_size == alone.recommendation.batch_size


def test_a_tuning_of_something_else_is_not_continued() -> None:
    with pytest.raises(UsageError, match="^--resume: the file is from another tuning: device name: NVIDIA L4 before"):
        tune(SimulatedDevice(draw(1)), Request(before=BEFORE))


def test_a_complete_search_has_nothing_to_continue() -> None:
    device = SimulatedDevice(draw(1))
    limits = Limits(memory_bytes=device.scenario.memory_bytes)
    done = search(device, "fp32", limits, lambda _: None)
    again = SimulatedDevice(draw(1))
    assert search(again, "fp32", limits, lambda _: None, before=done.measurements).best == done.best
    assert again.trials == []


def test_what_a_hostile_file_says_is_clean() -> None:
    document = json.loads(tuning_json.render(BEFORE))
    document["device"]["name"] = "\x1b[2JEvil"
    assert parse_tuning(json.dumps(document).encode(), "a.json").device.name == "[2JEvil"
