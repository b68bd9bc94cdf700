"""A profile on a screen."""

from dataclasses import replace

from gpudoctor.model import FingerprintPart
from gpudoctor.reporters.profile_table import render, render_fit
from tests.profiles.samples import LEAST, PROFILE


def test_a_profile() -> None:
    lines = render(PROFILE).splitlines()
    assert lines[:6] == [
        "workload    cnn training",
        "device      cuda:0",
        "precision   bf16",
        "batch size  256 (at most 900)",
        "throughput  5,203.1 images/s",
        "settings    channels_last, cudnn_benchmark, pinned_memory, non_blocking",
    ]
    assert "  driver  550.54.15" in lines
    assert "  PYTORCH_ALLOC_CONF  expandable_segments:True" in lines
    assert "  GPU_BATCH_SIZE  256" in lines


def test_a_search_that_was_cut_short_is_said() -> None:
    assert "search      cut short by the budget" in render(replace(PROFILE, search="cut-short")).splitlines()


def test_what_is_not_known_has_no_line() -> None:
    assert render(LEAST) == (
        "workload    mlp\n"
        "device      cpu\n"
        "precision   fp32\n"
        "batch size  8 (largest safe one unknown)\n"
        "settings    none\n"
        "\n"
        "tuned on\n"
        "  device  cpu\n"
    )


def test_a_hostile_value_stays_on_its_line() -> None:
    assert "\x1b" not in render(replace(LEAST, workload="\x1b[2J", own={"A": "\x1b[2J"}))


def test_whether_it_fits() -> None:
    parts = (
        FingerprintPart(name="device", was="NVIDIA_H200", now="NVIDIA_H200"),
        FingerprintPart(name="torch", was="2.13.0", now="2.14.1"),
        FingerprintPart(name="cupy", was="13.6.0", now=None),
    )
    assert render_fit(parts, color=False) == (
        "stale\n  device  NVIDIA_H200\n  torch   2.13.0 → 2.14.1\n  cupy    13.6.0 → not known here\n"
    )
    assert render_fit(parts[:1], color=True).startswith("\x1b[32mfits\x1b[0m\n")
    assert render_fit(parts[2:], color=False).startswith("cannot be determined\n")
