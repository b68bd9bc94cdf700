"""A watched run as OpenMetrics."""

from __future__ import annotations

from dataclasses import replace

from gpudoctor.model import Run
from gpudoctor.reporters.run_metrics import render
from gpudoctor.watching.samples import Watch
from tests.reporters.test_run_table import RUN
from tests.runs import STEPS


def test_the_last_sample_the_steps_and_the_findings() -> None:
    lines = render(replace(RUN, run=Run(steps=STEPS))).splitlines()
    assert "gpudoctor_cpu_cores 2" in lines
    assert 'gpudoctor_gpu_utilization_ratio{gpu="0"} 0.4' in lines
    assert 'gpudoctor_step_share_ratio{part="forward"} 0.4' in lines
    assert "gpudoctor_step_seconds 0.02" in lines
    assert 'gpudoctor_finding_speedup_ratio{check="input-bound"} 3.33' in lines
    assert lines[-1] == "# EOF"
    names = [line.split()[2] for line in lines if line.startswith("# TYPE")]
    assert len(names) == len(set(names))


def test_nothing_known() -> None:
    assert render(replace(RUN, run=Run(), watch=Watch(), findings=())) == "# EOF\n"
