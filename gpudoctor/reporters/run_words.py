"""What the reports of a watched program say, in every format."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import mean, median

from gpudoctor.model import FEWEST_STEPS, Finding, Steps, share_text, size_text
from gpudoctor.privacy import mask_secrets
from gpudoctor.reporters.quantities import duration, gibibytes, significant
from gpudoctor.untrusted import clean
from gpudoctor.watching.outside import FEWEST_SAMPLES
from gpudoctor.watching.samples import DeviceSample, Watch, WatchedDevice
from gpudoctor.watching.watched import WatchedRun

PARTS = {
    "loader_share": "data",
    "prepare_share": "preparing",
    "copies_share": "copies",
    "synchronising_share": "waiting for results",
    "cloning_share": "clones",
    "forward_share": "forward",
    "backward_share": "backward",
    "optimizer_share": "optimizer",
}
"""Parts of a step by their shares, and how a user calls them."""

_SHOWN_FROM = 0.01
_BARS = "▁▂▃▄▅▆▇█"


def verdict(run: WatchedRun) -> tuple[str, str]:
    """Return the kind of the verdict, for its colour, and a sentence."""
    watch = run.watch
    if run.findings:
        best = run.findings[0]
        gain = speedup(best)
        return str(best.severity), f"{clean(best.check_id)}{f', {gain}' if gain else ''}"
    steps = run.run.steps
    on_gpu = run.run.sent_to_gpu or (steps is not None and "cuda" in steps.parameter_devices)
    if steps is not None and steps.counted >= FEWEST_STEPS and on_gpu:
        return "healthy", "nothing measured limited the GPU"
    if watch.problem:
        return "info", f"the GPU was not watched: {watch.problem}"
    if len(watch.samples) < FEWEST_SAMPLES:
        return "info", f"{_count(len(watch.samples), 'sample')} of the GPU: too few to say what limited it"
    if all(gpu.utilization_percent is None for gpu in run.run.gpus):
        mig = " (MIG)" if any(gpu.is_mig for gpu in run.run.gpus) else ""
        return "info", f"the GPU was not watched: NVML does not report its utilisation{mig}"
    if run.run.gpus and on_gpu and not any(gpu.is_used for gpu in run.run.gpus):
        return "info", "the program used the GPU, but too little was seen to say what limited it"
    if run.run.gpus and all(gpu.is_used is False for gpu in run.run.gpus):
        return "info", "the program did not use the GPU"
    if run.run.gpus and not any(gpu.is_used for gpu in run.run.gpus):
        return "info", "the driver does not list the program, so whether it used the GPU is unknown"
    return "healthy", "nothing measured limited the GPU"


def notes(run: WatchedRun) -> Iterator[str]:
    """Yield what the verdict does not cover."""
    if run.watch.problem and run.watch.problem not in verdict(run)[1]:
        yield f"The GPU was not watched: {clean(run.watch.problem)}."
    if run.run.inside:
        yield f"The steps were not watched: {clean(run.run.inside)}."
    elif run.run.steps is not None and run.run.steps.counted < FEWEST_STEPS:
        yield f"Only {_count(run.run.steps.counted, 'step')} after the first ones: too few to say what limited them."
    divided = [gpu for gpu in run.run.gpus if gpu.is_mig]
    if divided:
        is_read = all(gpu.utilization_percent is not None for gpu in divided)
        yield f"MIG divides the GPU{'' if is_read else ': its utilisation is unknown'}."
    yield from _not_read(run.watch)
    for crash in run.crashed:
        yield f"A check failed: {clean(crash)}"


def _not_read(watch: Watch) -> Iterator[str]:
    """Yield what NVML does not say of the GPUs, and which of them it lost."""
    for unusable in watch.unusable:
        yield f"Not watched: {clean(unusable)}."
    for device in watch.devices:
        gpu = f"GPU {device.nvml_index}"
        if device.unread:
            parts = (clean(each).partition(": ") for each in device.unread)
            yield f"NVML does not report for {gpu}: {', '.join(f'{name} ({why})' for name, _, why in parts)}."
        lost = [(sample.at_seconds, own.problem) for sample in watch.samples for own in sample.devices
                if own.nvml_index == device.nvml_index and own.problem]  # fmt: skip
        if lost and len(lost) < len(watch.samples):
            after, reason = duration(lost[0][0]), clean(lost[-1][1])
            yield f"NVML reported nothing about {gpu} in {len(lost)} samples, first after {after}: {reason}."


def speedup(finding: Finding) -> str:
    """Return "up to 3.4 times faster"; empty if it is unknown or not worth naming."""
    times = finding.details.get("speedup")
    return f"up to {significant(times, 2)} times faster" if times is not None and times >= 1.05 else ""


def place(finding: Finding) -> str:
    """Return the line that a finding names; empty for none."""
    return clean(mask_secrets(finding.details.get("place") or ""))


def line(finding: Finding) -> str:
    """Return the same with what it is: "line: train.py:42"; empty for none."""
    named = place(finding)
    return f"line: {named}" if named else ""


def step_parts(steps: Steps) -> Iterator[str]:
    """Yield the duration of a step and what it consists of."""
    yield f"{steps.counted:,} {'steps' if steps.kind == 'optimizer' else 'batches'}"
    yield f"{significant(steps.step_ms)} ms each (median {significant(steps.median_ms)} ms)"
    shares = {name: getattr(steps, part) for part, name in PARTS.items()}
    yield from (f"{name} {share_text(share)}" for name, share in shares.items() if share >= _SHOWN_FROM)
    rest = 1 - sum(shares.values())
    if rest >= _SHOWN_FROM:
        yield f"other {share_text(rest)}"
    if steps.kernels is not None and steps.gpu_busy_ms is not None:
        yield f"{steps.kernels:,} kernels each, GPU busy {significant(steps.gpu_busy_ms)} ms"
    elif steps.operators is not None:
        yield f"{steps.operators:,} operators each"


def binned(values: Sequence[float], most: int) -> list[float]:
    """Return at most so many means of values that follow each other."""
    count = min(most, len(values))
    cuts = [round(place * len(values) / count) for place in range(count + 1)]
    return [mean(values[begin:end]) for begin, end in pairwise(cuts)]


def top_of(means: Sequence[float], unit: str) -> float:
    """Return the value at the top of a chart: 100 for percent, otherwise the highest."""
    return 100.0 if unit == "%" else max(means) or 1.0


def sparkline(values: Sequence[float], unit: str, width: int) -> str:
    """Return the values as a line of bars from 0 to `top_of` them; empty for fewer than two."""
    if len(values) < 2:
        return ""
    means = binned(values, width)
    highest = top_of(means, unit)
    return "".join(_BARS[min(int(value / highest * len(_BARS)), len(_BARS) - 1)] for value in means)


def timelines(run: WatchedRun) -> Iterator[tuple[str, str, list[float]]]:
    """Yield what is shown over time: name, unit, values."""
    if run.run.steps is not None:
        yield "step time", "ms", list(run.run.steps.series_ms)
    for device in run.watch.devices:
        values = _values(device_samples(run.watch, device), "utilization_percent")
        yield f"GPU {device.nvml_index}", "%", values
    yield "CPU", "cores", [sample.cpu_cores for sample in run.watch.samples if sample.cpu_cores is not None]


def device_samples(watch: Watch, device: WatchedDevice) -> list[DeviceSample]:
    """Return the samples of one device."""
    return [own for each in watch.samples for own in each.devices if own.nvml_index == device.nvml_index]


def device_parts(run: WatchedRun, device: WatchedDevice) -> Iterator[str]:
    """Yield the figures of a GPU that are known."""
    samples = device_samples(run.watch, device)
    yield f"GPU {device.nvml_index} {clean(device.name or '')}".rstrip()
    if values := _values(samples, "utilization_percent"):
        yield f"utilisation {median(values):.0f} %"
    if values := _values(samples, "memory_used_bytes"):
        yield f"memory up to {gibibytes(max(values))} of {gibibytes(device.memory_total_bytes)} GiB"
    if values := _values(samples, "clock_mhz"):
        yield f"SM clock {median(values):,.0f} MHz"
    if values := _values(samples, "power_watts"):
        limit = "" if device.power_limit_watts is None else f" of {device.power_limit_watts:,.0f}"
        yield f"{median(values):,.0f}{limit} W"
    if values := _values(samples, "temperature_celsius"):
        yield f"up to {max(values)} °C"
    if values := _values(samples, "received_bytes_per_second"):
        yield f"PCIe {significant(median(values) / 1e9, 2)} GB/s received"
    yield _count(len(samples), "sample")


def machine_parts(watch: Watch) -> Iterator[str]:
    """Yield what the program used of the rest of the machine."""
    cpu = [sample.cpu_cores for sample in watch.samples if sample.cpu_cores is not None]
    if cpu:
        allowed = "" if watch.allowed_cpus is None else f" of {watch.allowed_cpus:g}"
        yield f"CPU {median(cpu):.1f}{allowed} cores"
    memory = [sample.memory_bytes for sample in watch.samples if sample.memory_bytes is not None]
    if memory:
        yield f"memory up to {gibibytes(max(memory))} GiB"
    processes = [sample.processes for sample in watch.samples if sample.processes is not None]
    threads = [sample.threads for sample in watch.samples if sample.threads is not None]
    if processes and threads:
        yield f"up to {_count(max(processes), 'process', 'es')} with {_count(max(threads), 'thread')}"
    read = [sample.disk_read_bytes for sample in watch.samples if sample.disk_read_bytes is not None]
    written = [sample.disk_written_bytes for sample in watch.samples if sample.disk_written_bytes is not None]
    if read and written:
        yield f"disk: {size_text(read[-1])} read, {size_text(written[-1])} written"
    shm = [sample.shm_free_bytes for sample in watch.samples if sample.shm_free_bytes is not None]
    if shm:
        yield f"at least {gibibytes(min(shm))} GiB free in /dev/shm"


def process_lines(run: WatchedRun) -> Iterator[str]:
    """Yield a line for each process that took steps, if there are several."""
    if len(run.processes) > 1:
        for process in run.processes:
            rank = f" (rank {process['RANK']})" if "RANK" in process else ""
            yield f"process {process['pid']} {clean(process['program'])}{rank}: {process['steps']:,} steps"


def ended(run: WatchedRun) -> str:
    """Return how the program ended: "ended with exit status 0 after 41 s"; or how long it has been watched."""
    if run.exit_status is None:
        return f"watched for {duration(run.elapsed_seconds)}"
    return f"ended with exit status {run.exit_status} after {duration(run.elapsed_seconds)}"


def _count(number: int, noun: str, plural: str = "s") -> str:
    return f"{number:,} {noun if number == 1 else noun + plural}"


def _values(samples: list[DeviceSample], field: str) -> list[float]:
    return [value for sample in samples if (value := getattr(sample, field)) is not None]
