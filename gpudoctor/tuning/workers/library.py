"""What a trial asks of a library, what CuPy and NumPy have of it, and batches, however they are nested."""

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any

from gpudoctor.model.tuning import Settings
from gpudoctor.tuning.workers.precision import make_precision
from gpudoctor.tuning.workload import Workload

BLOCK = 2**20
"""Random numbers that a vector repeats: a processor takes long to make more."""


class Unsupported(Exception):
    """This trial cannot run here; the message says why."""


class Library:
    """What torch and the array libraries do differently; by itself, one without models, random numbers and a count."""

    operations = 2
    """Floating-point operations of one multiplication with addition."""

    def prepare(self, precision: str, settings: Settings) -> Any:
        """Set the switches of the process; return the precision for the factory.

        Raises:
            Unsupported: the library has no such switch.
        """

    def arrange(self, workload: Workload, settings: Settings) -> None:
        """Change the workload's model by `settings`. Raises Unsupported: the workload has nothing to change."""

    def require_effect(self, settings: Settings) -> None:
        """Raise Unsupported if the steps that ran show that a setting changed nothing."""

    def arranged(self, batch: Any, settings: Settings) -> Any:  # noqa: ARG002
        """Return the batch according to `settings`."""
        return batch

    def flops(self, step: Callable[[], object]) -> float | None:  # noqa: ARG002
        """Return the floating-point operations of a step; None if they cannot be counted."""
        return None

    def item_bytes(self, precision: str) -> int:
        """Return the bytes of one number of a matrix."""
        raise NotImplementedError

    def matrix(self, precision: str, size: int) -> Any:
        """Return a random square matrix of zero mean."""
        raise NotImplementedError

    def vector(self, count: int) -> Any:
        """Return `count` random numbers of four bytes."""
        raise NotImplementedError


class ArrayLibrary(Library):
    """CuPy on a GPU, NumPy on the CPU; their matrices are complex."""

    operations = 8

    def __init__(self, device_name: str) -> None:
        self._device_name = device_name
        self._arrays: Any = import_module("numpy" if device_name == "cpu" else "cupy")

    def prepare(self, precision: str, settings: Settings) -> Any:
        if settings != Settings():
            raise Unsupported("CuPy and NumPy have no such settings")
        return make_precision(precision, self._device_name)

    def item_bytes(self, precision: str) -> int:
        return 8 if precision == "complex64" else 16

    def matrix(self, precision: str, size: int) -> Any:
        normal = self._arrays.random.standard_normal
        return (normal((size, size)) + 1j * normal((size, size))).astype(precision)

    def vector(self, count: int) -> Any:
        block = self._arrays.random.standard_normal(min(count, BLOCK)).astype("float32")
        return self._arrays.tile(block, -(-count // BLOCK))[:count]


def leaves(batch: Any) -> Iterator[Any]:
    """Yield the members of the lists, tuples and mappings in `batch`, in order; `batch` itself for other types."""
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
