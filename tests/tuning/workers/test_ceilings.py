"""The rates that a device reaches at best, on the host."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest

from gpudoctor.tuning.workers import ceilings
from gpudoctor.tuning.workers.ceilings import copy_gb_s, product_tflops
from gpudoctor.tuning.workers.devices import Host
from gpudoctor.tuning.workers.library import ArrayLibrary, Library
from gpudoctor.tuning.workers.precision import make_precision

GIB = 2**30


def library_of(name: str) -> Library:
    pytest.importorskip(name)
    if name == "numpy":
        return ArrayLibrary("cpu")
    from gpudoctor.tuning.workers.torch_library import TorchLibrary

    return TorchLibrary("cpu")


@pytest.mark.parametrize(
    ("library", "precision"),
    [("torch", "fp32"), ("torch", "bf16"), ("numpy", "complex64"), ("numpy", "complex128")],
)
def test_a_product_reaches_more_than_one_of_python_would(library: str, precision: str) -> None:
    rate = product_tflops(Host(), make_precision(precision, "cpu"), 4 * GIB, library_of(library))
    assert rate is not None
    assert 1e-5 < rate < 100


@pytest.mark.parametrize("library", ["torch", "numpy"])
def test_a_copy_counts_what_is_read_and_what_is_written(library: str) -> None:
    arrays = library_of(library)
    rate = copy_gb_s(Host(), GIB, arrays)
    assert rate is not None
    source, target = arrays.vector(2**24), arrays.vector(2**24)
    target[...] = source
    started = time.perf_counter()
    target[...] = source
    roughly = 2 * 4 * 2**24 / (time.perf_counter() - started) / 1e9
    assert roughly / 20 < rate < roughly * 20


@pytest.mark.parametrize("library", ["torch", "numpy"])
def test_without_memory_there_is_no_ceiling(library: str) -> None:
    arrays = library_of(library)
    precision = make_precision("fp32" if library == "torch" else "complex64", "cpu")
    assert product_tflops(Host(), precision, 1000, arrays) is None
    assert copy_gb_s(Host(), 4, arrays) is None


def test_the_data_is_random_with_zero_mean() -> None:
    torch = pytest.importorskip("torch")
    matrix = library_of("torch").matrix("bf16", 64)
    assert matrix.dtype is torch.bfloat16
    assert abs(float(matrix.float().mean())) < 0.1
    assert float(matrix.float().std()) > 0.9


DEVICE: Any = SimpleNamespace(kind="cuda", free_memory=lambda: None)
SMALLEST = 3 * 4 * 512**2


@pytest.mark.parametrize(
    ("free_bytes", "seconds", "sizes"),
    [
        pytest.param(4 * SMALLEST - 1, 0.1, [], id="not even the smallest fits"),
        pytest.param(4 * SMALLEST, 0.1, [512], id="the smallest fits"),
        pytest.param(16 * SMALLEST, 0.1, [512, 1024], id="and the next"),
        pytest.param(None, 1.0, [512, 1024, 2048, 4096, 8192], id="the next is just in time"),
        pytest.param(None, 1.01, [512], id="the next takes too long"),
    ],
)
def test_how_large_the_products_become(
    monkeypatch: pytest.MonkeyPatch, free_bytes: int | None, seconds: float, sizes: list[int]
) -> None:
    made: list[int] = []
    arrays: Any = SimpleNamespace(
        operations=2, item_bytes=lambda _name: 4, matrix=lambda _name, size: made.append(size)
    )
    precision = SimpleNamespace(name="fp32", apply_switches=lambda: None)
    monkeypatch.setitem(ceilings.LIMIT_SECONDS, "cuda", 8.0 * ceilings.REPEATS)
    monkeypatch.setattr(ceilings, "_median_seconds", lambda device, work: seconds)
    rate = product_tflops(DEVICE, precision, free_bytes, arrays)
    assert made[::2] == sizes
    assert rate == (2 * sizes[-1] ** 3 / seconds / 1e12 if sizes else None)


@pytest.mark.parametrize(("free_bytes", "count"), [(31, None), (32, 1), (64, 2), (2**40, 2**28), (None, 2**28)])
def test_how_large_the_copy_becomes(monkeypatch: pytest.MonkeyPatch, free_bytes: int | None, count: int | None) -> None:
    arrays: Any = SimpleNamespace(vector=lambda size: [size])
    monkeypatch.setattr(ceilings, "_median_seconds", lambda device, work: 2.0)
    assert copy_gb_s(DEVICE, free_bytes, arrays) == (None if count is None else pytest.approx(4 * count / 1e9))


def test_the_time_of_a_run_is_the_median_of_several_after_two_for_warming_up() -> None:
    log: list[str] = []

    def time_steps(work: Any, count: int, deadline: float) -> tuple[list[float], None]:
        log.append("timed")
        assert deadline - time.perf_counter() == pytest.approx(ceilings.LIMIT_SECONDS["cpu"], abs=0.1)
        return [float(number) for number in range(count)][::-1], None

    device: Any = SimpleNamespace(kind="cpu", synchronize=lambda: log.append("wait"), time_steps=time_steps)
    seconds = ceilings._median_seconds(device, lambda: log.append("work"))
    assert log == ["work", "work", "wait", "timed"]
    assert seconds == int(seconds), "of an odd number of runs, it is one of them"
