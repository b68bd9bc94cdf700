"""shared-gpu."""

from __future__ import annotations

import pytest

from gpudoctor.model import Outcome, Run
from tests.runs import GIB, finding, gpu, outcome

CHECK = "shared-gpu"

MIB = 2**20


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        pytest.param(gpu(other_bytes=512 * MIB + 1), Outcome.FOUND, id="another program"),
        pytest.param(gpu(other_bytes=512 * MIB), Outcome.PASSED, id="a desktop"),
        pytest.param(gpu(other_bytes=None), Outcome.SKIPPED, id="unknown"),
        pytest.param(
            gpu(other_bytes=8 * GIB, is_used=False), Outcome.SKIPPED, id="on a GPU that the program does not use"
        ),
    ],
)
def test_outcome(run: Run, expected: Outcome) -> None:
    assert outcome(CHECK, run) is expected


def test_how_to_find_them() -> None:
    found = finding(CHECK, gpu(other_bytes=8 * GIB))
    assert found.summary == "Other programs took 8.0 GiB of GPU 0 while the program ran"
    assert "nvidia-smi" in found.remedies[0].commands[0]
