"""Watched programs for tests of the checks on runs: healthy ones, which a test makes ill in one way."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gpudoctor.model import CheckResult, Finding, Loader, Outcome, Run, RunGpu, Steps, TorchMemory
from gpudoctor.testing import run_check

GIB = 2**30
LOADER = Loader(
    workers=4, pin_memory=True, batch_size=64, dataset="Images", dataset_length=6400, epochs=1, made="train.py:12"
)
STEPS = Steps(
    kind="optimizer",
    counted=100,
    step_ms=20.0,
    median_ms=20.0,
    loader_share=0.05,
    prepare_share=0.01,
    copies_share=0.02,
    forward_share=0.4,
    backward_share=0.4,
    optimizer_share=0.1,
    copies=2.0,
    copy_bytes=2.0**20,
    loader_place="train.py:20",
    copies_place="train.py:21",
    loader=LOADER,
    operations=80,
    small_operations=40,
    shapes=1,
    parameter_bytes=40 * 2**20,
    large_elements=10 * 2**20,
    precisions=("float32",),
    parameter_devices=("cuda",),
    autocast="bfloat16",
    autocasts=1.0,
    tf32=False,
    sent_to_gpu=True,
)
MEMORY = TorchMemory(
    total_bytes=24 * GIB, capability=(8, 9), allocated_peak_bytes=12 * GIB, reserved_bytes=14 * GIB, split_bytes=GIB
)
GPU = RunGpu(
    nvml_index=0,
    name="NVIDIA GeForce RTX 4090",
    is_used=True,
    samples=60,
    utilization_percent=95.0,
    idle_share=0.02,
    memory_total_bytes=24 * GIB,
    memory_peak_bytes=15 * GIB,
    other_bytes=0,
    clock_max_mhz=3120,
)
RUN = Run(samples=60, gpus=(GPU,), steps=STEPS, memory=MEMORY, cpu_cores=1.2, allowed_cpus=16.0, throttled_periods=0.0)


def steps(**changed: Any) -> Run:
    """Return the healthy run with other steps."""
    return replace(RUN, steps=replace(STEPS, **changed))


def memory(**changed: Any) -> Run:
    """Return the healthy run with other memory."""
    return replace(RUN, memory=replace(MEMORY, **changed))


def gpu(**changed: Any) -> Run:
    """Return the healthy run on another GPU."""
    return replace(RUN, gpus=(replace(GPU, **changed),))


def outside(**changed: Any) -> Run:
    """Return a run that was seen from outside only, on another GPU."""
    cores = changed.pop("idle_cpu_cores", None)
    return replace(gpu(**changed), steps=None, memory=None, inside="no Python program", idle_cpu_cores=cores)


def result(check_id: str, run: Run) -> CheckResult:
    """Return how a check ends on a run."""
    return run_check(check_id, run=run)


def outcome(check_id: str, run: Run) -> Outcome:
    """Return the outcome of a check on a run; the healthy run never has a finding."""
    assert result(check_id, RUN).outcome is not Outcome.FOUND
    return result(check_id, run).outcome


def finding(check_id: str, run: Run) -> Finding:
    """Return the one finding of a check on a run."""
    (found,) = result(check_id, run).findings
    return found
