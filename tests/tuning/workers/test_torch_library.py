"""What a trial asks of torch."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from gpudoctor.model.tuning import OK, OUT_OF_MEMORY, Measurement, Settings, Trial  # noqa: E402
from gpudoctor.tuning.executor import Effort  # noqa: E402
from gpudoctor.tuning.workers.devices import Host  # noqa: E402
from gpudoctor.tuning.workers.failures import Failure  # noqa: E402
from gpudoctor.tuning.workers.library import Unsupported, map_leaves  # noqa: E402
from gpudoctor.tuning.workers.measuring import Bench  # noqa: E402
from gpudoctor.tuning.workers.torch_library import TorchLibrary, count  # noqa: E402

nn = torch.nn
CHANNELS_LAST = Settings(channels_last=True)


@pytest.fixture
def library() -> Iterator[TorchLibrary]:
    """Return the library; the switches are put back at the end."""
    threads, benchmark = torch.get_num_threads(), torch.backends.cudnn.benchmark
    yield TorchLibrary("cpu")
    torch.set_num_threads(threads)
    torch.backends.cudnn.benchmark = benchmark


def images() -> Any:
    return torch.randn(2, 3, 8, 8)


def test_the_switches_of_the_process_are_set_and_unset(library: TorchLibrary) -> None:
    before = torch.get_num_threads()
    library.prepare("fp32", Settings(cudnn_benchmark=True, threads=before + 1))
    assert torch.backends.cudnn.benchmark
    assert torch.get_num_threads() == before + 1
    library.prepare("fp32", Settings())
    assert not torch.backends.cudnn.benchmark
    assert torch.get_num_threads() == before


def test_channels_last_is_a_matter_of_model_and_batch(library: TorchLibrary) -> None:
    model = nn.Conv2d(3, 4, 3)
    library.arrange(SimpleNamespace(model=model), CHANNELS_LAST)  # type: ignore[arg-type,unused-ignore]
    assert model.weight.is_contiguous(memory_format=torch.channels_last)
    batch, labels = library.arranged((images(), torch.zeros(2)), CHANNELS_LAST)
    assert batch.is_contiguous(memory_format=torch.channels_last)
    assert labels.shape == (2,)
    assert library.arranged({"images": images()}, CHANNELS_LAST)["images"].stride()[1] == 1


@pytest.mark.parametrize(
    ("workload", "settings", "reason"),
    [
        (SimpleNamespace(), CHANNELS_LAST, "no attribute model"),
        (SimpleNamespace(model="resnet"), Settings(compile=True), "no attribute model"),
        (SimpleNamespace(model=nn.Linear(2, 2)), CHANNELS_LAST, "no four-dimensional weights"),
    ],
    ids=["no model", "no module", "no images"],
)
def test_what_a_workload_lacks_is_unsupported(
    library: TorchLibrary, workload: Any, settings: Settings, reason: str
) -> None:
    with pytest.raises(Unsupported, match=reason):
        library.arrange(workload, settings)


class Own(nn.Module):  # type: ignore[misc,name-defined]
    """A model with a frame of its own, which Dynamo compiles."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(2, 2)

    def forward(self, batch: Any) -> Any:
        return self.layer(batch).relu()


@pytest.mark.parametrize("model", [nn.Sequential(nn.Linear(2, 2), nn.ReLU()), Own()], ids=["torch's own", "the user's"])
def test_a_compiled_model_has_compiled_frames(
    library: TorchLibrary, model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sequential.compile() compiles nothing, and "+44 %" was once measured for it."""
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="eager"))
    workload = SimpleNamespace(model=model)
    library.arrange(workload, Settings(compile=True))  # type: ignore[arg-type,unused-ignore]
    with pytest.raises(Unsupported, match="compiled no frame"):
        library.require_effect(Settings(compile=True))
    workload.model(torch.randn(3, 2))
    library.require_effect(Settings(compile=True))


def test_a_model_that_is_compiled_already_is_not_compiled_again(library: TorchLibrary) -> None:
    in_place = Own()
    in_place.compile(backend="eager")
    for model in (torch.compile(Own(), backend="eager"), in_place):
        with pytest.raises(Unsupported, match="compiles its model itself"):
            library.arrange(SimpleNamespace(model=model), Settings(compile=True))  # type: ignore[arg-type,unused-ignore]


def test_a_torch_without_compilation_in_place_says_so(library: TorchLibrary, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(torch.nn.Module, "compile")
    with pytest.raises(Unsupported, match=r"has no Module\.compile\(\)"):
        library.arrange(SimpleNamespace(model=Own()), Settings(compile=True))  # type: ignore[arg-type,unused-ignore]


def test_a_switch_that_the_step_undoes_has_no_effect(library: TorchLibrary) -> None:
    workload = SimpleNamespace(model=nn.Sequential(nn.Conv2d(3, 4, 3)))
    library.arrange(workload, CHANNELS_LAST)  # type: ignore[arg-type,unused-ignore]
    library.require_effect(CHANNELS_LAST)
    workload.model.to(memory_format=torch.contiguous_format)
    with pytest.raises(Unsupported, match="does not keep the weights in channels_last"):
        library.require_effect(CHANNELS_LAST)


def test_a_switch_that_the_workload_sets_itself_has_no_effect(library: TorchLibrary) -> None:
    threads = torch.get_num_threads()
    library.require_effect(Settings(threads=threads))
    with pytest.raises(Unsupported, match=f"sets the threads to {threads}"):
        library.require_effect(Settings(threads=threads + 1))
    torch.backends.cudnn.benchmark = False
    with pytest.raises(Unsupported, match="turns cudnn.benchmark off"):
        library.require_effect(Settings(cudnn_benchmark=True))


class Training:
    """A model that is trained, with what the tests want to see."""

    unit = "images"

    def __init__(self, device: str, precision: Any) -> None:
        self.model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.Linear(144, 2)).to(device)
        self.optimizer = torch.optim.AdamW(self.model.parameters())
        self.precision = precision

    def make_batch(self, size: int) -> Any:
        return torch.randn(size, 3, 8, 8)

    def step(self, batch: Any) -> Any:
        with self.precision.autocast():
            loss = self.model(batch).square().mean()
        self.precision.backward(loss, self.optimizer)
        return loss


EFFORT = Effort(warmup_steps=2, steps=3, limit_seconds=0.5)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("settings", [Settings(), CHANNELS_LAST], ids=["plain", "channels_last"])
def test_a_training_step_is_measured(library: TorchLibrary, precision: str, settings: Settings) -> None:
    trial = Trial(precision=precision, batch_size=4, settings=settings)
    measurement = Bench(Training, Host(), library).measure(trial, EFFORT)
    assert isinstance(measurement, Measurement), measurement
    assert (measurement.status, measurement.unit) == (OK, "images/s")
    forward = 2 * 4 * (4 * 6 * 6 * 27 + 144 * 2)
    assert measurement.flops_per_step is not None
    assert 2 * forward < measurement.flops_per_step <= 3 * forward  # the first layer needs no gradient of its input


def test_torch_on_the_host_says_in_its_own_words_that_memory_is_full(library: TorchLibrary) -> None:
    class Huge(Training):
        def make_batch(self, size: int) -> Any:
            return torch.empty(2**58)

    failure = Bench(Huge, Host(), library).measure(Trial(precision="fp32", batch_size=4), EFFORT)
    assert isinstance(failure, Failure)
    assert failure.kind == OUT_OF_MEMORY


nn = torch.nn

LSTM_FORWARD = 2 * 2 * 3 * 4 * 7 * (5 + 7)
ATTENTION_FORWARD = 2 * 2 * 2 * 4 * 16 * 16 * 8


def linear() -> tuple[Any, Any]:
    return nn.Linear(10, 20), torch.randn(2, 10)


def convolution() -> tuple[Any, Any]:
    return nn.Conv2d(3, 4, 3), torch.randn(2, 3, 8, 8)


def lstm() -> tuple[Any, Any]:
    layer = nn.LSTM(5, 7, batch_first=True)
    return lambda inputs: layer(inputs)[0], torch.randn(2, 3, 5)


def attention() -> tuple[Any, Any]:
    def attend(heads: Any) -> Any:
        return nn.functional.scaled_dot_product_attention(heads, heads, heads)

    return attend, torch.randn(2, 4, 16, 8)


def causal() -> tuple[Any, Any]:
    attend = nn.functional.scaled_dot_product_attention
    return lambda heads: attend(heads, heads, heads, is_causal=True), torch.randn(2, 4, 16, 8)


@pytest.mark.parametrize(
    ("made", "operations"),
    [
        pytest.param(linear, 2 * 2 * 10 * 20, id="linear"),
        pytest.param(convolution, 2 * 2 * 4 * 6 * 6 * 3 * 3 * 3, id="convolution"),
        pytest.param(lstm, LSTM_FORWARD, id="lstm"),
        pytest.param(attention, ATTENTION_FORWARD, id="attention"),
        pytest.param(causal, ATTENTION_FORWARD, id="causal attention, counted as if it were not"),
    ],
)
def test_a_forward_pass(made: Callable[[], tuple[Any, Any]], operations: int) -> None:
    function, inputs = made()
    with torch.no_grad():
        assert count(lambda: function(inputs)) == operations


@pytest.mark.parametrize(
    ("made", "operations"),
    [
        pytest.param(linear, 3 * 2 * 2 * 10 * 20, id="linear"),
        pytest.param(lstm, 3 * LSTM_FORWARD, id="lstm"),
        pytest.param(attention, ATTENTION_FORWARD * 7 // 2, id="attention, its scores computed again"),
    ],
)
def test_forward_and_backward(made: Callable[[], tuple[Any, Any]], operations: int) -> None:
    function, inputs = made()
    inputs.requires_grad_()
    assert count(lambda: function(inputs).sum().backward()) == operations


def test_nothing_that_is_counted_is_unknown() -> None:
    assert count(lambda: torch.relu(torch.randn(8))) is None


class Encoded(dict[str, Any]):
    """A batch that is a dict of its own kind."""


class Numbered(dict[str, Any]):
    """One that cannot be made of a dict."""

    def __init__(self, number: int) -> None:
        super().__init__(x=number + 0)


Pair = namedtuple("Pair", "x y")


@pytest.mark.parametrize(
    ("batch", "doubled"),
    [
        (3, 6),
        ([1, (2, 3)], [2, (4, 6)]),
        (Pair(1, 2), Pair(2, 4)),
        ({"x": 1, "y": [2]}, {"x": 2, "y": [4]}),
        (Encoded(x=1), Encoded(x=2)),
        (Numbered(1), {"x": 2}),
    ],
)
def test_a_batch_keeps_its_kind(batch: Any, doubled: Any) -> None:
    found = map_leaves(lambda leaf: 2 * leaf, batch)
    assert (found, type(found)) == (doubled, type(doubled))
