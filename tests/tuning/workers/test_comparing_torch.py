"""What comparing needs of torch, a piece at a time: what a step records, what is drawn, and how errors are measured."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

from gpudoctor.tuning.workers import comparing_torch  # noqa: E402
from gpudoctor.tuning.workers.comparing import Step, Watched  # noqa: E402
from gpudoctor.tuning.workers.comparing_torch import Reproducible, relative_error  # noqa: E402

SGD: Any = torch.optim.SGD
DOUBLE = torch.float64
ONES = torch.ones(6, dtype=DOUBLE)
DROPOUTS = ("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout")


def drawn(draw: Any, *, as_float64: bool) -> Any:
    """Return what `draw` draws of a type: in float64, with what stands for it."""
    torch.manual_seed(1)
    if not as_float64:
        return draw(torch.float32)
    with Reproducible():
        return draw(DOUBLE)


@pytest.mark.parametrize(
    "draw",
    [
        pytest.param(lambda kind: torch.randn(3, dtype=kind), id="randn"),
        pytest.param(lambda kind: torch.rand(3, dtype=kind), id="rand"),
        pytest.param(lambda kind: torch.randn_like(torch.zeros(3, dtype=kind)), id="randn_like"),
        pytest.param(lambda kind: torch.rand_like(torch.zeros(3, dtype=kind)), id="rand_like"),
        pytest.param(lambda kind: torch.rand_like(torch.zeros(3, dtype=torch.int64), dtype=kind), id="of another type"),
        pytest.param(lambda kind: torch.normal(torch.zeros(3, dtype=kind), torch.ones(3, dtype=kind)), id="normal"),
        pytest.param(lambda kind: torch.normal(torch.zeros(3, dtype=kind), 2.0), id="normal, one deviation for all"),
        pytest.param(lambda kind: torch.zeros(3, dtype=kind).normal_(1.0, 2.0), id="normal_"),
        pytest.param(lambda kind: torch.zeros(3, dtype=kind).uniform_(1.0, to=3.0), id="uniform_"),
        pytest.param(lambda kind: torch.zeros(3, dtype=kind).exponential_(), id="exponential_"),
        pytest.param(lambda kind: torch.zeros(3, dtype=kind).log_normal_(), id="log_normal_"),
        pytest.param(lambda kind: torch.zeros(3, dtype=kind).cauchy_(), id="cauchy_"),
    ],
)
def test_float64_draws_the_numbers_of_float32(draw: Any) -> None:
    single, double = drawn(draw, as_float64=False), drawn(draw, as_float64=True)
    assert (single.dtype, double.dtype) == (torch.float32, DOUBLE)
    assert torch.equal(double, single.double())


def test_the_default_type_counts_if_none_is_named() -> None:
    single = drawn(lambda _: torch.randn(3), as_float64=False)
    torch.set_default_dtype(DOUBLE)
    try:
        double = drawn(lambda _: torch.randn(3), as_float64=True)
    finally:
        torch.set_default_dtype(torch.float32)
    assert double.dtype is DOUBLE
    assert torch.equal(double, single.double())


def test_what_is_drawn_into_a_tensor_stays_there() -> None:
    kept = torch.zeros(3, dtype=DOUBLE)
    with Reproducible():
        assert torch.randn(3, out=kept, dtype=DOUBLE) is kept
        assert torch.randn(3).dtype is torch.float32
        filled = kept.normal_()
    assert filled is kept
    assert kept.any()


@pytest.mark.parametrize("name", DROPOUTS)
def test_functional_dropout_drops_nothing(name: str) -> None:
    inputs = torch.ones(2, 3, 4, 4, 4)
    with Reproducible():
        assert getattr(functional, name)(inputs, 0.9, True) is inputs
        assert getattr(functional, name)(input=inputs, p=0.9, training=True) is inputs
        assert functional.relu(-inputs).sum() == 0


def test_attention_drops_nothing() -> None:
    heads = torch.randn(1, 2, 5, 4)
    plain = functional.scaled_dot_product_attention(heads, heads, heads)
    causal = functional.scaled_dot_product_attention(heads, heads, heads, is_causal=True)
    with Reproducible():
        attend = functional.scaled_dot_product_attention
        assert torch.equal(attend(heads, heads, heads, dropout_p=0.9), plain)
        assert torch.equal(attend(heads, heads, heads, None, 0.9), plain)
        assert torch.equal(attend(heads, heads, heads, None, 0.9, True), causal)
        assert torch.equal(attend(heads, heads, heads, None, is_causal=True), causal)


def test_modules_drop_nothing_by_whatever_name() -> None:
    lstm = nn.LSTM(2, 3, num_layers=2, dropout=0.5)
    other = nn.Module()
    other.attention_dropout, other.drop_prob, other.dropout, other.scale = 0.1, 0.2, nn.Dropout(0.3), 0.4
    comparing_torch.without_dropout([lstm, other])
    assert (lstm.dropout, lstm.num_layers) == (0.0, 2)
    assert (other.attention_dropout, other.drop_prob, other.scale) == (0.0, 0.0, 0.4)
    assert isinstance(other.dropout, nn.Dropout)


NAN = torch.tensor([math.nan, 1.0])
INFINITE = torch.tensor([math.inf, 1.0])


@pytest.mark.parametrize(
    ("values", "reference", "error"),
    [
        pytest.param([ONES], [ONES], 0.0, id="equal"),
        pytest.param([ONES * 1.5], [ONES], 0.5, id="half as much again"),
        pytest.param([ONES, ONES * 2], [ONES, ONES], math.sqrt(0.5), id="all tensors together"),
        pytest.param([ONES * 1j], [ONES + 0j], math.sqrt(2), id="complex"),
        pytest.param([None, ONES], [None, ONES], 0.0, id="a gradient that neither has"),
        pytest.param([None, ONES], [ONES, ONES], math.sqrt(0.5), id="one that this one lacks is zero"),
        pytest.param([ONES, ONES], [None, ONES], 1.0, id="one that the reference lacks too"),
        pytest.param([torch.ones(2)], [INFINITE], 0.0, id="what is infinite in the reference does not count"),
        pytest.param([NAN], [torch.ones(2)], math.inf, id="what is so here alone does"),
        pytest.param([ONES], [ONES * 0], math.inf, id="the reference is zero"),
        pytest.param([ONES * 0], [ONES * 0], None, id="both are"),
        pytest.param([ONES], [torch.ones(5)], None, id="other shapes"),
        pytest.param([ONES], [ONES, ONES], None, id="other numbers of tensors"),
        pytest.param([], [ONES], None, id="no values"),
        pytest.param([ONES], None, None, id="no reference"),
    ],
)
def test_relative_error(values: Any, reference: Any, error: float | None) -> None:
    assert relative_error(values, reference) == (None if error is None else pytest.approx(error))


def test_a_copy_is_of_its_own_and_wider_if_asked() -> None:
    batch = {"images": torch.ones(2, requires_grad=True), "labels": torch.zeros(2, dtype=torch.int64), "name": "a"}
    for promoted, kind in ((False, torch.float32), (True, DOUBLE)):
        twin = comparing_torch.copied(batch, promoted=promoted)
        assert (twin["images"].dtype, twin["labels"].dtype, twin["name"]) == (kind, torch.int64, "a")
        assert (twin["images"].requires_grad, twin["labels"].requires_grad) == (True, False)
        assert twin["labels"] is not batch["labels"]
        assert torch.equal(twin["images"].float(), torch.ones(2))


class Scaling:
    """Gradient scaling that skips the first `skipped` steps."""

    def __init__(self, skipped: int) -> None:
        self.skipped = skipped

    def backward(self, loss: Any, optimizer: Any) -> None:
        loss.backward()
        if self.skipped:
            self.skipped -= 1
        else:
            optimizer.step()
        optimizer.zero_grad()


class Line:
    """y = 3 x, or the sum of an embedding's rows; the loss is the mean of what comes out."""

    def __init__(self, precision: Any, model: Any = None) -> None:
        self.precision, self.batches = precision, 0
        self.model = nn.Linear(1, 1, bias=False) if model is None else model
        nn.init.constant_(self.model.weight, 3.0)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.0)

    def batch(self) -> Any:
        self.batches += 1
        return torch.tensor([[2.0]]) if isinstance(self.model, nn.Linear) else torch.tensor([1, 1])

    def step(self, batch: Any) -> Any:
        loss = self.model(batch).mean()
        self.precision.backward(loss, self.optimizer)
        return loss


def done(work: Any, *, keep: bool = True) -> Step:
    return comparing_torch.do_step(work, work.precision, work.batch, 1, keep)


@pytest.mark.parametrize(
    ("skipped", "stepped", "batches"),
    [(0, True, 1), (1, True, 2), (24, True, 25), (25, False, 25)],
)
def test_a_step_is_repeated_while_scaling_skips_it(skipped: int, stepped: bool, batches: int) -> None:
    """From 2^16 down to 2^-8."""
    work = Line(Watched(Scaling(skipped)))  # type: ignore[arg-type]
    step = done(work)
    assert (step.trained, step.stepped, work.batches) == (True, stepped, batches)
    assert (step.loss, step.not_finite) == (6.0, 0)
    assert step.outputs == [torch.tensor([[6.0]])]
    assert step.gradients == ([torch.tensor([[2.0]])] if stepped else None)


def test_outputs_and_gradients_are_kept_where_asked() -> None:
    step = done(Line(Watched(Scaling(0))), keep=False)  # type: ignore[arg-type]
    assert (step.loss, step.outputs, step.gradients) == (6.0, None, None)


def test_a_sparse_gradient_is_kept_whole() -> None:
    work = Line(Watched(Scaling(0)), nn.Embedding(3, 2, sparse=True))  # type: ignore[arg-type]
    assert [gradient.tolist() for gradient in done(work).gradients or ()] == [[[0.0, 0.0], [0.5, 0.5], [0.0, 0.0]]]


def test_a_step_without_an_optimiser_gives_what_it_returns() -> None:
    work = Line(Watched(Scaling(0)))  # type: ignore[arg-type]
    infer = SimpleNamespace(
        model=None, precision=work.precision, batch=work.batch, step=lambda batch: (batch, 1.5, math.inf, [7], "x")
    )
    step = done(infer)
    assert (step.trained, step.stepped, step.loss, step.gradients, step.not_finite) == (False, True, None, None, 1)
    assert [value.tolist() for value in step.outputs or ()] == [[[2.0]], 1.5, math.inf]


def test_a_fused_optimiser_unscales_and_skips_by_itself() -> None:
    class Fused(SGD):  # type: ignore[misc]
        grad_scale, found_inf = torch.tensor(4.0), torch.tensor(0.0)

        def step(self) -> None:
            """Take no step: that it was called is what counts."""

    work = Line(Watched(Scaling(0)))  # type: ignore[arg-type]
    work.optimizer = Fused(work.model.parameters())
    assert done(work).gradients == [torch.tensor([[0.5]])]
    work.optimizer.found_inf = torch.tensor(1.0)
    assert (done(work).stepped, done(work).gradients) == (False, None)
