"""What comparing needs of CuPy and NumPy: complex128, and a product whose error shows TF32."""

import gc
import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy

from gpudoctor.tuning.workers.comparing import Step, Watched
from gpudoctor.tuning.workers.library import leaves, map_leaves
from gpudoctor.tuning.workers.precision import Precision
from gpudoctor.tuning.workers.process_state import seed

REFERENCE = "complex128"
STRICT = "complex64"

PRODUCT_SIZE = 512  # rows and columns

_WIDER = {"float16": "float64", "float32": "float64", "complex64": "complex128"}


def promote(workload: Any) -> None:
    """Do nothing: a workload in arrays makes them of the precision's own type."""


def copied(batch: Any, *, promoted: bool) -> Any:
    """Return a copy of the batch, because a step may change it; its inexact numbers twice as wide if `promoted`."""

    def copy(leaf: Any) -> Any:
        if not _is_array(leaf):
            return leaf
        return leaf.astype(_WIDER.get(leaf.dtype.name, leaf.dtype) if promoted else leaf.dtype)

    return map_leaves(copy, batch)


def do_step(workload: Any, _precision: Watched, make_batch: Callable[[], Any], number: int, keep: bool) -> Step:
    """Do one step; nothing is trained, for arrays have no backward()."""
    seed(number)
    values = _arrays(workload.step(make_batch()))
    not_finite = sum(int((~numpy.isfinite(value)).sum()) for value in values)
    return Step(not_finite=not_finite, outputs=[_on_host(value) for value in values] if keep else None)


def relative_error(values: Sequence[Any] | None, reference: Sequence[Any] | None) -> float | None:
    """Return the largest norm(value - expected) / norm(expected) of the arrays; infinity if only this is finite.

    Each array by itself: a spectrum and its logarithm are of different sizes. None if there is nothing to compare.
    """
    if not values or not reference or [value.shape for value in values] != [value.shape for value in reference]:
        return None
    return max(_error(value, expected) for value, expected in zip(values, reference, strict=True))


def _error(value: Any, expected: Any) -> float:
    known = numpy.isfinite(expected)
    wide = numpy.result_type(expected.dtype, numpy.float64)
    difference = float(numpy.linalg.norm(value[known].astype(wide) - expected[known]))
    if not math.isfinite(difference):
        return math.inf
    size = float(numpy.linalg.norm(expected[known]))
    return difference / size if size else (math.inf if difference else 0.0)


def product_error(precision: Precision, device: str) -> float | None:
    """Return the relative error of a matrix product of zero mean: CuPy uses TF32 where CUPY_TF32=1 is set."""
    if precision.name == REFERENCE:
        return None
    source = numpy.random.RandomState(0)
    left, right = (source.standard_normal((PRODUCT_SIZE, 2 * PRODUCT_SIZE)).view(REFERENCE) for _ in range(2))
    left, right = left.astype(STRICT), right.astype(STRICT)
    expected = left.astype(REFERENCE) @ right.astype(REFERENCE)
    if device.startswith("cuda"):
        import cupy

        return _error(_on_host(cupy.asarray(left) @ cupy.asarray(right)), expected)
    return _error(left @ right, expected)


def free_memory() -> None:
    """Give CuPy's pools of memory back to the device."""
    gc.collect()
    cupy = sys.modules.get("cupy")
    if cupy is not None:
        cupy.get_default_memory_pool().free_all_blocks()
        cupy.get_default_pinned_memory_pool().free_all_blocks()


def _is_array(value: Any) -> bool:
    return hasattr(value, "dtype") and hasattr(value, "shape") and hasattr(value, "astype")


def _arrays(value: Any) -> list[Any]:
    """Return the arrays of inexact numbers in `value`, in order."""
    found = (numpy.asarray(leaf) if isinstance(leaf, float) else leaf for leaf in leaves(value))
    return [leaf for leaf in found if _is_array(leaf) and leaf.dtype.kind in "fc"]


def _on_host(array: Any) -> Any:
    """Return the array as NumPy's; CuPy's have get()."""
    return array.get() if hasattr(array, "get") else numpy.array(array)
