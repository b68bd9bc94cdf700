"""A container, seen from outside, that is not given the GPU."""

from dataclasses import replace

import pytest

from gpudoctor.model import (
    ContainerEngine,
    ContainerSetup,
    Outcome,
    Severity,
)
from gpudoctor.testing import run_check
from tests.container_setups import (
    ALL,
    CDI,
    CUDA,
    CUDA_13,
    CUDA_TORCH,
    DOCKER,
    GPUS,
    PLAIN,
    SERVICE,
    WITH_GPU,
    findings,
    only,
)


def test_a_service_of_a_cuda_image_without_a_reservation() -> None:
    finding = only("container-setup-without-gpu", SERVICE, devices=GPUS)
    assert finding.severity is Severity.ERROR
    assert finding.summary == ("The service train gets no GPU: nothing asks for one, and its image is for CUDA 13.0.1")
    assert "reservations: {devices: [{driver: nvidia" in finding.remedies[0].summary
    assert finding.remedies[0].commands == ("docker compose up --detach --force-recreate train",)
    assert finding.remedies[1].commands == ("docker run --rm --gpus all train:1 nvidia-smi",)


def test_for_a_container_docker_run_comes_first() -> None:
    finding = only("container-setup-without-gpu", CUDA, devices=GPUS)
    assert finding.remedies[0].commands == ("docker run --rm --gpus all train:1 nvidia-smi",)


@pytest.mark.parametrize(
    ("setup", "severity"),
    [
        pytest.param(replace(PLAIN, torch=CUDA_TORCH), Severity.WARNING, id="only PyTorch built for CUDA"),
        pytest.param(replace(PLAIN, image="nvidia/cuda:12.8.1-base-ubuntu24.04"), Severity.ERROR, id="name"),
        pytest.param(replace(PLAIN, base="nvcr.io/nvidia/pytorch:25.10-py3"), Severity.ERROR, id="FROM"),
        pytest.param(
            replace(PLAIN, environment={"NVIDIA_VISIBLE_DEVICES": "all"}), Severity.ERROR, id="variable, and runc"
        ),
    ],
)
def test_what_shows_that_it_wants_the_gpu(setup: ContainerSetup, severity: Severity) -> None:
    assert only("container-setup-without-gpu", setup, devices=GPUS).severity is severity


@pytest.mark.parametrize(
    ("setup", "engine"),
    [
        pytest.param(PLAIN, DOCKER, id="nothing in it is for the GPU"),
        pytest.param(WITH_GPU, DOCKER, id="--gpus all"),
        pytest.param(replace(CUDA, gpu_requests=CDI), DOCKER, id="CDI"),
        pytest.param(replace(CUDA, device_files=("/dev/nvidia0",)), DOCKER, id="--device /dev/nvidia0"),
        pytest.param(replace(CUDA, runtime="nvidia"), DOCKER, id="--runtime nvidia"),
        pytest.param(
            replace(SERVICE, runtime=""),
            replace(DOCKER, default_runtime="nvidia"),
            id="the engine's default runtime",
        ),
        pytest.param(replace(CUDA, is_privileged=True), DOCKER, id="privileged, which cannot be told"),
        pytest.param(replace(CUDA, gpu_requests=None), DOCKER, id="Podman, which cannot be told"),
        pytest.param(replace(CUDA, kind="image", gpu_requests=None), DOCKER, id="an image is not started"),
        pytest.param(
            replace(CUDA, environment={**CUDA_13, "CUDA_VISIBLE_DEVICES": ""}), DOCKER, id="hidden on purpose"
        ),
        pytest.param(
            replace(CUDA, environment={**CUDA_13, "NVIDIA_VISIBLE_DEVICES": "void"}), DOCKER, id="void on purpose"
        ),
    ],
)
def test_passes(setup: ContainerSetup, engine: ContainerEngine) -> None:
    assert findings("container-setup-without-gpu", setup, engine=engine, devices=GPUS) == []


@pytest.mark.parametrize("value", ["void", "none", ""])
def test_the_runtime_is_there_and_the_variable_gives_none(value: str) -> None:
    environment = {**CUDA_13, "NVIDIA_VISIBLE_DEVICES": value}
    finding = only(
        "container-setup-without-gpu", replace(CUDA, runtime="nvidia", environment=environment), devices=GPUS
    )
    assert f'NVIDIA_VISIBLE_DEVICES is "{value}"' in finding.summary


def test_without_a_gpu_on_the_host_it_is_advice() -> None:
    assert only("container-setup-without-gpu", CUDA, devices=()).severity is Severity.INFO


def test_with_an_engine_elsewhere_nobody_knows() -> None:
    engine = replace(DOCKER, is_local=False)
    assert only("container-setup-without-gpu", CUDA, engine=engine, devices=()).severity is Severity.WARNING


def test_if_another_service_of_the_image_has_it() -> None:
    prepare = replace(SERVICE, name="prepare", service="prepare")
    finding = only("container-setup-without-gpu", replace(SERVICE, gpu_requests=ALL), prepare, devices=GPUS)
    assert (finding.subject, finding.severity) == ("service prepare", Severity.INFO)


def test_a_service_and_its_container_are_one_finding() -> None:
    container = replace(CUDA, name="shop-train-1", service="train")
    assert only("container-setup-without-gpu", SERVICE, container, devices=GPUS).subject == "service train"


def test_the_container_was_not_created_again() -> None:
    container = replace(CUDA, name="shop-train-1", service="train")
    finding = only(
        "container-setup-without-gpu", replace(SERVICE, gpu_requests=ALL, image="new"), container, devices=GPUS
    )
    assert finding.subject == "container shop-train-1"


def test_without_containers_there_is_nothing_to_check() -> None:
    result = run_check("container-setup-without-gpu")
    assert (result.outcome, result.applicable) == (Outcome.SKIPPED, False)
