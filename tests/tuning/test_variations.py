"""The same tuning for several values of a parameter."""

from __future__ import annotations

import pytest

from gpudoctor.errors import UsageError
from gpudoctor.model.tuning import Recommendation, Settings, TunedDevice, TunedWorkload, Tuning
from gpudoctor.tuning.variations import combined, parse_vary


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
