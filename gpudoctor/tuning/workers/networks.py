"""The built-in workloads in torch: a network of each kind that learns random labels, and its training and inference.

| name | network | inputs | parameters | optimiser |
| --- | --- | --- | --- | --- |
| mlp | perceptron: three layers of 2048 with ReLU, 1000 classes | 1024 features | 12.5 million | AdamW |
| cnn | ResNet-18 (https://arxiv.org/abs/1512.03385), 1000 classes | 3 x 224 x 224 pixels | 11.7 million | SGD |
| lstm | character model: two layers of 512 hidden units | 100 of 96 characters | 3.5 million | Adam |
| transformer | decoder like GPT-2's: six layers, 512 wide, eight heads | 256 of 8192 tokens | 27.4 million | AdamW |

mlp: almost all of the work is matrix products, and a small batch leaves a GPU waiting for the next kernel.
cnn: batch norm in every block makes much of its time memory traffic; the convolutions profit from tensor cores and from
channels_last.
lstm: the characters (printable ASCII and the line break) come one after the other, so that only the batch fills a GPU.
transformer: scaled dot-product attention, and no dropout, so that two precisions compute the same.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.nn import functional

from gpudoctor.errors import UsageError
from gpudoctor.tuning.workers.catalog import UNITS
from gpudoctor.tuning.workers.precision import Precision

CLASSES = 1000
FEATURES, HIDDEN_FEATURES = 1024, 2048
PIXELS = 224
STAGES = ((64, 1), (128, 2), (256, 2), (512, 2))
"""Channels and stride of each stage of two blocks of the CNN."""

CHARACTERS, CHARACTERS_LENGTH = 96, 100
EMBEDDING, HIDDEN, LSTM_LAYERS = 128, 512, 2
TOKENS, TOKENS_LENGTH = 8192, 256
LAYERS, WIDTH, HEADS = 6, 512, 8


class Task(NamedTuple):
    """What is learnt.

    build_model: returns a new model, float32, on the CPU; its outputs have shape (size, ..., classes).
    build_optimizer: returns the optimiser of these parameters.
    make_batch: of a size and a device: returns inputs, and labels of shape (size, ...), int64.
    """

    build_model: Callable[[], Any]
    build_optimizer: Callable[[Any], Any]
    make_batch: Callable[[int, str], tuple[Any, Any]]


class Inference:
    """Forward pass of the model as it is used after training: batch norm by its running statistics, no gradients."""

    def __init__(self, name: str, device: str, precision: Precision, sequence: int | None = None) -> None:
        self.unit = UNITS[name]
        self._task = TASKS[name] if sequence is None else SEQUENCES[name](sequence)
        self._device, self._precision = device, precision
        self.model = self._task.build_model().to(device).eval()

    def make_batch(self, size: int) -> Any:
        """Return `size` random inputs, made on the device."""
        inputs, _ = self._task.make_batch(size, self._device)
        return inputs

    def step(self, batch: Any) -> Any:
        """Return the outputs of one batch, still on the device."""
        with torch.inference_mode(), self._precision.autocast():
            return self.model(batch)


class Training(Inference):
    """Forward pass, cross-entropy, backward pass, optimiser."""

    def __init__(self, name: str, device: str, precision: Precision, sequence: int | None = None) -> None:
        super().__init__(name, device, precision, sequence)
        self._optimizer = self._task.build_optimizer(self.model.train().parameters())

    def make_batch(self, size: int) -> tuple[Any, Any]:
        """Return `size` random inputs and labels, made on the device."""
        return self._task.make_batch(size, self._device)

    def step(self, batch: tuple[Any, Any]) -> Any:
        """Learn one batch. Return the loss, still on the device."""
        inputs, labels = batch
        with self._precision.autocast():
            outputs = self.model(inputs)
            loss = functional.cross_entropy(outputs.flatten(0, -2), labels.flatten())
        self._precision.backward(loss, self._optimizer)
        return loss.detach()


def build_perceptron() -> Any:
    """Return the network; outputs: shape (size, 1000)."""
    layers: list[nn.Module] = []
    for width in (FEATURES, HIDDEN_FEATURES, HIDDEN_FEATURES):
        layers += [nn.Linear(width, HIDDEN_FEATURES), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(HIDDEN_FEATURES, CLASSES))


def _convolution(channels_in: int, channels: int, size: int, stride: int = 1) -> list[nn.Module]:
    """Return a convolution that keeps the size of the image but for the stride, and its batch norm."""
    convolution = nn.Conv2d(channels_in, channels, size, stride, padding=size // 2, bias=False)
    return [convolution, nn.BatchNorm2d(channels)]


class ResidualBlock(nn.Module):
    """Two 3x3 convolutions, added to the input; a 1x1 convolution fits the input if the shape changes."""

    def __init__(self, channels_in: int, channels: int, stride: int) -> None:
        super().__init__()
        first, second = _convolution(channels_in, channels, 3, stride), _convolution(channels, channels, 3)
        self.branch = nn.Sequential(*first, nn.ReLU(), *second)
        self.shortcut: Any = nn.Identity()
        if stride != 1 or channels_in != channels:
            self.shortcut = nn.Sequential(*_convolution(channels_in, channels, 1, stride))

    def forward(self, images: Any) -> Any:
        """Return feature maps, shape (size, channels, height / stride, width / stride)."""
        return torch.relu(self.branch(images) + self.shortcut(images))


def build_residual_network() -> Any:
    """Return the network; outputs: shape (size, 1000)."""
    channels_in = 64
    layers = [*_convolution(3, channels_in, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, padding=1)]
    for channels, stride in STAGES:
        layers += [ResidualBlock(channels_in, channels, stride), ResidualBlock(channels, channels, 1)]
        channels_in = channels
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels_in, CLASSES))


class CharacterModel(nn.Module):
    """For each character of a sequence, the scores of the next one."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(CHARACTERS, EMBEDDING)
        self.lstm = nn.LSTM(EMBEDDING, HIDDEN, LSTM_LAYERS, batch_first=True)
        self.scores = nn.Linear(HIDDEN, CHARACTERS)

    def forward(self, characters: Any) -> Any:
        """Return scores, shape (size, length, 96), of characters, shape (size, length), int64."""
        hidden, _ = self.lstm(self.embedding(characters))
        return self.scores(hidden)


class Attention(nn.Module):
    """Causal self-attention of several heads."""

    def __init__(self) -> None:
        super().__init__()
        self.project_in = nn.Linear(WIDTH, 3 * WIDTH)
        self.project_out = nn.Linear(WIDTH, WIDTH)

    def forward(self, states: Any) -> Any:
        """Return states of the same shape, (size, length, width), each of which has seen those before it."""
        size, length, width = states.shape
        heads = self.project_in(states).view(size, length, 3, HEADS, width // HEADS)
        query, key, value = heads.permute(2, 0, 3, 1, 4)  # each (size, heads, length, width of a head)
        seen = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.project_out(seen.transpose(1, 2).reshape(size, length, width))


class Layer(nn.Module):
    """Attention, then a feed-forward network; each normalised before and added after."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.Sequential(nn.LayerNorm(WIDTH), Attention())
        feed_forward = nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)
        self.feed_forward = nn.Sequential(nn.LayerNorm(WIDTH), *feed_forward)

    def forward(self, states: Any) -> Any:
        """Return states of the same shape, (size, length, width)."""
        states = states + self.attention(states)
        return states + self.feed_forward(states)


class Decoder(nn.Module):
    """For each token of a sequence, the scores of the next one.

    Raises:
        UsageError: this torch is older than 2.0, the first with scaled dot-product attention.
    """

    def __init__(self, length: int = TOKENS_LENGTH) -> None:
        super().__init__()
        if not hasattr(functional, "scaled_dot_product_attention"):
            raise UsageError(f"the workload transformer needs PyTorch 2.0 or newer, but this is {torch.__version__}")
        self.embedding = nn.Embedding(TOKENS, WIDTH)
        self.positions = nn.Parameter(torch.randn(length, WIDTH) * 0.02)
        self.layers = nn.Sequential(*(Layer() for _ in range(LAYERS)))
        self.scores = nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, TOKENS, bias=False))

    def forward(self, tokens: Any) -> Any:
        """Return scores, shape (size, length, 8192), of tokens, shape (size, length), int64."""
        return self.scores(self.layers(self.embedding(tokens) + self.positions))


def _labelled(shape: tuple[int, ...], size: int, device: str) -> tuple[Any, Any]:
    """Return numbers of this shape each, standard normal, and the labels, shape (size,)."""
    return torch.randn(size, *shape, device=device), torch.randint(CLASSES, (size,), device=device)


def _text(kinds: int, length: int, size: int, device: str) -> tuple[Any, Any]:
    """Return random characters or tokens, shape (size, length), and the ones that follow each of them."""
    text = torch.randint(kinds, (size, length + 1), device=device)
    return text[:, :-1].contiguous(), text[:, 1:].contiguous()


TASKS = {
    "mlp": Task(build_perceptron, partial(torch.optim.AdamW, lr=1e-3), partial(_labelled, (FEATURES,))),
    "cnn": Task(
        build_residual_network,
        partial(torch.optim.SGD, lr=0.01, momentum=0.9, weight_decay=1e-4),
        partial(_labelled, (3, PIXELS, PIXELS)),
    ),
    "lstm": Task(CharacterModel, partial(torch.optim.Adam, lr=1e-3), partial(_text, CHARACTERS, CHARACTERS_LENGTH)),
    "transformer": Task(Decoder, partial(torch.optim.AdamW, lr=3e-4), partial(_text, TOKENS, TOKENS_LENGTH)),
}

SEQUENCES: dict[str, Callable[[int], Task]] = {
    "lstm": lambda length: TASKS["lstm"]._replace(make_batch=partial(_text, CHARACTERS, length)),
    "transformer": lambda length: TASKS["transformer"]._replace(
        build_model=partial(Decoder, length), make_batch=partial(_text, TOKENS, length)
    ),
}
"""The tasks whose sequences may have another length."""
