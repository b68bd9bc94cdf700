"""The search over worker processes in which trials fail: what it comes to in the end."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gpudoctor.model.tuning import OK, OUT_OF_MEMORY, UNSUPPORTED
from gpudoctor.tuning.executor import Effort
from gpudoctor.tuning.known import Limits
from gpudoctor.tuning.local import LocalExecutor, Target, Timeouts
from gpudoctor.tuning.search import SearchResult, search

pytestmark = pytest.mark.skipif(os.name != "posix", reason="process groups are POSIX")

NUMPY = "class random:\n    seed = staticmethod(lambda number: None)\n"
"""All that a worker asks of NumPy: so it starts in a moment."""

WORK = """
import time

class Array:
    nbytes = 80
    def __init__(self, size):
        self.shape = (size, 10)

class Work:
    count, broken = 0, False
    def __init__(self, device, precision):
        pass
    def make_batch(self, size):
        self.count = 0
        {make_batch}
        return Array(size)
    def step(self, batch):
        self.count += 1
        size = batch.shape[0]
        time.sleep(0.005)
        {step}
"""


@pytest.fixture
def searched(tmp_path: Path) -> Iterator[Callable[..., SearchResult]]:
    """Return a function that searches a workload with those lines in its methods, in worker processes."""
    (tmp_path / "numpy.py").write_text(NUMPY)
    environ = {**os.environ, "PYTHONPATH": str(tmp_path)}
    file = tmp_path / "train.py"
    target = Target(workload=f"{file}:Work", device="cpu", arrays=True)
    executor = LocalExecutor(sys.executable, target, timeouts=Timeouts(start=20.0), environ=environ)

    def searched(*, make_batch: str = "pass", step: str = "pass") -> SearchResult:
        lines = {"make_batch": make_batch, "step": step}
        file.write_text(WORK.format(**{name: textwrap.indent(text, " " * 8).strip() for name, text in lines.items()}))
        limits = Limits(largest_batch=8, effort=Effort(warmup_steps=2, steps=3, limit_seconds=0.1))
        return search(executor, "complex64", limits, lambda _: None)

    yield searched
    executor.close()


OUT = "raise RuntimeError('CUDA out of memory. Tried to allocate 2.00 GiB')"


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param({"make_batch": f"if size > 5: {OUT}"}, id="batch"),
        pytest.param({"step": f"if size > 5: {OUT}"}, id="forward or backward"),
        pytest.param({"step": f"if size > 5 and self.count == 2: {OUT}"}, id="step 2, as the optimiser has its state"),
        pytest.param({"step": f"if size > 5 and self.count == 7: {OUT}"}, id="evaluation"),
    ],
)
def test_out_of_memory_at_any_moment_is_an_outcome(
    searched: Callable[..., SearchResult], lines: dict[str, str]
) -> None:
    result = searched(**lines)
    assert {m.status for m in result.measurements if m.batch_size > 5} == {OUT_OF_MEMORY}
    assert result.best is not None
    assert result.best.batch_size <= 4
    assert result.max_batch_size == 4


def test_an_error_that_sticks_to_the_process_spoils_no_other_trial(searched: Callable[..., SearchResult]) -> None:
    step = "Work.broken = Work.broken or size == 8\n"
    step += "if Work.broken: raise RuntimeError('CUDA error: an illegal memory access was encountered')"
    result = searched(step=step)
    assert {m.batch_size: m.status for m in result.measurements} == {2: OK, 4: OK, 8: UNSUPPORTED, 6: OK}
    assert result.max_batch_size == 6
