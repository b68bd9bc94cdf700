"""What a watched program did: seen from outside, by the driver and the system, and inside, step by step."""

from __future__ import annotations

from typing import Annotated, Any

from gpudoctor.model.record import Fact, record

FEWEST_STEPS = 20
"""Nothing is claimed from fewer counted steps."""


@record
class Loader:
    """The last DataLoader that was iterated."""

    workers: int
    pin_memory: bool
    batch_size: int | None = None
    dataset: Annotated[str, Fact("class of the data set")] = ""
    is_iterable: Annotated[
        bool, Fact("the data set is an IterableDataset, and each worker iterates over all of it")
    ] = False
    dataset_length: int | None = None
    epochs: Annotated[int, Fact("how often a loader was iterated")] = 0
    made: Annotated[str, Fact("where it was made: train.py:12; empty if unknown")] = ""


@record
class Steps:
    """Steps of the process that trains, without the first ones. Shares are of the time of a step and never overlap."""

    kind: Annotated[str, Fact('what ends a step: "optimizer" or, in inference, "loader"')]
    counted: int
    step_ms: Annotated[float, Fact("mean duration")]
    median_ms: float
    loader_share: Annotated[float, Fact("waiting for the DataLoader")] = 0.0
    prepare_share: Annotated[
        float, Fact("from the end of the last step to the first copy to the GPU, without others")
    ] = 0.0
    copies_share: Annotated[float, Fact("blocked in copies to the GPU")] = 0.0
    synchronising_share: Annotated[float, Fact("waiting for results of the GPU")] = 0.0
    cloning_share: float = 0.0
    forward_share: float = 0.0
    backward_share: float = 0.0
    optimizer_share: float = 0.0
    copies: Annotated[float, Fact("copies to the GPU, each step")] = 0.0
    copy_bytes: Annotated[float, Fact("bytes copied to the GPU, each step")] = 0.0
    pageable_bytes: Annotated[float, Fact("those from memory that is not pinned")] = 0.0
    background_bytes: Annotated[float, Fact("those from pinned memory that the program does not wait for")] = 0.0
    synchronisations: Annotated[float, Fact("calls that wait for the GPU, each step")] = 0.0
    clones: Annotated[float, Fact("clones, each step")] = 0.0
    clone_bytes: Annotated[float, Fact("bytes cloned, each step")] = 0.0
    autocasts: Annotated[float, Fact("uses of autocast, each step")] = 0.0
    loader_place: Annotated[str, Fact("line that most often waits for the loader; empty if unknown")] = ""
    copies_place: str = ""
    synchronising_place: str = ""
    synchronising_call: Annotated[str, Fact('what waits there: "item"')] = ""
    synchronising_package: Annotated[str, Fact("installed package that calls it there; empty for none")] = ""
    cloning_place: str = ""
    operators_place: Annotated[str, Fact("line of the forward pass with the most operators")] = ""
    products_place: Annotated[str, Fact("line of the forward pass with the largest matrix products")] = ""
    compiling_place: Annotated[str, Fact("function that torch.compile compiled most often recently")] = ""
    loader: Loader | None = None
    source_bytes: Annotated[int | None, Fact("largest tensor in memory that is sent to the GPU in slices")] = None
    operations: Annotated[int | None, Fact("operations between the parameters and the loss")] = None
    small_operations: Annotated[int | None, Fact("those with results below 262,144 elements")] = None
    operators: Annotated[int | None, Fact("operators that one step dispatched, without views")] = None
    kernels: Annotated[int | None, Fact("kernels that the GPU ran in one step")] = None
    gpu_busy_ms: Annotated[float | None, Fact("time of that step in which a kernel ran")] = None
    cuda_graphs: Annotated[bool, Fact("CUDA graphs were replayed")] = False
    shapes: Annotated[int, Fact("distinct shapes sent to the GPU")] = 0
    parameter_bytes: int | None = None
    large_elements: Annotated[int | None, Fact("elements of weight matrices with at least 256 rows and columns")] = None
    precisions: Annotated[tuple[str, ...], Fact("of the large weights")] = ()
    parameter_devices: Annotated[tuple[str, ...], Fact('"cpu", "cuda"')] = ()
    autocast: Annotated[str | None, Fact("precision of autocast; None if it was not used")] = None
    tf32: Annotated[bool | None, Fact("float32 products use TF32")] = None
    graphs: Annotated[int, Fact("compiled by torch.compile after the first two steps")] = 0
    is_compiled: Annotated[bool, Fact("torch.compile was used")] = False
    compile_seconds: Annotated[float, Fact("spent in torch.compile after the first five steps")] = 0.0
    sent_to_gpu: Annotated[bool, Fact("a tensor was sent to a GPU")] = False
    is_stand_in: Annotated[bool, Fact("the GPU is a stand-in that computes on the CPU: copies take no time")] = False
    series_ms: Annotated[tuple[float, ...], Fact("durations of steps, evenly thinned")] = ()

    @property
    def active_share(self) -> float:
        """The share in which neither loader, preparation nor copies keep the model waiting."""
        return max(1 - self.loader_share - self.prepare_share - self.copies_share, 0.0)

    @property
    def gpu_busy_share(self) -> float | None:
        """The share in which a kernel runs; None if nobody counted kernels."""
        return None if self.gpu_busy_ms is None else min(self.gpu_busy_ms / self.step_ms, 1.0)

    @property
    def input_share(self) -> float:
        """The share in which the model waits for its input."""
        return self.loader_share + self.prepare_share


@record
class TorchMemory:
    """PyTorch's memory on one GPU."""

    total_bytes: int
    capability: Annotated[tuple[int, ...], Fact("compute capability")] = ()
    allocated_peak_bytes: int | None = None
    reserved_bytes: int | None = None
    split_bytes: Annotated[int | None, Fact("reserved, free, and in pieces that cannot be given back")] = None
    retries: Annotated[int, Fact("times that the cache was emptied to find memory")] = 0
    out_of_memory: Annotated[int, Fact("failed allocations")] = 0


@record
class RunGpu:
    """A GPU while the program ran. Figures are since its first use by the program, if it used it."""

    nvml_index: int
    name: str | None = None
    is_used: Annotated[bool | None, Fact("by the program; None if nothing shows it")] = None
    samples: int = 0
    utilization_percent: Annotated[float | None, Fact("median")] = None
    idle_share: Annotated[float | None, Fact("share of samples with a utilisation below 10 %")] = None
    memory_total_bytes: int | None = None
    memory_peak_bytes: Annotated[int | None, Fact("by all processes")] = None
    other_bytes: Annotated[int | None, Fact("memory of other programs, median")] = None
    throttled: Annotated[str, Fact('why the clocks were lowered most often: "thermal", "power", "slowdown", or ""')] = (
        ""
    )
    throttled_share: float = 0.0
    clock_mhz: Annotated[float | None, Fact("SM clock while lowered, median")] = None
    clock_max_mhz: int | None = None
    temperature_peak_celsius: Annotated[float | None, Fact("while the clocks were lowered")] = None
    is_mig: Annotated[bool, Fact("it is divided by MIG: NVML gives no utilisation")] = False


@record
class Run:
    """A program that was watched."""

    samples: Annotated[int, Fact("looks at GPUs and processes")] = 0
    gpus: tuple[RunGpu, ...] = ()
    steps: Steps | None = None
    memory: TorchMemory | None = None
    inside: Annotated[str, Fact("why the steps are unknown; empty if they are known")] = ""
    exit_status: Annotated[int | None, Fact("None while it runs; 128 + N if signal N ended it")] = None
    sent_to_gpu: Annotated[bool, Fact("a process of the program sent a tensor to a GPU, seen by the hook")] = False
    imports_torch: Annotated[bool | None, Fact("it imported PyTorch; None if nobody looked inside")] = None
    cpu_cores: Annotated[float | None, Fact("CPU use, median; 1.0 is one core")] = None
    idle_cpu_cores: Annotated[float | None, Fact("CPU use while the GPU was idle, median")] = None
    allowed_cpus: Annotated[float | None, Fact("CPUs that the program may use")] = None
    throttled_periods: Annotated[float | None, Fact("share of periods in which the cgroup stopped the program")] = None


def measured(share: float | None, place: str = "", *, saved: float | None = None) -> dict[str, Any]:
    """Return what a finding on a run says in addition.

    share: of the time of a step, or of the samples. place: file and line. saved: the share of the run that a change can
    save at most; None if nothing measured it.
    """
    return {"share": share, "place": place or None, "saved": saved}


def share_text(share: float) -> str:
    """Return a share in whole percent: "71 %" for 0.71."""
    return f"{100 * share:.0f} %"


def size_text(size: float) -> str:
    """Return a size with its binary unit: "23.5 GiB", "512 KiB"."""
    for power, unit in ((3, "GiB"), (2, "MiB"), (1, "KiB")):
        if size >= 1024**power:
            amount = size / 1024**power
            return f"{amount:.1f} {unit}" if amount < 100 else f"{amount:,.0f} {unit}"
    return f"{size:.0f} B"
