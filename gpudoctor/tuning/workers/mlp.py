"""Workload "mlp": a multilayer perceptron that classifies feature vectors.

Inputs: 1024 features. Layers: three of 2048 with ReLU, then 1000 classes. 12.5 million parameters, AdamW: almost all of
the work is matrix products, and a small batch leaves a GPU waiting for the next kernel.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from gpudoctor.tuning.workers.supervised import Task

FEATURES, WIDTH, CLASSES = 1024, 2048, 1000


def build_model() -> Any:
    """Return the network; outputs: shape (size, 1000)."""
    return nn.Sequential(
        nn.Linear(FEATURES, WIDTH),
        nn.ReLU(),
        nn.Linear(WIDTH, WIDTH),
        nn.ReLU(),
        nn.Linear(WIDTH, WIDTH),
        nn.ReLU(),
        nn.Linear(WIDTH, CLASSES),
    )


def build_optimizer(parameters: Any) -> Any:
    return torch.optim.AdamW(parameters, lr=1e-3)


def make_batch(size: int, device: str) -> tuple[Any, Any]:
    """Return features, shape (size, 1024), standard normal; and labels, shape (size,)."""
    return torch.randn(size, FEATURES, device=device), torch.randint(CLASSES, (size,), device=device)


TASK = Task(unit="samples", build_model=build_model, build_optimizer=build_optimizer, make_batch=make_batch)
