"""What held the GPU back, told from samples alone."""

from __future__ import annotations

from typing import Any

import pytest

from gpudoctor.watching.samples import DeviceSample, Sample, Watch, WatchedDevice
from gpudoctor.watching.verdict import Reason, what_held_back

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


def judge(*parts: tuple[Sample, ...]) -> tuple[Reason, ...]:
    return what_held_back(Watch(devices=(H100,), samples=sum(parts, ())))


THERMAL: dict[str, Any] = {
    "throttle_reasons": ("sw_thermal_slowdown", "hw_slowdown"),
    "temperature_celsius": 87,
    "clock_mhz": 1410,
}
POWER: dict[str, Any] = {"throttle_reasons": ("sw_power_cap",), "power_watts": 698.4}


@pytest.mark.parametrize(
    ("seen", "kinds"),
    [
        pytest.param([samples(5)], ["none"], id="busy"),
        pytest.param([samples(4)], ["too-short"], id="four samples"),
        pytest.param([samples(9, utilization_percent=0, is_used_by_program=False)], ["unused"], id="never used"),
        pytest.param([samples(9, utilization_percent=80, is_used_by_program=False)], ["unused"], id="others use it"),
        pytest.param([samples(9, is_used_by_program=None)], ["none"], id="in a container"),
        pytest.param([samples(9, utilization_percent=None, is_used_by_program=None)], ["unwatched"], id="MIG"),
        pytest.param([samples(5), samples(6, utilization_percent=3)], ["idle"], id="idle more than half"),
        pytest.param([samples(5), samples(5, utilization_percent=3)], ["none"], id="idle half"),
        pytest.param([samples(9), samples(1, **THERMAL)], ["thermal"], id="hot a tenth"),
        pytest.param([samples(10), samples(1, **THERMAL)], ["none"], id="hot less than a tenth"),
        pytest.param([samples(5), samples(5, **POWER)], ["power"], id="power"),
        pytest.param([samples(9, throttle_reasons=("hw_slowdown",))], ["slowdown"], id="slowdown without a cause"),
        pytest.param([samples(9, throttle_reasons=None)], ["none"], id="unknown reasons claim nothing"),
        pytest.param([samples(9, memory_used_bytes=76 * GIB)], ["memory"], id="memory at 95 %"),
        pytest.param([samples(9, memory_used_bytes=75 * GIB)], ["none"], id="memory below"),
        pytest.param([samples(9, utilization_percent=0, **THERMAL)], ["idle", "thermal"], id="two at once"),
    ],
)
def test_kinds(seen: list[tuple[Sample, ...]], kinds: list[str]) -> None:
    assert [reason.kind for reason in judge(*seen)] == kinds


@pytest.mark.parametrize(
    ("seen", "kinds"),
    [
        pytest.param([samples(9, utilization_percent=9)], ["idle"], id="9 % is idle"),
        pytest.param([samples(9, utilization_percent=10)], ["none"], id="10 % is not"),
        pytest.param([samples(5, utilization_percent=None), samples(4, utilization_percent=0)], ["idle"], id="unknown"),
        pytest.param([samples(9, throttle_reasons=("hw_thermal_slowdown",))], ["thermal"], id="hot by the hardware"),
        pytest.param([samples(9, throttle_reasons=("hw_power_brake_slowdown", "hw_slowdown"))], ["power"], id="brake"),
        pytest.param(
            [samples(9, throttle_reasons=("sw_power_cap", "sw_thermal_slowdown"))], ["thermal", "power"], id="both"
        ),
        pytest.param([samples(9, throttle_reasons=("gpu_idle",))], ["none"], id="a harmless reason"),
        pytest.param(
            [samples(9, throttle_reasons=None), samples(1, **POWER)], ["power"], id="shares are of what is known"
        ),
        pytest.param([samples(9, memory_used_bytes=None)], ["none"], id="unknown memory"),
    ],
)
def test_edges(seen: list[tuple[Sample, ...]], kinds: list[str]) -> None:
    assert [reason.kind for reason in judge(*seen)] == kinds


@pytest.mark.parametrize(("grown_bytes", "kind"), [(64 * 2**20 - 1, "unused"), (64 * 2**20, "idle")])
def test_memory_that_shows_a_use(grown_bytes: int, kind: str) -> None:
    unknown: dict[str, Any] = {"utilization_percent": 0, "is_used_by_program": None}
    seen = samples(3, memory_used_bytes=GIB, **unknown), samples(6, memory_used_bytes=GIB + grown_bytes, **unknown)
    assert [reason.kind for reason in judge(*seen)] == [kind]


@pytest.mark.parametrize(
    ("cpu_cores", "advice"),
    [
        (1.5, "move it to the GPU"), (1.49, "pin_memory=True"), (0.9, "pin_memory=True"), (0.89, ""), (0.5, ""),
        (0.49, "prefetch_factor=4"),
    ],
)  # fmt: skip
def test_where_the_advice_changes_with_the_cpu(cpu_cores: float, advice: str) -> None:
    (reason,) = judge(samples(8, cpu_cores, utilization_percent=0))
    assert advice in reason.advice
    assert bool(advice) == bool(reason.advice)
    (of_few,) = judge(samples(4, cpu_cores, utilization_percent=0), samples(4, None, utilization_percent=0))
    assert (of_few.kind, of_few.advice) == ("idle", "")


@pytest.mark.parametrize(
    ("cpu_cores", "told", "advice"),
    [
        pytest.param(
            1.0, "one CPU core busy (1.00), probably with its input pipeline", "DataLoader(num_workers=4", id="one core"
        ),
        pytest.param(7.6, "7.6 CPU cores busy, so it waits for the CPU", "move it to the GPU", id="many cores"),
        pytest.param(
            0.1, "so was the CPU (0.10 cores busy): the program probably waits", "local disk", id="nobody works"
        ),
        pytest.param(0.7, "kept 0.70 CPU cores busy", "", id="in between"),
        pytest.param(None, "since its first use", "", id="unknown"),
    ],
)
def test_what_the_cpu_does_while_the_gpu_is_idle(cpu_cores: float | None, told: str, advice: str) -> None:
    (reason,) = judge(samples(2), samples(8, cpu_cores, utilization_percent=0))
    assert reason.share == 0.8
    assert "GPU 0 was idle 80% of the time" in reason.sentence
    assert told in reason.sentence
    assert advice in reason.advice
    assert bool(advice) == bool(reason.advice)


def test_the_start_of_a_program_is_not_idleness() -> None:
    start = samples(30, utilization_percent=0, is_used_by_program=False)
    assert [reason.kind for reason in judge(start, samples(8))] == ["none"]
    assert [reason.kind for reason in judge(start, samples(4))] == ["too-short"]


def test_in_a_container_memory_that_is_taken_is_a_use() -> None:
    unknown: dict[str, Any] = {"utilization_percent": 0, "is_used_by_program": None}
    taken = judge(samples(3, memory_used_bytes=GIB, **unknown), samples(6, memory_used_bytes=3 * GIB, **unknown))
    assert [reason.kind for reason in taken] == ["idle"]
    assert [reason.kind for reason in judge(samples(9, memory_used_bytes=GIB, **unknown))] == ["unused"]


def test_numbers_of_a_throttled_gpu() -> None:
    hot, power = judge(samples(5, **THERMAL), samples(15, **POWER))
    assert hot.sentence == "GPU 0 was too hot 25% of the time: up to 87 °C, 500 of 700 W, SM clock 1,410 of 1,980 MHz"
    assert power.sentence.startswith("GPU 0 was at its power limit 75% of the time: up to 64 °C, 698 of 700 W")


def test_a_gpu_of_others_is_left_out() -> None:
    both = tuple(
        Sample(
            at_seconds=each.at_seconds,
            devices=(*each.devices, DeviceSample(nvml_index=1, utilization_percent=0, is_used_by_program=False)),
        )
        for each in samples(9)
    )
    reasons = what_held_back(Watch(devices=(H100, WatchedDevice(nvml_index=1)), samples=both))
    assert [(reason.kind, reason.nvml_index) for reason in reasons] == [("none", 0)]


def test_a_gpu_that_was_never_used_asks_for_a_check() -> None:
    (reason,) = judge(samples(9, utilization_percent=0, is_used_by_program=False))
    assert "never used the GPU in 9 samples: its utilisation was 0 % throughout" in reason.sentence
    assert "gpudoctor check" in reason.advice


def test_what_was_not_watched_is_not_judged() -> None:
    (reason,) = what_held_back(Watch(problem="no driver"))
    assert (reason.kind, reason.sentence) == ("unwatched", "the GPU was not watched: no driver")


@pytest.mark.parametrize("count", [1, 2])
def test_too_few_samples_are_counted(count: int) -> None:
    (reason,) = judge(samples(count))
    assert reason.sentence.startswith(f"{count} sample{'s' if count > 1 else ''} of the GPU: too few")


@pytest.mark.parametrize(("percent", "told"), [(97, ": utilisation 97 % (median)"), (None, "")])
def test_nothing_that_limits(percent: int | None, told: str) -> None:
    (reason,) = judge(samples(9, utilization_percent=percent))
    assert (reason.kind, reason.sentence) == ("none", f"nothing measured limited GPU 0{told}")


def test_unknown_memory_is_no_use() -> None:
    unknown: dict[str, Any] = {"utilization_percent": 0, "is_used_by_program": None}
    untold = samples(9, memory_used_bytes=None, **unknown)
    assert [reason.kind for reason in judge(untold)] == ["unused"]
    assert [reason.kind for reason in judge(untold, samples(5, memory_used_bytes=GIB, **unknown))] == ["unused"]
    busy = samples(9, memory_used_bytes=None, utilization_percent=3, is_used_by_program=None)
    assert [reason.kind for reason in judge(untold, busy)] == ["idle"]
