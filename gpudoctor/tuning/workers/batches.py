"""Batches, however they are nested: in lists, tuples, named tuples and mappings."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any


def leaves(batch: Any) -> Iterator[Any]:
    """Yield what the lists, tuples and mappings of `batch` hold, in order; `batch` itself if it is none of them."""
    if isinstance(batch, Mapping):
        batch = list(batch.values())
    if isinstance(batch, (list, tuple)):
        for item in batch:
            yield from leaves(item)
    else:
        yield batch


def map_leaves(function: Callable[[Any], Any], batch: Any) -> Any:
    """Return `batch` with each leaf replaced by what `function` returns for it."""
    if isinstance(batch, Mapping):
        pairs = {key: map_leaves(function, item) for key, item in batch.items()}
        return pairs if type(batch) is dict else _rebuilt(batch, pairs)
    if isinstance(batch, (list, tuple)):
        items = [map_leaves(function, item) for item in batch]
        return type(batch)(*items) if hasattr(batch, "_fields") else type(batch)(items)
    return function(batch)


def _rebuilt(mapping: Any, pairs: dict[Any, Any]) -> Any:
    """Return the mapping's own kind if it can be made of a dict, as the tokenised batches of other packages can."""
    try:
        return type(mapping)(pairs)
    except Exception:
        return pairs
