"""Several GPUs of one machine: the batch for each of them, and how much of their number arrives as speed."""

import os
from collections.abc import Callable, Mapping
from typing import Any

from gpudoctor.model.tuning import Recommendation, Scaling, ScalingPoint, Tuning
from gpudoctor.processes import Worker, WorkerEnded, WorkerSilent
from gpudoctor.tuning.local import Target
from gpudoctor.tuning.throughput import WORTH_IT

POINT_SECONDS = 1.5
"""For the timed steps of one batch size."""


def measure_scaling(
    interpreter: str,
    target: Target,
    tuning: Tuning,
    processes: int,
    seconds: float,
    say: Callable[[str], None] = lambda _: None,
) -> Scaling | None:
    """Return how the recommended training runs on `processes` devices at once; None if nothing is recommended.

    seconds: for all of it.
    The reference is one process, measured in the same way. On the CPU each process gets its share of the threads.
    """
    advice = tuning.recommendation
    if advice is None:
        return None
    threads = max((tuning.device.threads or os.cpu_count() or 1) // processes, 1)
    order = {
        "workload": target.workload,
        "mode": target.mode,
        "parameters": dict(target.parameters),
        "kind": tuning.device.kind,
        "precision": advice.precision,
        "batch_sizes": _sizes(advice),
        "seconds": min(POINT_SECONDS, seconds / 20),
        "threads": threads,
    }
    say("Measuring one process")
    alone = _launched(interpreter, {**order, "processes": 1}, seconds / 2)
    say(f"Measuring {processes} processes")
    together = _launched(interpreter, {**order, "processes": processes}, seconds / 2)
    return scaling_of(processes, dict(alone["rates"]), dict(together["rates"]), alone["problem"] or together["problem"])


def scaling_of(processes: int, alone: Mapping[int, float], together: Mapping[int, float], problem: str = "") -> Scaling:
    """Return the points that ran in both, and the smallest batch for each device that is as fast as the best."""
    points = tuple(
        ScalingPoint(batch_size=size, alone=alone[size], together=rate, efficiency=rate / (processes * alone[size]))
        for size, rate in sorted(together.items())
        if alone.get(size)
    )
    best = max((point.together for point in points), default=0.0)
    enough = (point.batch_size for point in points if point.together >= best * (1 - WORTH_IT))
    return Scaling(processes=processes, points=points, batch_size=next(enough, None), problem=problem)


def _sizes(advice: Recommendation) -> list[int]:
    """Return the recommended batch size, half of it, and twice as many if that is safe."""
    sizes = {max(advice.batch_size // 2, 1), advice.batch_size}
    if advice.max_batch_size is not None and 2 * advice.batch_size <= advice.max_batch_size:
        sizes.add(2 * advice.batch_size)
    return sorted(sizes)


def _launched(interpreter: str, order: dict[str, Any], seconds: float) -> dict[str, Any]:
    """Return what the processes answer; with the reason and no rates if they do not."""
    worker = Worker("gpudoctor.tuning.workers.launch", interpreter)
    try:
        return worker.ask(order, seconds)
    except (WorkerEnded, WorkerSilent) as error:
        return {"rates": [], "problem": str(error)}
    finally:
        worker.end()
