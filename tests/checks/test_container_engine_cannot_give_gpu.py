"""An engine that cannot give the GPU to a container."""

from dataclasses import replace

import pytest

from gpudoctor.model import (
    Container,
    ContainerEngine,
    ContainerSetup,
    Outcome,
    Severity,
    Symptom,
)
from gpudoctor.testing import run_check
from tests.container_setups import (
    ALL,
    CDI,
    CUDA,
    DOCKER,
    SERVICE,
    WITH_GPU,
    WITH_TOOLKIT,
    findings,
    lines,
    only,
)

REFUSED = replace(
    WITH_GPU,
    state="created",
    failures=(
        Symptom(
            kind="container-no-device-driver",
            text='could not select device driver "" with capabilities: [[gpu]]',
        ),
    ),
)


def test_the_engine_refused_to_start_it() -> None:
    finding = only("container-engine-cannot-give-gpu", REFUSED)
    assert finding.severity is Severity.ERROR
    assert "the container train did not start (could not select device driver" in finding.summary
    assert any("nvidia-ctk runtime configure" in command for command in finding.remedies[0].commands)


def test_no_toolkit_and_a_service_that_asks() -> None:
    service = replace(SERVICE, gpu_requests=ALL)
    container = Container(toolkit_installed=False, cdi_devices=())
    finding = only("container-engine-cannot-give-gpu", service, container=container)
    assert "The service train asks for a GPU, but the NVIDIA Container Toolkit" in finding.summary
    assert [evidence.fact for evidence in finding.evidence] == [
        "container.toolkit_installed", "containers.setups[0].gpu_requests",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("setup", "engine", "installed"),
    [
        pytest.param(replace(WITH_GPU, state="running"), DOCKER, False, id="it runs"),
        pytest.param(replace(WITH_GPU, state="created"), WITH_TOOLKIT, False, id="the runtime is known"),
        pytest.param(replace(WITH_GPU, state="created"), DOCKER, True, id="Docker needs its hook only"),
        pytest.param(replace(WITH_GPU, state="created"), DOCKER, None, id="unknown"),
        pytest.param(replace(WITH_GPU, state="created"), replace(DOCKER, is_local=False), False, id="elsewhere"),
    ],
)
def test_passes(setup: ContainerSetup, engine: ContainerEngine, installed: bool | None) -> None:
    container = Container(toolkit_installed=installed, docker_installed=False, podman_installed=False)
    assert findings("container-engine-cannot-give-gpu", setup, engine=engine, container=container) == []


def test_an_unknown_runtime() -> None:
    finding = only("container-engine-cannot-give-gpu", replace(SERVICE, runtime="nvidia"))
    assert "uses the runtime nvidia, which is not one of the engine's runtimes: runc" in finding.summary
    assert [evidence.fact for evidence in finding.evidence] == [
        "containers.engine.runtimes", "containers.setups[0].runtime",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("engine", "words"),
    [
        pytest.param(replace(DOCKER, cdi_folders=()), "CDI is switched off", id="off"),
        pytest.param(
            replace(DOCKER, cdi_folders=("/etc/cdi",), cdi_devices=()),
            "not one of the engine's devices: none",
            id="not found",
        ),
    ],
)
def test_cdi(engine: ContainerEngine, words: str) -> None:
    setup = replace(CUDA, state="created", gpu_requests=CDI)
    finding = only("container-engine-cannot-give-gpu", setup, engine=engine)
    assert words in finding.summary
    assert "nvidia-ctk cdi generate" in lines(finding)


@pytest.mark.parametrize("devices", [("nvidia.com/gpu=all",), ("nvidia.com/gpu=0", "nvidia.com/gpu=all"), None])
def test_cdi_that_is_found_or_unknown(devices: tuple[str, ...] | None) -> None:
    engine = replace(DOCKER, cdi_folders=("/etc/cdi",), cdi_devices=devices)
    setup = replace(CUDA, state="created", gpu_requests=CDI)
    assert findings("container-engine-cannot-give-gpu", setup, engine=engine) == []


def test_what_the_engine_lacks_is_reported_once() -> None:
    other = replace(SERVICE, name="infer", service="infer", runtime="nvidia")
    finding = only("container-engine-cannot-give-gpu", replace(SERVICE, runtime="nvidia"), other)
    assert finding.summary.endswith("(and so the service infer)")


def test_without_containers_there_is_nothing_to_check() -> None:
    result = run_check("container-engine-cannot-give-gpu")
    assert (result.outcome, result.applicable) == (Outcome.SKIPPED, False)


@pytest.mark.parametrize("others", [5, 6])
def test_five_others_are_named(others: int) -> None:
    services = [replace(SERVICE, name=f"s{n}", service=f"s{n}", runtime="nvidia") for n in range(others + 1)]
    finding = only("container-engine-cannot-give-gpu", *services)
    assert finding.summary.endswith(
        "(and so the service s1, the service s2, the service s3, the service s4, the service s5)"
    )
