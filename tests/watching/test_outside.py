"""What each GPU did, told from samples alone, and what the checks make of it."""

from __future__ import annotations

from typing import Any

import pytest

from gpudoctor.engine.run_findings import findings_of
from gpudoctor.model import Finding
from gpudoctor.reporters.run_words import verdict
from gpudoctor.watching.outside import gpus_of, idle_cpu_cores
from gpudoctor.watching.samples import DeviceSample, Sample, Watch, WatchedDevice
from gpudoctor.watching.watched import WatchedRun, run_of

GIB = 2**30
H100 = WatchedDevice(
    nvml_index=0, name="NVIDIA H100", memory_total_bytes=80 * GIB, power_limit_watts=700.0, clock_max_mhz=1980
)
BUSY: dict[str, Any] = {
    "nvml_index": 0,
    "utilization_percent": 97,
    "memory_used_bytes": 40 * GIB,
    "clock_mhz": 1755,
    "power_watts": 500.0,
    "temperature_celsius": 64,
    "throttle_reasons": (),
    "is_used_by_program": True,
}


def samples(count: int, cpu_cores: float | None = 0.3, **device: Any) -> tuple[Sample, ...]:
    """Return samples of a GPU that the program keeps busy, but for `device`."""
    return tuple(
        Sample(at_seconds=float(second), cpu_cores=cpu_cores, devices=(DeviceSample(**{**BUSY, **device}),))
        for second in range(count)
    )


def watch_of(*parts: tuple[Sample, ...]) -> Watch:
    return Watch(devices=(H100,), samples=sum(parts, ()))


def judge(*parts: tuple[Sample, ...]) -> tuple[Finding, ...]:
    findings, crashed = findings_of(run_of(watch_of(*parts)))
    assert crashed == ()
    return findings


def ids(*parts: tuple[Sample, ...]) -> list[str]:
    return [finding.check_id for finding in judge(*parts)]


THERMAL: dict[str, Any] = {
    "throttle_reasons": ("sw_thermal_slowdown", "hw_slowdown"),
    "temperature_celsius": 87,
    "clock_mhz": 1410,
}
POWER: dict[str, Any] = {"throttle_reasons": ("hw_power_brake_slowdown", "hw_slowdown"), "power_watts": 698.4}


UNKNOWN: dict[str, Any] = {"utilization_percent": 0, "is_used_by_program": None}


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        pytest.param([samples(5)], [], id="busy"),
        pytest.param([samples(4, utilization_percent=0, is_used_by_program=False)], [], id="four samples"),
        pytest.param(
            [samples(9, utilization_percent=0, is_used_by_program=False)], ["gpu-never-used"], id="never used"
        ),
        pytest.param([samples(9, utilization_percent=80, is_used_by_program=False)], ["gpu-never-used"], id="others"),
        pytest.param([samples(9, is_used_by_program=None)], [], id="in a container"),
        pytest.param([samples(9, utilization_percent=None, is_used_by_program=None)], [], id="MIG"),
        pytest.param([samples(5), samples(6, 1.0, utilization_percent=3)], ["input-bound"], id="idle more than half"),
        pytest.param([samples(5), samples(5, 1.0, utilization_percent=3)], [], id="idle half"),
        pytest.param([samples(9, 1.0, utilization_percent=9)], ["input-bound"], id="9 % is idle"),
        pytest.param([samples(9, 1.0, utilization_percent=10)], [], id="10 % is not"),
        pytest.param([samples(9), samples(1, **THERMAL)], ["throttled"], id="hot a tenth"),
        pytest.param([samples(10), samples(1, **THERMAL)], [], id="hot less than a tenth"),
        pytest.param([samples(9, throttle_reasons=None), samples(1, **POWER)], ["throttled"], id="of what is known"),
        pytest.param([samples(9, throttle_reasons=("hw_slowdown",))], ["throttled"], id="slowdown without a cause"),
        pytest.param([samples(9, throttle_reasons=None)], [], id="unknown reasons claim nothing"),
        pytest.param([samples(9, throttle_reasons=("gpu_idle",))], [], id="a harmless reason"),
        pytest.param([samples(9, memory_used_bytes=65 * GIB)], ["memory-nearly-full"], id="memory at 81 %"),
        pytest.param([samples(9, memory_used_bytes=64 * GIB)], [], id="memory at 80 %"),
        pytest.param([samples(9, other_bytes=GIB)], ["shared-gpu"], id="another program"),
        pytest.param(
            [samples(9, 1.0, **{**THERMAL, "utilization_percent": 0})], ["input-bound", "throttled"], id="two at once"
        ),
    ],
)
def test_findings(seen: list[tuple[Sample, ...]], expected: list[str]) -> None:
    assert ids(*seen) == expected


@pytest.mark.parametrize(("grown_bytes", "used"), [(64 * 2**20 - 1, False), (64 * 2**20, True)])
def test_memory_that_shows_a_use(grown_bytes: int, used: bool) -> None:
    seen = samples(3, memory_used_bytes=GIB, **UNKNOWN), samples(6, memory_used_bytes=GIB + grown_bytes, **UNKNOWN)
    assert gpus_of(watch_of(*seen))[0].is_used is used


def test_the_start_of_a_program_is_not_idleness() -> None:
    start = samples(30, 1.0, utilization_percent=0, is_used_by_program=False)
    (gpu,) = gpus_of(watch_of(start, samples(8)))
    assert (gpu.is_used, gpu.samples, gpu.idle_share) == (True, 8, 0.0)


def test_what_the_cpu_does_while_the_gpu_is_idle() -> None:
    assert idle_cpu_cores(watch_of(samples(9, 0.3), samples(5, 1.5, utilization_percent=0))) == 1.5
    assert idle_cpu_cores(watch_of(samples(9, 0.3), samples(4, 1.5, utilization_percent=0))) is None


def test_numbers_of_a_throttled_gpu() -> None:
    (found,) = judge(samples(5, **POWER), samples(15, **THERMAL))
    assert found.summary == "GPU 0 was too hot 75 % of the time: SM clock 1,410 of 1,980 MHz, up to 87 °C"
    assert found.details == {"share": 0.75, "speedup": 1.28, "place": None}


def test_a_limit_that_the_cgroup_set() -> None:
    first, last = (
        Sample(at_seconds=at, cgroup_periods=(periods, cut)) for at, periods, cut in ((0, 10, 5), (1, 30, 15))
    )
    assert run_of(Watch(samples=(first, last))).throttled_periods == 0.5
    assert run_of(Watch(samples=(first, first))).throttled_periods is None


def test_a_gpu_that_is_left_idle() -> None:
    both = tuple(
        Sample(
            at_seconds=each.at_seconds,
            devices=(*each.devices, DeviceSample(nvml_index=1, utilization_percent=0, is_used_by_program=False)),
        )
        for each in samples(9)
    )
    run = run_of(Watch(devices=(H100, WatchedDevice(nvml_index=1)), samples=both))
    assert [gpu.is_used for gpu in run.gpus] == [True, False]
    assert [finding.check_id for finding in findings_of(run)[0]] == ["gpu-of-several-idle"]


def test_what_was_not_watched_is_not_judged() -> None:
    assert findings_of(run_of(Watch(problem="no driver"))) == ((), ())


def test_memory_that_is_unknown_is_no_use() -> None:
    unknown = samples(9, memory_used_bytes=None, **UNKNOWN)
    assert gpus_of(watch_of(unknown))[0].is_used is False
    assert gpus_of(watch_of(unknown, samples(5, memory_used_bytes=GIB, **UNKNOWN)))[0].is_used is False
    busy = samples(9, memory_used_bytes=None, utilization_percent=10, is_used_by_program=None)
    assert gpus_of(watch_of(unknown, busy))[0].samples == 9


def test_a_little_load_may_be_a_desktop() -> None:
    """A program of JAX that computes on the CPU, in a container on a machine with a screen."""
    seen = samples(9, 1.2, utilization_percent=9, is_used_by_program=None)
    run = run_of(watch_of(seen), [{"torch": "2.13.0", "steps": 0, "problem": ""}])
    assert (run.gpus[0].is_used, run.imports_torch, findings_of(run)) == (None, True, ((), ()))
    watched = WatchedRun(
        command=("x",), exit_status=0, elapsed_seconds=9, every_seconds=1, watch=watch_of(seen), run=run
    )
    assert verdict(watched) == (
        "info",
        "the driver does not list the program, so whether it used the GPU is unknown",
    )
