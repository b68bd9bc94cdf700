"""The choice among precisions: noise, numerics, a second measurement of the closest two, and the reasons in words."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from gpudoctor.model.record import record
from gpudoctor.model.tuning import (
    COMPLEX_PRECISIONS,
    OK,
    PRECISIONS,
    Measurement,
    Numerics,
    Recommendation,
    RunnerUp,
    Trial,
)
from gpudoctor.tuning.executor import Executor
from gpudoctor.tuning.figures import spoilt_by
from gpudoctor.tuning.knowledge import Limits
from gpudoctor.tuning.search import SearchResult, result_of
from gpudoctor.tuning.throughput import relative_error
from gpudoctor.tuning.workers.precision import BASELINES

SAFEST_FIRST = (*PRECISIONS, *COMPLEX_PRECISIONS)
"""fp16 after bf16: it overflows at 65504 and needs its gradients scaled."""

CLOSE = 0.1
"""Share of the throughput within which the two best precisions are measured again, in turns: so much the clocks may
have fallen between the search of one and that of the other."""

WORTH_IT = 0.02
ERRORS_APART = 2.0
"""A less safe precision must gain the share, and this many standard errors of the comparison."""

FEWEST_ROUNDS, MOST_ROUNDS = 2, 4
CLEAR = 0.005
"""The turns end when the gain lies further than this from the one that decides."""

NO_LIMITS = Limits()
GIB = 2**30


@record
class Candidate:
    """The best of one precision."""

    measurement: Measurement
    result: SearchResult

    @property
    def precision(self) -> str:
        return self.measurement.precision

    @property
    def throughput(self) -> float:
        """Return the samples per second of the median step."""
        return self.measurement.throughput or 0.0

    @property
    def error(self) -> float:
        """Return the standard error of the throughput, as a share."""
        return relative_error(self.measurement.step_seconds)


def recommend(
    executor: Executor | None,
    results: Sequence[SearchResult],
    numerics: Sequence[Numerics],
    limits: Limits = NO_LIMITS,
    observe: Callable[[Measurement], None] = lambda _: None,
) -> Recommendation | None:
    """Return what to run with; None where nothing ran that is numerically safe.

    executor: measures the two best again, in turns, where they are close; None to choose from what is measured.
    observe: is told of each of these measurements.
    """
    verdicts = {verdict.precision: verdict for verdict in numerics}
    candidates = [Candidate(measurement=result.best, result=result) for result in results if result.best]
    allowed = _allowed(candidates, verdicts)
    if not allowed:
        return None
    if executor is not None:
        allowed = _measured_again(executor, allowed, limits, observe)
    if not allowed:
        return None
    chosen = choose(allowed)
    others = [candidate for candidate in allowed if candidate is not chosen]
    measurement = chosen.measurement
    return Recommendation(
        precision=chosen.precision,
        batch_size=measurement.batch_size,
        max_batch_size=chosen.result.max_batch_size,
        settings=measurement.settings,
        throughput=chosen.throughput,
        unit=measurement.unit,
        why=tuple(_reasons(chosen, others, candidates, verdicts, limits)),
        peak_memory_bytes=measurement.peak_memory_bytes,
        baseline=_baseline(chosen, candidates),
        margin=chosen.throughput / max(other.throughput for other in others) - 1 if others else None,
        runners_up=tuple(_runners_up(chosen, allowed, results, verdicts)),
        warnings=tuple(_warnings(chosen, verdicts)),
    )


def choose(candidates: Sequence[Candidate]) -> Candidate:
    """Return the fastest, or a safer one that is as fast within the noise: so that two runs give the same answer."""
    fastest = max(candidates, key=lambda candidate: candidate.throughput)
    for candidate in sorted(candidates, key=_rank):
        gain = fastest.throughput / candidate.throughput - 1
        if gain <= max(WORTH_IT, ERRORS_APART * math.hypot(fastest.error, candidate.error)):
            return candidate
    return fastest


def _rank(candidate: Candidate) -> int:
    names = SAFEST_FIRST
    return names.index(candidate.precision) if candidate.precision in names else len(names)


def _allowed(candidates: Sequence[Candidate], verdicts: Mapping[str, Numerics]) -> list[Candidate]:
    """Return those whose numerics passed; those that were not compared only where none was."""
    passed = [c for c in candidates if c.precision in verdicts and verdicts[c.precision].passed]
    return passed or [c for c in candidates if c.precision not in verdicts]


def _measured_again(
    executor: Executor, candidates: Sequence[Candidate], limits: Limits, observe: Callable[[Measurement], None]
) -> list[Candidate]:
    """Return the candidates, the two best measured in turns where they are close: drifting clocks then hit both."""
    ranked = sorted(candidates, key=lambda candidate: candidate.throughput, reverse=True)
    if len(ranked) < 2 or ranked[1].throughput < ranked[0].throughput * (1 - CLOSE):
        return ranked
    pair, rest = ranked[:2], ranked[2:]
    turns: list[list[Measurement]] = []
    while executor.now() < limits.deadline and not _decided(pair, turns):
        turns.append([_again(executor, candidate, limits) for candidate in pair])
        for measurement in turns[-1]:
            observe(measurement)
    if _has_failed(turns):
        return [*_chosen_anew(pair, turns, limits), *rest]
    return [*_together(pair, turns), *rest]


def _has_failed(turns: Sequence[Sequence[Measurement]]) -> bool:
    return any(measurement.status != OK for turn in turns for measurement in turn)


def _chosen_anew(
    pair: Sequence[Candidate], turns: Sequence[Sequence[Measurement]], limits: Limits
) -> Iterator[Candidate]:
    """Yield what is the best of each precision now that a batch size failed, as where another process took memory."""
    for candidate, taken in zip(pair, zip(*turns, strict=True), strict=True):
        result = result_of(candidate.precision, (*candidate.result.measurements, *taken), limits)
        if result.best is not None:
            yield Candidate(measurement=result.best, result=result)


def _decided(pair: Sequence[Candidate], turns: Sequence[Sequence[Measurement]]) -> bool:
    if _has_failed(turns):
        return True
    if len(turns) < FEWEST_ROUNDS:
        return False
    first, second = _together(pair, turns)
    gain = abs(first.throughput / second.throughput - 1)
    return len(turns) >= MOST_ROUNDS or abs(gain - WORTH_IT) > CLEAR


def _again(executor: Executor, candidate: Candidate, limits: Limits) -> Measurement:
    best = candidate.measurement
    trial = Trial(
        precision=best.precision,
        batch_size=best.batch_size,
        settings=best.settings,
        predicted_memory_bytes=best.peak_memory_bytes,
    )
    left = max(limits.deadline - executor.now(), 0.0)
    return executor.measure(trial, replace(limits.effort, limit_seconds=min(limits.effort.limit_seconds, left)))


def _together(pair: Sequence[Candidate], turns: Sequence[Sequence[Measurement]]) -> list[Candidate]:
    """Return the candidates with the steps of their turns instead of the first ones; unchanged without turns."""
    if not turns or any(not m.step_seconds for turn in turns for m in turn):
        return list(pair)
    steps = [tuple(second for m in taken for second in m.step_seconds) for taken in zip(*turns, strict=True)]
    return [
        replace(candidate, measurement=replace(candidate.measurement, step_seconds=seconds))
        for candidate, seconds in zip(pair, steps, strict=True)
    ]


def _baseline(chosen: Candidate, candidates: Sequence[Candidate]) -> RunnerUp | None:
    """Return fp32, or complex128, at its best batch size."""
    for candidate in candidates:
        if candidate.precision in BASELINES:
            ratio = chosen.throughput / candidate.throughput
            why = (
                f"{ratio:.2f} times slower" if candidate.precision != chosen.precision else "the recommendation itself"
            )
            return _runner_up(candidate, why)
    return None


def _reasons(
    chosen: Candidate,
    others: Sequence[Candidate],
    candidates: Sequence[Candidate],
    verdicts: Mapping[str, Numerics],
    limits: Limits,
) -> Iterator[str]:
    """Yield why, in whole sentences with numbers."""
    measurement = chosen.measurement
    baseline = _baseline(chosen, candidates)
    speed = f"{chosen.precision} at batch size {measurement.batch_size} runs {_rate(chosen)}"
    if baseline is None or baseline.throughput is None or baseline.precision == chosen.precision:
        yield f"{speed}."
    else:
        ratio = chosen.throughput / baseline.throughput
        yield f"{speed}, {ratio:.2f} times {baseline.precision} at its best, batch size {baseline.batch_size}."
    yield _why_this_size(chosen)
    faster = [other for other in others if other.throughput > chosen.throughput]
    if faster:
        most = max(faster, key=lambda other: other.throughput)
        gain = most.throughput / chosen.throughput - 1
        yield f"{most.precision} is {gain:.1%} faster, too little to leave the safer {chosen.precision}."
    error = verdicts[chosen.precision].relative_error if chosen.precision in verdicts else None
    if error is not None:
        yield f"Its results differ by {error:.1e} from {verdicts[chosen.precision].reference}, relative, which is safe."
    peak = measurement.peak_memory_bytes
    if peak is not None and limits.memory_bytes:
        free = 1 - peak / limits.memory_bytes
        total = f"{limits.memory_bytes / GIB:.1f} GiB"
        yield f"Its peak memory is {peak / GIB:.2f} GiB of the {total} that it may use: {free:.0%} stays free."


def _why_this_size(chosen: Candidate) -> str:
    """Return why this batch size among those measured in this precision."""
    size = chosen.measurement.batch_size
    ran = [m for m in chosen.result.measurements if m.throughput]
    fastest = max(ran, key=lambda m: m.throughput or 0.0, default=chosen.measurement)
    if len(ran) < 2:
        return f"Batch size {size} is the only one that was measured."
    if fastest.batch_size == size:
        return f"No other of the {len({m.batch_size for m in ran})} batch sizes measured is faster."
    gain = (fastest.throughput or 0.0) / chosen.throughput - 1
    return f"The fastest batch size measured, {fastest.batch_size}, gains {gain:.1%}: not worth a larger batch."


def _runners_up(
    chosen: Candidate,
    allowed: Sequence[Candidate],
    results: Sequence[SearchResult],
    verdicts: Mapping[str, Numerics],
) -> Iterator[RunnerUp]:
    """Yield every other precision, fastest first, and why it lost; then those that did not run."""
    measured = {candidate.precision: candidate for candidate in allowed}
    ran = [measured.get(r.precision) or Candidate(measurement=r.best, result=r) for r in results if r.best]
    for candidate in sorted(ran, key=lambda candidate: -candidate.throughput):
        if candidate.precision != chosen.precision:
            yield _runner_up(candidate, _why_not(candidate, chosen, verdicts.get(candidate.precision)))
    for result in results:
        if result.best is None and result.measurements:
            first = result.measurements[0]
            yield RunnerUp(
                precision=result.precision, batch_size=first.batch_size, throughput=None, why=_why_nothing(result)
            )


def _runner_up(candidate: Candidate, why: str) -> RunnerUp:
    return RunnerUp(
        precision=candidate.precision,
        batch_size=candidate.measurement.batch_size,
        throughput=candidate.throughput,
        why=why,
    )


def _why_not(candidate: Candidate, chosen: Candidate, verdict: Numerics | None) -> str:
    if verdict is not None and not verdict.passed:
        return f"numerics: {verdict.reason or 'not close enough to the reference'}"
    if verdict is None:
        return "its numerics were not compared"
    gain = candidate.throughput / chosen.throughput - 1
    return f"{-gain:.1%} slower" if gain <= 0 else f"{gain:.1%} faster, within what a less safe precision must gain"


def _why_nothing(result: SearchResult) -> str:
    failed = [m for m in result.measurements if m.status != OK]
    return failed[0].detail or failed[0].status if failed else "its step times are too noisy to rank"


def _warnings(chosen: Candidate, verdicts: Mapping[str, Numerics]) -> Iterator[str]:
    """Yield what may have spoilt the measurement: when it was taken, and now that all of its steps are together."""
    yield from dict.fromkeys((*chosen.measurement.warnings, *spoilt_by(chosen.measurement)))
    if chosen.precision not in verdicts:
        yield f"the numerics of {chosen.precision} were not compared"


def _rate(candidate: Candidate) -> str:
    digits = 0 if candidate.throughput >= 100 else 2
    return f"{candidate.throughput:,.{digits}f} {candidate.measurement.unit}"
