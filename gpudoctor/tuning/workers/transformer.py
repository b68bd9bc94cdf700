"""Workload "transformer": a decoder like GPT-2's, smaller, with scaled dot-product attention.

Inputs: sequences of 256 tokens out of 8192. Six layers, 512 wide, eight heads. 27.4 million parameters, AdamW. No
dropout, so that two precisions compute the same.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional

from gpudoctor.errors import UsageError
from gpudoctor.tuning.workers.supervised import Task

TOKENS, LENGTH = 8192, 256
LAYERS, WIDTH, HEADS = 6, 512, 8


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
        self.feed_forward = nn.Sequential(
            nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)
        )

    def forward(self, states: Any) -> Any:
        """Return states of the same shape, (size, length, width)."""
        states = states + self.attention(states)
        return states + self.feed_forward(states)


class Decoder(nn.Module):
    """For each token of a sequence, the scores of the next one."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(TOKENS, WIDTH)
        self.positions = nn.Parameter(torch.randn(LENGTH, WIDTH) * 0.02)
        self.layers = nn.Sequential(*(Layer() for _ in range(LAYERS)))
        self.scores = nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, TOKENS, bias=False))

    def forward(self, tokens: Any) -> Any:
        """Return scores, shape (size, length, 8192), of tokens, shape (size, length), int64."""
        return self.scores(self.layers(self.embedding(tokens) + self.positions))


def build_model() -> Any:
    """Return the network.

    Raises:
        UsageError: this torch is older than 2.0, the first with scaled dot-product attention.
    """
    if not hasattr(functional, "scaled_dot_product_attention"):
        raise UsageError(f"the workload transformer needs PyTorch 2.0 or newer, this is {torch.__version__}")
    return Decoder()


def build_optimizer(parameters: Any) -> Any:
    return torch.optim.AdamW(parameters, lr=3e-4)


def make_batch(size: int, device: str) -> tuple[Any, Any]:
    """Return random tokens, shape (size, 256), and the ones that follow each of them."""
    text = torch.randint(TOKENS, (size, LENGTH + 1), device=device)
    return text[:, :-1].contiguous(), text[:, 1:].contiguous()


TASK = Task(unit="sequences", build_model=build_model, build_optimizer=build_optimizer, make_batch=make_batch)
