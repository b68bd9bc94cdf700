"""Six small trainings for `tuning_real.py`, each in the shape that `gpudoctor tune` measures."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn.functional import cross_entropy

CLASSES = 10


class Training:
    """A classification of random samples: forward pass, loss, backward pass, optimiser.

    shape: of one sample; characters where `kinds` is above 0.
    largest: batch size up to which the benchmark looks.
    """

    shape: tuple[int, ...] = (256,)
    kinds = 0
    largest = 2048

    def __init__(self, device: str, precision: Any) -> None:
        self.device, self.precision = device, precision
        self.model = self.network().to(device)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3)

    @staticmethod
    def network() -> Any:
        """Return a new network; its outputs have shape (size, classes)."""
        return nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, CLASSES))

    def make_batch(self, size: int) -> tuple[Any, Any]:
        """Return random samples and labels."""
        whole = (size, *self.shape)
        samples = torch.randint(self.kinds, whole) if self.kinds else torch.randn(whole)
        return samples.to(self.device), torch.randint(CLASSES, (size,), device=self.device)

    def step(self, batch: tuple[Any, Any]) -> Any:
        """Train on one batch; return the loss."""
        samples, labels = batch
        with self.precision.autocast():
            loss = cross_entropy(self.model(samples), labels)
        self.precision.backward(loss, self.optimizer)
        return loss


class Mlp(Training):
    """Three layers."""


class Cnn(Training):
    """Two convolutions of small images."""

    shape, largest = (3, 32, 32), 256

    @staticmethod
    def network() -> Any:
        return nn.Sequential(
            *(nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1)),
            *(nn.Flatten(), nn.Linear(64, CLASSES)),
        )


class Recurrent(nn.Module):  # type: ignore[misc]
    """An LSTM, and scores of its last output."""

    def __init__(self, inputs: int, hidden: int, layers: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(inputs, hidden, layers, batch_first=True)
        self.scores = nn.Linear(hidden, CLASSES)

    def forward(self, series: Any) -> Any:
        hidden, _ = self.lstm(series)
        return self.scores(hidden[:, -1])


class Lstm(Training):
    """One recurrent layer over 50 readings."""

    shape, largest = (50, 32), 512

    @staticmethod
    def network() -> Any:
        return Recurrent(32, 128, 1)


class CharacterLstm(Training):
    """Two recurrent layers over 64 characters."""

    shape, kinds, largest = (64,), 96, 256

    @staticmethod
    def network() -> Any:
        return nn.Sequential(nn.Embedding(96, 64), Recurrent(64, 192, 2))


class Encoder(nn.Module):  # type: ignore[misc]
    """Two layers of self-attention, and scores of the mean over time."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(96, 128)
        layer = nn.TransformerEncoderLayer(128, 4, 256, dropout=0.0, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.scores = nn.Linear(128, CLASSES)

    def forward(self, characters: Any) -> Any:
        return self.scores(self.layers(self.embedding(characters)).mean(dim=1))


class Transformer(Training):
    """Self-attention over 64 characters."""

    shape, kinds, largest = (64,), 96, 256

    @staticmethod
    def network() -> Any:
        return Encoder()


class Block(nn.Module):  # type: ignore[misc]
    """Two convolutions with batch normalisation, added to the input."""

    def __init__(self, channels_in: int, channels: int) -> None:
        super().__init__()
        self.branch = nn.Sequential(
            *(nn.Conv2d(channels_in, channels, 3, 2, 1, bias=False), nn.BatchNorm2d(channels), nn.ReLU()),
            *(nn.Conv2d(channels, channels, 3, 1, 1, bias=False), nn.BatchNorm2d(channels)),
        )
        self.shortcut = nn.Conv2d(channels_in, channels, 1, 2, bias=False)

    def forward(self, images: Any) -> Any:
        return torch.relu(self.branch(images) + self.shortcut(images))


class ResNet(Training):
    """Three residual blocks of small images."""

    shape, largest = (3, 32, 32), 256

    @staticmethod
    def network() -> Any:
        stem = (nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU())
        blocks = (Block(16, 32), Block(32, 64), Block(64, 64))
        return nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, CLASSES))


WORKLOADS = {
    "mlp": Mlp,
    "cnn": Cnn,
    "lstm": Lstm,
    "transformer": Transformer,
    "resnet": ResNet,
    "character-lstm": CharacterLstm,
}
