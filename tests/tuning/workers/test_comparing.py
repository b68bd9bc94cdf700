"""Which runs a comparison does, with which batches and for how long: on a library that is not there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from gpudoctor.tuning.gates import Compared
from gpudoctor.tuning.workers import comparing
from gpudoctor.tuning.workers.comparing import Run, Step


class Bench:
    """A library and a workload in one, with a clock of its own. `wide` is the reference, `strict` is strict fp32.

    steps: what each step of a precision gives; most: the largest batch that a precision can do.
    """

    REFERENCE, STRICT = "wide", "strict"

    def __init__(self) -> None:
        self.clock = 0.0
        self.seconds: dict[str, float] = {}
        self.steps: dict[str, list[Step]] = {}
        self.most: dict[str, int] = {}
        self.done: list[tuple[str, Any, int, bool]] = []
        self.seeds: list[int] = []
        self.made = 0
        self.freed = 0
        self.switched: list[str] = []

    def comparison(self, limit_seconds: float = 100.0) -> Any:
        return comparing._Comparison(self, self.build, "cpu", self.precision, self.clock, limit_seconds)

    def precision(self, name: str, device: str) -> Any:
        return SimpleNamespace(name=name, apply_switches=lambda: self.switched.append(name))

    def build(self, device: str, precision: Any) -> Any:
        return SimpleNamespace(name=precision.name, make_batch=self.make_batch, promoted=False)

    def make_batch(self, size: int) -> Any:
        self.made += 1
        return self.made, size

    def promote(self, workload: Any) -> None:
        workload.promoted = True

    def copied(self, batch: Any, *, promoted: bool) -> Any:
        return (*batch, "promoted") if promoted else batch

    def free_memory(self) -> None:
        self.freed += 1

    def product_error(self, precision: Any, device: str) -> Any:
        return f"{precision.name} product"

    def relative_error(self, values: Any, reference: Any) -> Any:
        return f"{values[0]} to {reference[0]}" if values and reference else None

    def do_step(self, workload: Any, precision: Any, make_batch: Callable[[], Any], number: int, *, keep: bool) -> Step:
        name, batch = precision.name, make_batch()
        assert workload.promoted is (name == self.REFERENCE) is (batch[-1] == "promoted")
        if batch[1] > self.most.get(name, 8):
            raise MemoryError(f"{batch[1]} in {name}")
        self.clock += self.seconds.get(name, 0.0)
        self.done.append((name, batch[0], number, keep))
        planned = self.steps.get(name, [])
        count = sum(each[0] == name for each in self.done)
        step = planned[count - 1] if count <= len(planned) else Step(loss=1.0, trained=True)
        step.outputs, step.gradients = ([f"{name} out"], [f"{name} grad"]) if keep else (None, None)
        return step

    def counts(self) -> dict[str, int]:
        return dict(Counter(name for name, *_ in self.done))


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    bench = Bench()
    monkeypatch.setattr(comparing, "time", SimpleNamespace(monotonic=lambda: bench.clock))
    monkeypatch.setattr(comparing, "seed", bench.seeds.append)
    monkeypatch.setattr(comparing, "unchanged", nullcontext)
    return bench


EXACT = (0.0,) * 20


def test_another_precision_is_compared_with_the_reference_and_strict_fp32_runs_along(bench: Bench) -> None:
    errors: dict[str, Any] = {
        "output_error": "half out to wide out",
        "gradient_error": "half grad to wide grad",
        "strict_output_error": "strict out to wide out",
        "strict_gradient_error": "strict grad to wide grad",
        "product_error": "half product",
    }
    assert bench.comparison().measure("half") == Compared(
        **errors,
        precision="half",
        reference="wide",
        loss_errors=EXACT,
        strict_loss_errors=EXACT,
        steps_compared=20,
        trained=True,
    )
    assert bench.done == [
        (name, number + 1, comparing.SEED + number, number == 0)
        for name in ("half", "wide", "strict")
        for number in range(20)
    ]
    assert bench.made == 20, "every precision gets the batches of the first"
    assert bench.seeds.count(comparing.SEED) == 3, "and begins with the same seed"
    assert len(set(bench.seeds)) == 21
    assert bench.switched == ["half", "half", "wide", "wide", "strict", "strict"]


def test_strict_fp32_and_the_reference_are_not_run_twice(bench: Bench) -> None:
    strict = bench.comparison().measure("strict")
    assert bench.counts() == {"strict": 20, "wide": 20}
    assert (strict.output_error, strict.strict_output_error) == ("strict out to wide out", None)
    assert strict.strict_loss_errors == ()
    wide = bench.comparison().measure("wide")
    assert bench.counts() == {"strict": 40, "wide": 40}
    assert (wide.reference, wide.output_error, wide.loss_errors, wide.steps_compared) == ("wide", None, (), 0)
    assert (wide.strict_output_error, wide.strict_loss_errors) == ("strict out to wide out", EXACT)


def test_strict_fp32_stands_in_for_a_reference_that_fails(bench: Bench) -> None:
    bench.most = {"wide": 0}
    half = bench.comparison().measure("half")
    assert (half.reference, half.output_error, half.strict_output_error) == ("strict", "half out to strict out", None)
    assert half.problem == "wide failed: MemoryError: 8 in wide"
    strict = bench.comparison().measure("strict")
    assert (strict.reference, strict.output_error, strict.steps_compared) == ("strict", None, 0)
    assert strict.problem == half.problem
    assert bench.counts() == {"half": 20, "strict": 40}


@pytest.mark.parametrize(("most", "size"), [(8, 8), (7, 4), (3, 2), (1, 1)])
def test_the_largest_batch_that_runs_is_used_by_all(bench: Bench, most: int, size: int) -> None:
    bench.most = {"half": most}
    comparison = bench.comparison()
    comparison.measure("half")
    assert comparison.batch_size == size
    assert {batch[1] for batch in comparison.batches} == {size}
    assert len(comparison.batches) == 20
    assert bench.counts() == {"half": 20, "wide": 20, "strict": 20}


def test_what_no_batch_can_do_is_raised_as_it_was_said_first(bench: Bench) -> None:
    bench.most = {"half": 0}
    with pytest.raises(MemoryError, match="8 in half"):
        bench.comparison().measure("half")


@pytest.mark.parametrize(
    ("seconds", "counts"),
    [
        pytest.param({}, {"half": 20, "wide": 20, "strict": 20}, id="time enough"),
        pytest.param({"half": 1.0, "wide": 1.0, "strict": 1.0}, {"half": 5, "wide": 5, "strict": 5}, id="as many"),
        pytest.param({"half": 1.0, "wide": 5.0, "strict": 2.5}, {"half": 5, "wide": 2, "strict": 2}, id="on the edge"),
        pytest.param({"half": 2.6, "wide": 5.0, "strict": 9.0}, {"half": 2, "wide": 2, "strict": 1}, id="slow"),
        pytest.param({"half": 99.0}, {"half": 1, "wide": 1, "strict": 1}, id="one step each at least"),
    ],
)
def test_a_quarter_of_the_time_is_for_the_precision_and_half_for_the_reference(
    bench: Bench, seconds: dict[str, float], counts: dict[str, int]
) -> None:
    bench.seconds = seconds
    assert bench.comparison(20.0).measure("half").steps_compared == min(counts["half"], counts["wide"])
    assert bench.counts() == counts


@pytest.mark.parametrize(
    ("step", "count"),
    [
        pytest.param(Step(loss=1.0, trained=True, stepped=False), 2, id="no step of the optimiser"),
        pytest.param(Step(not_finite=1, trained=True), 2, id="not finite in training"),
        pytest.param(Step(not_finite=1), 20, id="not finite in inference: scores may be masked"),
    ],
)
def test_a_step_that_failed_is_the_last(bench: Bench, step: Step, count: int) -> None:
    bench.steps = {"half": [Step(loss=1.0, trained=True), step]}
    found = bench.comparison().measure("half")
    assert bench.counts()["half"] == count
    assert found.stepped is step.stepped


FINE, MASKED, BROKEN = Step(trained=True), Step(not_finite=2), Step(not_finite=2, trained=True)


@pytest.mark.parametrize(
    ("tested", "reference", "number"),
    [
        pytest.param([FINE, FINE], [FINE, FINE], None, id="finite"),
        pytest.param([FINE, BROKEN], [FINE, FINE], 2, id="here only"),
        pytest.param([MASKED], [MASKED], None, id="in both"),
        pytest.param([Step(not_finite=3)], [MASKED], 1, id="more here"),
        pytest.param([FINE, BROKEN], [BROKEN], 2, id="a step that the reference did not reach"),
        pytest.param([BROKEN], None, 1, id="without another reference a loss tells"),
        pytest.param([MASKED], None, None, id="and outputs do not"),
    ],
)
def test_the_first_step_that_is_not_finite(tested: list[Step], reference: list[Step] | None, number: int) -> None:
    run = Run("half", tested)
    assert comparing._not_finite_step(run, run if reference is None else Run("wide", reference)) == number
