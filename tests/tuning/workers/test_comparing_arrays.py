"""What comparing needs of arrays, a piece at a time."""

from __future__ import annotations

import math
import sys
from types import SimpleNamespace
from typing import Any

import pytest

np = pytest.importorskip("numpy")

from gpudoctor.tuning.workers import comparing_arrays  # noqa: E402
from gpudoctor.tuning.workers.comparing import Step  # noqa: E402
from gpudoctor.tuning.workers.comparing_arrays import copied, do_step, product_error, relative_error  # noqa: E402
from gpudoctor.tuning.workers.precision import make_precision  # noqa: E402

ONES = np.ones(4)


@pytest.mark.parametrize(
    ("values", "reference", "error"),
    [
        pytest.param([ONES], [ONES], 0.0, id="equal"),
        pytest.param([ONES, ONES * 1.5], [ONES, ONES], 0.5, id="the worst array counts"),
        pytest.param([ONES * 1.5, ONES], [ONES, ONES], 0.5, id="whichever it is"),
        pytest.param([ONES * 1j], [ONES + 0j], math.sqrt(2), id="complex"),
        pytest.param([np.float32([1, 2])], [np.array([1, 4.0])], 2 / math.sqrt(17), id="of another type"),
        pytest.param([ONES], [np.array([1, 1, 1, math.inf])], 0.0, id="infinite in the reference"),
        pytest.param([np.array([1, math.nan])], [np.ones(2)], math.inf, id="not finite here alone"),
        pytest.param([ONES], [ONES * 0], math.inf, id="the reference is zero"),
        pytest.param([ONES * 0], [ONES * 0], 0.0, id="both are"),
        pytest.param([ONES], [np.ones(5)], None, id="other shapes"),
        pytest.param([ONES, ONES], [ONES], None, id="more arrays"),
        pytest.param([], [ONES], None, id="no values"),
        pytest.param([ONES], None, None, id="no reference"),
    ],
)
def test_relative_error(values: Any, reference: Any, error: float | None) -> None:
    assert relative_error(values, reference) == (None if error is None else pytest.approx(error))


@pytest.mark.parametrize(
    ("kind", "wider"),
    [
        *(("float16", "float64"), ("float32", "float64"), ("float64", "float64")),
        *(("complex64", "complex128"), ("complex128", "complex128"), ("int32", "int32")),
    ],
)
def test_a_copy_is_of_its_own_and_wider_if_asked(kind: str, wider: str) -> None:
    array = np.arange(3).astype(kind)
    for promoted, expected in ((False, kind), (True, wider)):
        twin, name = copied((array, "a"), promoted=promoted)
        assert (twin.dtype, name, twin.tolist()) == (expected, "a", array.tolist())
        assert not np.shares_memory(twin, array)


def test_a_step_gives_its_inexact_arrays_and_what_is_not_finite() -> None:
    returned = {
        "spectrum": np.array([1 + 1j, math.nan]),
        "power": [np.array([math.inf, -math.inf, 2.0])],
        "counts": np.arange(3),
        "level": 0.5,
        "name": "a",
    }
    workload = SimpleNamespace(step=lambda batch: returned if batch == "batch" else None)
    watched: Any = None
    step = do_step(workload, watched, lambda: "batch", 1, True)
    assert [value.tolist() for value in step.outputs or ()][1:] == [[math.inf, -math.inf, 2.0], 0.5]
    assert (step.not_finite, step.loss, step.trained, step.stepped, step.gradients) == (3, None, False, True, None)
    assert do_step(workload, watched, lambda: "batch", 1, False) == Step(not_finite=3)
    returned["power"][0][:] = 7
    assert step.outputs is not None
    assert step.outputs[1].tolist() == [math.inf, -math.inf, 2.0], "it is kept as it was"


@pytest.mark.parametrize("rounds", [True, False])
@pytest.mark.parametrize("device", ["cpu", "cuda:0"])
def test_a_product_shows_what_rounds_its_factors(device: str, rounds: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    class OnDevice:
        """An array of CuPy's, whose products may use TF32."""

        def __init__(self, array: Any) -> None:
            self.array = array

        def __matmul__(self, other: OnDevice) -> OnDevice:
            left, right = (tf32(each.array) if rounds else each.array for each in (self, other))
            return OnDevice(left @ right)

        def get(self) -> Any:
            return self.array

    def tf32(array: Any) -> Any:
        bits = array.view("float32").view("int32")
        return ((bits + 0x1000) & ~0x1FFF).view("float32").view("complex64")

    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(asarray=OnDevice))  # type: ignore[arg-type,unused-ignore]
    error = product_error(make_precision("complex64", "cpu"), device)
    assert error is not None
    if device == "cuda:0" and rounds:
        assert 1e-4 < error < 1e-3
    else:
        assert 1e-9 < error < 1e-6
    assert product_error(make_precision("complex128", "cpu"), device) is None


def test_memory_of_cupy_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    freed: list[str] = []

    def pool(name: str) -> Any:
        return lambda: SimpleNamespace(free_all_blocks=lambda: freed.append(name))

    monkeypatch.delitem(sys.modules, "cupy", raising=False)
    comparing_arrays.free_memory()
    cupy = SimpleNamespace(get_default_memory_pool=pool("device"), get_default_pinned_memory_pool=pool("pinned"))
    monkeypatch.setitem(sys.modules, "cupy", cupy)  # type: ignore[arg-type,unused-ignore]
    comparing_arrays.free_memory()
    assert freed == ["device", "pinned"]


@pytest.mark.parametrize("missing", ["dtype", "shape", "astype"])
def test_what_only_resembles_an_array_is_left_alone(missing: str) -> None:
    parts: dict[str, Any] = {"dtype": np.dtype("float32"), "shape": (3,), "astype": lambda kind: kind}
    alike = SimpleNamespace(**{name: part for name, part in parts.items() if name != missing})
    assert copied(alike, promoted=True) is alike
    assert comparing_arrays._arrays([alike, np.ones(1)]) == [np.ones(1)]
