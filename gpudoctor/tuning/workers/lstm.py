"""Workload "lstm": a character model, two LSTM layers of 512 hidden units.

Inputs: sequences of 100 characters out of 96, the printable ASCII and the line break. 3.5 million parameters, Adam. The
characters of a sequence come one after the other, so that only the batch fills a GPU.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from gpudoctor.tuning.workers.supervised import Task

CHARACTERS, LENGTH = 96, 100
EMBEDDING, HIDDEN, LAYERS = 128, 512, 2


class CharacterModel(nn.Module):
    """For each character of a sequence, the scores of the next one."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(CHARACTERS, EMBEDDING)
        self.lstm = nn.LSTM(EMBEDDING, HIDDEN, LAYERS, batch_first=True)
        self.scores = nn.Linear(HIDDEN, CHARACTERS)

    def forward(self, characters: Any) -> Any:
        """Return scores, shape (size, length, 96), of characters, shape (size, length), int64."""
        hidden, _ = self.lstm(self.embedding(characters))
        return self.scores(hidden)


def build_optimizer(parameters: Any) -> Any:
    return torch.optim.Adam(parameters, lr=1e-3)


def make_batch(size: int, device: str) -> tuple[Any, Any]:
    """Return random characters, shape (size, 100), and the ones that follow each of them."""
    text = torch.randint(CHARACTERS, (size, LENGTH + 1), device=device)
    return text[:, :-1].contiguous(), text[:, 1:].contiguous()


TASK = Task(unit="sequences", build_model=CharacterModel, build_optimizer=build_optimizer, make_batch=make_batch)
