"""Multi-Instance GPU: instances, and how devices are addressed."""

from dataclasses import replace

import pytest

from gpudoctor.model import Device, Driver, DriverVersion, Environment, Outcome, Severity, TorchRuntime
from gpudoctor.testing import run_check

FIRST = "MIG-11111111-1111-1111-1111-111111111111"
SECOND = "MIG-22222222-2222-2222-2222-222222222222"
A100 = Device(
    nvml_index=0, name="NVIDIA A100-SXM4-40GB", uuid="GPU-aaaaaaaa-0000", mig_enabled=True, mig_uuids=(FIRST, SECOND)
)
EMPTY = replace(A100, mig_uuids=())
WHOLE = Device(nvml_index=1, name="NVIDIA A100-SXM4-40GB", uuid="GPU-bbbbbbbb-0000", mig_enabled=False, mig_uuids=())
R535 = Driver(version=DriverVersion((535, 129, 3)))
R580 = Driver(version=DriverVersion((580, 95, 5)))


def visible(value: str) -> Environment:
    return Environment(variables={"CUDA_VISIBLE_DEVICES": value})


@pytest.mark.parametrize(
    ("devices", "severity"),
    [
        pytest.param((EMPTY,), Severity.ERROR, id="the only GPU"),
        pytest.param((EMPTY, WHOLE), Severity.WARNING, id="beside a whole GPU"),
    ],
)
def test_no_instance(devices: tuple[Device, ...], severity: Severity) -> None:
    finding = run_check("mig-misconfigured", devices=devices).findings[0]
    assert finding.severity is severity
    assert finding.summary == "MIG is on for NVIDIA A100-SXM4-40GB, and no MIG instance exists"
    assert "sudo nvidia-smi -i 0 -mig 0" in finding.remedies[1].commands


@pytest.mark.parametrize(
    ("value", "driver", "text"),
    [
        pytest.param("GPU-aaaaaaaa", R580, "names GPU-aaaaaaaa, a GPU in MIG mode", id="UUID of the GPU"),
        pytest.param("1", R580, "names 1, a GPU in MIG mode", id="index"),
        pytest.param(f"{FIRST},{SECOND}", R535, "names 2 MIG instances", id="two instances before R570"),
    ],
)
def test_addressed_the_wrong_way(value: str, driver: Driver, text: str) -> None:
    finding = run_check("mig-misconfigured", devices=(A100,), driver=driver, environment=visible(value)).findings[0]
    assert finding.severity is Severity.WARNING
    assert text in finding.summary
    assert finding.remedies[0].commands[0] == f"export CUDA_VISIBLE_DEVICES={FIRST}"


def test_an_error_where_cuda_sees_nothing() -> None:
    driver = replace(R580, cuda_device_count=0)
    finding = run_check("mig-misconfigured", devices=(A100,), driver=driver, environment=visible("1")).findings[0]
    assert finding.severity is Severity.ERROR


def test_the_assertion_of_pytorch() -> None:
    runtime = TorchRuntime(
        availability_error='device >= 0 && device < num_gpus INTERNAL ASSERT FAILED at "CUDAContext.cpp"',
        device_names=("NVIDIA A100-SXM4-80GB MIG 3g.40gb", "NVIDIA A100-SXM4-80GB MIG 3g.40gb"),
    )
    finding = run_check("mig-misconfigured", torch_runtime=runtime).findings[0]
    assert finding.severity is Severity.ERROR
    assert "MIG" in finding.summary


@pytest.mark.parametrize(
    ("value", "driver"),
    [
        pytest.param(FIRST, R535, id="one instance"),
        pytest.param("0", R535, id="index 0"),
        pytest.param(f"{FIRST},{SECOND}", R580, id="several from R570 on"),
        pytest.param("1", replace(R580, cuda_device_count=1), id="CUDA took it"),
        pytest.param("", R535, id="empty"),
    ],
)
def test_passes(value: str, driver: Driver) -> None:
    result = run_check("mig-misconfigured", devices=(A100,), driver=driver, environment=visible(value))
    assert result.outcome is Outcome.PASSED


def test_without_mig() -> None:
    assert run_check("mig-misconfigured", devices=(WHOLE,), environment=visible("1")).outcome is Outcome.PASSED


def test_unknown() -> None:
    result = run_check("mig-misconfigured", environment=visible("1"))
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, "devices is unknown")
