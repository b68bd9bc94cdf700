"""The sentences about a tuning, which the table and the HTML page share. All text from outside is cleaned here."""

import shlex
from collections.abc import Iterator, Sequence

from gpudoctor.model.record import record
from gpudoctor.model.tuning import (
    COMPLEX_PRECISIONS,
    NUMERICS,
    OK,
    OUT_OF_MEMORY,
    SIGNAL,
    UNSUPPORTED,
    Bandwidth,
    Loading,
    Measurement,
    Settings,
    Transfer,
    Tuning,
    Variation,
)
from gpudoctor.reporters.quantities import UNKNOWN, gibibytes, percent, rate, significant, step_time
from gpudoctor.tuning import figures
from gpudoctor.untrusted import clean

_NAME_LIMIT = 60


def name(text: str) -> str:
    """Return a name from outside, cleaned and cut."""
    return clean(text, _NAME_LIMIT)


def headline(tuning: Tuning) -> tuple[str, str]:
    """Return the recommendation in one line, in two parts: "bf16, batch 256", "5,203 samples/s, 2.9x fp32"."""
    advice = tuning.recommendation
    if advice is None:
        return "no recommendation", _why_none(tuning)
    baseline, speedup = advice.baseline, ""
    if baseline is not None and advice.speedup is not None:
        batch = f" at batch {baseline.batch_size:,}" if baseline.precision == advice.precision else ""
        speedup = f", {significant(advice.speedup, 2)}x {name(baseline.precision)}{batch}"
    needed = f" (complete with --budget {tuning.budget_needed_seconds:.0f})" if tuning.budget_needed_seconds else ""
    doubts = f", search cut short{needed}" * bool(tuning.interrupted) + ", low confidence" * (
        advice.confidence == "low"
    )
    latency = advice.latency
    step = f"{significant(latency.median_seconds * 1e3)} ms a step, " if latency else ""
    return (
        f"{name(advice.precision)}, batch {advice.batch_size:,}",
        f"{step}{rate(advice.throughput)} {name(advice.unit)}{speedup}{doubts}",
    )


def _why_none(tuning: Tuning) -> str:
    ran = any(measured.status == OK for measured in tuning.measurements)
    if tuning.interrupted:
        needed = tuning.budget_needed_seconds
        early = f"the run ended before {'enough was measured' if ran else 'anything ran'}"
        return early + (f"; it probably needs --budget {needed:.0f}" if needed else "")
    return "what ran could not be ranked" if ran else "no configuration ran"


def memory(tuning: Tuning) -> str:
    """Return how much memory the recommendation takes and leaves, and how large a batch may become."""
    advice, limit = tuning.recommendation, figures.memory_limit_bytes(tuning)
    if advice is None:
        return ""
    peak = "unknown" if advice.peak_memory_bytes is None else f"{gibibytes(advice.peak_memory_bytes)} GiB at the peak"
    if limit and advice.peak_memory_bytes is not None:
        headroom = limit - advice.peak_memory_bytes
        peak += f", {gibibytes(headroom)} of {gibibytes(limit)} GiB left free ({percent(headroom / limit)} %)"
    largest = "unknown" if advice.max_batch_size is None else f"{advice.max_batch_size:,}"
    return f"{peak}; the largest safe batch is {largest}"


def variations(tuning: Tuning) -> list[str]:
    """Return what is recommended for each value that was varied."""
    return [f"{name(item.parameters)}: {_variation(item)}" for item in tuning.variations]


def _variation(item: Variation) -> str:
    advice = item.recommendation
    if advice is None:
        return "no recommendation"
    largest = "unknown" if advice.max_batch_size is None else f"{advice.max_batch_size:,}"
    early = ", search cut short" if item.interrupted else ""
    peak = "" if advice.peak_memory_bytes is None else f", {gibibytes(advice.peak_memory_bytes)} GiB"
    speed = f"{rate(advice.throughput)} {name(advice.unit)}"
    return f"{name(advice.precision)}, batch {advice.batch_size:,}, {speed}{peak}, largest safe batch {largest}{early}"


def scaling(tuning: Tuning) -> list[str]:
    """Return how the training runs on several devices."""
    found = tuning.scaling
    if found is None:
        return []
    unit = name(tuning.recommendation.unit) if tuning.recommendation else "samples/s"
    lines = [
        f"batch {point.batch_size:,} per device: {rate(point.together)} {unit} ({rate(point.alone)} on one device), "
        f"{percent(point.efficiency)} % scaling efficiency"
        for point in found.points
    ]
    if found.batch_size is not None:
        lines.append(f"use batch {found.batch_size:,} per device, {found.batch_size * found.processes:,} in all")
    return [*lines, *([f"not measured: {clean(found.problem)}"] if found.problem else [])]


def step_latency(tuning: Tuning) -> str:
    """Return how long single steps take if the goal was latency, else nothing."""
    latency = None if tuning.recommendation is None else tuning.recommendation.latency
    if latency is None:
        return ""
    parts = {"median": latency.median_seconds, "p95": latency.p95_seconds, "p99": latency.p99_seconds}
    return "latency of a step: " + ", ".join(f"{key} {significant(value * 1e3)} ms" for key, value in parts.items())


def convergence(tuning: Tuning) -> str:
    """Return how the batch size changes training, apart from throughput. Empty for inference."""
    advice = tuning.recommendation
    if (
        advice is None
        or advice.latency
        or tuning.workload.mode == "inference"
        or advice.precision in COMPLEX_PRECISIONS
    ):
        return ""
    near = advice.near_best_batch_size
    smaller = f"batch {near:,} reaches 95 % of this speed; " if near and near < advice.batch_size else ""
    rule = "scale the learning rate with the batch (linearly for SGD, by the square root for Adam)"
    return f"convergence: {smaller}throughput is not time to accuracy. With another batch size, {rule}"


def settings(given: Settings) -> list[str]:
    """Return the switches to turn on, each as a program writes it; empty for the defaults."""
    return [
        *(["channels_last"] if given.channels_last else []),
        *(["cudnn.benchmark"] if given.cudnn_benchmark else []),
        *(["torch.compile"] if given.compile else []),
        *([f"{given.threads} threads"] if given.threads is not None else []),
        *([f"PYTORCH_ALLOC_CONF={name(given.allocator)}"] if given.allocator else []),
    ]


def precision_verdict(tuning: Tuning, precision: str) -> tuple[str, str]:
    """Return one or two words about a precision, and the reason if it failed."""
    numerics, best = figures.numerics_of(tuning, precision), figures.best(tuning, precision)
    if numerics is not None and not numerics.passed:
        return "unsafe", clean(numerics.reason) or "its error against the reference is too large"
    if best is not None:
        chosen = tuning.recommendation is not None and tuning.recommendation.precision == precision
        return "best" if chosen else "ok", ""
    failed = [measured for measured in tuning.measurements if measured.precision == precision]
    if not failed:
        return "not run", "it was compared but not measured"
    words = {OUT_OF_MEMORY: "too large", NUMERICS: "unsafe", UNSUPPORTED: "unsupported"}
    smallest = min(failed, key=lambda measured: measured.batch_size)
    at = f"at batch {smallest.batch_size:,}, " if smallest.status == OUT_OF_MEMORY and smallest.batch_size else ""
    return words.get(smallest.status, "not run"), at + (clean(smallest.detail) or name(smallest.status))


@record
class PrecisionRow:
    """The row of one precision, as the model names it. `best`: its best measurement; `error`: of the reference."""

    precision: str
    verdict: str
    reason: str
    best: Measurement | None
    error: float | None

    @property
    def name(self) -> str:
        """The precision, cleaned."""
        return name(self.precision)

    @property
    def measured(self) -> tuple[str, ...]:
        """The batch size, the step in ms, the throughput and the memory in GiB that it reached."""
        if self.best is None:
            return (UNKNOWN,) * 4
        step = step_time(self.best.step_median_seconds, figures.spread_seconds(self.best))
        return f"{self.best.batch_size:,}", step, rate(self.best.throughput), gibibytes(self.best.peak_memory_bytes)


def precision_rows(tuning: Tuning) -> Iterator[PrecisionRow]:
    """Yield the row of each precision."""
    for precision in figures.precisions(tuning):
        verdict, reason = precision_verdict(tuning, precision)
        numerics, best = figures.numerics_of(tuning, precision), figures.best(tuning, precision)
        error = numerics.relative_error if numerics is not None else best.relative_error if best is not None else None
        yield PrecisionRow(precision=precision, verdict=verdict, reason=reason, best=best, error=error)


def notes(tuning: Tuning, rows: Sequence[PrecisionRow]) -> list[str]:
    """Return what the table of precisions has no room for: reasons, what spoilt a measurement, what was never tried."""
    failed: dict[str, list[str]] = {}
    for row in rows:
        if row.reason:
            failed.setdefault(f"{row.verdict}: {row.reason}", []).append(row.name)
    return [
        *(f"{', '.join(names)} {reason}" for reason, names in failed.items()),
        *(f"{row.name}: {clean(warning)}" for row in rows if row.best is not None for warning in row.best.warnings),
        *(f"not supported: {clean(text)}" for text in tuning.device.unsupported),
        *_with_switches(tuning),
    ]


def _with_switches(tuning: Tuning) -> Iterator[str]:
    """Yield why the recommended rate is another than the table's: the search ran under other settings."""
    advice = tuning.recommendation
    best = None if advice is None else figures.best(tuning, advice.precision)
    if advice is not None and best is not None and best.settings != advice.settings:
        yield f"with its switches {name(advice.precision)} reaches {rate(advice.throughput)} {name(advice.unit)}"


def transfer_name(transfer: Transfer) -> str:
    """Return a way from host to device in words: "pinned, non_blocking"."""
    return f"{'pinned' if transfer.pinned else 'pageable'}{', non_blocking' if transfer.non_blocking else ''}"


def transfers(tuning: Tuning) -> list[str]:
    """Return how to move data to the device: whether all of it fits, how to copy it, and the workers."""
    loading = _loading(figures.recommended_loading(tuning))
    sentences = [_dataset(tuning), _transfer(tuning), loading, _bandwidth(tuning.bandwidth)]
    return [sentence for sentence in sentences if sentence]


def _dataset(tuning: Tuning) -> str:
    size, advice = tuning.workload.dataset_bytes, tuning.recommendation
    if size is None or advice is None or advice.settings.data_on_device is None:
        return ""
    if advice.settings.data_on_device:
        return f"the whole data set ({gibibytes(size)} GiB) fits on the device with the step: keep it there"
    return f"the data set ({gibibytes(size)} GiB) does not fit on the device with the step"


def _transfer(tuning: Tuning) -> str:
    best = figures.recommended_transfer(tuning)
    if best is None:
        return ""
    slowest = min(tuning.transfers, key=lambda transfer: transfer.gb_s)
    against = "" if slowest == best else f" ({transfer_name(slowest)}: {significant(slowest.gb_s)})"
    return f"host to device: {transfer_name(best)}, {significant(best.gb_s)} GB/s{against}"


def _loading(best: Loading | None) -> str:
    if best is None:
        return ""
    wait = best.wait_fraction
    waits = "" if wait is None else f"; a step waits {percent(wait)} % of its time for data"
    return f"DataLoader: num_workers={best.workers}, {rate(best.samples_per_second)} samples/s{waits}"


def _bandwidth(bandwidth: Bandwidth | None) -> str:
    if bandwidth is None or bandwidth.measured_gb_s is None:
        return ""
    sheet = bandwidth.datasheet_gb_s
    of_sheet = f", {percent(bandwidth.measured_gb_s / sheet)} % of the datasheet" if sheet else ""
    return f"memory of the device: {significant(bandwidth.measured_gb_s)} GB/s{of_sheet}"


def profile_uses(path: str) -> tuple[tuple[str, str], ...]:
    """Return the ways to use a profile: what for, and the command or the line of Python."""
    shown = clean(path, None)
    return (
        ("in a container", f"docker run --env-file {shlex.quote(shown)} IMAGE"),
        ("in a shell", f"set -a; . {shlex.quote(_relative(shown))}; set +a"),
        ("in Python", f"gpudoctor.load_profile({shown!r}).apply()"),
    )


def _relative(path: str) -> str:
    """Return a path that `.` looks up in the working directory, not in PATH."""
    return path if "/" in path else f"./{path}"


def device(tuning: Tuning) -> list[str]:
    """Return the workload and the device, in a few words each."""
    tuned = tuning.device
    index = f":{tuned.index}" if tuned.kind == "cuda" else ""
    versions = {
        "driver": tuned.driver_version,
        "torch": tuned.torch_version,
        "CuPy": tuned.cupy_version,
        "CUDA": tuned.cuda_version,
    }
    given = tuning.workload
    work = " ".join(filter(None, map(name, (given.name, given.mode, given.parameters))))
    return [
        work,
        f"{name(tuned.kind)}{index} {name(tuned.name)}".rstrip(),
        *(f"{what} {name(version)}" for what, version in versions.items() if version is not None),
    ]


def warnings(tuning: Tuning) -> list[str]:
    """Return the warnings about the result, without duplicates."""
    advice = () if tuning.recommendation is None else tuning.recommendation.warnings
    early = ("the run was interrupted: only what was measured is ranked",) * (tuning.interrupted == SIGNAL)
    return list(dict.fromkeys(clean(text) for text in (*early, *tuning.warnings, *advice)))
