"""Loading with worker processes: rates, the user's own errors, and no process left behind."""

import multiprocessing
import time
from collections.abc import Callable
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")


from torch.utils.data import Dataset, IterableDataset  # noqa: E402

from gpudoctor.tuning.workers import loading as module  # noqa: E402
from gpudoctor.tuning.workers.loading import QUEUED, REPEATS, copy_rate, loading, transfers, worker_counts  # noqa: E402  # noqa: E402

SAMPLE_SECONDS = 0.002


class Slow(Dataset):  # type: ignore[misc]
    """Sixteen samples that take 2 ms each."""

    def __len__(self) -> int:
        return 16

    def __getitem__(self, index: int) -> Any:
        time.sleep(SAMPLE_SECONDS)
        return torch.full((4,), float(index))


class Broken(Slow):
    def __getitem__(self, index: int) -> Any:
        raise KeyError("no such image")


class Stream(IterableDataset):  # type: ignore[misc]
    def __iter__(self) -> Any:
        return iter(range(40))


def with_dataset(dataset: Any, **attributes: Any) -> Any:
    return SimpleNamespace(dataset=dataset, **attributes)


@pytest.fixture(autouse=True)
def _no_process_is_left() -> Any:
    yield
    assert multiprocessing.active_children() == []


def test_a_workload_without_a_data_set() -> None:
    assert loading(SimpleNamespace(), 8, 0.1, 1.0) == ()


@pytest.mark.parametrize(
    ("cpus", "counts"), [(1, (0, 1)), (2, (0, 1, 2)), (6, (0, 1, 2, 4, 6)), (16, (0, 1, 2, 4, 8, 16))]
)
def test_worker_counts(cpus: int, counts: tuple[int, ...]) -> None:
    assert worker_counts(cpus) == counts


def test_workers_load_side_by_side() -> None:
    measured = loading(with_dataset(Slow()), 8, None, 1.5, cpus=2)
    assert [each.workers for each in measured] == [0, 1, 2]
    alone, _, two = measured
    assert alone.samples_per_second < 1 / SAMPLE_SECONDS
    assert two.samples_per_second > alone.samples_per_second
    assert alone.wait_fraction is None


def test_no_more_workers_than_the_step_needs() -> None:
    measured = loading(with_dataset(Slow()), 4, 1.0, 2.0, cpus=8)
    assert [each.workers for each in measured] == [0, 1]
    assert measured[0].wait_fraction is not None
    assert 0 < measured[0].wait_fraction < 0.5
    assert measured[1].wait_fraction == 0


def test_a_batch_larger_than_the_data_set() -> None:
    measured = loading(with_dataset(Slow()), 1000, None, 0.3, cpus=1)
    assert measured[0].samples_per_second < 1 / SAMPLE_SECONDS


def test_an_iterable_data_set_and_a_collate_function() -> None:
    sizes: list[int] = []
    loading(with_dataset(Stream(), collate_fn=lambda samples: sizes.append(len(samples))), 10, None, 0.5, cpus=1)
    assert sizes == [10, 10, 10, 10]  # those of the worker process are counted there


@pytest.mark.parametrize("from_worker", [False, True])
def test_an_error_of_the_data_set_is_the_users(from_worker: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if from_worker:
        monkeypatch.setattr(module, "worker_counts", lambda cpus: (1,))
    with pytest.raises(KeyError, match="no such image") as caught:
        loading(with_dataset(Broken()), 8, 0.1, 1.0, cpus=1)
    if from_worker:
        assert "__getitem__" in str(caught.value)


def test_an_interruption_ends_the_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    readings = iter([0.0, 0.1, 0.2])

    def interrupted() -> float:
        try:
            return next(readings)
        except StopIteration:
            assert multiprocessing.active_children()
            raise KeyboardInterrupt from None

    monkeypatch.setattr(module, "worker_counts", lambda cpus: (2,))
    monkeypatch.setattr(time, "perf_counter", interrupted)
    with pytest.raises(KeyboardInterrupt):
        loading(with_dataset(Slow()), 4, 0.1, 100.0, cpus=2)


def test_random_numbers_go_on_as_before() -> None:
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    loading(with_dataset(Slow()), 4, None, 0.2, cpus=1)
    assert torch.equal(torch.rand(3), expected)


def ticking(seconds: float) -> Callable[[], float]:
    """Return a clock that is read every `seconds`."""
    readings = count()
    return lambda: next(readings) * seconds


def test_the_host_needs_no_transfer() -> None:
    assert transfers("cpu", 1 << 20) == ()


@pytest.mark.parametrize(("batch_bytes", "copied"), [(0, 1), (1, 1), (99, 99), (100, 100), (101, 100)])
def test_how_much_a_transfer_copies(monkeypatch: pytest.MonkeyPatch, batch_bytes: int, copied: int) -> None:
    seen: list[tuple[int, bool, bool]] = []
    monkeypatch.setattr(module, "MAXIMUM_BYTES", 100)
    monkeypatch.setattr(module, "_transfer", lambda source, device, *way: seen.append((source.nbytes, *way)))
    assert transfers("cuda:0", batch_bytes) == ()
    assert seen == [(copied, pinned, queued) for pinned in (False, True) for queued in (False, True)]


def test_no_transfer_is_tried_after_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_transfer", lambda *arguments: pytest.fail("too late"))
    assert transfers("cuda:0", 8, limit_seconds=0.0) == ()


def test_rate_of_a_queue_of_copies() -> None:
    source = torch.arange(1000, dtype=torch.float32)
    copies = []

    def copy() -> object:
        copies.append(source.clone())
        return copies[-1]

    rate = copy_rate(copy, lambda: None, source, ticking(0.5))
    assert rate == pytest.approx(QUEUED * 4000 / 0.5 / 1e9)
    assert len(copies) == QUEUED * (1 + REPEATS)


def test_one_disturbed_queue_does_not_count() -> None:
    readings = iter([0.0, 9.0, 10.0, 10.5, 11.0, 11.5, 12.0, 19.0, 20.0, 20.5, 21.0, 21.5])
    source = torch.ones(1000)
    rate = copy_rate(source.clone, lambda: None, source, lambda: next(readings))
    assert rate == pytest.approx(QUEUED * 4000 / 0.5 / 1e9)


def test_data_that_arrive_changed_are_no_rate() -> None:
    source = torch.ones(10)
    with pytest.raises(RuntimeError, match="changed the data"):
        copy_rate(lambda: source * 2, lambda: None, source)


@pytest.mark.gpu
def test_each_way_on_a_device() -> None:
    if not torch.cuda.is_available():
        pytest.skip("needs a GPU that torch can use")
    measured = transfers("cuda:0", 64 << 20, limit_seconds=30)
    assert [(each.pinned, each.non_blocking) for each in measured] == [
        (False, False),
        (False, True),
        (True, False),
        (True, True),
    ]
    for each in measured:
        assert each.gb_s > 0.1
        assert (each.copy_gb_s is not None) == each.pinned
        assert each.copy_gb_s is None or each.copy_gb_s > each.gb_s / 2
