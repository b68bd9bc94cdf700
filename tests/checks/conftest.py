"""Whatever a test of a check asserts, all that the check decides in it is compared with `decided.json`.

That is severity, subject, facts and fixes of each finding, and of its sentence the numbers alone. A test that the file
does not name is not compared. `python -m tests.checks.conftest` writes the file again; its difference
is what to look at.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from unittest.mock import patch

import pytest

from gpudoctor import testing
from gpudoctor.engine.runner import run_one
from gpudoctor.model import CheckResult, Finding, Fix

FILE = Path(__file__).with_name("decided.json")
RECORDING = "GPUDOCTOR_RECORD_CHECKS"
decided: dict[str, list[str]] = {}


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Iterator[None]:
    """Run the test, then compare what its checks decided."""
    results: list[CheckResult] = []

    def run(*arguments: object) -> CheckResult:
        results.append(run_one(*arguments))  # type: ignore[arg-type]
        return results[-1]

    with patch.object(testing, "run_one", run):
        answer = yield
    made = [f"{result.check_id}: {_finding(finding)}" for result in results for finding in result.findings]
    name = pyfuncitem.nodeid.removeprefix("tests/checks/test_")
    if RECORDING in os.environ:
        decided[name] = made
    assert made == recorded().get(name, made), "if this is meant: python -m tests.checks.conftest"
    return answer


def _finding(finding: Finding) -> str:
    certain = [] if finding.certain else ["likely"]
    numbers = " ".join(word.strip(".,;:()'\"") for word in re.findall(r"\S*\d\S*", finding.summary))
    told = (finding.severity.name, *certain, finding.subject, *finding.facts, *map(fix_text, finding.fixes), numbers)
    return "; ".join(filter(None, told))


def fix_text(fix: Fix) -> str:
    """Return a fix with its arguments, of a sentence only that there is one."""
    told = (f"{key}={'...' if str(value).count(' ') > 2 else value}" for key, value in fix.arguments.items() if value)
    return " ".join((fix.name, *told))


@cache
def recorded() -> dict[str, list[str]]:
    return {} if RECORDING in os.environ else dict(json.loads(FILE.read_text(encoding="utf-8")))


def pytest_sessionfinish() -> None:
    """Write what was recorded, of the tests in which something was found."""
    if RECORDING in os.environ:
        lines = [f"{json.dumps(name)}: {json.dumps(made)}" for name, made in sorted(decided.items()) if made]
        FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(FILE.parent)]
    subprocess.run(command, env={**os.environ, RECORDING: "1"}, check=True)
