"""The search on a recording of an exhaustive run."""

import json
import math
from pathlib import Path

import pytest

from gpudoctor.model.codec import to_json
from gpudoctor.model.tuning import OUT_OF_MEMORY, SCHEMA, Trial, TunedWorkload, Tuning
from gpudoctor.tuning.executor import Effort
from gpudoctor.tuning.known import Limits
from gpudoctor.tuning.recommend import recommend
from gpudoctor.tuning.search import exhaustive, search
from tests.tuning.replay_device import ReplayDevice
from tests.tuning.simulated_device import SimulatedDevice, draw


def recording(seed: int) -> Tuning:
    """Return what an exhaustive run of a simulated device leaves behind."""
    scenario = draw(seed)
    device = SimulatedDevice(scenario)
    limits = Limits(memory_bytes=scenario.memory_bytes)
    results = [exhaustive(device, precision, limits, lambda _: None) for precision in scenario.precisions]
    return Tuning(
        device=device.describe(),
        workload=TunedWorkload(name="simulated", mode="training"),
        elapsed_seconds=device.now(),
        measurements=tuple(m for result in results for m in result.measurements),
        recommendation=None,
        numerics=tuple(device.compare(precision) for precision in scenario.precisions),
    )


def test_a_recording_is_read_as_it_was_written(tmp_path: Path) -> None:
    tuning = recording(1)
    path = tmp_path / "tuning.json"
    path.write_text(json.dumps({"schema": SCHEMA, **to_json(tuning)}), encoding="utf-8")
    assert ReplayDevice.load(path).tuning == tuning


def test_another_schema_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "tuning.json"
    path.write_text('{"schema": "gpudoctor/tuning/2"}', encoding="utf-8")
    with pytest.raises(ValueError, match="gpudoctor/tuning/2"):
        ReplayDevice.load(path)


def test_a_size_that_was_not_recorded_is_answered_by_the_one_below() -> None:
    device = ReplayDevice(recording(1))
    measured = device.measure(Trial(precision="fp32", batch_size=9), Effort(steps=5))
    assert (measured.batch_size, len(measured.step_seconds)) == (8, 5)
    assert device.now() > 0
    assert device.measure(Trial(precision="fp32", batch_size=1), Effort()).detail.endswith("was not recorded")


@pytest.mark.parametrize("seed", range(12))
def test_the_search_finds_the_best_of_the_recording_in_fewer_trials(seed: int) -> None:
    device = ReplayDevice(recording(seed))
    limits = Limits(memory_bytes=device.describe().memory_usable_bytes)
    precisions = device.describe().precisions
    results = [search(device, precision, limits, lambda _: None) for precision in precisions]
    advice = recommend(device, results, device.tuning.numerics, limits)
    best = device.best().throughput
    assert advice is not None
    assert best is not None
    assert advice.throughput > 0.95 * best
    assert not any(m.status == OUT_OF_MEMORY for result in results for m in result.measurements)
    assert all(math.isfinite(m.step_median_seconds or 0.0) for m in device.trials)
