"""A simulated device with a virtual clock: workloads drawn from ranges that were seen, not from what suits a search.

The ranges and where they come from:

memory      the peak of a step is the largest of affine curves of the batch; a two-layer LSTM bends late: fitted on
            batches 1 to 16 it was under-predicted by 31 to 89 % at 1024, fitted on 1 to 64 by 7 to 27 %; convolutions
            by 2 to 5 %, transformers by 0 to 3 %, perceptrons not (MemTracker under FakeTensor, torch 2.13); what does
            not grow with the batch is copies of the parameters: gradients, temporaries of the optimiser, cast weights
optimiser   its state appears with the end of the first step: none, one or two values per parameter
allocator   holds 1 to 12 % more than is allocated ("assume 5 to 10 %", a maintainer in pytorch#168343), in 2 MiB
            pieces; a part of that it can give back, which costs time at every step: 30 % were seen in NeMo#9061
workspace   cuDNN chooses it by size, so that the memory is not monotone (pytorch#49207, deeplearning4j#5461)
spill       on Windows and WSL memory goes on in the host's, through PCI Express at some 12 GB/s (WSL#11050)
limits      the largest batch that fits: from a handful (large language models) to ten thousands (small networks)
time        a fixed part and one per sample (Hockney; AdaptDL); the host's launches overlap it more or less (AdaptDL's
            norm); a share of it moves in tiles of 8 to 132 samples; some lose throughput beyond a size (what Ludwig
            looks for)
precision   Amdahl: the matrix products gain what the datasheets say (TF32 1 to 8 times, 16 bits 2 to 16 times), the
            rest up to 2 times; autocast adds casts, fp16 its scaling
noise       log-normal per step, 2 % outliers of 1.2 to 2.5 times, and a fifth of it shared by all steps of a trial

The half batch, the sizes of tiles, the share of parameters and the chances are assumptions, wide on purpose.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import replace

from gpudoctor.model.record import record
from gpudoctor.model.tuning import (
    OUT_OF_MEMORY,
    UNSUPPORTED,
    Bandwidth,
    Ceiling,
    Loading,
    Measurement,
    Numerics,
    Transfer,
    Trial,
    TunedDevice,
    TunedWorkload,
)
from gpudoctor.tuning.executor import Effort

GIB = 2**30
BLOCK = 2**21
HOST_BYTES_PER_SECOND = 12e9
PRECISIONS = ("fp32", "tf32", "bf16", "fp16")

SPEEDS = (
    {"tf32": 7.4, "bf16": 14.8, "fp16": 14.8},
    {"tf32": 8.0, "bf16": 16.0, "fp16": 16.0},
    {"tf32": 1.0, "bf16": 2.0, "fp16": 2.0},
    {"tf32": 2.0, "bf16": 4.0, "fp16": 4.0},
    {"fp16": 8.0},
)
"""Matrix products against fp32, by the datasheets: H100 and H200, A100, GeForce 30 and 40, L4 and L40S, T4 and V100."""


@record
class Ranges:
    """Where the parameters of a family of workloads are drawn from; pairs are ends, drawn log-uniform if above zero."""

    largest_batch: tuple[float, float] = (6, 16384)
    half_batch: tuple[float, float] = (0.5, 256)
    parameter_share: tuple[float, float] = (0.0005, 0.12)
    copies: tuple[float, float] = (0.5, 4)
    kink_ratio: tuple[float, float] = (1.5, 12)
    fragmentation: tuple[float, float] = (0.01, 0.12)
    tiles: tuple[int, ...] = (1, 8, 16, 32, 64, 132)
    tile_share: float = 0.3
    overlap: tuple[float, float] = (1, 8)
    decline: float = 0.15
    workspace_chance: float = 0.1
    spill_chance: float = 0.1
    silent_chance: float = 0.0
    last_step_seconds: tuple[float, float] = (0.03, 1.5)


TUNED_ON = Ranges()
"""The family that the constants of the search were chosen on."""

HELD_OUT = Ranges(
    largest_batch=(3, 65536),
    half_batch=(2, 2000),
    parameter_share=(0.002, 0.16),
    copies=(0.2, 8),
    kink_ratio=(1.1, 20),
    fragmentation=(0.03, 0.2),
    tiles=(4, 12, 24, 66, 108, 264),
    tile_share=0.4,
    overlap=(1, 16),
    decline=0.3,
    workspace_chance=0.2,
    spill_chance=0.2,
    last_step_seconds=(0.01, 4),
)
"""Another family, with wider ranges: it was looked at for faults alone."""

SILENT = Ranges(silent_chance=1.0)
"""The first family on devices that tell no memory, as MPS and the CPU: torch and CuPy tell it on every NVIDIA GPU."""


@record
class PrecisionTraits:
    """One precision of a workload: its time and memory against fp32, and whether its numbers are good."""

    fixed_factor: float = 1.0
    sample_factor: float = 1.0
    memory_factor: float = 1.0
    extra_bytes: float = 0.0
    error: float = 1e-7
    passes: bool = True


@record
class Scenario:
    """A workload on a device. Memory in bytes, time in seconds."""

    seed: int
    memory_bytes: int
    parameter_bytes: float
    optimiser_bytes: float
    curves: tuple[tuple[float, float], ...]
    fragmentation: float
    stubborn: float
    thrash: float
    workspace: float
    spills: bool
    measures_memory: bool
    launch_seconds: float
    fixed_seconds: float
    sample_seconds: float
    overlap: float
    tile: int
    tile_share: float
    decline_from: float
    decline: float
    precisions: dict[str, PrecisionTraits]

    def resident(self, precision: str) -> float:
        """Return the memory between two steps: the parameters and the optimiser's state."""
        return self.parameter_bytes + self.optimiser_bytes

    def moving(self, precision: str, batch_size: int) -> float:
        """Return the peak of what a step allocates besides."""
        traits = self.precisions[precision]
        highest = max(start + slope * traits.memory_factor * batch_size for start, slope in self.curves)
        return traits.extra_bytes + highest + self._workspace(precision, batch_size)

    def _workspace(self, precision: str, batch_size: int) -> float:
        if not self.workspace:
            return 0.0
        return self.workspace * max(0.0, random.Random(f"{self.seed} {precision} {batch_size}").random() - 0.5)

    def allocated(self, precision: str, batch_size: int, first_step: bool = False) -> float:
        """Return the peak of allocated memory of a step; the first one runs without the optimiser's state."""
        state = self.optimiser_bytes if first_step else 0.0
        return self.resident(precision) - state + self.moving(precision, batch_size)

    def fits(self, precision: str, batch_size: int, first_step: bool = False) -> bool:
        """Tell whether a step of this size runs without an error."""
        waste = self.moving(precision, batch_size) * self.fragmentation * self.stubborn
        return self.spills or self.allocated(precision, batch_size, first_step) + waste <= self.memory_bytes

    def held(self, precision: str, batch_size: int) -> float:
        """Return what the allocator would hold if it could."""
        held = self.resident(precision) + self.moving(precision, batch_size) * (1 + self.fragmentation)
        return math.ceil(held / BLOCK) * BLOCK

    def seconds(self, precision: str, batch_size: int) -> float:
        """Return the true time of a step."""
        traits = self.precisions[precision]
        tiled = math.ceil(batch_size / self.tile) * self.tile
        samples = batch_size + self.tile_share * (tiled - batch_size)
        samples += self.decline * max(0.0, batch_size - self.decline_from)
        device = self.fixed_seconds * traits.fixed_factor + self.sample_seconds * traits.sample_factor * samples
        launch = self.launch_seconds * traits.fixed_factor
        seconds = float((launch**self.overlap + device**self.overlap) ** (1 / self.overlap))
        over = self.held(precision, batch_size) - self.memory_bytes
        if over <= 0:
            return seconds
        if self.spills:
            return seconds + 2 * over / HOST_BYTES_PER_SECOND
        return seconds * self.thrash

    def rate(self, precision: str, batch_size: int) -> float:
        """Return the true throughput; 0 where it does not fit."""
        return batch_size / self.seconds(precision, batch_size) if self.fits(precision, batch_size) else 0.0


def draw(seed: int, ranges: Ranges = TUNED_ON) -> Scenario:
    """Return the scenario of a seed; of every one a batch of two fits in fp32."""
    for attempt in range(100):
        scenario = _draw(random.Random(f"{seed} {attempt}"), seed, ranges)
        if scenario.held("fp32", 2) <= scenario.memory_bytes:
            return scenario
    raise AssertionError("the ranges leave no room for a batch of two")


def _draw(rng: random.Random, seed: int, ranges: Ranges) -> Scenario:
    memory = int(rng.choice((8, 12, 16, 24, 40, 80, 141)) * GIB * 0.9)
    parameters = _log_uniform(rng, ranges.parameter_share) * memory
    optimiser = rng.choice((0, 1, 2)) * parameters
    largest = _log_uniform(rng, ranges.largest_batch)
    fragmentation = rng.uniform(*ranges.fragmentation)
    stubborn = rng.uniform(0.1, 0.8)
    gradients = parameters * rng.uniform(1.0, 1.3)
    room = memory / (1 + fragmentation * stubborn) - parameters - optimiser - gradients
    per_sample = max(room, 0.01 * memory) / largest
    half = _log_uniform(rng, ranges.half_batch)
    sample_seconds = _log_uniform(rng, ranges.last_step_seconds) / (largest + half)
    launch_share = rng.random()
    return Scenario(
        seed=seed,
        memory_bytes=memory,
        parameter_bytes=parameters,
        optimiser_bytes=optimiser,
        curves=_curves(rng, ranges, parameters, gradients, per_sample),
        fragmentation=fragmentation,
        stubborn=stubborn,
        thrash=rng.choice((1.02, 1.02, 1.3)),
        workspace=memory * 0.08 if rng.random() < ranges.workspace_chance else 0.0,
        spills=rng.random() < ranges.spill_chance,
        measures_memory=rng.random() >= ranges.silent_chance,
        launch_seconds=half * sample_seconds * launch_share,
        fixed_seconds=half * sample_seconds * (1 - launch_share),
        sample_seconds=sample_seconds,
        overlap=_log_uniform(rng, ranges.overlap),
        tile=rng.choice(ranges.tiles),
        tile_share=rng.uniform(0, ranges.tile_share),
        decline_from=largest / _log_uniform(rng, (1, 32)),
        decline=rng.choice((0, 0, 0, rng.uniform(0, ranges.decline))),
        precisions=_precisions(rng, parameters),
    )


def _curves(
    rng: random.Random, ranges: Ranges, parameters: float, gradients: float, per_sample: float
) -> tuple[tuple[float, float], ...]:
    """Return the moments of a step: the backward pass, the optimiser's, and what bends the curve in some families."""
    backward = (gradients, per_sample)
    optimiser = (gradients + parameters * rng.uniform(0, 1), per_sample * 0.05)
    family = rng.choice(("perceptron", "convolution", "transformer", "lstm"))
    ratios = {"perceptron": 1.0, "convolution": rng.uniform(1.02, 1.1), "transformer": rng.uniform(1.0, 1.05)}
    ratio = ratios.get(family) or _log_uniform(rng, ranges.kink_ratio)
    copies = parameters * _log_uniform(rng, ranges.copies)
    return backward, optimiser, (gradients + copies, per_sample / ratio)


def _precisions(rng: random.Random, parameters: float) -> dict[str, PrecisionTraits]:
    speeds = rng.choice(SPEEDS)
    products = rng.uniform(0.2, 0.95)
    narrow = rng.uniform(0.5, 1.0)
    casts = rng.uniform(1.0, 1.3)
    activations = rng.uniform(0.5, 0.8)
    traits = {"fp32": PrecisionTraits()}
    if "tf32" in speeds:
        traits["tf32"] = PrecisionTraits(sample_factor=products / speeds["tf32"] + 1 - products, error=2.9e-4)
    for name, error, passes in (("bf16", 2.3e-3, 0.97), ("fp16", 2.9e-4, 0.9)):
        if name in speeds:
            slower = rng.uniform(0.96, 1.05) if name == "fp16" else 1.0
            traits[name] = PrecisionTraits(
                fixed_factor=casts * (rng.uniform(1.0, 1.1) if name == "fp16" else 1.0),
                sample_factor=slower * (products / speeds[name] + (1 - products) * narrow),
                memory_factor=activations,
                extra_bytes=parameters / 2,
                error=error,
                passes=rng.random() < passes,
            )
    return traits


def _log_uniform(rng: random.Random, ends: tuple[float, float]) -> float:
    return math.exp(rng.uniform(math.log(ends[0]), math.log(ends[1])))


PLAIN = Scenario(
    seed=0,
    memory_bytes=8 * GIB,
    parameter_bytes=0.1 * GIB,
    optimiser_bytes=0.2 * GIB,
    curves=((0.1 * GIB, 8e6),),
    fragmentation=0.05,
    stubborn=0.5,
    thrash=1.3,
    workspace=0.0,
    spills=False,
    measures_memory=True,
    launch_seconds=0.0,
    fixed_seconds=0.010,
    sample_seconds=0.001,
    overlap=1.0,
    tile=1,
    tile_share=0.0,
    decline_from=math.inf,
    decline=0.0,
    precisions={"fp32": PrecisionTraits()},
)
"""Some 970 samples fit."""


class SimulatedDevice:
    """An Executor. Its clock is virtual; the same scenario, noise and seed give the same figures again."""

    def __init__(self, scenario: Scenario, noise: float = 0.01, seed: int = 0) -> None:
        self.scenario = scenario
        self.noise = noise
        self.trials: list[Measurement] = []
        self._random = random.Random(f"{scenario.seed} {seed}")
        self._clock = 0.0

    def now(self) -> float:
        """Return the virtual seconds since the start."""
        return self._clock

    def describe(self) -> TunedDevice:
        """Return a device that supports the scenario's precisions."""
        supported = tuple(name for name in PRECISIONS if name in self.scenario.precisions)
        usable = self.scenario.memory_bytes
        return TunedDevice(kind="cuda", name="simulated", memory_usable_bytes=usable, precisions=supported)

    def describe_workload(self, precision: str) -> TunedWorkload:
        """Return a workload without a data set."""
        return TunedWorkload(name="simulated", mode="training")

    def measure(self, trial: Trial, effort: Effort) -> Measurement:
        """Return how the trial goes, and let the virtual clock run."""
        measurement = self._measure(trial, effort)
        self.trials.append(measurement)
        return measurement

    def _measure(self, trial: Trial, effort: Effort) -> Measurement:
        scenario, precision, size = self.scenario, trial.precision, trial.batch_size
        predicted = trial.predicted_memory_bytes
        blank = Measurement(precision=precision, batch_size=size, predicted_memory_bytes=predicted)
        self._clock += 0.5
        if precision not in scenario.precisions:
            return replace(blank, status=UNSUPPORTED, detail=f"{precision} is not supported")
        first_step = effort.warmup_steps + effort.steps < 2
        if not scenario.fits(precision, size, first_step):
            return replace(blank, status=OUT_OF_MEMORY, detail="CUDA out of memory")
        warmup = tuple(self._steps(trial, effort.warmup_steps, math.inf))
        held = scenario.held(precision, size)
        over = held > scenario.memory_bytes
        tells = scenario.measures_memory
        return replace(
            blank,
            step_seconds=tuple(self._steps(trial, effort.steps, effort.limit_seconds)),
            warmup_seconds=warmup,
            samples_per_step=size,
            peak_memory_bytes=int(scenario.allocated(precision, size, first_step)) if tells else None,
            resident_memory_bytes=int(scenario.resident(precision)) if tells else None,
            reserved_memory_bytes=int(held if scenario.spills else min(held, scenario.memory_bytes)) if tells else None,
            allocation_retries=effort.steps if over and not scenario.spills else 0,
        )

    def _steps(self, trial: Trial, count: int, limit_seconds: float) -> Iterator[float]:
        true = self.scenario.seconds(trial.precision, trial.batch_size)
        shared = self._random.gauss(0, self.noise / 5)
        end = self._clock + limit_seconds
        for number in range(count):
            if number >= 3 and self._clock >= end:  # as a slow step is timed
                return
            outlier = self._random.uniform(1.2, 2.5) if self._random.random() < 0.02 else 1.0
            seconds = true * math.exp(shared + self._random.gauss(0, self.noise)) * outlier
            self._clock += seconds
            yield seconds

    def compare(self, precision: str) -> Numerics:
        """Return whether the precision is good enough in this scenario."""
        traits = self.scenario.precisions[precision]
        reason = "" if traits.passes else "the gradients are not finite"
        return Numerics(
            precision=precision, reference="fp64", passed=traits.passes, reason=reason, output_error=traits.error
        )

    def ceiling(self, precision: str) -> Ceiling:
        """Return nothing measured."""
        return Ceiling(precision=precision)

    def bandwidth(self) -> Bandwidth:
        """Return nothing measured."""
        return Bandwidth()

    def transfers(self) -> tuple[Transfer, ...]:
        """Return none."""
        return ()

    def loading(self, batch_size: int) -> tuple[Loading, ...]:
        """Return none."""
        return ()

    def close(self) -> None:
        """There is nothing to end."""
