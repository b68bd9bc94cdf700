"""How good the answers of `gpudoctor tune` are on real trainings on this CPU, beside those of real other tuners.

    python tests/benchmarks/tuning_real.py [--workload NAME ...] [--budget S] [--runs N] [--state FILE] [--again]

The interpreter needs torch; Lightning and accelerate are asked if it has them. Regret is the share of throughput lost
against the best point of a dense grid, which is measured in the same run, in shuffled rounds, by code of its own, each
point in a process of its own; points that are far behind leave after two rounds. The answers are points of the grid
too. The other tuners do not search the precision: each gets the best one. Switches that tune recommends do not count.
--state keeps each finished workload, so that an interrupted run continues there.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tests.benchmarks.real_rates import SCREENING, Point
from tests.benchmarks.real_rates import Rates as Measured
from tests.benchmarks.real_tuners import TUNERS
from tests.benchmarks.real_workloads import WORKLOADS

ROOT = Path(__file__).resolve().parents[2]
PRECISIONS = ("fp32", "bf16")
ROUNDS = 7
MEDIAN_GOAL, WORST_GOAL, SAME_GOAL, SAME_WITHIN = 0.03, 0.10, 0.9, 0.03
OVERTIME = 1.1
"""Of the budget, within which a run must end; one step more is allowed."""

Rates = Mapping[Point, float]


def sizes(largest: int) -> list[int]:
    """Return 2^k and 1.5*2^k from 1 on, up to `largest`."""
    powers = [1 << exponent for exponent in range(largest.bit_length())]
    return sorted(size for power in powers for size in {power, power + power // 2} if size <= largest)


def tune_once(name: str, budget: float) -> dict[str, Any]:
    """Return the answer of one run of the program, its seconds and whether the budget cut it short."""
    workload = WORKLOADS[name]
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder, "tuning.json")
        command = [sys.executable, "-m", "gpudoctor", "tune", "--device", "cpu"]
        command += ["--workload", f"{ROOT / 'tests/benchmarks/real_workloads.py'}:{workload.__name__}"]
        command += ["--max-batch", str(workload.largest), "--budget", str(budget)]
        command += ["--format", "json", "--output", str(output), "--profile", str(Path(folder, "gpudoctor.env"))]
        began = time.monotonic()
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        seconds = time.monotonic() - began
        if done.returncode not in (0, 1):  # 1: it recommends nothing, which loses everything
            raise SystemExit(f"tune ended with {done.returncode}: {done.stderr[-2000:]}")
        tuning = json.loads(output.read_text(encoding="utf-8"))
    advice = tuning["recommendation"] or {"precision": "none", "batch_size": 0, "confidence": ""}
    return {
        "precision": advice["precision"],
        "batch_size": advice["batch_size"],
        "confidence": advice["confidence"],
        "interrupted": tuning["interrupted"],
        "seconds": seconds,
    }


def others(name: str, precision: str) -> dict[str, dict[str, Any]]:
    """Return the answers of the other tuners, which get the best precision; why there is none if there is none."""
    found: dict[str, dict[str, Any]] = {}
    for tuner, find in TUNERS.items():
        began = time.monotonic()
        try:
            size = find(WORKLOADS[name], precision)
        except ImportError as error:
            found[tuner] = {"problem": f"not installed: {error.name}"}
            continue
        except Exception as error:
            found[tuner] = {"problem": f"{type(error).__name__}: {error}".splitlines()[0]}
            continue
        found[tuner] = {"precision": precision, "batch_size": size, "seconds": time.monotonic() - began}
    return found


def benchmark(name: str, budget: float, runs: int, rounds: int) -> dict[str, Any]:
    """Return everything measured of one workload."""
    workload = WORKLOADS[name]
    ours = [tune_once(name, budget) for _ in range(runs)]
    grid = {(precision, size) for precision in PRECISIONS for size in sizes(workload.largest)}
    grid |= {(run["precision"], run["batch_size"]) for run in ours if run["batch_size"]}
    measured = Measured(name)
    quick = measured.measure(grid, min(SCREENING, rounds))
    theirs = others(name, max(quick, key=quick.__getitem__)[0])
    answers = {(run["precision"], run["batch_size"]) for run in (*ours, *theirs.values()) if run.get("batch_size")}
    measured.measure(answers - grid, min(SCREENING, rounds))
    rates = measured.measure(measured.close_to_best() | answers, max(rounds - SCREENING, 0))
    spreads = measured.spreads()
    listed = [[*point, round(rate, 2), round(spreads[point], 3)] for point, rate in sorted(rates.items())]
    return {"budget": budget, "grid": listed, "gpudoctor": ours, "others": theirs}


def regret(rates: Rates, run: Mapping[str, Any]) -> float:
    """Return the share of the best throughput that an answer loses."""
    return 1 - rates.get((run["precision"], run["batch_size"]), 0.0) / max(rates.values())


def rates_of(result: Mapping[str, Any]) -> Rates:
    """Return the grid of a finished workload."""
    return {(precision, size): rate for precision, size, rate, *_ in result["grid"]}


def agreements(results: Mapping[str, Any]) -> Iterator[bool]:
    """Yield for each pair of runs of a workload whether their answers are the same, or as fast within the goal."""
    for result in results.values():
        rates = rates_of(result)
        for pair in itertools.combinations(result["gpudoctor"], 2):
            first, second = (rates.get((run["precision"], run["batch_size"]), 0.0) for run in pair)
            yield abs(first - second) <= SAME_WITHIN * max(first, second)


def report(results: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of the report."""
    yield "| workload | best of the grid | tuner | answers | regret | seconds |"
    yield "| --- | --- | --- | --- | --- | --- |"
    ours, theirs = list[float](), dict[str, list[float]]()
    for name, result in results.items():
        rates = rates_of(result)
        precision, size = max(rates, key=rates.__getitem__)
        best = f"{precision}, {size}: {rates[precision, size]:,.0f}/s"
        spread = next((row[3] for row in result["grid"] if len(row) > 3 and row[:2] == [precision, size]), None)
        best += "" if spread is None else f" (middle half {spread:.0%} apart)"
        runs = result["gpudoctor"]
        ours += [regret(rates, run) for run in runs]
        yield _row(name, best, "gpudoctor", rates, runs)
        for tuner, run in result["others"].items():
            if "problem" in run:
                yield f"| {name} | | {tuner} | {run['problem']} | | |"
                continue
            theirs.setdefault(tuner, []).append(regret(rates, run))
            yield _row(name, "", tuner, rates, [run])
    yield ""
    same = list(agreements(results))
    late = [run for result in results.values() for run in result["gpudoctor"]
            if run["seconds"] > OVERTIME * result["budget"] + 1.0]  # fmt: skip
    yield _goal("median regret", statistics.median(ours), MEDIAN_GOAL)
    yield _goal("largest regret", max(ours), WORST_GOAL)
    yield f"same answer, or as fast within {SAME_WITHIN:.0%}: {_share(same):.0%} (goal {SAME_GOAL:.0%})"
    yield f"runs beyond {OVERTIME:.0%} of the budget: {len(late)} of {len(ours)}"
    for tuner, regrets in theirs.items():
        yield f"{tuner}: median regret {statistics.median(regrets):.1%}, largest {max(regrets):.1%}"


def _row(name: str, best: str, tuner: str, rates: Rates, runs: Iterable[Mapping[str, Any]]) -> str:
    columns = [
        ", ".join(f"{run['precision']} {run['batch_size']}" for run in runs),
        ", ".join(f"{regret(rates, run):.1%}" for run in runs),
        ", ".join(f"{run['seconds']:.0f}" for run in runs),
    ]
    return f"| {' | '.join([name, best, tuner, *columns])} |"


def _goal(what: str, value: float, goal: float) -> str:
    return f"{what}: {value:.1%} (goal {goal:.0%}: {'met' if value <= goal else 'missed'})"


def _share(values: list[bool]) -> float:
    return sum(values) / len(values) if values else 1.0


def main() -> None:
    """Measure what the state does not have yet, and print the report of all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workload", nargs="+", choices=[*WORKLOADS], default=[*WORKLOADS])
    parser.add_argument("--budget", type=float, default=60.0)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--state", type=Path, default=Path("tuning_real.json"))
    parser.add_argument("--again", action="store_true", help="measure finished workloads again")
    options = parser.parse_args()
    results = json.loads(options.state.read_text(encoding="utf-8")) if options.state.is_file() else {}
    for name in options.workload:
        if name in results and not options.again:
            continue
        print(f"{name} ...", file=sys.stderr, flush=True)
        began = time.monotonic()
        results[name] = benchmark(name, options.budget, options.runs, options.rounds)
        options.state.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
        print(f"{name}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    print("\n".join(report({name: results[name] for name in options.workload})))


if __name__ == "__main__":
    main()
