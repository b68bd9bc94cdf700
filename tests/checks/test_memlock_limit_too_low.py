"""Memory that a program with InfiniBand may lock."""

import pytest

from gpudoctor.model import Outcome, Severity, Symptom, System
from gpudoctor.readers import messages as reader
from gpudoctor.readers.text import clean_text
from gpudoctor.testing import run_check


def told(text: str) -> tuple[Symptom, ...]:
    symptoms: tuple[Symptom, ...] = reader.read(clean_text(text, "log"))["symptoms"]
    return symptoms


@pytest.mark.parametrize(
    "text",
    [
        "misc/ibvwrap.cc:278 NCCL WARN Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory",
        "NCCL WARN Call to ibv_reg_mr failed with error Cannot allocate memory",
        "UCX ERROR mlx5_0: ibv_create_cq() failed: Cannot allocate memory.",
    ],
)
def test_a_report_that_says_so(text: str) -> None:
    system = System(memlock_limit_bytes=8 << 20)
    (finding,) = run_check("memlock-limit-too-low", symptoms=told(text), system=system).findings
    assert finding.severity is Severity.ERROR
    assert "up to 8 MiB" in finding.summary
    assert any("limits.conf" in remedy.summary for remedy in finding.remedies)


def test_another_failure_of_infiniband() -> None:
    symptoms = told("NCCL WARN Call to ibv_open_device failed")
    assert run_check("memlock-limit-too-low", symptoms=symptoms).outcome is Outcome.SKIPPED


@pytest.mark.parametrize(
    ("limit", "outcome"),
    [
        pytest.param(64 << 20, Outcome.FOUND, id="too low"),
        pytest.param((64 << 20) + 1, Outcome.PASSED, id="more"),
        pytest.param(0, Outcome.PASSED, id="unlimited"),
    ],
)
def test_inside(limit: int, outcome: Outcome) -> None:
    system = System(container="docker", has_infiniband=True, memlock_limit_bytes=limit)
    result = run_check("memlock-limit-too-low", system=system)
    assert result.outcome is outcome
    assert all(finding.severity is Severity.INFO for finding in result.findings)
