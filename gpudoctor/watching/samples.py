"""What was seen of the GPU and of the program while it ran."""

from typing import Annotated

from gpudoctor.model.record import Fact, record

MOST_SAMPLES = 4096
"""Beyond it every second one is dropped: a run of weeks takes no more memory than one of an hour."""


@record
class WatchedDevice:
    """A GPU, and what it can do at most. `None` means unknown."""

    nvml_index: int
    name: str | None = None
    memory_total_bytes: int | None = None
    power_limit_watts: float | None = None
    clock_max_mhz: Annotated[int | None, Fact("highest SM clock")] = None
    is_mig: Annotated[bool, Fact("it is divided by MIG")] = False
    unread: Annotated[tuple[str, ...], Fact('what NVML does not say of it, and why: "power draw: Not Supported"')] = ()


@record
class DeviceSample:
    """What a GPU did at one moment. `None` means unknown."""

    nvml_index: int
    utilization_percent: Annotated[int | None, Fact("share of the last moment in which a kernel ran")] = None
    memory_used_bytes: Annotated[int | None, Fact("by all processes")] = None
    clock_mhz: Annotated[int | None, Fact("SM clock")] = None
    power_watts: float | None = None
    temperature_celsius: int | None = None
    throttle_reasons: Annotated[tuple[str, ...] | None, Fact("why the clock is lowered; empty if it is not")] = None
    is_used_by_program: Annotated[bool | None, Fact("NVML lists a process of the program on it")] = None
    other_bytes: Annotated[int | None, Fact("memory of processes that are not the program's")] = None
    received_bytes_per_second: Annotated[int | None, Fact("over PCIe")] = None
    problem: Annotated[str | None, Fact("why NVML said nothing")] = None


@record
class Sample:
    """One look at the GPUs and at the program."""

    at_seconds: Annotated[float, Fact("since the watch began")]
    cpu_cores: Annotated[float | None, Fact("CPU use since the previous sample; 1.0 is one core")] = None
    memory_bytes: Annotated[int | None, Fact("of all processes of the program")] = None
    processes: int | None = None
    threads: int | None = None
    disk_read_bytes: Annotated[int | None, Fact("read from disks so far")] = None
    disk_written_bytes: Annotated[int | None, Fact("written to disks so far")] = None
    shm_free_bytes: Annotated[int | None, Fact("free shared memory")] = None
    cgroup_periods: Annotated[tuple[int, ...] | None, Fact("periods of the CPU limit, and those that it cut short")] = (
        None
    )
    devices: tuple[DeviceSample, ...] = ()


@record
class Watch:
    """All that was seen. `problem` says why nothing was, empty if something was."""

    devices: tuple[WatchedDevice, ...] = ()
    unusable: Annotated[tuple[str, ...], Fact('GPUs that are not watched, and why: "GPU 1: GPU is lost"')] = ()
    samples: tuple[Sample, ...] = ()
    problem: str = ""
    allowed_cpus: Annotated[float | None, Fact("by affinity and cgroup")] = None


class Thinned:
    """Samples in the order in which they came, evenly thinned so that there are never more than `most`."""

    def __init__(self, most: int = MOST_SAMPLES) -> None:
        self._most = most
        self._stride = 1
        self._seen = 0
        self._kept: list[Sample] = []

    def add(self, sample: Sample) -> None:
        """Keep the sample, unless it is one of those that thinning leaves out."""
        if self._seen % self._stride == 0:
            self._kept.append(sample)
        self._seen += 1
        if len(self._kept) >= self._most:
            del self._kept[1::2]
            self._stride *= 2

    def all(self) -> tuple[Sample, ...]:
        """Return the samples that were kept."""
        return tuple(self._kept)
