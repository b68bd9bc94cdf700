"""A container, seen from outside, that asks for a GPU that its host does not have."""

from dataclasses import replace
from typing import Any

import pytest

from gpudoctor.model import GpuRequest, Outcome, Severity, Symptom
from gpudoctor.testing import run_check
from tests.container_setups import CUDA, CUDA_13, DOCKER, GPUS, WITH_TOOLKIT, findings, only

CHECK = "container-setup-asks-for-missing-gpu"


def asks(*names: str) -> dict[str, Any]:
    return {"gpu_requests": (GpuRequest(driver="nvidia", device_ids=names, capabilities=("gpu",)),)}


def test_a_number_beyond_the_last() -> None:
    finding = only(CHECK, replace(CUDA, **asks("0", "2")), devices=GPUS)
    assert finding.severity is Severity.ERROR
    assert finding.summary == "The container train asks for the GPU 2, which its host does not have"
    assert finding.facts == ("containers.setups[0].gpu_requests",)
    assert finding.remedies[0].commands == ("nvidia-smi --list-gpus",)
    assert finding.remedies[1].commands == ("docker run --rm --gpus all train:1 nvidia-smi",)


@pytest.mark.parametrize(
    "about",
    [
        pytest.param(asks("1"), id="the last"),
        pytest.param(asks("GPU-1"), id="a UUID"),
        pytest.param({"gpu_requests": ()}, id="no request"),
    ],
)
def test_passes(about: dict[str, Any]) -> None:
    assert findings(CHECK, replace(CUDA, **about), devices=GPUS) == []


def test_devices_that_are_unknown_are_not_compared() -> None:
    assert findings(CHECK, replace(CUDA, **asks("2"))) == []
    assert findings(CHECK, replace(CUDA, **asks("2")), devices=GPUS, engine=replace(DOCKER, is_local=False)) == []


def test_the_variable_of_the_runtime() -> None:
    environment = {**CUDA_13, "NVIDIA_VISIBLE_DEVICES": "0,2"}
    setup = replace(CUDA, runtime="nvidia", environment=environment)
    finding = only(CHECK, setup, devices=GPUS, engine=WITH_TOOLKIT)
    assert finding.facts == ("containers.setups[0].environment",)


def test_the_engine_says_so() -> None:
    failure = Symptom(kind="container-unknown-device", text="device error: 3: unknown device", names={"device": "3"})
    finding = only(CHECK, replace(CUDA, failures=(failure,)))
    assert "the GPU 3" in finding.summary
    assert finding.facts == ("containers.setups[0].failures[0].text",)


def test_without_containers_there_is_nothing_to_check() -> None:
    result = run_check(CHECK)
    assert (result.outcome, result.applicable) == (Outcome.SKIPPED, False)
