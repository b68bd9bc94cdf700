"""What the search of a precision makes of a few measurements, in a thousand drawn cases: sizes in round numbers.

The decisions are compared with `every_search.json`, which `python -m tests.tuning.test_every_search` writes again after
a change that is meant; its difference is what to look at. A case is drawn from its number.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from gpudoctor.model.tuning import NUMERICS, OK, OUT_OF_MEMORY, UNSUPPORTED, Measurement
from gpudoctor.tuning import policies
from gpudoctor.tuning.known import Known, Limits

FILE = Path(__file__).with_name("every_search.json")
CASES, PART = 1000, 100
SIZES = (1, 2, 3, 4, 5, 6, 8, 12, 16, 24, 32, 48, 64, 100, 128, 256, 264, 512)
DECISIONS: dict[str, Callable[[Known], Any]] = {
    "safe": lambda known: known.safe,
    "climb": policies.climb,
    "refine": policies.refine,
    "confirm": policies.confirm,
    "hold": policies.hold,
    "chosen": policies.chosen,
    "knee": policies.knee,
    "every power": policies._every_power,
}


def drawn(number: int) -> Known:
    """Return measurements of a step that takes `fixed` and `each` sample's time, on a device with `room`."""
    rng = random.Random(number)

    def one(choices: Sequence[Any]) -> Any:
        return choices[int(rng.random() * len(choices))]

    fixed, each = one((0, 1, 2, 4, 16, 64)), one((0.0, 0.25, 1.0))
    held, room = one((0, 100, 1000)), one((None, 500, 1000, 1000, 2000, 4000))
    steps, noise = one((1, 4, 4, 20)), one((0.0, 0.0, 0.01, 0.02, 0.2))
    weight = one((0, 1, 10, 10))
    measured = []
    for _ in range(1 + int(rng.random() * 5)):
        size = one(SIZES)
        seconds = (fixed + each * size or 1.0) * one((1.0, 1.0, 1.0, 0.98, 1.02, 3.0))
        status = one((OK,) * 9 + (OUT_OF_MEMORY, OUT_OF_MEMORY, UNSUPPORTED))
        status = NUMERICS if number % 50 == 0 else status
        peak = None if weight == 0 else held + weight * size
        measured.append(
            Measurement(
                precision="fp32",
                batch_size=size,
                status=status,
                step_seconds=tuple(seconds * (1 + noise * (k % 4)) for k in range(steps)) if status == OK else (),
                samples_per_step=size,
                peak_memory_bytes=peak,
                reserved_memory_bytes=peak,
                resident_memory_bytes=held // 2,
                allocation_retries=one((0,) * 15 + (1,)),
            )
        )
    limits = Limits(
        memory_bytes=room,
        largest_batch=one((None, None, 64, 128, 255, 257, 500)),
        smallest_batch=one((None, None, 1, 2, 8)),
        effective_batch=one((None, None, None, 96, 7, 256)),
    )
    return Known(measured[: 0 if number % 40 == 7 else None], limits)


def decisions(number: int) -> str:
    known = drawn(number)
    made = {"failed": known.failed, "reachable": known.reachable, "refused": known.refused}
    made |= {name: decide(known) for name, decide in DECISIONS.items()}
    tried = " ".join(f"{m.batch_size}{'' if m.status == OK else '!'}" for m in known.measurements)
    return f"{tried}: " + ", ".join(f"{name} {value}" for name, value in made.items() if value not in (None, (), False))


def test_how_many_trials_each_policy_may_have() -> None:
    trials = [(policy.__name__, most) for policy, most in policies.SEARCH]
    assert trials == [("climb", math.inf), ("refine", 3), ("confirm", 3), ("refine", 3), ("cool", 3), ("hold", 4)]


@pytest.mark.parametrize("first", range(0, CASES, PART))
def test_what_is_decided(first: int) -> None:
    expected = json.loads(FILE.read_text(encoding="utf-8"))[first : first + PART]
    assert [decisions(number) for number in range(first, first + PART)] == expected


if __name__ == "__main__":
    rows = ",\n".join(json.dumps(decisions(number)) for number in range(CASES))
    FILE.write_text(f"[\n{rows}\n]\n", encoding="utf-8")
