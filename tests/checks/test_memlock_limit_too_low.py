"""Memory that a program with InfiniBand may lock."""

from dataclasses import replace

import pytest

from gpudoctor.model import Containers, ContainerSetup, Outcome, Severity, Symptom, System
from gpudoctor.readers import messages as reader
from gpudoctor.readers.text import clean_text
from gpudoctor.testing import run_check

WITH_INFINIBAND = ContainerSetup(
    name="train", kind="container", image="train:1", device_files=("/dev/infiniband/uverbs0",)
)


def seen(**about: object) -> Containers:
    return Containers(setups=(replace(WITH_INFINIBAND, **about),))  # type: ignore[arg-type]


def told(text: str) -> tuple[Symptom, ...]:
    symptoms: tuple[Symptom, ...] = reader.read(clean_text(text, "log"))["symptoms"]
    return symptoms


def test_a_limit() -> None:
    (finding,) = run_check("memlock-limit-too-low", containers=seen(memlock_bytes=64 * 1024)).findings
    assert finding.severity is Severity.WARNING
    assert finding.summary == "The container train uses InfiniBand and may lock 64 KiB"
    assert "--ulimit memlock=-1" in finding.remedies[0].commands[0]
    assert "ulimits: {memlock: -1}" in finding.remedies[1].summary


def test_the_engines_default_is_advice() -> None:
    (finding,) = run_check("memlock-limit-too-low", containers=seen()).findings
    assert finding.severity is Severity.INFO


def test_its_log_says_that_it_was_too_little() -> None:
    failure = Symptom(kind="memlock-exceeded", text="ibv_reg_mr failed with error Cannot allocate memory")
    (finding,) = run_check("memlock-limit-too-low", containers=seen(device_files=(), failures=(failure,))).findings
    assert finding.severity is Severity.ERROR


def test_unlimited() -> None:
    assert run_check("memlock-limit-too-low", containers=seen(memlock_bytes=0)).outcome is Outcome.PASSED


@pytest.mark.parametrize("device_files", [(), ("/dev/nvidia0",)])
def test_without_infiniband_none_is_needed(device_files: tuple[str, ...]) -> None:
    containers = seen(device_files=device_files, memlock_bytes=64 * 1024)
    result = run_check("memlock-limit-too-low", containers=containers)
    assert result.outcome is Outcome.SKIPPED
    assert result.reason == "nothing here has to do with InfiniBand"


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
