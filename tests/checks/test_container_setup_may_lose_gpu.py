"""A running container, seen from outside, that can lose its GPU."""

from dataclasses import replace

import pytest

from gpudoctor.model import ContainerEngine, ContainerSetup, Outcome, Severity, Symptom
from gpudoctor.testing import run_check
from tests.container_setups import CDI, CUDA, DOCKER, WITH_GPU, findings, lines, only


def test_it_can_lose_it() -> None:
    finding = only("container-setup-may-lose-gpu", WITH_GPU)
    assert finding.severity is Severity.INFO
    assert "create-dev-char-symlinks" in lines(finding)


@pytest.mark.parametrize(
    ("setup", "engine"),
    [
        pytest.param(WITH_GPU, replace(DOCKER, cgroup_driver="cgroupfs"), id="cgroupfs"),
        pytest.param(WITH_GPU, replace(DOCKER, has_device_links=True), id="links in /dev/char"),
        pytest.param(WITH_GPU, replace(DOCKER, has_device_links=None), id="links unknown"),
        pytest.param(replace(CUDA, gpu_requests=CDI), DOCKER, id="CDI"),
        pytest.param(replace(WITH_GPU, device_files=("/dev/nvidia0",)), DOCKER, id="device nodes too"),
        pytest.param(replace(WITH_GPU, state="exited"), DOCKER, id="it does not run"),
    ],
)
def test_passes(setup: ContainerSetup, engine: ContainerEngine) -> None:
    assert findings("container-setup-may-lose-gpu", setup, engine=engine) == []


def test_one_that_has_lost_it_can_lose_it_no_more() -> None:
    failure = Symptom(kind="container-nvml-unknown-error", text="Failed to initialize NVML: Unknown Error")
    assert findings("container-setup-may-lose-gpu", replace(WITH_GPU, failures=(failure,))) == []


def test_without_containers_there_is_nothing_to_check() -> None:
    result = run_check("container-setup-may-lose-gpu")
    assert (result.outcome, result.applicable) == (Outcome.SKIPPED, False)
