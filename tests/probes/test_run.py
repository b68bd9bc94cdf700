"""The process that runs probe workers, in this one: requests in turn, and whatever a worker raises."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from gpudoctor.probes.workers import run


def collect(arguments: Mapping[str, Any]) -> dict[str, Any]:
    if arguments["fails"] == "in its text":
        compile("a b", "<torch>", "exec")
    if arguments["fails"]:
        raise SystemExit(3)
    return {"seen": arguments["fails"]}


def test_each_request_has_its_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gpudoctor.probes.workers.one", SimpleNamespace(collect=collect))
    requests = [{"worker": "one", "arguments": {"fails": how}} for how in ("", "in its text", "otherwise")]
    answers: list[Any] = []
    monkeypatch.setattr(
        run, "take_over_streams", lambda: (iter([*requests, {**requests[0], "worker": "two"}]), answers.append)
    )
    times = iter((5.0, 7.5, 8.0, 9.0, 10.0))
    monkeypatch.setattr(run, "time", SimpleNamespace(monotonic=lambda: next(times)))
    run.main()
    told, *failures = answers
    assert told == {"facts": {"seen": ""}, "seconds": 2.5}
    assert [failure["error"] for failure in failures] == [
        "SyntaxError: invalid syntax",
        "SystemExit: 3",
        "ModuleNotFoundError: No module named 'gpudoctor.probes.workers.two'",
    ]
    assert all(failure["traceback"].startswith("Traceback (most recent call last):\n") for failure in failures)
