"""The model: how many operations lie between its parameters and the loss, and what its parameters are."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from .recorder import WARM_UP_STEPS

GRAPH_STEPS = (WARM_UP_STEPS + 2, 60)
"""Steps in which the operations of the model are counted; they do not count as steps."""

MOST_NODES = 20_000
SMALL_ELEMENTS = 2**18
"""A GPU with 1 TB/s of memory bandwidth reads and writes them in 2 µs; a launch takes 5 to 20 µs."""

LARGE_SIDE = 256
"""Matrices with fewer rows or columns gain little from tensor cores."""


def operations_of(tensors: Any) -> dict[str, Any]:
    """Return how many operations lead to the loss, and how many of them are small; nothing if that is not seen."""
    with suppress(Exception):
        roots = tensors if isinstance(tensors, (tuple, list)) else (tensors,)
        todo = [root.grad_fn for root in roots if root.grad_fn is not None]
        seen = set(todo)
        while todo and len(seen) < MOST_NODES:
            for node, _ in todo.pop().next_functions:
                if node is not None and node not in seen:
                    seen.add(node)
                    todo.append(node)
        operations = [node for node in seen if type(node).__name__ != "AccumulateGrad"]
        return {"operations": len(operations), "small_operations": sum(_is_small(node) for node in operations)}
    return {}


def parameters_of(optimizer: Any) -> dict[str, Any]:
    """Return bytes, precisions and devices of the parameters of an optimizer; nothing if that is not seen."""
    with suppress(Exception):
        parameters = [item for group in optimizer.param_groups for item in group["params"]]
        large = [item for item in parameters if item.dim() >= 2 and _is_large(item.shape)]
        return {
            "bytes": sum(item.numel() * item.element_size() for item in parameters),
            "large_elements": sum(item.numel() for item in large),
            "precisions": sorted({str(item.dtype).rpartition(".")[2] for item in large or parameters}),
            "devices": sorted({item.device.type for item in parameters}),
        }
    return {}


def _is_large(shape: Any) -> bool:
    columns = 1
    for side in shape[1:]:
        columns *= side
    return bool(shape[0] >= LARGE_SIDE and columns >= LARGE_SIDE)


def _is_small(node: Any) -> bool:
    """Return whether the result of an operation is so small that a GPU needs less time than its launch."""
    elements = 0
    for result in node._input_metadata:
        count = 1
        for side in result.shape:
            count *= side
        elements += count
    return elements < SMALL_ELEMENTS
