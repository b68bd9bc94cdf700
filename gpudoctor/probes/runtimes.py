"""PyTorch and CuPy, each imported in a process of its own under the interpreter that is diagnosed."""

from collections.abc import Mapping
from typing import Any

from gpudoctor.model import CupyRuntime, TorchRuntime
from gpudoctor.model.codec import from_json
from gpudoctor.untrusted import cleaned


def parse_torch_runtime(facts: Mapping[str, Any]) -> TorchRuntime:
    """Return the section that the worker's `facts` give.

    Raises:
        ValueError: a fact is no such value; the message names it.
    """
    return from_json(TorchRuntime, cleaned(dict(facts)), "torch_runtime")


def parse_cupy_runtime(facts: Mapping[str, Any]) -> CupyRuntime:
    """Return the section that the worker's `facts` give. Raises as `parse_torch_runtime` does."""
    return from_json(CupyRuntime, cleaned(dict(facts)), "cupy_runtime")
