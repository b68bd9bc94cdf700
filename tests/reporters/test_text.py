"""Lines and values as a person reads them."""

from __future__ import annotations

from typing import Any

import pytest

from gpudoctor.reporters.text import byte_size, readable, wrap, wrap_painted, wrap_parts


@pytest.mark.parametrize(
    ("size", "shown"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1536, "1.5 KiB"),
        (1023 * 1024, "1023.0 KiB"),
        (2**20, "1.0 MiB"),
        (1023 * 2**20, "1023.0 MiB"),
        (2**30, "1.0 GiB"),
        (1023 * 2**30, "1023.0 GiB"),
        (2**40, "1.0 TiB"),
        (2**50, "1024.0 TiB"),
    ],
)
def test_sizes(size: int, shown: str) -> None:
    assert byte_size(size) == shown


@pytest.mark.parametrize(
    ("fact", "value", "lines"),
    [
        ("driver.version", "550.54.14", ["550.54.14"]),
        ("symptoms[0].text", "one\n\n  two\n", ["one", "  two"]),
        ("environment.A", "", ['""']),
        ("environment.A", " \n", ['""']),
        ("driver.version", None, ["unknown"]),
        ("torch_runtime.available", True, ["yes"]),
        ("torch_runtime.available", False, ["no"]),
        ("devices[0].memory_total_bytes", 25_769_803_776, ["24.0 GiB"]),
        ("devices[0].memory_total_bytes", 1.5, ["1.5"]),
        ("torch_runtime.precision_results[0].relative_error", 0.00471, ["0.47 %"]),
        ("run.steps.loader_share", 0.913036, ["91 %"]),
        ("run.throttled_periods", 0.75, ["75 %"]),
        ("run.cpu_cores", 0.876614, ["0.877"]),
        ("run.gpus[0].clock_mhz", 1234.5, ["1,234 MHz"]),
        ("run.steps.step_ms", 25.449, ["25.4 ms"]),
        ("run.steps.copy_bytes", 884736.0, ["864.0 KiB"]),
        ("run.steps.loader.workers", 12, ["12"]),
        ("torch_runtime.precision_results[0].relative_error", 1e-4, ["0.01 %"]),
        ("torch_runtime.precision_results[0].relative_error", 9.9e-5, ["less than 0.01 %"]),
        ("torch_runtime.cudnn_version", 8902, ["8.9.2"]),
        ("torch_runtime.cudnn_version", 91002, ["9.10.2"]),
        ("torch_runtime.cudnn_version", 90000, ["9.0.0"]),
        ("torch_runtime.cudnn_version", 0, ["0"]),
        ("devices[0].power_limit_watts", 450.0, ["450 W"]),
        ("devices[0].clock_mhz", 2520, ["2520 MHz"]),
        ("devices[0].utilization_percent", 3, ["3 %"]),
        ("devices[0].temperature_celsius", 41, ["41 °C"]),
        ("torch_runtime.device_count", 2, ["2"]),
        ("load", 0.123456789, ["0.123457"]),
        ("torch.architectures", ["sm_80", "sm_90"], ["sm_80, sm_90"]),
        ("torch.architectures", [], ["none"]),
        ("python.packages[0]", {"name": "torch", "version": "2.13.0"}, ["torch (version 2.13.0)"]),
        ("python.packages[0]", {"name": "torch", "version": None, "installer": ""}, ["torch"]),
        ("a", {"held_bytes": 1024, "is_full": False}, ["held 1.0 KiB, is full no"]),
        ("a", {"name": "", "path": None}, ["unknown"]),
        ("a", {}, ["unknown"]),
        ("a", object, ["<class 'object'>"]),
    ],
)
def test_a_value_is_shown_with_its_unit(fact: str, value: Any, lines: list[str]) -> None:
    assert readable(fact, value) == lines


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("one two three", ["- one two", "  three"]),
        ("onetwothreefour", ["- onetwothreefour"]),
        ("one-two-three", ["- one-two-three"]),
        ("a `b c d e f g` h", ["- a", "  `b c d e f g`", "  h"]),
        ("", ["-"]),
    ],
)
def test_words_and_commands_are_not_broken(text: str, lines: list[str]) -> None:
    assert wrap(text, 10, "- ", "  ") == lines


def test_lines_continue_with_their_own_indent_by_default() -> None:
    assert wrap("one two three", 8, "  ") == ["  one", "  two", "  three"]


def test_parts_are_not_broken() -> None:
    assert wrap_parts(("one two", "three", "four five"), ", ", 14) == ["one two,", "  three,", "  four five"]


def test_the_first_word_is_painted() -> None:
    assert wrap_painted("error", "  one two three", "error", True, 12) == ["\x1b[31merror\x1b[0m  one", "  two three"]
    assert wrap_painted("error", "  one", "error", False, 12) == ["error  one"]


@pytest.mark.parametrize(
    ("xid", "words"),
    [
        ({"number": 79, "pci_address": "0000:02:00.0", "text": "it fell"}, "79 at 0000:02:00.0: it fell"),
        ({"number": 79, "pci_address": "", "text": ""}, "79"),
    ],
)
def test_an_xid_error_in_words(xid: dict[str, object], words: str) -> None:
    assert readable("driver.xids", [xid]) == [words]
