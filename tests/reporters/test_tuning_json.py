import json
from dataclasses import replace
from typing import Any

import pytest

from gpudoctor.model.codec import from_json
from gpudoctor.model.tuning import OK, Tuning
from gpudoctor.reporters.tuning_json import render
from tests.reporters import tunings


def read_tuning(text: str) -> Tuning:
    written = json.loads(text)
    return from_json(Tuning, {**written, "elapsed_seconds": written["elapsed_s"]}, "tuning")


def document(tuning: Tuning) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(render(tuning))
    return loaded


def test_the_document_has_the_promised_names() -> None:
    written = document(tunings.GPU)
    assert (written["schema"], written["elapsed_s"]) == ("gpudoctor/tuning/1", 41.04)
    assert {"device", "workload", "measurements", "recommendation", "profile"} <= written.keys()
    assert written["profile"] == "/home/ann/my project/gpudoctor.env"
    advice = written["recommendation"]
    assert (advice["precision"], advice["batch_size"], advice["max_batch_size"]) == ("bf16", 192, 288)
    assert advice["settings"]["channels_last"] is True
    assert advice["why"][0].startswith("bf16 is 1.8 times")


def test_a_measurement_has_its_statistics_and_every_raw_value() -> None:
    written = document(tunings.INTERRUPTED)["measurements"][0]
    assert written["step_seconds"] == [0.0084, 0.0085]
    assert written["step_ms"] == pytest.approx(8.45)
    assert written["throughput"] == pytest.approx(4 / 0.00845)
    assert written["warmup_seconds"] == [0.084, pytest.approx(8.4 / 900)]
    assert written["conditions"]["clock_mhz"] == 2520
    whole = document(tunings.GPU)["measurements"][0]
    assert whole["step_ms_spread"] == pytest.approx(whole["step_ms"] / 100)
    assert whole["tflops"] == pytest.approx(24.6e9 * 4 / whole["step_ms"] / 1e9)
    assert whole["fraction_of_peak"] == pytest.approx(whole["tflops"] / 82.6)
    assert whole["predicted_memory_bytes"] > whole["peak_memory_bytes"] > 2**30


def test_what_is_unknown_is_null_and_never_left_out() -> None:
    written = document(tunings.OUT_OF_MEMORY_ALL)
    failed = written["measurements"][0]
    names = ("step_ms", "step_ms_spread", "throughput", "peak_memory_bytes", "relative_error", "tflops")
    assert [failed[name] for name in (*names, "fraction_of_peak")] == [None] * 7
    assert (failed["status"], failed["batch_size"]) == ("out-of-memory", 1)
    assert (written["recommendation"], written["profile"], written["bandwidth"]) == (None, None, None)


def test_the_best_of_the_grid_can_be_computed_from_the_document() -> None:
    written = document(tunings.GPU)
    rates = [m["throughput"] for m in written["measurements"] if m["status"] == OK]
    assert max(rates) == max(m.throughput or 0 for m in tunings.GPU.measurements)


@pytest.mark.parametrize("tuning", tunings.ALL.values(), ids=tunings.ALL)
def test_what_was_written_is_read_back(tuning: Tuning) -> None:
    if tuning is tunings.HOSTILE:
        assert render(read_tuning(render(tuning))) == render(tuning)  # not-a-number is not equal to itself
    else:
        assert read_tuning(render(tuning)) == tuning


def test_it_is_ascii_and_json_without_extensions() -> None:
    text = render(tunings.HOSTILE)
    assert text.isascii()
    assert text == json.dumps(json.loads(text), indent=2) + "\n"
    assert json.loads(text, parse_constant=pytest.fail)["ceilings"][0]["measured_tflops"] == "nan"


def test_statistics_that_are_not_finite_are_null() -> None:
    odd = replace(tunings.INTERRUPTED.measurements[0], step_seconds=(float("nan"),), flops_per_step=float("inf"))
    written = document(replace(tunings.INTERRUPTED, measurements=(odd,)))["measurements"][0]
    assert (written["step_ms"], written["throughput"], written["tflops"]) == (None, None, None)
    assert written["step_seconds"] == ["nan"]


def test_names_of_a_later_gpudoctor_are_passed_over_and_missing_ones_take_their_default() -> None:
    written = document(tunings.GPU)
    written["colour"] = "green"
    del written["switches"]
    assert read_tuning(json.dumps(written)).switches == ()
