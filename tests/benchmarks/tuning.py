"""How good the answers of the tuner are on simulated devices, beside those of other tuners.

    python tests/benchmarks/tuning.py [--first SEED] [--seeds N] [--noise SHARE ...]

Regret is the share of throughput lost against the best of a dense grid of batch sizes in every precision whose numerics
pass. The other tuners do not search the precision: each gets the best one. An answer that does not fit loses all.
"""

from __future__ import annotations

import argparse
import functools
import statistics
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
from gpudoctor.model.record import record
from gpudoctor.model.tuning import OK, Measurement
from gpudoctor.tuning.known import Limits
from gpudoctor.tuning.recommend import recommend
from gpudoctor.tuning.search import SearchResult, search, without_failures
from tests.benchmarks.tuning_policies import POLICIES
from tests.tuning.simulated_device import HELD_OUT, SILENT, TUNED_ON, Ranges, Scenario, SimulatedDevice, draw

LARGEST = 2**18
FAMILIES = {
    "the family that the constants were chosen on": TUNED_ON,
    "the family held out": HELD_OUT,
    "the first family, on devices that tell no memory": SILENT,
}


@record
class Best:
    """The best true rates: of all batch sizes, of powers of two, of all that leave the allocator's cache alone."""

    precision: str
    rate: float
    power_rate: float
    calm_rate: float


@record
class Run:
    """One answer, and what it cost."""

    answer: tuple[str, int]
    precisions: int
    trials: tuple[Measurement, ...]
    seconds: float


@record
class Figures:
    """All runs of one tuner: the regrets of each as shares, the rest as means over the runs."""

    regrets: tuple[float, ...]
    power_regrets: tuple[float, ...]
    calm_regrets: tuple[float, ...]
    trials: float
    failures: float
    unfit: float
    same: float
    seconds: float

    @property
    def p90(self) -> float:
        """Return the regret that nine runs of ten do not exceed."""
        return ninetieth(self.regrets)


def ninetieth(values: Iterable[float]) -> float:
    """Return the ninetieth percentile."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(0.9 * len(ordered)))]


def sizes() -> Iterator[int]:
    """Yield the batch sizes of the dense grid: each up to 64, then by 1 %, and every power of two."""
    size = 1
    while size <= LARGEST:
        yield size
        size = min(max(size + 1, size * 101 // 100), 1 << size.bit_length())


@functools.cache
def best_of(seed: int, ranges: Ranges) -> Best:
    """Return the best of the dense grid of a scenario."""
    scenario = draw(seed, ranges)
    rates: list[tuple[float, str, int]] = []
    for precision, traits in scenario.precisions.items():
        if traits.passes:
            rates += [(rate, precision, size) for size, rate in _rates(scenario, precision)]
    rate, precision, _ = max(rates)
    powers = [rate for rate, _, size in rates if size & (size - 1) == 0]
    calm = [rate for rate, name, size in rates if scenario.held(name, size) <= scenario.memory_bytes]
    return Best(precision=precision, rate=rate, power_rate=max(powers), calm_rate=max(calm))


def _rates(scenario: Scenario, precision: str) -> Iterator[tuple[int, float]]:
    fastest, misses = 0.0, 0
    for size in sizes():
        rate = scenario.rate(precision, size)
        fastest = max(fastest, rate)
        misses = misses + 1 if rate < fastest / 2 else 0
        if misses > 20:
            return
        yield size, rate


def gpudoctor_run(scenario: Scenario, noise: float, repeat: int) -> Run | None:
    """Return what the whole search over all precisions recommends; None where that is nothing."""
    device = SimulatedDevice(scenario, noise, repeat)
    limits = Limits(memory_bytes=scenario.memory_bytes if scenario.measures_memory else None)
    numerics = [device.compare(precision) for precision in scenario.precisions]
    results: dict[str, SearchResult] = {}
    for precision in scenario.precisions:
        results[precision] = search(device, precision, without_failures(limits, precision, results), lambda _: None)
    advice = recommend(device, tuple(results.values()), numerics, limits)
    if advice is None:
        return None
    answer = advice.precision, advice.batch_size
    return Run(answer=answer, precisions=len(results), trials=tuple(device.trials), seconds=device.now())


def policy_run(name: str, scenario: Scenario, precision: str, noise: float, repeat: int) -> Run:
    """Return what another tuner's policy answers in this precision."""
    device = SimulatedDevice(scenario, noise, repeat)
    size = POLICIES[name](device, precision, scenario.memory_bytes)
    return Run(answer=(precision, size), precisions=1, trials=tuple(device.trials), seconds=device.now())


def figures(name: str, seeds: Iterable[int], ranges: Ranges, noise: float) -> Figures:
    """Return the figures of one tuner: "gpudoctor", or the name of a policy."""
    pairs: list[tuple[Scenario, Best, Run, Run]] = []
    for seed in seeds:
        scenario, best = draw(seed, ranges), best_of(seed, ranges)
        runs = [
            gpudoctor_run(scenario, noise, repeat)
            if name == "gpudoctor"
            else policy_run(name, scenario, best.precision, noise, repeat)
            for repeat in (0, 1)
        ]
        assert runs[0] is not None
        assert runs[1] is not None
        pairs.append((scenario, best, runs[0], runs[1]))
    rates = [scenario.rate(*run.answer) for scenario, _, run, _ in pairs]
    return Figures(
        regrets=tuple(1 - rate / best.rate for rate, (_, best, _, _) in zip(rates, pairs, strict=True)),
        power_regrets=tuple(1 - rate / best.power_rate for rate, (_, best, _, _) in zip(rates, pairs, strict=True)),
        calm_regrets=tuple(1 - rate / best.calm_rate for rate, (_, best, _, _) in zip(rates, pairs, strict=True)),
        trials=statistics.mean(len(run.trials) / run.precisions for _, _, run, _ in pairs),
        failures=statistics.mean(sum(m.status != OK for m in run.trials) for _, _, run, _ in pairs),
        unfit=statistics.mean(_does_not_fit(scenario, run) for scenario, _, run, _ in pairs),
        same=statistics.mean(first.answer == second.answer for _, _, first, second in pairs),
        seconds=statistics.mean(run.seconds for _, _, run, _ in pairs),
    )


def _does_not_fit(scenario: Scenario, run: Run) -> bool:
    precision, size = run.answer
    spilt = scenario.spills and scenario.held(precision, size) > scenario.memory_bytes
    return spilt or not scenario.fits(precision, size)


def prediction_errors(seeds: Iterable[int], ranges: Ranges, noise: float) -> list[float]:
    """Return the relative errors of the memory that was predicted before it was measured, from three points on."""
    errors: list[float] = []
    for seed in seeds:
        run = gpudoctor_run(draw(seed, ranges), noise, 0)
        assert run is not None
        seen: dict[str, set[int]] = {}
        for m in run.trials:
            known = seen.setdefault(m.precision, set())
            if m.peak_memory_bytes and m.predicted_memory_bytes and m.batch_size not in known and len(known) > 1:
                errors.append(m.predicted_memory_bytes / m.peak_memory_bytes - 1)
            known.add(m.batch_size)
    return errors


def row(name: str, result: Figures) -> str:
    """Return a line of the table."""
    regret = result.regrets
    shares = [statistics.median(regret), statistics.mean(regret), result.p90, max(regret)]
    cells = [
        name,
        *(f"{100 * share:.1f} %" for share in shares),
        f"{100 * statistics.median(result.power_regrets):.1f} %",
    ]
    cells += [
        f"{result.trials:.1f}",
        f"{result.failures:.2f}",
        f"{100 * result.unfit:.1f} %",
        f"{100 * result.same:.0f} %",
    ]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=1000, help="the constants were chosen on 0 to 399")
    parser.add_argument("--seeds", type=int, default=400)
    parser.add_argument("--noise", type=float, nargs="+", default=[0.01, 0.05])
    options = parser.parse_args()
    seeds = range(options.first, options.first + options.seeds)
    for family, ranges in FAMILIES.items():
        for noise in options.noise:
            print(f"\n{options.seeds} workloads of {family}, noise {noise:.0%}:\n")
            print(
                "| tuner | median regret | mean | p90 | max | median against 2^k | trials | OOM | does not fit | same |"
            )
            print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
            for name in ("gpudoctor", *POLICIES):
                result = figures(name, seeds, ranges, noise)
                print(row(name, result), flush=True)
                if name == "gpudoctor":
                    ours = result
            print(
                f"\ngpudoctor against what leaves the allocator's cache alone: median"
                f" {statistics.median(ours.calm_regrets):.1%}, p90 {ninetieth(ours.calm_regrets):.1%};"
                f" {ours.seconds:.0f} virtual seconds a run."
            )
            errors = [abs(error) for error in prediction_errors(seeds, ranges, noise)]
            if errors:
                print(
                    f"Memory predicted within {statistics.median(errors):.1%} (median), {ninetieth(errors):.1%} (p90):"
                    f" {len(errors)} predictions from two points on."
                )


if __name__ == "__main__":
    main()
