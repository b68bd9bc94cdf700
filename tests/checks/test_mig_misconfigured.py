"""Multi-Instance GPU: instances, and how devices are addressed."""

from dataclasses import replace
from typing import Any

import pytest

from gpudoctor.engine.runner import run_checks
from gpudoctor.model import (
    Device,
    Driver,
    DriverVersion,
    Environment,
    Finding,
    Outcome,
    Severity,
    Symptom,
    TorchRuntime,
)
from gpudoctor.readers.report import read_texts
from gpudoctor.testing import run_check
from tests.own_checks import own_checks

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
    assert finding.summary == "MIG is on for NVIDIA A100-SXM4-40GB, but no MIG instance exists"
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
    assert finding.remedies[0].commands == (
        "nvidia-smi -L",
        "export CUDA_VISIBLE_DEVICES=$(nvidia-smi -L | grep -o 'MIG-[0-9a-f-]*' | head -n 1)",
    )


def test_an_error_if_cuda_sees_nothing() -> None:
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


NAMED = Symptom(kind="mig-device-named", text="MIG-3g.40gb")
COUNTED = Symptom(kind="torch-too-many-devices", text="device < num_gpus INTERNAL ASSERT FAILED")
INSTANCE = "MIG-5a0c1f9e-11aa-22bb-33cc-0123456789ac"


def only_finding(**sections: Any) -> Finding:
    (finding,) = run_check("mig-misconfigured", **sections).findings
    return finding


@pytest.mark.parametrize(
    ("symptoms", "devices"),
    [
        pytest.param((COUNTED, NAMED), None, id="a MIG device is named"),
        pytest.param((COUNTED,), (Device(nvml_index=0, mig_enabled=True, mig_uuids=(INSTANCE,)),), id="MIG is on"),
    ],
)
def test_more_devices_than_a_process_may_use(symptoms: tuple[Symptom, ...], devices: tuple[Device, ...] | None) -> None:
    finding = only_finding(symptoms=symptoms, devices=devices)
    assert finding.severity is Severity.ERROR
    assert finding.summary == "PyTorch counts several MIG instances, but a process can use only one"


def test_the_assertion_without_a_word_of_mig_passes() -> None:
    devices = (Device(nvml_index=0, mig_enabled=False, mig_uuids=()),)
    assert run_check("mig-misconfigured", symptoms=(COUNTED,), devices=devices).outcome is Outcome.PASSED


def test_a_uuid_taken_for_a_number() -> None:
    message = Symptom(kind="mig-uuid-as-number", text="...", names={"uuid": INSTANCE})
    assert INSTANCE in only_finding(symptoms=(message,)).summary


def test_a_mig_device_that_cuda_does_not_find() -> None:
    environment = Environment(variables={"CUDA_VISIBLE_DEVICES": INSTANCE})
    finding = only_finding(environment=environment, driver=Driver(cuda_init_code=100))
    assert finding.summary == f"CUDA does not find the MIG device {INSTANCE}"
    assert finding.facts == ("environment.CUDA_VISIBLE_DEVICES", "driver.cuda_init_code")


@pytest.mark.parametrize(
    ("kind", "command"),
    [
        ("mig-no-devices", "sudo nvidia-smi mig -i 0 -cgi 0 -C"),
        ("mig-mode-pending", "sudo nvidia-smi --gpu-reset"),
        ("mig-instance-not-created", "nvidia-smi mig -lgip"),
    ],
)
def test_what_nvidia_smi_says(kind: str, command: str) -> None:
    finding = only_finding(symptoms=(Symptom(kind=kind, text="what was printed"),))
    assert finding.severity is Severity.ERROR
    assert command in [line for remedy in finding.remedies for line in remedy.commands]


def test_no_mig_devices_if_the_devices_are_shown_counts_once() -> None:
    devices = (Device(nvml_index=0, mig_enabled=True, mig_uuids=()),)
    finding = only_finding(symptoms=(Symptom(kind="mig-no-devices", text="No MIG devices found"),), devices=devices)
    assert finding.facts == ("devices[0].mig_enabled", "devices[0].mig_uuids")


IN_USE = Symptom(kind="mig-in-use", text="MIG mode is enabled")


@pytest.mark.parametrize(
    "missing",
    [
        pytest.param(Symptom(kind="cuda-no-device", text="CUDA_ERROR_NO_DEVICE", code="cuda-100"), id="CUDA"),
        pytest.param(Symptom(kind="device-missing-reported", text="no devices found"), id="in words"),
    ],
)
def test_a_report_that_speaks_of_mig_and_of_a_device_that_is_missing(missing: Symptom) -> None:
    finding = only_finding(symptoms=(IN_USE, missing))
    assert finding.severity is Severity.ERROR
    assert finding.facts == ("symptoms[0].text", "symptoms[1].text")
    assert "nvidia-smi -L" in finding.remedies[0].commands
    assert run_check("mig-misconfigured", symptoms=(missing,)).outcome is Outcome.SKIPPED
    assert run_check("mig-misconfigured", symptoms=(IN_USE,)).outcome is Outcome.SKIPPED


MISSING = Symptom(kind="torch-no-gpus", text="No CUDA GPUs are available")
TOLD = Symptom(kind="device-missing-reported", text="no device is found")
UNLISTED = replace(A100, mig_uuids=None)
CREATE = ["create-mig-instance", "turn-mig-off"]


@pytest.mark.parametrize(
    ("symptoms", "devices", "facts", "fixes"),
    [
        pytest.param(
            (IN_USE, TOLD),
            None,
            ("symptoms[0].text", "symptoms[1].text"),
            ["list-mig-instances", *CREATE],
            id="both in words",
        ),
        pytest.param(
            (IN_USE, TOLD, MISSING),
            None,
            ("symptoms[0].text", "symptoms[2].text"),
            ["list-mig-instances", *CREATE],
            id="an error says more than words",
        ),
        pytest.param(
            (MISSING,),
            (UNLISTED,),
            ("devices[0].mig_enabled", "symptoms[0].text"),
            [*CREATE, "name-a-mig-instance"],
            id="instances not shown",
        ),
        pytest.param(
            (), (EMPTY,), ("devices[0].mig_enabled", "devices[0].mig_uuids"), CREATE, id="no instance is there"
        ),
    ],
)
def test_facts_and_fixes(
    symptoms: tuple[Symptom, ...],
    devices: tuple[Device, ...] | None,
    facts: tuple[str, ...],
    fixes: list[str],
) -> None:
    (finding,) = run_check("mig-misconfigured", symptoms=symptoms, devices=devices).findings
    assert (finding.facts, [fix.name for fix in finding.fixes]) == (facts, fixes)


def test_mig_in_words_without_a_failure_passes() -> None:
    assert not run_check("mig-misconfigured", symptoms=(IN_USE,)).findings


@pytest.mark.parametrize(("uuids", "outcome"), [((FIRST, SECOND), Outcome.FOUND), ((FIRST,), Outcome.PASSED)])
def test_a_program_that_sees_one_device(uuids: tuple[str, ...], outcome: Outcome) -> None:
    symptoms = (Symptom(kind="one-device-visible", text="only one GPU is used"),)
    result = run_check("mig-misconfigured", devices=(WHOLE, replace(A100, mig_uuids=uuids)), symptoms=symptoms)
    assert result.outcome is outcome
    assert [finding.facts for finding in result.findings] == [("symptoms[0].text", "devices[1].mig_uuids")][
        : len(uuids) - 1
    ]


@pytest.mark.parametrize(
    "text",
    [
        '0/4 nodes: 1 Insufficient nvidia.com/gpu.\n"nvidia.com/gpu": "0",\n"nvidia.com/mig-1g.10gb": "14"',
        "nvidia.com/mig-1g.10gb: 14\nWarning FailedScheduling 1 Insufficient nvidia.com/gpu",
    ],
)
def test_a_pod_asks_for_a_whole_gpu_of_a_node_that_offers_instances(text: str) -> None:
    report = run_checks(own_checks(), read_texts([("report.txt", text.encode())]))
    first = next(finding for finding in report.findings if finding.severity is Severity.ERROR)
    assert first.check_id == "mig-misconfigured"
    assert "nvidia.com/mig-1g.10gb: 1" in first.remedies[0].summary
