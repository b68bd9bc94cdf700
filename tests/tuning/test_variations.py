"""The same tuning for several values of a parameter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gpudoctor import api
from gpudoctor.errors import UsageError
from gpudoctor.model.tuning import Recommendation, Settings, TunedDevice, TunedWorkload, Tuning
from gpudoctor.tuning import tuner
from gpudoctor.tuning.variations import combined, file_of, parse_vary


def tuning(length: int, interrupted: str | None = None) -> Tuning:
    advice = Recommendation(
        precision="bf16",
        batch_size=1024 // length,
        max_batch_size=None,
        settings=Settings(),
        throughput=1000.0 / length,
        unit="sequences/s",
        why=(),
    )
    return Tuning(
        device=TunedDevice(kind="cuda"),
        workload=TunedWorkload(name="transformer", parameters=f"sequence={length}"),
        elapsed_seconds=2.0,
        measurements=(),
        recommendation=advice,
        interrupted=interrupted,
    )


def test_the_values_are_tried_in_ascending_order() -> None:
    assert parse_vary("sequence=512,128,512") == [{"sequence": 128}, {"sequence": 512}]
    assert parse_vary(None) == [{}]


@pytest.mark.parametrize(
    "text",
    ["sequence", "sequence=", "=1,2", "a-b=1", "sequence=1,,2", "sequence=1.5", "sequence=0,1", "n=-1",
     "n=" + ",".join(map(str, range(1, 18)))],
)  # fmt: skip
def test_anything_else_is_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError, match="^--vary "):
        parse_vary(text)


def test_the_largest_value_is_recommended_and_every_value_is_shown() -> None:
    whole = combined([tuning(128), tuning(512, "budget"), tuning(1024)])
    assert whole.recommendation is not None
    assert (whole.recommendation.batch_size, whole.workload.parameters) == (1, "sequence=1024")
    assert [item.parameters for item in whole.variations] == ["sequence=128", "sequence=512", "sequence=1024"]
    assert [item.recommendation.batch_size for item in whole.variations if item.recommendation] == [8, 2, 1]
    assert (whole.interrupted, whole.elapsed_seconds) == ("budget", 6.0)


def test_one_value_has_no_variations() -> None:
    assert combined([tuning(128)]) == tuning(128)


def test_each_value_has_a_file_to_continue_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first run is interrupted at the second value: the next one gets what both have measured."""
    seen: list[Any] = []

    def tune(_executor: Any, request: Any, _say: Any, _keep: Any) -> Tuning:
        seen.append(request.before)
        return tuning(128) if len(seen) % 2 else tuning(512, "signal" if len(seen) == 2 else None)

    monkeypatch.setattr(tuner, "tune", tune)
    kept = tmp_path / "tuning.json"
    for _ in range(2):
        api.tune("transformer", device="cpu", vary="sequence=128,512", resume=kept)
    assert seen[:2] == [None, None]
    assert seen[2:] == [tuning(128), tuning(512, "signal")]
    assert file_of(kept, {"sequence": 512}).name == "tuning-sequence-512.json"
    assert {path.name for path in tmp_path.iterdir()} == {
        "tuning.json",
        "tuning-sequence-128.json",
        "tuning-sequence-512.json",
    }


def test_a_single_tuning_is_kept_in_the_file_itself() -> None:
    assert file_of(Path("a/tuning.json"), {}) == Path("a/tuning.json")
