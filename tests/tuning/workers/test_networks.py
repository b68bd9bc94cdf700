"""The built-in workloads in torch: they learn, they repeat, and they keep to the protocol."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch.nn import functional  # noqa: E402

from gpudoctor.errors import UsageError  # noqa: E402
from gpudoctor.tuning.workers import networks  # noqa: E402
from gpudoctor.tuning.workers.catalog import load_factory  # noqa: E402
from gpudoctor.tuning.workers.precision import make_precision  # noqa: E402
from gpudoctor.tuning.workers.torch_library import count  # noqa: E402
from tests.tuning.workers.small_networks import without_onednn  # noqa: E402

NAMES = ("mlp", "cnn", "lstm", "transformer")
EVERY = pytest.mark.parametrize("name", NAMES)

INPUTS = {"mlp": (2, 1024), "cnn": (2, 3, 224, 224), "lstm": (2, 100), "transformer": (2, 256)}
OUTPUTS = {"mlp": (2, 1000), "cnn": (2, 1000), "lstm": (2, 100, 96), "transformer": (2, 256, 8192)}
PARAMETERS = {"mlp": 12_540_904, "cnn": 11_689_512, "lstm": 3_477_600, "transformer": 27_435_008}
OPERATIONS = {"mlp": 50_135_040, "cnn": 7_256_293_376, "lstm": 1_382_809_600, "transformer": 25_232_932_864}
"""Of the forward pass of two samples. The CNN is ResNet-18: https://pytorch.org/vision/stable/models/generated/torchvision.models.resnet18.html"""


@pytest.fixture(autouse=True)
def native_lstm(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the LSTM computed in a way that every processor has."""
    if "lstm" in request.node.name:
        without_onednn(monkeypatch)


SMALL = {"HIDDEN_FEATURES": 256, "STAGES": ((64, 1), (96, 2)), "HIDDEN": 256, "LAYERS": 2, "WIDTH": 64}


@pytest.fixture(autouse=True)
def small(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the networks narrow, which takes less time, unless their size is what is tested."""
    if "test_sizes" not in request.node.name:
        for constant, value in SMALL.items():
            monkeypatch.setattr(networks, constant, value)


def build(name: str, mode: str = "training", precision: str = "fp32") -> Any:
    torch.manual_seed(1)
    return load_factory(name, mode)("cpu", make_precision(precision, "cpu"))


def losses(workload: Any, count: int, size: int = 2) -> list[float]:
    """Return the losses of `count` steps with the same batch."""
    batch = workload.make_batch(size)
    return [float(workload.step(batch)) for _ in range(count)]


@EVERY
def test_sizes_are_those_of_its_description(name: str) -> None:
    workload = build(name, "inference")
    assert sum(parameter.numel() for parameter in workload.model.parameters()) == PARAMETERS[name]
    batch = workload.make_batch(2)
    assert batch.shape == INPUTS[name]
    assert workload.step(batch).shape == OUTPUTS[name]
    assert count(lambda: workload.step(batch)) == OPERATIONS[name]


def test_sizes_of_a_head_of_attention(monkeypatch: pytest.MonkeyPatch) -> None:
    shapes: list[Any] = []
    attend = functional.scaled_dot_product_attention

    def watched(query: Any, *others: Any, **options: Any) -> Any:
        shapes.append(tuple(query.shape))
        return attend(query, *others, **options)

    monkeypatch.setattr(functional, "scaled_dot_product_attention", watched)
    workload = build("transformer", "inference")
    workload.step(workload.make_batch(1))
    assert shapes == [(1, 8, 256, 64)] * 6


@pytest.mark.parametrize("name", ["mlp", "lstm", "transformer"])
def test_sizes_of_what_is_drawn(name: str) -> None:
    """Every class, character or token may come, and no other."""
    _, labels = networks.TASKS[name].make_batch(2000 if name == "mlp" else 400, "cpu")
    kinds = OUTPUTS[name][-1]
    assert kinds * 0.98 <= int(labels.max()) + 1 <= kinds
    assert int(labels.min()) <= kinds * 0.02


@EVERY
def test_a_batch_is_random_and_numbers_have_zero_mean(name: str) -> None:
    workload = build(name)
    inputs, labels = workload.make_batch(2)
    assert labels.dtype is torch.int64
    assert not torch.equal(inputs, workload.make_batch(2)[0])
    if inputs.is_floating_point():
        assert abs(float(inputs.mean())) < 0.1


@pytest.mark.parametrize(
    ("name", "precision"), [*((name, "fp32") for name in NAMES), ("mlp", "bf16"), ("lstm", "bf16")]
)
def test_a_training_step_changes_every_parameter(name: str, precision: str) -> None:
    workload = build(name, precision=precision)
    before = [parameter.detach().clone() for parameter in workload.model.parameters()]
    (loss,) = losses(workload, 1, size=1)
    assert 0 < loss < 20
    unchanged = [
        key for old, (key, new) in zip(before, workload.model.named_parameters(), strict=True) if torch.equal(old, new)
    ]
    assert unchanged == []


@pytest.mark.parametrize("name", ["mlp", "lstm"])
def test_the_loss_of_a_repeated_batch_goes_down(name: str) -> None:
    course = losses(build(name), 6)
    assert course[-1] < 0.98 * course[0]


@EVERY
def test_the_same_seed_gives_the_same_losses(name: str) -> None:
    assert losses(build(name), 1, size=1) == losses(build(name), 1, size=1)


@pytest.mark.parametrize("name", ["lstm", "transformer"])
def test_what_follows_a_character_or_token_is_its_label(name: str) -> None:
    inputs, labels = build(name).make_batch(2)
    assert torch.equal(inputs[:, 1:], labels[:, :-1])


def test_the_decoder_sees_no_later_token() -> None:
    workload = build("transformer", "inference")
    tokens = workload.make_batch(1)
    changed = tokens.clone()
    changed[0, 100] = (changed[0, 100] + 1) % networks.TOKENS
    before, after = workload.step(tokens)[0], workload.step(changed)[0]
    assert torch.allclose(before[:100], after[:100], atol=1e-5)
    assert not torch.allclose(before[100], after[100], atol=1e-5)


@pytest.mark.parametrize("name", ["mlp", "cnn"])
def test_inference_of_a_sample_does_not_depend_on_the_others(name: str) -> None:
    workload = build(name, "inference")
    batch = workload.make_batch(2)
    assert torch.allclose(workload.step(batch)[:1], workload.step(batch[:1]), atol=1e-4)


@EVERY
def test_inference_keeps_no_gradients_and_changes_nothing(name: str) -> None:
    precision = "fp32" if name == "cnn" else "bf16"  # some processors take seconds for a convolution in bf16
    workload = build(name, "inference", precision)
    batch = workload.make_batch(1)
    first, second = workload.step(batch), workload.step(batch)
    assert first.dtype is (torch.float32 if name == "cnn" else torch.bfloat16)
    assert not first.requires_grad
    assert torch.equal(first, second)


@EVERY
def test_in_float64_nothing_falls_back_to_float32(name: str) -> None:
    workload = build(name, "inference", "fp64")
    workload.model.double()
    batch = workload.make_batch(2)
    outputs = workload.step(batch.double() if batch.is_floating_point() else batch)
    assert outputs.dtype is torch.float64


def test_a_batch_of_one_can_be_trained() -> None:
    assert losses(build("cnn"), 1, size=1)[0] > 0


def test_images_in_channels_last_give_the_same_scores() -> None:
    workload = build("cnn", "inference")
    images = workload.make_batch(2)
    scores = workload.step(images)
    workload.model.to(memory_format=torch.channels_last)
    assert torch.allclose(workload.step(images.to(memory_format=torch.channels_last)), scores, atol=1e-3)


def test_a_torch_without_its_attention_is_reported_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(functional, "scaled_dot_product_attention")
    with pytest.raises(UsageError, match="the workload transformer needs PyTorch 2.0 or newer, but this is "):
        build("transformer")


def test_the_feed_forward_network_of_a_layer_is_more_than_one_product() -> None:
    torch.manual_seed(1)
    states = torch.randn(1, 4, networks.WIDTH)
    with torch.no_grad():
        after_norm = networks.Layer().feed_forward[1:]
        there, back, at_zero = (after_norm(part) for part in (states, -states, torch.zeros_like(states)))
    assert not torch.allclose(there + back, 2 * at_zero, atol=1e-3)


@pytest.mark.parametrize("name", ["lstm", "transformer"])
def test_sequences_of_another_length(name: str) -> None:
    training = networks.Training(name, "cpu", make_precision("fp32", "cpu"), sequence=16)
    batch = training.make_batch(2)
    assert batch[0].shape == (2, 16)
    assert training.step(batch).isfinite()
