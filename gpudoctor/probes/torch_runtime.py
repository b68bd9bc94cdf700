"""PyTorch, imported in a process of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpudoctor.model import TorchRuntime
from gpudoctor.model.codec import from_json
from gpudoctor.probes.host import ProbeContext, Question
from gpudoctor.untrusted import cleaned


def question(_setting: ProbeContext) -> Question:
    """Return the question; its worker runs under the interpreter that is diagnosed."""
    return Question(name="torch-runtime", worker="torch_runtime", in_environment=True)


def parse_torch_runtime(facts: Mapping[str, Any]) -> TorchRuntime:
    """Return the section that the worker's `facts` give.

    Raises:
        ValueError: a fact is no such value; the message names it.
    """
    return from_json(TorchRuntime, cleaned(dict(facts)), "torch_runtime")
