"""Shared memory of a container that is seen from outside."""

from dataclasses import replace
from typing import Any

import pytest

from gpudoctor.model import (
    Outcome,
    Severity,
    Symptom,
)
from gpudoctor.testing import run_check
from tests.container_setups import (
    CUDA_TORCH,
    PLAIN,
    SERVICE,
    findings,
    only,
)


def test_dockers_default() -> None:
    finding = only("container-setup-shm-too-small", replace(PLAIN, torch=CUDA_TORCH))
    assert finding.severity is Severity.WARNING
    assert "has 64 MiB, Docker's default" in finding.summary
    assert finding.remedies[0].commands == ("docker run --rm --shm-size=8g web:1 df -h /dev/shm",)


def test_a_service_that_says_nothing() -> None:
    finding = only("container-setup-shm-too-small", replace(SERVICE, torch=CUDA_TORCH))
    assert "has Docker's default size, 64 MiB" in finding.summary
    assert 'shm_size: "8gb"' in finding.remedies[0].summary


@pytest.mark.parametrize(
    "about",
    [
        pytest.param({"shm_size_bytes": 65 << 20}, id="more"),
        pytest.param({"ipc": "host"}, id="that of the host"),
        pytest.param({"ipc": "container:4f5a"}, id="that of another container"),
        pytest.param({"has_own_shm": True}, id="mounted over"),
        pytest.param({"torch": None}, id="no PyTorch found"),
    ],
)
def test_passes(about: dict[str, Any]) -> None:
    assert findings("container-setup-shm-too-small", replace(PLAIN, **{"torch": CUDA_TORCH, **about})) == []


def test_none_at_all() -> None:
    finding = only("container-setup-shm-too-small", replace(PLAIN, torch=CUDA_TORCH, ipc="none"))
    assert finding.severity is Severity.WARNING
    assert finding.facts == ("containers.setups[0].torch", "containers.setups[0].shm_size_bytes")


def test_its_log_says_so() -> None:
    failure = Symptom(kind="shm-bus-error", text="Unexpected bus error encountered in worker")
    finding = only("container-setup-shm-too-small", replace(PLAIN, failures=(failure,)))
    assert finding.severity is Severity.ERROR
    assert "was too small for what ran in it" in finding.summary


def test_without_containers_there_is_nothing_to_check() -> None:
    result = run_check("container-setup-shm-too-small")
    assert (result.outcome, result.applicable) == (Outcome.SKIPPED, False)
