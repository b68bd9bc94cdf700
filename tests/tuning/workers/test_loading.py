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
from gpudoctor.tuning.workers.loading import QUEUED, REPEATS, copy_rate, loading, transfers, worker_counts  # noqa: E402
from tests.tuning.workers.asked import Asked  # noqa: E402

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


def test_the_median_of_five_queues_counts() -> None:
    seconds = [9.0, 1.0, 5.0, 2.0, 4.0, 3.0]
    readings = iter([mark for second in seconds for mark in (0.0, second)])
    rate = copy_rate(torch.ones(1000).clone, lambda: None, torch.ones(1000), lambda: next(readings))
    assert rate == pytest.approx(QUEUED * 4000 / 3.0 / 1e9)


@pytest.mark.parametrize(
    ("workers", "marks", "limit", "seconds"),
    [
        pytest.param(0, [0, 1, 2, 3, 9], 3.0, 1.0, id="without workers every batch counts"),
        pytest.param(1, [0, 0, 0, 1, 2, 3, 9], 3.0, 1.0, id="what one worker loaded ahead does not"),
        pytest.param(2, [0, 0, 0, 0, 0, 2, 4, 6, 9], 6.0, 2.0, id="nor what two did"),
        pytest.param(4, [0, 1, 2, 4, 9], 4.0, 2.0, id="half of a few batches at most"),
        pytest.param(0, [5, 8, 9], 1.0, 3.0, id="two batches whatever the limit"),
        pytest.param(1, [5, 8, 9], 1.0, None, id="too little to say"),
        pytest.param(0, [0], 9.0, None, id="a data set of one batch"),
    ],
)
def test_the_seconds_of_a_batch(
    workers: int, marks: list[float], limit: float, seconds: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    readings = iter([0, *marks])
    monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=lambda: next(readings)))
    assert module._batch_seconds(marks, workers, limit) == seconds


@pytest.mark.parametrize(
    ("step_seconds", "seconds", "expected"),
    [
        pytest.param(None, [4.0, 2.0, 1.0], [(0, 2.0, None), (1, 4.0, None), (2, 8.0, None)], id="no time of a step"),
        pytest.param(2.0, [2.0, 4.0, 1.0], [(0, 4.0, 0.5), (1, 2.0, 0.5), (2, 8.0, 0.0)], id="until no step waits"),
        pytest.param(2.0, [2.0, 1.0, 1.0], [(0, 4.0, 0.5), (1, 8.0, 0.0)], id="one worker is enough"),
        pytest.param(2.0, [2.0, None, 1.0], [(0, 4.0, 0.5)], id="workers that cannot run"),
    ],
)
def test_which_numbers_of_workers_are_tried(
    step_seconds: float | None,
    seconds: list[float | None],
    expected: list[tuple[int, float, float | None]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[tuple[Any, ...]] = []

    def measure(workload: Any, dataset: Any, *numbers: float) -> tuple[float | None, int]:
        asked.append(numbers)
        return seconds[len(asked) - 1], 8

    monkeypatch.setattr(module, "_measure", measure)
    found = loading(with_dataset(Slow()), 8, step_seconds, 6.0, cpus=2)
    assert [(each.workers, each.samples_per_second, each.wait_fraction) for each in found] == expected
    assert asked == [(8, workers, 2.0) for workers in range(len(asked))]


@pytest.mark.parametrize(("affinity", "count", "cpus"), [({0, 1, 2}, 8, 3), (None, 8, 8), (None, None, 1)])
def test_the_processors_that_this_process_may_use(
    affinity: set[int] | None, count: int | None, cpus: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = {} if affinity is None else {"sched_getaffinity": lambda pid: affinity if pid == 0 else set()}
    monkeypatch.setattr(module, "os", SimpleNamespace(cpu_count=lambda: count, **own))
    monkeypatch.setattr(module, "worker_counts", lambda found: (found,))
    monkeypatch.setattr(module, "_measure", lambda workload, dataset, size, workers, limit: (1.0, size))
    (only,) = loading(with_dataset(Slow()), 8, None, 6.0)
    assert only.workers == cpus


@pytest.mark.parametrize(
    ("workers", "forks", "answer"),
    [(1, False, (None, 8)), (1, True, None), (0, False, None)],
    ids=["a data set that cannot be sent", "a forked worker", "no worker"],
)
def test_whose_fault_it_is_that_nothing_is_loaded(
    workers: int, forks: bool, answer: tuple[None, int] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> Any:
        raise TypeError("cannot be pickled")

    monkeypatch.setattr(module, "_forks", lambda: forks)
    monkeypatch.setattr(module, "_loader", fail if answer is None else lambda *_: None)
    monkeypatch.setattr(module, "_batch_seconds", fail)
    if answer is None:
        with pytest.raises(TypeError, match="pickled"):
            module._measure(None, Slow(), 8, workers, 1.0)
    else:
        assert module._measure(None, Slow(), 8, workers, 1.0) == answer


def test_a_batch_larger_than_the_data_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_loader", lambda workload, dataset, size, workers: size)
    monkeypatch.setattr(module, "_batch_seconds", lambda loader, workers, limit: float(loader))
    assert module._measure(None, Slow(), 1000, 0, 1.0) == (16.0, 16)
    assert module._measure(None, Stream(), 1000, 0, 1.0) == (1000.0, 1000)


@pytest.mark.parametrize(
    ("platform", "methods", "forks"),
    [("linux", ["fork"], True), ("linux", ["spawn"], False), ("darwin", ["fork"], False)],
)
def test_if_workers_are_forked(platform: str, methods: list[str], forks: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "sys", SimpleNamespace(platform=platform))
    monkeypatch.setattr(module, "multiprocessing", Asked({"get_all_start_methods": methods}))
    assert module._forks() is forks


@pytest.mark.parametrize(("workers", "forks", "context"), [(2, True, "fork"), (2, False, None), (0, True, None)])
def test_how_batches_are_loaded(
    workers: int, forks: bool, context: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "DataLoader", lambda dataset, **options: (dataset, options))
    monkeypatch.setattr(module, "RandomSampler", lambda dataset, **options: options)
    monkeypatch.setattr(module, "_forks", lambda: forks)
    options = {"batch_size": 8, "drop_last": True, "num_workers": workers, "multiprocessing_context": context}
    slow, stream = Slow(), Stream()
    sampler = {"replacement": True, "num_samples": 2**31}
    assert module._loader(None, slow, 8, workers) == (slow, {**options, "sampler": sampler, "collate_fn": None})
    collated = module._loader(SimpleNamespace(collate_fn=len), stream, 8, workers)
    assert collated == (stream, {**options, "sampler": None, "collate_fn": len})


ALL_WAYS = [
    (False, False, 1.0, None),
    (False, True, 1.0, None),
    (True, False, 1.0, 1.0),
    (True, True, 1.0, 1.0),
]


@pytest.mark.parametrize(
    ("batch_bytes", "pinning", "now", "count", "expected"),
    [
        pytest.param(64, None, 10.0, 64, ALL_WAYS, id="a batch"),
        pytest.param(0, None, 10.0, 1, ALL_WAYS, id="an empty batch"),
        pytest.param(2**40, None, 10.0, 2**28, ALL_WAYS, id="a large batch"),
        pytest.param(64, RuntimeError("cannot lock"), 10.0, 64, ALL_WAYS[:2], id="no memory to pin"),
        pytest.param(64, None, 15.0, 64, [], id="no time is left"),
    ],
)
def test_which_ways_to_a_device_are_measured(
    batch_bytes: int,
    pinning: Exception | None,
    now: float,
    count: int,
    expected: list[Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = Asked()
    source._answers = {"pin_memory": pinning or source, "to": "the copy"}
    stand_in = Asked({"randint": source, "Generator": Asked()}, uint8="uint8")
    readings = iter([10.0])
    monkeypatch.setattr(module, "torch", stand_in)
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: next(readings, now)))

    def rate(copy: Callable[[], Any], synchronize: Callable[[], None], sent: Any) -> float:
        assert (copy(), sent) == ("the copy", source)
        synchronize()
        return 1.0

    monkeypatch.setattr(module, "copy_rate", rate)
    found = transfers("cuda:1", batch_bytes, limit_seconds=5.0)
    assert [(each.pinned, each.non_blocking, each.gb_s, each.copy_gb_s) for each in found] == expected
    assert stand_in.calls[1][:3] == ("randint", 256, (count,))
    assert set(map(str, stand_in.calls[2:])) == ({"('cuda.synchronize', 'cuda:1')"} if found else set())
    copies = [call[1:] for call in source.calls if call[0] == "to"]
    ways = [non_blocking for pinned, non_blocking, *_ in expected for _ in range(1 + pinned)]
    assert copies == [("cuda:1", {"non_blocking": non_blocking}) for non_blocking in ways]


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
