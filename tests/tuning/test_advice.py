"""The choices that follow from measured transfers and loading."""

import pytest

from gpudoctor.model.tuning import Loading, Transfer
from gpudoctor.tuning.advice import choose_transfer, choose_workers, fits_on_device, wait_fraction


def transfers(pageable: float, pageable_queued: float, pinned: float, pinned_queued: float) -> tuple[Transfer, ...]:
    return (
        Transfer(pinned=False, non_blocking=False, gb_s=pageable),
        Transfer(pinned=False, non_blocking=True, gb_s=pageable_queued),
        Transfer(pinned=True, non_blocking=False, gb_s=pinned, copy_gb_s=24.0),
        Transfer(pinned=True, non_blocking=True, gb_s=pinned_queued, copy_gb_s=26.0),
    )


@pytest.mark.parametrize(
    ("rates", "chosen"),
    [
        pytest.param((6, 6, 4, 5), (False, False), id="pinning costs more than it gains"),
        pytest.param((6, 6, 9, 12), (True, True), id="pinned and queued"),
        pytest.param((6, 6, 11.7, 12), (True, False), id="simpler, within 3 %"),
        pytest.param((5.9, 6, 6, 6), (False, False), id="all alike"),
        pytest.param((5.7, 6, 5, 5), (False, True), id="beyond 3 %"),
    ],
)
def test_choose_transfer(rates: tuple[float, float, float, float], chosen: tuple[bool, bool]) -> None:
    transfer = choose_transfer(transfers(*rates))
    assert transfer is not None
    assert (transfer.pinned, transfer.non_blocking) == chosen


def test_a_thread_that_pins_meanwhile_leaves_the_copy_alone_to_count() -> None:
    transfer = choose_transfer(transfers(6, 6, 4, 5), pinned_in_background=True)
    assert transfer is not None
    assert (transfer.pinned, transfer.non_blocking) == (True, True)


def test_nothing_measured_nothing_chosen() -> None:
    assert choose_transfer(()) is None
    assert choose_workers(()) is None


def loadings(*pairs: tuple[int, float, float | None]) -> tuple[Loading, ...]:
    return tuple(Loading(workers=w, samples_per_second=rate, wait_fraction=wait) for w, rate, wait in pairs)


@pytest.mark.parametrize(
    ("measured", "workers"),
    [
        pytest.param(loadings((0, 100, 0.5), (1, 90, 0.2), (2, 180, 0.0)), 2, id="the step is fed by two"),
        pytest.param(loadings((0, 100, 0.01), (1, 90, 0.0)), 0, id="nothing to wait for"),
        pytest.param(loadings((0, 100, 0.5), (2, 180, 0.1), (4, 190, 0.09), (8, 170, 0.12)), 2, id="never fed"),
        pytest.param(loadings((0, 100, None), (2, 180, None), (4, 184, None)), 2, id="time of a step unknown"),
    ],
)
def test_choose_workers(measured: tuple[Loading, ...], workers: int) -> None:
    assert choose_workers(measured) == workers


def test_fits_on_device() -> None:
    assert fits_on_device(50_000, usable_bytes=100_000, peak_bytes=50_000) is True
    assert fits_on_device(50_001, usable_bytes=100_000, peak_bytes=50_000) is False
    assert fits_on_device(None, usable_bytes=100_000, peak_bytes=50_000) is None
    assert fits_on_device(51_000, usable_bytes=None, peak_bytes=50_000) is None


@pytest.mark.parametrize(
    ("batch_seconds", "step_seconds", "workers", "expected"),
    [
        pytest.param(0.1, 0.3, 0, 0.25, id="without workers the step waits for the whole batch"),
        pytest.param(0.1, 0.3, 2, 0.0, id="workers keep up"),
        pytest.param(0.4, 0.3, 2, 0.25, id="workers do not"),
        pytest.param(0.4, None, 2, None, id="unknown step"),
    ],
)
def test_wait_fraction(batch_seconds: float, step_seconds: float | None, workers: int, expected: float | None) -> None:
    assert wait_fraction(batch_seconds, step_seconds, workers) == pytest.approx(expected)
