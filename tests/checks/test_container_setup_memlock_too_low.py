"""Memory that a container with InfiniBand, seen from outside, may lock."""

from dataclasses import replace

import pytest

from gpudoctor.model import Outcome, Severity, Symptom
from gpudoctor.testing import run_check
from tests.container_setups import PLAIN, findings, look, only

CHECK = "container-setup-memlock-too-low"
MIB = 1024 * 1024
WITH_INFINIBAND = replace(PLAIN, name="train", image="train:1", device_files=("/dev/infiniband/uverbs0",))


def test_a_limit() -> None:
    finding = only(CHECK, replace(WITH_INFINIBAND, memlock_bytes=64 * 1024))
    assert finding.severity is Severity.WARNING
    assert finding.summary == "The container train uses InfiniBand and may lock only 64 KiB"
    assert finding.facts == ("containers.setups[0].device_files", "containers.setups[0].memlock_bytes")
    assert "--ulimit memlock=-1" in finding.remedies[0].commands[0]
    assert "ulimits: {memlock: -1}" in finding.remedies[1].summary


@pytest.mark.parametrize(("limit", "found"), [(64 * MIB, True), (64 * MIB + 1, False), (0, False)])
def test_the_lowest_limit_that_is_enough(limit: int, found: bool) -> None:
    assert bool(findings(CHECK, replace(WITH_INFINIBAND, memlock_bytes=limit))) is found


def test_the_engines_default_is_advice() -> None:
    finding = only(CHECK, replace(WITH_INFINIBAND, memlock_bytes=None))
    assert finding.severity is Severity.INFO
    assert finding.facts == ("containers.setups[0].device_files",)


def test_its_log_says_that_it_was_too_little() -> None:
    failure = Symptom(kind="memlock-exceeded", text="ibv_reg_mr failed with error Cannot allocate memory")
    finding = only(CHECK, replace(PLAIN, memlock_bytes=0, failures=(failure,)))
    assert finding.severity is Severity.ERROR
    assert finding.facts == ("containers.setups[0].failures[0].text", "containers.setups[0].memlock_bytes")


@pytest.mark.parametrize("device_files", [(), ("/dev/nvidia0",)])
def test_without_infiniband_none_is_needed(device_files: tuple[str, ...]) -> None:
    result = look(CHECK, replace(PLAIN, device_files=device_files, memlock_bytes=64 * 1024))
    assert (result.outcome, result.applicable) == (Outcome.SKIPPED, False)


def test_without_containers_there_is_nothing_to_check() -> None:
    assert run_check(CHECK).outcome is Outcome.SKIPPED
