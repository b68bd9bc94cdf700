"""Tuning measurements and recommendations. `None` means unknown or not measured, never zero."""

import statistics
from typing import Annotated

from gpudoctor.model.record import Fact, record

SCHEMA = "gpudoctor/tuning/1"

OK = "ok"
OUT_OF_MEMORY = "out-of-memory"
NUMERICS = "numerics"
UNSUPPORTED = "unsupported"

THROUGHPUT, LATENCY = GOALS = ("throughput", "latency")

BUDGET = "budget"
SIGNAL = "signal"

PRECISIONS = ("fp32", "tf32", "bf16", "fp16")
"""PyTorch workloads. fp32 is strict: TF32 is off; bf16 and fp16 use autocast, fp16 with gradient scaling."""

COMPLEX_PRECISIONS = ("complex128", "complex64")
"""CuPy and NumPy workloads."""


@record
class Settings:
    """Settings in addition to precision and batch size. Trials use the first five, the program the rest."""

    channels_last: bool = False
    cudnn_benchmark: bool = False
    compile: Annotated[bool, Fact("the model goes through torch.compile")] = False
    threads: Annotated[int | None, Fact("threads of an operation on the CPU; None for the library's own choice")] = None
    allocator: Annotated[str, Fact('value of PYTORCH_ALLOC_CONF: "expandable_segments:True"; empty for none')] = ""
    data_on_device: Annotated[bool | None, Fact("the whole data set fits on the device: keep it there")] = None
    pin_memory: Annotated[bool | None, Fact("copy batches to the device from pinned memory")] = None
    non_blocking: Annotated[bool | None, Fact("copy them without waiting")] = None
    loader_workers: Annotated[int | None, Fact("num_workers of the DataLoader")] = None


@record
class Trial:
    """One configuration to measure."""

    precision: str
    batch_size: int
    settings: Settings = Settings()
    predicted_memory_bytes: Annotated[int | None, Fact("peak memory predicted before it is measured", "bytes")] = None


@record
class Conditions:
    """The device's state during a measurement."""

    clock_mhz: Annotated[int | None, Fact("clock of the multiprocessors at the end", "MHz", "NVML")] = None
    power_watts: float | None = None
    temperature_celsius: int | None = None
    throttle_reasons: Annotated[tuple[str, ...] | None, Fact("why the clocks were lowered", source="NVML")] = None
    foreign_memory_bytes: Annotated[int | None, Fact("device memory that other processes hold", "bytes", "NVML")] = None


@record
class Measurement:
    """The result of one trial. Raw times are stored; statistics are properties."""

    precision: str
    batch_size: Annotated[int, Fact("0 if the precision was not tried at any")]
    settings: Settings = Settings()
    status: Annotated[str, Fact('"ok", "out-of-memory", "numerics" or "unsupported"')] = OK
    detail: Annotated[str, Fact("why it is not ok, in one line")] = ""
    traceback: Annotated[str, Fact("of the user's code, if it failed only above a batch size")] = ""
    step_seconds: Annotated[tuple[float, ...], Fact("each timed step, warm-up left out", "seconds")] = ()
    warmup_seconds: Annotated[tuple[float, ...], Fact("each step before them", "seconds")] = ()
    samples_per_step: Annotated[int, Fact("samples of one step; the batch size if the workload says nothing")] = 0
    unit: str = "samples/s"
    peak_memory_bytes: Annotated[int | None, Fact("highest allocated memory of a full step", "bytes")] = None
    resident_memory_bytes: Annotated[int | None, Fact("allocated memory between two steps, batch freed", "bytes")] = (
        None
    )
    reserved_memory_bytes: Annotated[int | None, Fact("highest memory that the allocator held", "bytes")] = None
    predicted_memory_bytes: Annotated[int | None, Fact("peak memory predicted before it was measured", "bytes")] = None
    allocation_retries: Annotated[int, Fact("times that the allocator emptied its cache to go on")] = 0
    relative_error: Annotated[float | None, Fact("of this precision against the reference, see Numerics")] = None
    flops_per_step: Annotated[float | None, Fact("floating-point operations of one step")] = None
    peak_tflops: Annotated[float | None, Fact("datasheet rate of the device in this precision", "TFLOP/s")] = None
    conditions: Conditions = Conditions()
    warnings: Annotated[tuple[str, ...], Fact("what may have spoilt it")] = ()

    @property
    def step_median_seconds(self) -> float | None:
        """Return the median of the timed steps; None if nothing was timed."""
        return statistics.median(self.step_seconds) if self.step_seconds else None

    @property
    def throughput(self) -> float | None:
        """Return samples per second, from the median step; None if it did not run."""
        median = self.step_median_seconds
        return self.samples_per_step / median if median and self.status == OK else None

    @property
    def tflops(self) -> float | None:
        """Return the achieved rate in TFLOP/s of the median step."""
        median = self.step_median_seconds
        return self.flops_per_step / median / 1e12 if median and self.flops_per_step and self.status == OK else None

    @property
    def fraction_of_peak(self) -> float | None:
        """Return the achieved rate as a fraction of the datasheet's; None above 1, because one of them is wrong."""
        share = self.tflops / self.peak_tflops if self.tflops is not None and self.peak_tflops else None
        return share if share is None or share <= 1 else None


@record
class Numerics:
    """Numerical error of one precision against the reference, and whether it is acceptable."""

    precision: str
    reference: Annotated[str, Fact('"fp64", or "fp32" if the workload is too large for it')]
    passed: bool
    reason: Annotated[str, Fact("why it did not pass, in one line")] = ""
    output_error: Annotated[float | None, Fact("relative error of the outputs, norm over norm")] = None
    gradient_error: Annotated[float | None, Fact("relative error of all gradients, norm over norm")] = None
    loss_error: Annotated[float | None, Fact("largest relative difference of the loss over the steps compared")] = None
    steps_compared: int = 0
    product_error: Annotated[float | None, Fact("relative error of a plain matrix product: proves TF32")] = None
    not_compared: Annotated[tuple[str, ...], Fact("what could not be compared, and why")] = ()

    @property
    def relative_error(self) -> float | None:
        """Return the larger error of outputs and gradients."""
        errors = [error for error in (self.output_error, self.gradient_error) if error is not None]
        return max(errors, default=None)


@record
class Ceiling:
    """The rate of a large matrix product on this device in one precision."""

    precision: str
    measured_tflops: float | None = None


@record
class Bandwidth:
    """Device memory bandwidth, measured by a large copy (bytes read plus bytes written)."""

    measured_gb_s: float | None = None
    datasheet_gb_s: float | None = None


@record
class Transfer:
    """One way of copying from host to device."""

    pinned: bool
    non_blocking: bool
    gb_s: Annotated[float, Fact("10⁹ bytes per second, the copy into pinned memory counted")]
    copy_gb_s: Annotated[float | None, Fact("the same without that copy; None for pageable memory")] = None


@record
class Loading:
    """Throughput of the user's DataLoader with one number of workers."""

    workers: int
    samples_per_second: float
    wait_fraction: Annotated[float | None, Fact("share of a step's time that waits for data")] = None


@record
class TunedDevice:
    """The tuned device and versions: the fingerprint of a profile."""

    kind: Annotated[str, Fact('"cuda", "cpu" or "mps"')]
    index: int = 0
    name: str = ""
    memory_total_bytes: int | None = None
    memory_usable_bytes: Annotated[int | None, Fact("what trials may use", "bytes")] = None
    compute_capability: str | None = None
    driver_version: str | None = None
    torch_version: str | None = None
    cupy_version: str | None = None
    cuda_version: str | None = None
    threads: Annotated[int | None, Fact("threads that the library uses by itself on the CPU")] = None
    visible: Annotated[str, Fact("what CUDA_VISIBLE_DEVICES calls the device: a number or a UUID; empty if unset")] = ""
    allocator: Annotated[str, Fact("value of PYTORCH_ALLOC_CONF that the trials began with; empty for none")] = ""
    precisions: Annotated[tuple[str, ...], Fact("those that the device supports itself, without emulation")] = ()
    unsupported: Annotated[tuple[str, ...], Fact('those that it does not, with the reason: "bf16: emulated"')] = ()


@record
class TunedWorkload:
    """The work that was measured."""

    name: str
    mode: Annotated[str, Fact('"training" or "inference"; empty if it is the user\'s own')] = ""
    parameters: Annotated[str, Fact('what it was built with: "sequence=512"; empty for nothing')] = ""
    unit: str = "samples/s"
    sample_bytes: Annotated[int | None, Fact("one sample as it comes from the host", "bytes")] = None
    dataset_size: Annotated[int | None, Fact("samples of the user's data set, if given")] = None

    @property
    def dataset_bytes(self) -> int | None:
        """Return the size of the whole data set in host memory."""
        return None if self.sample_bytes is None or self.dataset_size is None else self.sample_bytes * self.dataset_size


@record
class RunnerUp:
    """A rejected configuration, and why."""

    precision: str
    batch_size: int
    throughput: float | None
    why: str


@record
class Latency:
    """Seconds of a step, waited for one by one: the median, and what 95 and 99 of 100 steps do not exceed."""

    median_seconds: float
    p95_seconds: float
    p99_seconds: float


@record
class Recommendation:
    """The recommended configuration, with reasons."""

    precision: str
    batch_size: int
    max_batch_size: Annotated[int | None, Fact("largest batch that is safe in memory")]
    settings: Settings
    throughput: float
    unit: str
    why: tuple[str, ...]
    peak_memory_bytes: int | None = None
    baseline: Annotated[RunnerUp | None, Fact("what it is compared with: fp32 at its best batch size")] = None
    accumulation_steps: Annotated[int | None, Fact("batches between two steps of the optimiser")] = None
    latency: Annotated[Latency | None, Fact("of a step, if the goal is latency")] = None
    near_best_batch_size: Annotated[int | None, Fact("smallest measured with 95 % of the throughput")] = None
    confidence: Annotated[str, Fact('"high", "medium" or "low": from the spread and number of the timed steps')] = ""
    runners_up: tuple[RunnerUp, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def speedup(self) -> float | None:
        """Return the speedup over the baseline; None without a baseline, or if it is the same configuration."""
        baseline = self.baseline
        if baseline is None or not baseline.throughput:
            return None
        same = (baseline.precision, baseline.batch_size) == (self.precision, self.batch_size)
        return None if same else self.throughput / baseline.throughput


@record
class SettingTrial:
    """One setting that was tried at the chosen precision and batch size."""

    name: Annotated[str, Fact('"channels_last", "cudnn_benchmark", "allocator", "threads=4", "compile"')]
    measurement: Measurement
    gain: Annotated[float | None, Fact("of throughput, as a share; None if it did not run")]
    kept: bool
    why: str


@record
class Variation:
    """What is recommended for one value of a parameter of the workload."""

    parameters: Annotated[str, Fact('"sequence=512"')]
    recommendation: Recommendation | None = None
    interrupted: str | None = None


@record
class ScalingPoint:
    """One batch size for each of several devices: samples per second of one process and of all of them together."""

    batch_size: int
    alone: float
    together: float
    efficiency: Annotated[float, Fact("of the ideal, as many times the rate of one as there are processes")]


@record
class Scaling:
    """How a training runs on several devices of one machine."""

    processes: int
    points: tuple[ScalingPoint, ...] = ()
    batch_size: Annotated[int | None, Fact("smallest for each device that reaches full speed")] = None
    problem: Annotated[str, Fact("why there are not more points; empty if there are all")] = ""


@record
class Tuning:
    """The result of one run."""

    device: TunedDevice
    workload: TunedWorkload
    elapsed_seconds: float
    measurements: tuple[Measurement, ...]
    recommendation: Recommendation | None = None
    numerics: tuple[Numerics, ...] = ()
    switches: tuple[SettingTrial, ...] = ()
    ceilings: tuple[Ceiling, ...] = ()
    bandwidth: Bandwidth | None = None
    transfers: tuple[Transfer, ...] = ()
    loading: tuple[Loading, ...] = ()
    variations: Annotated[tuple[Variation, ...], Fact("one for each value of --vary; the last is this tuning")] = ()
    scaling: Annotated[Scaling | None, Fact("several devices at once, if asked for")] = None
    comparison: Annotated[tuple[str, ...], Fact("what changed since an earlier tuning, in sentences")] = ()
    profile: Annotated[str | None, Fact("path of the profile written")] = None
    budget_needed_seconds: Annotated[
        float | None, Fact("with which the search would probably end by itself; None if it did", "seconds")
    ] = None
    interrupted: Annotated[str | None, Fact('what ended it early: "budget" or "signal"; None if nothing did')] = None
    warnings: tuple[str, ...] = ()
