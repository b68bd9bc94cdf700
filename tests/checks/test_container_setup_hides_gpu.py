"""A container, seen from outside, that hides the GPU it gets."""

from dataclasses import replace
from typing import Any

import pytest

from gpudoctor.model import Outcome, Severity
from gpudoctor.testing import run_check
from tests.container_setups import WITH_GPU, findings, only

CHECK = "container-setup-hides-gpu"


@pytest.mark.parametrize("value", ["", "-1"])
def test_a_variable_hides_the_gpu(value: str) -> None:
    finding = only(CHECK, replace(WITH_GPU, environment={"CUDA_VISIBLE_DEVICES": value}))
    assert finding.severity is Severity.ERROR
    assert finding.summary == f'The container train has the GPU, but its CUDA_VISIBLE_DEVICES="{value}" hides it'
    assert finding.facts == ("containers.setups[0].environment",)
    assert finding.remedies[0].commands == ("docker run --rm --gpus all -e CUDA_VISIBLE_DEVICES=0 train:1 nvidia-smi",)


@pytest.mark.parametrize(
    "about",
    [
        pytest.param({"environment": {"CUDA_VISIBLE_DEVICES": "0"}}, id="a GPU is named"),
        pytest.param({"environment": {}}, id="unset"),
        pytest.param({"gpu_requests": ()}, id="it gets no GPU"),
        pytest.param({"gpu_requests": None}, id="whether it gets one is unknown"),
        pytest.param({"kind": "image"}, id="an image is not started"),
    ],
)
def test_passes(about: dict[str, Any]) -> None:
    hides = {"environment": {"CUDA_VISIBLE_DEVICES": ""}}
    assert findings(CHECK, replace(WITH_GPU, **{**hides, **about})) == []


def test_without_containers_there_is_nothing_to_check() -> None:
    result = run_check(CHECK)
    assert (result.outcome, result.applicable) == (Outcome.SKIPPED, False)
