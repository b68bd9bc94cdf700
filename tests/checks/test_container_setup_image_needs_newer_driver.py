"""The driver that the image of a container needs."""

from dataclasses import replace

import pytest

from gpudoctor.model import (
    ContainerSetup,
    CudaVersion,
    Outcome,
    Severity,
    Symptom,
)
from gpudoctor.testing import run_check
from tests.container_setups import (
    ALL,
    CUDA,
    CUDA_13,
    CUDA_TORCH,
    DOCKER,
    PLAIN,
    R535,
    SERVICE,
    WITH_GPU,
    findings,
    only,
)


def test_the_condition_of_the_image() -> None:
    finding = only("container-setup-image-needs-newer-driver", WITH_GPU, driver=R535)
    assert finding.severity is Severity.ERROR
    assert "requires cuda>=13.0, but the driver 535.129.03 supports CUDA 12.2" in finding.summary


@pytest.mark.parametrize(
    "setup",
    [
        pytest.param(replace(WITH_GPU, environment={"CUDA_VERSION": "13.0.1"}), id="CUDA_VERSION"),
        pytest.param(replace(PLAIN, kind="image", gpu_requests=None, base="nvidia/cuda:13.0.1-base"), id="FROM"),
        pytest.param(replace(SERVICE, environment={}, base="nvidia/cuda:13.0.1-base"), id="FROM, no GPU yet"),
        pytest.param(replace(PLAIN, kind="image", gpu_requests=None, image="nvidia/cuda:13.0.1-base"), id="name"),
        pytest.param(
            replace(PLAIN, gpu_requests=ALL, torch=replace(CUDA_TORCH, cuda_version=CudaVersion(13, 0))),
            id="PyTorch in it",
        ),
    ],
)
def test_a_newer_major(setup: ContainerSetup) -> None:
    finding = only("container-setup-image-needs-newer-driver", setup, driver=R535)
    assert finding.severity is Severity.ERROR
    assert "CUDA 13.0" in finding.summary


def test_from_is_changed_in_the_dockerfile() -> None:
    setup = replace(SERVICE, gpu_requests=ALL, base="nvidia/cuda:13.0.1-base")
    remedy = only("container-setup-image-needs-newer-driver", setup, driver=R535).remedies[0]
    assert "Change FROM nvidia/cuda:13.0.1-base" in remedy.summary
    assert "CUDA 12.2 or older" in remedy.summary
    assert remedy.commands == ("docker compose up --detach --build train",)


@pytest.mark.parametrize(
    "setup",
    [
        pytest.param(replace(WITH_GPU, environment={"CUDA_VERSION": "12.8.1"}), id="newer minor, compatible"),
        pytest.param(
            replace(WITH_GPU, environment={"NVIDIA_REQUIRE_CUDA": "cuda>=13.0 driver>=535,driver<536"}),
            id="another alternative holds",
        ),
        pytest.param(
            replace(WITH_GPU, environment={"NVIDIA_REQUIRE_CUDA": "cuda>=13.0", "NVIDIA_DISABLE_REQUIRE": "1"}),
            id="switched off",
        ),
        pytest.param(replace(CUDA, environment={**CUDA_13, "CUDA_VISIBLE_DEVICES": ""}), id="it has no GPU on purpose"),
    ],
)
def test_passes(setup: ContainerSetup) -> None:
    assert findings("container-setup-image-needs-newer-driver", setup, driver=R535) == []


def test_the_driver_of_another_machine_is_not_known() -> None:
    engine = replace(DOCKER, is_local=False)
    assert findings("container-setup-image-needs-newer-driver", WITH_GPU, engine=engine, driver=R535) == []


def test_the_runtime_refused_it() -> None:
    said = "requirement error: unsatisfied condition: cuda>=13.0"
    setup = replace(PLAIN, gpu_requests=ALL, failures=(Symptom(kind="container-requirement-unmet", text=said),))
    assert said in only("container-setup-image-needs-newer-driver", setup).summary


def test_without_containers_there_is_nothing_to_check() -> None:
    result = run_check("container-setup-image-needs-newer-driver")
    assert (result.outcome, result.applicable) == (Outcome.SKIPPED, False)
