"""Results of tuning as they come from a device, built by hand: what the tests of the reporters print."""

from __future__ import annotations

from dataclasses import replace

from gpudoctor.model.tuning import (
    NUMERICS,
    OUT_OF_MEMORY,
    Bandwidth,
    Ceiling,
    Conditions,
    Loading,
    Measurement,
    Numerics,
    Recommendation,
    RunnerUp,
    Settings,
    SettingTrial,
    Transfer,
    TunedDevice,
    TunedWorkload,
    Tuning,
)

GIB = 2**30
EVIL = "\x1b[2J\r\n<script>alert(1)</script>\u202e\"'&\ud800"
"""Clears a screen, starts a script, turns text round, ends an attribute and cannot be encoded."""


def measured(
    precision: str, batch_size: int, step_ms: float, memory_gib: float | None, **fields: object
) -> Measurement:
    """Return a measurement of nine steps around `step_ms`, their quartiles 1 % apart."""
    peak = None if memory_gib is None else int(memory_gib * GIB)
    given = {
        "precision": precision,
        "batch_size": batch_size,
        "step_seconds": tuple(step_ms / 1e3 * (1 + n / 400) for n in range(-4, 5)),
        "warmup_seconds": (step_ms / 100, step_ms / 900),
        "samples_per_step": batch_size,
        "unit": "images/s",
        "peak_memory_bytes": peak,
        "predicted_memory_bytes": peak and int(peak * 1.01),
        "conditions": Conditions(clock_mhz=2520, power_watts=401.5, temperature_celsius=66, throttle_reasons=()),
    }
    return Measurement(**{**given, **fields})  # type: ignore[arg-type]


def too_large(precision: str, batch_size: int) -> Measurement:
    """Return a measurement that ran out of memory."""
    return Measurement(
        precision=precision,
        batch_size=batch_size,
        status=OUT_OF_MEMORY,
        detail="CUDA out of memory: tried to allocate 2.00 GiB",
        unit="images/s",
        predicted_memory_bytes=25 * GIB,
    )


def _curve(
    precision: str, fixed_ms: float, ms_per_sample: float, mib_per_sample: float, flops: float, peak_tflops: float
) -> tuple[Measurement, ...]:
    return tuple(
        measured(
            precision,
            size,
            fixed_ms + ms_per_sample * size,
            1.2 + mib_per_sample * size / 1024,
            flops_per_step=flops * size,
            peak_tflops=peak_tflops,
        )
        for size in (4, 16, 64, 96, 128, 192, 256)
        if 1.2 + mib_per_sample * size / 1024 < 22
    )


BF16 = _curve("bf16", 6.0, 0.178, 70, 24.6e9, 165.2)
RTX_4090 = TunedDevice(
    kind="cuda",
    name="NVIDIA GeForce RTX 4090",
    memory_total_bytes=24 * GIB,
    memory_usable_bytes=int(22.5 * GIB),
    compute_capability="8.9",
    driver_version="550.54.14",
    torch_version="2.13.0+cu126",
    cuda_version="12.6",
    precisions=("fp32", "tf32", "bf16", "fp16"),
)
GPU = Tuning(
    device=RTX_4090,
    workload=TunedWorkload(
        name="cnn", mode="training", unit="images/s", sample_bytes=3 * 224 * 224 * 4, dataset_size=50_000
    ),
    elapsed_seconds=41.04,
    measurements=(
        *_curve("fp32", 7.0, 0.539, 140, 24.6e9, 82.6),
        too_large("fp32", 192),
        *_curve("tf32", 6.5, 0.301, 140, 24.6e9, 82.6),
        *BF16,
        too_large("bf16", 384),
        *_curve("fp16", 6.2, 0.181, 70, 24.6e9, 165.2),
    ),
    recommendation=Recommendation(
        precision="bf16",
        batch_size=192,
        max_batch_size=288,
        settings=Settings(
            channels_last=True, cudnn_benchmark=True, allocator="expandable_segments:True", data_on_device=False,
            pin_memory=True, non_blocking=True, loader_workers=8,
        ),
        throughput=5203.4,
        unit="images/s",
        why=(
            "bf16 is 1.8 times as fast as tf32, the next safe precision; the noise is 0.5 %",
            "batch 192 is the smallest within 1 % of the best throughput: 256 gains 0.8 %",
            "its outputs and gradients are within 0.26 % of float64",
        ),
        peak_memory_bytes=int(14.3 * GIB),
        baseline=RunnerUp(precision="fp32", batch_size=96, throughput=1634.6, why="the baseline"),
        runners_up=(
            RunnerUp(precision="bf16", batch_size=256, throughput=4965.0, why="gains 0.8 %, less than the noise"),
            RunnerUp(precision="tf32", batch_size=128, throughput=2842.0, why="bf16 is 1.8 times as fast"),
            RunnerUp(precision="fp16", batch_size=192, throughput=4690.0, why="its numerics failed"),
        ),
        warnings=("the clock fell from 2,730 to 2,520 MHz (software power cap)",),
    ),
    numerics=(
        Numerics(precision="fp32", reference="fp64", passed=True, output_error=2.1e-7, gradient_error=4.4e-7),
        Numerics(
            precision="tf32", reference="fp64", passed=True, output_error=3e-4, gradient_error=3.3e-4,
            product_error=2.9e-4,
        ),
        Numerics(
            precision="bf16", reference="fp64", passed=True, output_error=2.4e-3, gradient_error=2.6e-3,
            loss_error=1.2e-3, steps_compared=20,
        ),
        Numerics(
            precision="fp16", reference="fp64", passed=False, reason="gradients are not finite in 7 of 20 steps",
            output_error=3.4e-4, gradient_error=float("inf"), steps_compared=20,
        ),
    ),
    switches=(
        SettingTrial(name="channels_last",
               measurement=replace(BF16[5], settings=Settings(channels_last=True)), gain=0.081,
               kept=True, why="+8.1 %"),
        SettingTrial(name="compile",
               measurement=replace(BF16[5], settings=Settings(compile=True)), gain=0.012, kept=False,
               why="+1.2 %, not above 2.0 %"),
    ),
    ceilings=(
        Ceiling(precision="fp32", measured_tflops=58.1),
        Ceiling(precision="tf32", measured_tflops=79.0),
        Ceiling(precision="bf16", measured_tflops=159.7),
        Ceiling(precision="fp16"),
    ),
    bandwidth=Bandwidth(measured_gb_s=911.0, datasheet_gb_s=1008.0),
    transfers=(
        Transfer(pinned=False, non_blocking=False, gb_s=6.2),
        Transfer(pinned=False, non_blocking=True, gb_s=6.3),
        Transfer(pinned=True, non_blocking=False, gb_s=24.1),
        Transfer(pinned=True, non_blocking=True, gb_s=24.8),
    ),
    loading=(
        Loading(workers=0, samples_per_second=812.0, wait_fraction=0.84),
        Loading(workers=8, samples_per_second=6120.0, wait_fraction=0.03),
    ),
    profile="/home/ann/my project/gpudoctor.env",
    warnings=("another process held 512 MiB of the device's memory",),
)  # fmt: skip
"""Four precisions on a graphics card; bf16 wins, fp16 has overflowed."""

CPU = Tuning(
    device=TunedDevice(kind="cpu", name="AMD Ryzen 9 7950X", memory_total_bytes=64 * GIB, torch_version="2.13.0+cpu",
                       threads=16, precisions=("fp32", "bf16"), unsupported=("fp16: emulated",)),
    workload=TunedWorkload(name="mlp", mode="training"),
    elapsed_seconds=29.6,
    measurements=tuple(
        measured(precision, size, 0.21 + each * size, None, unit="samples/s")
        for precision, each in (("fp32", 0.0101), ("bf16", 0.0062))
        for size in (4, 16, 64, 256, 1024)
    ),
    recommendation=Recommendation(
        precision="bf16", batch_size=256, max_batch_size=None, settings=Settings(threads=8), throughput=142_412.0,
        unit="samples/s", why=("bf16 is 1.6 times as fast as fp32",),
        baseline=RunnerUp(precision="fp32", batch_size=256, throughput=91_561.0, why="the baseline"),
    ),
    numerics=(
        Numerics(precision="fp32", reference="fp64", passed=True, output_error=1.9e-7, gradient_error=2.2e-7),
        Numerics(precision="bf16", reference="fp64", passed=True, output_error=2.5e-3, gradient_error=3.1e-3),
    ),
)  # fmt: skip
"""Two precisions, no memory measured, no ceiling known."""

INTERRUPTED = Tuning(
    device=RTX_4090,
    workload=TunedWorkload(name="lstm", mode="inference"),
    elapsed_seconds=2.25,
    measurements=(measured("fp32", 4, 8.4, 1.3, step_seconds=(0.0084, 0.0085), unit="samples/s"),),
    recommendation=None,
    interrupted="signal",
)
"""Ended by Ctrl-C after one point: two steps give no spread."""

OUT_OF_MEMORY_ALL = Tuning(
    device=RTX_4090,
    workload=TunedWorkload(name="train.py:LargeModel"),
    elapsed_seconds=3.5,
    measurements=(too_large("fp32", 1), too_large("bf16", 1)),
    recommendation=None,
    warnings=("a batch of one sample does not fit",),
)
"""Nothing fits."""

SIGNAL = Tuning(
    device=replace(RTX_4090, torch_version=None, cupy_version="14.0.1", precisions=("complex128", "complex64")),
    workload=TunedWorkload(name="signal", unit="windows/s"),
    elapsed_seconds=18.0,
    measurements=(
        *(measured("complex128", n, 0.9 + 0.02 * n, 0.4 + n / 90, unit="windows/s") for n in (16, 64, 256)),
        *(measured("complex64", n, 0.7 + 0.009 * n, 0.3 + n / 180, unit="windows/s") for n in (16, 64, 256)),
    ),
    recommendation=Recommendation(
        precision="complex64", batch_size=256, max_batch_size=3900, settings=Settings(), throughput=85_219.7,
        unit="windows/s", why=("complex64 is 2.1 times as fast as complex128",), peak_memory_bytes=int(1.72 * GIB),
        baseline=RunnerUp(precision="complex128", batch_size=256, throughput=42_524.9, why="the baseline"),
    ),
)  # fmt: skip
"""CuPy: complex numbers, no numerics compared."""

HOSTILE = Tuning(
    device=TunedDevice(kind="cuda", name=EVIL, driver_version=EVIL, torch_version=EVIL, unsupported=(EVIL,)),
    workload=TunedWorkload(name=EVIL, mode=EVIL, unit=EVIL),
    elapsed_seconds=1.0,
    measurements=(
        measured(EVIL, 8, 3.0, 1.0, unit=EVIL, warnings=(EVIL,), conditions=Conditions(throttle_reasons=(EVIL,))),
        Measurement(precision="fp16", batch_size=8, status=NUMERICS, detail=EVIL),
        Measurement(precision="bf16", batch_size=8, status=OUT_OF_MEMORY, detail=EVIL),
    ),
    recommendation=Recommendation(
        precision=EVIL, batch_size=8, max_batch_size=8, settings=Settings(allocator=EVIL), throughput=2666.7, unit=EVIL,
        why=(EVIL,), baseline=RunnerUp(precision=EVIL, batch_size=4, throughput=1000.0, why=EVIL),
        runners_up=(RunnerUp(precision=EVIL, batch_size=4, throughput=None, why=EVIL),), warnings=(EVIL,),
    ),
    numerics=(Numerics(precision="fp16", reference=EVIL, passed=False, reason=EVIL),),
    switches=(SettingTrial(name=EVIL, measurement=measured(EVIL, 8, 3.0, 1.0), gain=None, kept=False, why=EVIL),),
    ceilings=(Ceiling(precision=EVIL, measured_tflops=float("nan")),),
    profile=EVIL,
    warnings=(EVIL,),
)  # fmt: skip
"""Every text from outside is an attack."""

NOTHING = Tuning(
    device=TunedDevice(kind="cpu"), workload=TunedWorkload(name="mlp"), elapsed_seconds=0.0, measurements=(),
    recommendation=None, interrupted="signal",
)  # fmt: skip
"""Ended before the first point."""

ALL = {
    "gpu": GPU,
    "cpu": CPU,
    "interrupted": INTERRUPTED,
    "out of memory": OUT_OF_MEMORY_ALL,
    "signal": SIGNAL,
    "hostile": HOSTILE,
    "nothing": NOTHING,
}
