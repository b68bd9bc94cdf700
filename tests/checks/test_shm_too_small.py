"""Shared memory in a container."""

import pytest

from gpudoctor.model import Outcome, Severity, System, Torch
from gpudoctor.testing import run_check

MIB = 1024 * 1024
TORCH = Torch(installed=True, build="cuda")


def container(mebibytes: int, engine: str = "docker") -> System:
    return System(container=engine, shm_total_bytes=mebibytes * MIB)


def test_dockers_default() -> None:
    finding = run_check("shm-too-small", system=container(64), torch=TORCH).findings[0]
    assert finding.severity is Severity.WARNING
    assert "has 64 MiB" in finding.summary
    assert any("--shm-size=8g" in command for command in finding.remedies[0].commands)
    assert any("--ipc=host" in command for command in finding.remedies[0].commands)
    assert "shm_size" in finding.remedies[1].summary


def test_a_pod_gets_a_volume() -> None:
    finding = run_check("shm-too-small", system=container(64, "kubernetes"), torch=TORCH).findings[0]
    assert "emptyDir" in finding.remedies[0].summary


def test_one_more_is_enough() -> None:
    assert run_check("shm-too-small", system=container(65), torch=TORCH).outcome is Outcome.PASSED


@pytest.mark.parametrize(
    ("system", "torch", "reason"),
    [
        pytest.param(container(64, ""), TORCH, "this is not a container", id="host"),
        pytest.param(System(), TORCH, "system.container is unknown", id="container unknown"),
        pytest.param(System(container="docker"), TORCH, "system.shm_total_bytes is unknown", id="size unknown"),
        pytest.param(container(64), Torch(installed=False), "PyTorch is not installed", id="no PyTorch"),
    ],
)
def test_skipped(system: System, torch: Torch, reason: str) -> None:
    result = run_check("shm-too-small", system=system, torch=torch)
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, reason)
