"""Small networks of every kind, and training steps of them, for tests of comparing."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

FEATURES, CLASSES = 32, 10


def without_onednn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let torch compute by itself: oneDNN has an LSTM in bf16 and fp16 on processors with AVX-512 only."""
    monkeypatch.setattr(torch.backends.mkldnn, "enabled", False)


class Training:
    """One training step of `build()`."""

    def __init__(self, build: Callable[[], Any], make_batch: Any, loss: Any, precision: Any) -> None:
        self.model = build()
        self.precision = precision
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3)
        self._make_batch, self._loss = make_batch, loss

    def make_batch(self, size: int) -> Any:
        return self._make_batch(size)

    def step(self, batch: Any) -> Any:
        inputs, labels = batch
        with self.precision.autocast():
            loss = self._loss(self.model(inputs), labels)
        self.precision.backward(loss, self.optimizer)
        return loss


def vectors(size: int) -> Any:
    return torch.randn(size, FEATURES), torch.randint(CLASSES, (size,))


def images(size: int) -> Any:
    return torch.randn(size, 3, 8, 8), torch.randint(CLASSES, (size,))


def texts(size: int) -> Any:
    return torch.randint(CLASSES, (size, 12)), torch.randint(CLASSES, (size, 12))


def cross_entropy(outputs: Any, labels: Any) -> Any:
    return functional.cross_entropy(outputs.flatten(0, -2), labels.flatten())


def trained(build: Callable[[], Any], make_batch: Any = vectors, loss: Any = cross_entropy) -> Any:
    return lambda device, precision: Training(build, make_batch, loss, precision)


def perceptron(depth: int = 3, width: int = 64) -> Any:
    sizes = [FEATURES, *[width] * depth]
    layers = [part for a, b in pairwise(sizes) for part in (nn.Linear(a, b), nn.ReLU())]
    return nn.Sequential(*layers, nn.Dropout(0.1), nn.Linear(width, CLASSES))


class Residual(nn.Module):  # type: ignore[misc]
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.path = nn.Sequential(
            nn.Conv2d(channels, channels, 3, padding=1, bias=False),
            nn.BatchNorm2d(channels),
            nn.ReLU(),
            nn.Conv2d(channels, channels, 3, padding=1, bias=False),
            nn.BatchNorm2d(channels),
        )

    def forward(self, images: Any) -> Any:
        return functional.relu(images + self.path(images))


def convolutional(blocks: int) -> Any:
    body = [Residual(8) for _ in range(blocks)]
    pooled = (nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, CLASSES))
    return nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), *body, *pooled)


class Recurrent(nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(CLASSES, 16)
        self.lstm = nn.LSTM(16, 32, 2, batch_first=True, dropout=0.3)
        self.output = nn.Linear(32, CLASSES)

    def forward(self, characters: Any) -> Any:
        return self.output(self.lstm(self.embedding(characters))[0])


class Attentive(nn.Module):  # type: ignore[misc]
    def __init__(self, layers: int) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.2, batch_first=True, norm_first=True)
        self.embedding = nn.Embedding(CLASSES, 32)
        self.body = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.output = nn.Linear(32, CLASSES)

    def forward(self, tokens: Any) -> Any:
        return self.output(self.body(self.embedding(tokens)))
