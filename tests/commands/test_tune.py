"""`gpudoctor tune`: what is asked for, how the result is written, and the exit status."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpudoctor import api
from gpudoctor.commands.tune import tune
from gpudoctor.model.tuning import Tuning
from tests.reporters.tunings import GPU, INTERRUPTED, NOTHING


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return what the command asks for, and let `asked["tuning"]` be the answer."""
    given: dict[str, Any] = {"tuning": GPU}

    def answer(workload: str, **options: Any) -> Tuning:
        given.update(options, workload=workload)
        tuning: Tuning = given["tuning"]
        return tuning

    monkeypatch.setattr(api, "tune", answer)
    return given


def status_of(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        tune.main(list(arguments), standalone_mode=False)
    assert isinstance(ended.value.code, int)
    return ended.value.code


@pytest.mark.parametrize(
    ("tuning", "status"),
    [
        pytest.param(GPU, 0, id="a recommendation"),
        pytest.param(replace(NOTHING, interrupted=None), 1, id="no configuration ran"),
        pytest.param(INTERRUPTED, 3, id="interrupted"),
        pytest.param(replace(GPU, interrupted="signal"), 3, id="interrupted with a recommendation"),
        pytest.param(replace(GPU, interrupted="budget"), 0, id="cut short with a recommendation"),
    ],
)
def test_exit_status(tuning: Tuning, status: int, asked: dict[str, Any]) -> None:
    asked["tuning"] = tuning
    assert status_of() == status


def test_the_default_question(asked: dict[str, Any]) -> None:
    status_of()
    del asked["tuning"], asked["say"]
    assert asked == {
        "workload": "mlp",
        "mode": "training",
        "device": "auto",
        "precisions": (),
        "budget": 60.0,
        "memory_fraction": 0.9,
        "dataset_size": None,
        "min_batch": None,
        "max_batch": None,
        "effective_batch": None,
        "goal": "throughput",
        "vary": None,
        "gpus": 1,
        "exhaustive": False,
        "compare": None,
        "resume": None,
        "profile": "gpudoctor.env",
        "variables": {},
        "python": None,
    }


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        (["--mode", "inference"], {"mode": "inference"}),
        (["--precision", "bf16", "--precision", "complex64"], {"precisions": ("bf16", "complex64")}),
        (["--budget", "0.5"], {"budget": 0.5}),
        (["--memory-fraction", "1"], {"memory_fraction": 1.0}),
        (["--dataset-size", "1"], {"dataset_size": 1}),
        (["--exhaustive"], {"exhaustive": True}),
        (["--goal", "latency"], {"goal": "latency"}),
        (["--vary", "sequence=1,2"], {"vary": "sequence=1,2"}),
        (["--gpus", "2"], {"gpus": 2}),
        (["--compare", "a.json", "--resume", "b.json"], {"compare": "a.json", "resume": "b.json"}),
        (["--set", "A={batch_size}"], {"variables": {"A": "{batch_size}"}}),
    ],
)
def test_an_option_is_passed_on(arguments: list[str], options: dict[str, Any], asked: dict[str, Any]) -> None:
    status_of(*arguments)
    assert {name: asked[name] for name in options} == options


@pytest.mark.parametrize("format_name", ["table", "json", "html"])
def test_each_format(
    format_name: str, asked: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status_of("--format", format_name)
    shown = capsys.readouterr().out
    file = tmp_path / "report"
    status_of("--format", format_name, "--output", str(file))
    written = file.read_text(encoding="utf-8")
    assert capsys.readouterr().out == ""
    assert "\x1b" not in written
    begins = {"table": "", "json": "{", "html": "<!"}[format_name]
    assert shown.startswith(begins)
    assert written.startswith(begins)
    if format_name == "json":
        assert json.loads(written) == json.loads(shown)
        assert json.loads(written)["schema"] == "gpudoctor/tuning/1"
    else:
        assert asked["tuning"].device.name in written


@pytest.mark.parametrize(("format_name", "colored"), [("table", True), ("json", False), ("html", False)])
def test_a_file_has_no_colour_whatever_the_screen_has(
    format_name: str,
    colored: bool,
    asked: dict[str, Any],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.delenv("NO_COLOR", raising=False)
    status_of("--format", format_name)
    assert ("\x1b[" in capsys.readouterr().out) is colored
    status_of("--format", format_name, "--output", str(tmp_path / "report"))
    assert "\x1b" not in (tmp_path / "report").read_text(encoding="utf-8")
