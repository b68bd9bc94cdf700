"""A watched program as a whole: what was seen from outside and inside, as the facts that the checks on runs read."""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from gpudoctor.model import Finding, Run
from gpudoctor.model.record import record
from gpudoctor.watching.inside import memory_of, steps_of, why_missing
from gpudoctor.watching.outside import gpus_of, idle_cpu_cores
from gpudoctor.watching.samples import Watch

SCHEMA = "gpudoctor/run/1"


@record
class WatchedRun:
    """A program that has ended, or is watched live, and what limited the GPU meanwhile.

    every_seconds: interval of the samples; a long run keeps fewer. profile: file of the env profile that it ran with.
    processes: those that took steps. crashed: checks that failed, with the reason.
    """

    command: tuple[str, ...]
    exit_status: int | None
    elapsed_seconds: float
    every_seconds: float
    profile: str | None = None
    watch: Watch
    run: Run
    processes: tuple[Mapping[str, Any], ...] = ()
    findings: tuple[Finding, ...] = ()
    crashed: tuple[str, ...] = ()


def run_of(
    watch: Watch, seen: Sequence[dict[str, Any]] = (), *, inside: str = "", exit_status: int | None = None
) -> Run:
    """Return the facts on a run. seen: what its processes left; inside: why nobody looked, if that is so."""
    trainer = next((each for each in seen if each["steps"]), None)
    cpu = [sample.cpu_cores for sample in watch.samples if sample.cpu_cores is not None]
    steps = None if trainer is None else steps_of(trainer)
    periods = [sample.cgroup_periods for sample in watch.samples if sample.cgroup_periods]
    throttled = None
    if len(periods) > 1 and periods[-1][0] > periods[0][0]:
        throttled = (periods[-1][1] - periods[0][1]) / (periods[-1][0] - periods[0][0])
    return Run(
        samples=len(watch.samples),
        gpus=gpus_of(watch),
        steps=steps,
        memory=None if trainer is None else memory_of(trainer),
        exit_status=exit_status,
        sent_to_gpu=any(each.get("sent_to_gpu") for each in seen),
        imports_torch=any("torch" in each for each in seen) if seen else None,
        inside="" if steps else inside or why_missing(list(seen)),
        cpu_cores=median(cpu) if cpu else None,
        idle_cpu_cores=idle_cpu_cores(watch),
        allowed_cpus=watch.allowed_cpus,
        throttled_periods=throttled,
    )
