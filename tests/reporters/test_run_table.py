"""What was seen of the GPUs while a program ran, in a line for each."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from gpudoctor.model import Finding, Remedy, Run, RunGpu, Severity, Steps
from gpudoctor.reporters import run_html, run_json
from gpudoctor.reporters.run_table import render
from gpudoctor.reporters.run_words import notes, verdict
from gpudoctor.watching.samples import DeviceSample, Sample, Watch, WatchedDevice
from gpudoctor.watching.watched import WatchedRun
from tests.runs import STEPS

GIB = 2**30


def seen(at: float, cores: float | None, *devices: DeviceSample) -> Sample:
    return Sample(at_seconds=at, cpu_cores=cores, devices=devices)


KNOWN = WatchedDevice(nvml_index=0, name="NVIDIA H200", memory_total_bytes=141 * GIB, power_limit_watts=700.0)
FIRST = DeviceSample(
    nvml_index=0,
    utilization_percent=20,
    memory_used_bytes=3 * GIB,
    clock_mhz=1500,
    power_watts=310.0,
    temperature_celsius=50,
)
SECOND = replace(FIRST, utilization_percent=40, memory_used_bytes=2 * GIB, clock_mhz=1980, temperature_celsius=45)
OTHER = DeviceSample(nvml_index=1)
RUN = WatchedRun(
    command=("python", "my train.py"),
    exit_status=3,
    elapsed_seconds=41.0,
    every_seconds=1.0,
    watch=Watch(
        devices=(KNOWN, WatchedDevice(nvml_index=1)),
        samples=(seen(1.0, 1.0, FIRST, OTHER), seen(2.0, None, SECOND, OTHER), seen(3.0, 2.0, SECOND)),
    ),
    run=Run(inside="--no-hook"),
    findings=(
        Finding(
            severity=Severity.WARNING,
            check_id="input-bound",
            summary="GPU 0 waits",
            remedies=(Remedy(summary="Use more workers", commands=("DataLoader(num_workers=4)",)),),
            details={"share": 0.7, "speedup": 3.33, "place": "train.py:42"},
        ),
    ),
)


def test_the_whole_report() -> None:
    assert render(RUN, color=False, width=120) == (
        "gpudoctor run: python 'my train.py' ended with exit status 3 after 41 s\n"
        "warning  input-bound  up to 3.3 times faster  train.py:42\n"
        "  GPU 0 waits\n"
        "  fix: Use more workers\n"
        "    DataLoader(num_workers=4)\n"
        "The steps were not watched: --no-hook.\n"
        "GPU 0 NVIDIA H200 · utilisation 40 % · memory up to 3.0 of 141.0 GiB · SM clock 1,980 MHz · 310 of 700 W · "
        "up to 50 °C ·\n  3 samples\n"
        "GPU 1 · 2 samples\n"
        "CPU 1.5 cores\n"
        "GPU 0      ▂▄▄  up to 40.0 %\n"
        "CPU        ▅█  up to 2.0 cores\n"
    )


def test_what_is_not_known_is_left_out() -> None:
    device = WatchedDevice(nvml_index=0)
    sample = seen(1.0, None, DeviceSample(nvml_index=0, power_watts=99.6, memory_used_bytes=GIB))
    run = replace(
        RUN, watch=Watch(devices=(device,), samples=(sample,)), findings=(), run=Run(), profile="gpudoctor.env"
    )
    assert render(run, color=False, width=120).splitlines() == [
        "gpudoctor run: python 'my train.py' ended with exit status 3 after 41 s, with the profile gpudoctor.env",
        "info  1 sample of the GPU: too few to say what limited it",
        "GPU 0 · memory up to 1.0 of \u2013 GiB · 100 W · 1 sample",
    ]
    assert len(render(replace(run, watch=Watch(devices=(device,))), color=False, width=120).splitlines()) == 2


def test_findings_have_the_colour_of_their_severity() -> None:
    lines = render(RUN, color=True, width=120).splitlines()
    assert lines[1] == "\x1b[33mwarning\x1b[0m  input-bound  up to 3.3 times faster  train.py:42"


def test_what_the_stream_cannot_show_is_written_out() -> None:
    assert "\\xb7 up to" in render(RUN, color=False, width=200, encoding="ascii")


def test_json() -> None:
    text = run_json.render(RUN)
    written = json.loads(text)
    assert text == json.dumps(written, indent=2) + "\n"
    assert (written["schema"], written["exit_status"]) == ("gpudoctor/run/1", 3)
    (finding,) = written["findings"]
    assert (finding["check"], finding["share"], finding["speedup"]) == ("input-bound", 0.7, 3.33)
    assert (finding["place"], written["steps"]) == ("train.py:42", None)
    assert [len(sample["devices"]) for sample in written["watch"]["samples"]] == [2, 2, 1]


def test_html_shows_the_gain_and_a_chart() -> None:
    text = run_html.render(RUN)
    assert "up to 3.3 times faster, line: train.py:42" in text
    assert text.count("<polyline") == 2
    assert "GPU 0: 0 to 100 %" in text


@pytest.mark.parametrize(
    ("steps", "kind"),
    [(STEPS, "healthy"), (replace(STEPS, sent_to_gpu=False, parameter_devices=("cpu",)), "info"), (None, "info")],
)
def test_without_proof_that_a_gpu_was_used_nothing_is_healthy(steps: Steps | None, kind: str) -> None:
    run = replace(RUN, findings=(), run=Run(steps=steps), watch=Watch(problem="no driver"))
    assert verdict(run)[0] == kind
    assert render(run, color=False, width=120).count("no driver") == 1


@pytest.mark.parametrize(
    ("percent", "note"),
    [(None, "MIG divides the GPU: its utilisation is unknown."), (95.0, "MIG divides the GPU.")],
)
def test_mig_hides_the_utilisation_only_if_nvml_does_not_report_it(percent: float | None, note: str) -> None:
    divided = RunGpu(nvml_index=0, name="H100", is_used=None, samples=9, utilization_percent=percent, is_mig=True)
    assert note in notes(replace(RUN, run=replace(RUN.run, gpus=(divided,))))
