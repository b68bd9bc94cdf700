"""Workload "cnn": a residual network that classifies images, ResNet-18 (https://arxiv.org/abs/1512.03385).

Inputs: 3 x 224 x 224 pixels, 1000 classes. 11.7 million parameters, SGD with momentum. Batch norm in every block makes
much of its time memory traffic; the convolutions profit from tensor cores and from channels_last.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from gpudoctor.tuning.workers.supervised import Task

PIXELS, CLASSES = 224, 1000
STAGES = ((64, 1), (128, 2), (256, 2), (512, 2))
"""Channels and stride of each stage of two blocks."""


class ResidualBlock(nn.Module):
    """Two 3x3 convolutions, added to the input; a 1x1 convolution fits the input where the shape changes."""

    def __init__(self, channels_in: int, channels: int, stride: int) -> None:
        super().__init__()
        self.branch = nn.Sequential(
            nn.Conv2d(channels_in, channels, 3, stride, padding=1, bias=False),
            nn.BatchNorm2d(channels),
            nn.ReLU(),
            nn.Conv2d(channels, channels, 3, padding=1, bias=False),
            nn.BatchNorm2d(channels),
        )
        self.shortcut: Any = nn.Identity()
        if stride != 1 or channels_in != channels:
            self.shortcut = nn.Sequential(
                nn.Conv2d(channels_in, channels, 1, stride, bias=False), nn.BatchNorm2d(channels)
            )

    def forward(self, images: Any) -> Any:
        """Return feature maps, shape (size, channels, height / stride, width / stride)."""
        return torch.relu(self.branch(images) + self.shortcut(images))


def build_model() -> Any:
    """Return the network; outputs: shape (size, 1000)."""
    stem = [
        nn.Conv2d(3, 64, 7, 2, padding=3, bias=False),
        nn.BatchNorm2d(64),
        nn.ReLU(),
        nn.MaxPool2d(3, 2, padding=1),
    ]
    blocks = []
    channels_in = 64
    for channels, stride in STAGES:
        blocks += [ResidualBlock(channels_in, channels, stride), ResidualBlock(channels, channels, 1)]
        channels_in = channels
    return nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels_in, CLASSES))


def build_optimizer(parameters: Any) -> Any:
    return torch.optim.SGD(parameters, lr=0.01, momentum=0.9, weight_decay=1e-4)


def make_batch(size: int, device: str) -> tuple[Any, Any]:
    """Return images, shape (size, 3, 224, 224), standard normal; and labels, shape (size,)."""
    images = torch.randn(size, 3, PIXELS, PIXELS, device=device)
    return images, torch.randint(CLASSES, (size,), device=device)


TASK = Task(unit="images", build_model=build_model, build_optimizer=build_optimizer, make_batch=make_batch)
