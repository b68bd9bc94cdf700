"""Which libraries of the driver a container gets."""

from dataclasses import replace

import pytest

from gpudoctor.model import (
    ContainerSetup,
    GpuRequest,
    Outcome,
    Severity,
)
from gpudoctor.testing import run_check
from tests.container_setups import (
    CDI,
    CUDA,
    WITH_GPU,
    findings,
    lines,
    only,
)


@pytest.mark.parametrize(
    ("value", "severity"),
    [
        pytest.param("utility", Severity.ERROR, id="no compute"),
        pytest.param("graphics,compute", Severity.WARNING, id="no utility"),
    ],
)
def test_the_variable(value: str, severity: Severity) -> None:
    setup = replace(WITH_GPU, environment={"NVIDIA_DRIVER_CAPABILITIES": value})
    finding = only("container-setup-driver-capabilities-missing", setup)
    assert finding.severity is severity
    assert f"NVIDIA_DRIVER_CAPABILITIES={value}" in finding.summary
    assert "-e NVIDIA_DRIVER_CAPABILITIES=compute,utility" in lines(finding)


def test_the_runtime_reads_the_variable_too() -> None:
    environment = {"NVIDIA_VISIBLE_DEVICES": "all", "NVIDIA_DRIVER_CAPABILITIES": "utility"}
    setup = replace(CUDA, runtime="nvidia", environment=environment)
    finding = only("container-setup-driver-capabilities-missing", setup)
    assert finding.severity is Severity.ERROR
    assert finding.fixes[0].arguments["by_request"] is False


def test_the_request_goes_before_the_variable() -> None:
    request = GpuRequest(count=-1, capabilities=("gpu", "utility"))
    assert (
        "its request names utility"
        in only("container-setup-driver-capabilities-missing", replace(WITH_GPU, gpu_requests=(request,))).summary
    )


@pytest.mark.parametrize(
    "setup",
    [
        pytest.param(WITH_GPU, id="both"),
        pytest.param(replace(WITH_GPU, environment={}), id="unset is both"),
        pytest.param(replace(WITH_GPU, environment={"NVIDIA_DRIVER_CAPABILITIES": "all"}), id="all"),
        pytest.param(
            replace(CUDA, gpu_requests=CDI, environment={"NVIDIA_DRIVER_CAPABILITIES": "utility"}),
            id="CDI mounts every library",
        ),
        pytest.param(replace(CUDA, environment={"NVIDIA_DRIVER_CAPABILITIES": "utility"}), id="no GPU at all"),
    ],
)
def test_passes(setup: ContainerSetup) -> None:
    assert findings("container-setup-driver-capabilities-missing", setup) == []


def test_without_containers_there_is_nothing_to_check() -> None:
    result = run_check("container-setup-driver-capabilities-missing")
    assert (result.outcome, result.applicable) == (Outcome.SKIPPED, False)


@pytest.mark.parametrize("name", ["compat32", "graphics", "utility", "video", "display", "ngx"])
def test_a_request_that_names_only_another_capability(name: str) -> None:
    request = GpuRequest(count=-1, capabilities=("gpu", name))
    finding = only("container-setup-driver-capabilities-missing", replace(WITH_GPU, gpu_requests=(request,)))
    assert (finding.severity, finding.fixes[0].arguments["by_request"]) == (Severity.ERROR, True)


def test_a_request_that_names_compute_alone_or_no_capability_of_the_driver() -> None:
    compute = replace(WITH_GPU, gpu_requests=(GpuRequest(count=-1, capabilities=("gpu", "compute")),))
    assert only("container-setup-driver-capabilities-missing", compute).severity is Severity.WARNING
    other = replace(WITH_GPU, gpu_requests=(GpuRequest(count=-1, capabilities=("gpu", "tpu")),))
    assert findings("container-setup-driver-capabilities-missing", other) == []
