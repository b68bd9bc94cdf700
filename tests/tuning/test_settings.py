"""Switches at the chosen point: which are tried where, and which are kept."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpudoctor.model.tuning import OUT_OF_MEMORY, Measurement, Settings, SettingTrial, Trial, TunedDevice
from gpudoctor.tuning.executor import Effort
from gpudoctor.tuning.settings import candidates, improve

CUDA = TunedDevice(kind="cuda")
CPU = TunedDevice(kind="cpu", threads=4)
PLAIN = Measurement(precision="bf16", batch_size=64, samples_per_step=64, step_seconds=(0.010,) * 9)


class Bench:
    """Measures what it is told: seconds of a step by the switches that are on. Each trial takes a second."""

    def __init__(self, **seconds: float) -> None:
        self.seconds = seconds
        self.clock = 0.0
        self.trials: list[Trial] = []

    def now(self) -> float:
        return self.clock

    def measure(self, trial: Trial, effort: Effort) -> Measurement:
        self.clock += 1.0
        self.trials.append(trial)
        step = 0.010
        for name, factor in self.seconds.items():
            if getattr(trial.settings, name):
                step *= factor
        if trial.settings.compile and "compile" in self.seconds:
            return replace(PLAIN, settings=trial.settings, step_seconds=(step,) * 9, warmup_seconds=(20.0, step))
        return replace(PLAIN, settings=trial.settings, step_seconds=(step,) * 9)


def improved(
    bench: Bench, device: TunedDevice = CUDA, deadline: float = 1000.0
) -> tuple[Settings, dict[str, SettingTrial]]:
    switches: list[SettingTrial] = []
    best = improve(bench, device, PLAIN, deadline, switches.append)  # type: ignore[arg-type]  # all that it needs
    return best.settings, {switch.name: switch for switch in switches}


def test_what_is_tried_on_a_gpu() -> None:
    assert [name for name, _ in candidates(CUDA)] == ["cudnn_benchmark", "allocator", "channels_last", "compile"]


def test_threads_are_tried_on_the_cpu() -> None:
    assert [name for name, _ in candidates(CPU)] == ["channels_last", "threads=2", "threads=8", "compile"]


def test_switches_that_gain_are_kept_together() -> None:
    settings, switches = improved(Bench(channels_last=0.8, cudnn_benchmark=0.9))
    assert settings == Settings(channels_last=True, cudnn_benchmark=True)
    assert switches["channels_last"].gain == pytest.approx(0.25)


@pytest.mark.parametrize(("factor", "kept"), [(0.975, True), (0.985, False), (1.2, False)])
def test_a_switch_must_be_worth_it(factor: float, kept: bool) -> None:
    _, switches = improved(Bench(channels_last=factor))
    assert switches["channels_last"].kept is kept


def test_a_gain_within_the_noise_is_none() -> None:
    noisy = replace(PLAIN, step_seconds=(0.006, 0.007, 0.009, 0.010, 0.011, 0.013, 0.014))

    class Noisy(Bench):
        def measure(self, trial: Trial, effort: Effort) -> Measurement:
            shift = 0.95 if trial.settings.channels_last else 1.0
            steps = tuple(second * shift for second in noisy.step_seconds)
            return replace(noisy, settings=trial.settings, step_seconds=steps)

    _, switches = improved(Noisy())
    assert not switches["channels_last"].kept


def test_compiling_says_when_it_is_paid_off() -> None:
    _, switches = improved(Bench(compile=0.5))
    assert switches["compile"].why == "+100.0%, compiled in 20 s, won back after 3,999 steps"


def test_a_switch_that_does_not_run_is_left_off() -> None:
    class Failing(Bench):
        def measure(self, trial: Trial, effort: Effort) -> Measurement:
            measurement = super().measure(trial, effort)
            if trial.settings.cudnn_benchmark:
                return replace(measurement, status=OUT_OF_MEMORY, detail="no memory for its workspace")
            return measurement

    settings, switches = improved(Failing())
    assert (settings.cudnn_benchmark, switches["cudnn_benchmark"].why) == (False, "no memory for its workspace")


def test_nothing_new_is_tried_after_the_deadline() -> None:
    _, switches = improved(Bench(), deadline=3.0)
    assert list(switches) == ["cudnn_benchmark", "allocator"]
