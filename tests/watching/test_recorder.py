"""The recorder over a very long run: what it keeps, and what it writes, stays small."""

from __future__ import annotations

import json
from pathlib import Path

from gpudoctor.watching.hook.recorder import MOST_PLACES, MOST_SERIES, WARM_UP_STEPS, Recorder

MANY = 100_000


def test_many_steps_take_no_more_memory_than_few(tmp_path: Path) -> None:
    recorder = Recorder(str(tmp_path))
    for step in range(MANY):
        recorder.count("copies")
        recorder.at("copies", ("train.py", step), 4)
        recorder.step_from("optimizer", 1)
    recorder.write()
    (file,) = tmp_path.glob("*.json")
    seen = json.loads(file.read_text())
    assert seen["counted"] == MANY - 1 - WARM_UP_STEPS
    assert seen["counts"] == {"copies": seen["counted"]}
    assert MOST_SERIES / 2 <= len(seen["series"]) <= MOST_SERIES
    assert len(seen["places"]) <= MOST_PLACES
    assert file.stat().st_size < 64 * 2**10


def test_a_folder_that_is_gone_stops_nothing(tmp_path: Path) -> None:
    recorder = Recorder(str(tmp_path / "gone"))
    for _ in range(40):
        recorder.step_from("optimizer", 1)
    recorder.write()
    assert recorder.steps == 39
