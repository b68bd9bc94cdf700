"""PyTorch for the CPU in a container that is for the GPU."""

from dataclasses import replace

import pytest

from gpudoctor.model import (
    ContainerSetup,
    Outcome,
    Severity,
    Torch,
)
from gpudoctor.testing import run_check
from tests.container_setups import (
    ALL,
    CPU_TORCH,
    CUDA,
    CUDA_TORCH,
    GPUS,
    PLAIN,
    R535,
    SERVICE,
    WITH_GPU,
    findings,
    only,
)


def test_an_image_that_is_given_the_gpu() -> None:
    finding = only("container-torch-cpu-build", replace(SERVICE, gpu_requests=ALL, torch=CPU_TORCH), driver=R535)
    assert finding.severity is Severity.ERROR
    assert finding.summary == ("PyTorch 2.9.0+cpu in the service train is built without CUDA, and it asks for the GPU")
    assert "--index-url https://download.pytorch.org/whl/cu" in finding.remedies[0].summary
    assert finding.remedies[0].commands[0] == "docker compose build --no-cache train"


def test_an_image_for_cuda() -> None:
    setup = replace(CUDA, kind="image", gpu_requests=None, torch=CPU_TORCH)
    finding = only("container-torch-cpu-build", setup, devices=GPUS, driver=R535)
    assert (finding.severity, finding.subject) == (Severity.ERROR, "image train")


@pytest.mark.parametrize(
    "setup",
    [
        pytest.param(replace(PLAIN, torch=CPU_TORCH), id="not meant for the GPU"),
        pytest.param(replace(WITH_GPU, torch=CUDA_TORCH), id="built for CUDA"),
        pytest.param(WITH_GPU, id="none found"),
    ],
)
def test_passes(setup: ContainerSetup) -> None:
    assert findings("container-torch-cpu-build", setup, devices=GPUS) == []


def test_one_image_is_one_finding_the_gravest() -> None:
    setups = (replace(SERVICE, torch=CPU_TORCH), replace(WITH_GPU, torch=CPU_TORCH))
    finding = only("container-torch-cpu-build", *setups, devices=())
    assert (finding.subject, finding.severity) == ("container train", Severity.ERROR)


def test_what_is_found_in_an_image_stays_if_the_machine_has_no_torch() -> None:
    torch = Torch(installed=False)
    setup = replace(WITH_GPU, torch=CPU_TORCH)
    assert only("container-torch-cpu-build", setup, torch=torch, devices=GPUS).subject == "container train"


def test_without_containers_there_is_nothing_to_check() -> None:
    result = run_check("container-torch-cpu-build")
    assert (result.outcome, result.applicable) == (Outcome.SKIPPED, False)
