"""The rates of a training, each measured in a process of its own, as a user's training is."""

from __future__ import annotations

import multiprocessing
import random
import statistics
import time
from collections.abc import Iterable

from gpudoctor.tuning.workers.precision import make_precision
from tests.benchmarks.real_workloads import WORKLOADS, Training

LEAST_SECONDS, LEAST_STEPS, WARMUP_STEPS = 0.3, 4, 3
"""The first steps of a process are slower: its memory grows until the third of large batches (character LSTM, 256)."""

SCREENING, CLOSE = 2, 0.7
"""Rounds in which all points take part, and the share of the best rate that a point needs for the further ones."""

Point = tuple[str, int]


class Rates:
    """Measures points (precision, batch size) of one workload.

    A process is forked for each point from one that has imported torch and done nothing else: after larger batches the
    memory allocator keeps what makes smaller ones faster, or slower, than in a training of their own.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._found: dict[Point, list[float]] = {}
        self._shuffle = random.Random(2026).shuffle
        self._processes = multiprocessing.get_context("forkserver")
        self._processes.set_forkserver_preload([__name__, "torch._dynamo"])

    def measure(self, points: Iterable[Point], rounds: int) -> dict[Point, float]:
        """Return the samples per second of each point: the median over all rounds; within one they are shuffled."""
        wanted = sorted(set(points))
        with self._processes.Pool(1, maxtasksperchild=1) as pool:
            for _ in range(rounds):
                self._shuffle(wanted)
                for precision, size in wanted:
                    rate = pool.apply(rate_of, (self._name, precision, size))
                    self._found.setdefault((precision, size), []).append(rate)
        return self.medians()

    def medians(self) -> dict[Point, float]:
        """Return the samples per second of each point measured so far."""
        return {point: statistics.median(rates) for point, rates in self._found.items()}

    def spreads(self) -> dict[Point, float]:
        """Return how far the middle half of each point's rates is apart, as a share of the median."""
        shares = {}
        for point, rates in self._found.items():
            low, middle, high = statistics.quantiles(rates, n=4) if len(rates) > 1 else (rates[0],) * 3
            shares[point] = (high - low) / middle
        return shares

    def close_to_best(self) -> set[Point]:
        """Return the points that may be the best, or near it."""
        medians = self.medians()
        return {point for point, rate in medians.items() if rate >= CLOSE * max(medians.values())}


def rate_of(name: str, precision: str, size: int) -> float:
    """Return the samples per second of one batch size in this process."""
    return size / step_seconds(WORKLOADS[name]("cpu", make_precision(precision, "cpu")), size)


def step_seconds(training: Training, size: int) -> float:
    """Return the median of a few steps after those that warm up."""
    batch = training.make_batch(size)
    for _ in range(WARMUP_STEPS):
        training.step(batch)
    seconds: list[float] = []
    while sum(seconds) < LEAST_SECONDS or len(seconds) < LEAST_STEPS:
        began = time.perf_counter()
        training.step(batch)
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds)
