"""What a trial asks of CuPy or NumPy, and batches of any shape."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import pytest

from gpudoctor.model.tuning import Settings
from gpudoctor.tuning.workers import library
from gpudoctor.tuning.workers.library import ArrayLibrary, Unsupported, leaves


@pytest.mark.parametrize(("precision", "size"), [("complex64", 8), ("complex128", 16)])
def test_matrices_are_complex_and_have_zero_mean(precision: str, size: int) -> None:
    pytest.importorskip("numpy")
    arrays = ArrayLibrary("cpu")
    matrix = arrays.matrix(precision, 60)
    assert (matrix.shape, matrix.dtype, matrix.itemsize) == ((60, 60), precision, size)
    assert arrays.item_bytes(precision) == size
    assert abs(matrix.mean()) < 0.1
    assert (matrix.real.std(), matrix.imag.std()) == pytest.approx((1, 1), abs=0.1)


@pytest.mark.parametrize("count", [1, 7, 8, 9, 20])
def test_a_vector_repeats_a_block(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numpy")
    monkeypatch.setattr(library, "BLOCK", 8)
    vector = ArrayLibrary("cpu").vector(count)
    assert (vector.shape, vector.dtype, vector.itemsize) == ((count,), "float32", 4)
    assert len(set(vector.tolist())) == min(count, 8)
    assert vector[8:].tolist() == vector[:-8].tolist() if count > 8 else True


@pytest.mark.parametrize("settings", [Settings(channels_last=True), Settings(compile=True), Settings(threads=2)])
def test_arrays_have_no_settings(settings: Settings) -> None:
    pytest.importorskip("numpy")
    with pytest.raises(Unsupported, match="no such settings"):
        ArrayLibrary("cpu").prepare("complex64", settings)
    assert ArrayLibrary("cpu").prepare("complex64", Settings()).name == "complex64"


@pytest.mark.parametrize(
    ("batch", "found"),
    [
        (1, [1]),
        ([1, (2, [3])], [1, 2, 3]),
        ({"a": 1, "b": [2, {"c": 3}]}, [1, 2, 3]),
        (OrderedDict(b=1, a=2), [1, 2]),
        ((), []),
        ("text", ["text"]),
    ],
)
def test_leaves_in_order(batch: Any, found: list[Any]) -> None:
    assert list(leaves(batch)) == found
