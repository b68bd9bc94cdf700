"""What memory a worker gives its trials."""

from __future__ import annotations

import pytest

from gpudoctor.tuning.workers.session import process_limit_bytes


@pytest.mark.parametrize(("kind", "limit"), [("cuda", 1000), ("cpu", 1100), ("mps", 1100)])
def test_a_gpu_has_what_trials_may_use_and_no_more(kind: str, limit: int) -> None:
    assert process_limit_bytes(kind, 1000) == limit
