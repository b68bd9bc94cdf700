"""The variables that choose which GPUs a program sees."""

from __future__ import annotations

from typing import Any

import pytest

from gpudoctor.engine.runner import run_checks
from gpudoctor.model import (
    Device,
    Driver,
    Environment,
    Outcome,
    PackageVersion,
    PciGpu,
    Severity,
    Symptom,
    System,
    Torch,
    TorchRuntime,
)
from gpudoctor.readers.report import read_texts
from gpudoctor.testing import run_check
from tests.own_checks import own_checks

FOUR = tuple(Device(nvml_index=index, name="NVIDIA A100", uuid=f"GPU-{index}a{index}b") for index in range(4))


def run(value: str, **sections: Any) -> Any:
    environment = Environment(variables={"CUDA_VISIBLE_DEVICES": value})
    return run_check("cuda-visible-devices-hides-gpu", **{"environment": environment, "devices": FOUR, **sections})


@pytest.mark.parametrize(
    ("value", "severity"),
    [
        pytest.param("0", None, id="one of four, a choice"),
        pytest.param("3,1", None, id="in another order"),
        pytest.param(" 0 , 1 ", None, id="blanks"),
        pytest.param("0,-1", None, id="a closing -1"),
        pytest.param("0,", None, id="a closing comma"),
        pytest.param("1gpu2", None, id="read as by strtoul"),
        pytest.param("GPU-2a", None, id="the beginning of a UUID"),
        pytest.param("", Severity.ERROR, id="empty"),
        pytest.param("-1", Severity.ERROR, id="-1"),
        pytest.param("NoDevFiles", Severity.ERROR, id="NoDevFiles"),
        pytest.param("4", Severity.ERROR, id="beyond the last"),
        pytest.param("7,0", Severity.ERROR, id="a wrong first entry hides the rest"),
        pytest.param("GPU-77", Severity.ERROR, id="an unknown UUID"),
        pytest.param("0,0", Severity.ERROR, id="named twice"),
        pytest.param("0,9,1", Severity.WARNING, id="a wrong entry in between"),
        pytest.param("0,9", Severity.WARNING, id="a wrong last entry"),
        pytest.param("0,2,-1,1", Severity.WARNING, id="something after -1"),
        pytest.param("GPU-0a,GPU-77,GPU-1a", Severity.WARNING, id="an unknown UUID in between"),
    ],
)
def test_severity(value: str, severity: Severity | None) -> None:
    result = run(value)
    assert [finding.severity for finding in result.findings] == ([] if severity is None else [severity])
    assert result.outcome is (Outcome.PASSED if severity is None else Outcome.FOUND)


@pytest.mark.parametrize(
    ("value", "summary"),
    [
        ("", 'CUDA_VISIBLE_DEVICES="" hides all 4 GPUs'),
        ("4", 'CUDA_VISIBLE_DEVICES="4" hides all 4 GPUs: 4 is above the highest GPU number, 3'),
        ("0,9,1", '9 in CUDA_VISIBLE_DEVICES="0,9,1" is above the highest GPU number, 3, and hides 1 after it'),
        ("0,0", 'CUDA_VISIBLE_DEVICES="0,0" hides all 4 GPUs: 0 is named twice, which empties the list'),
    ],
)
def test_summary(value: str, summary: str) -> None:
    assert run(value).findings[0].summary == summary


def test_commands() -> None:
    assert run("").findings[0].remedies[0].commands[0] == "unset CUDA_VISIBLE_DEVICES"
    assert "on purpose" in run("").findings[0].remedies[0].summary
    assert run("0,2,9").findings[0].remedies[0].commands[0] == "export CUDA_VISIBLE_DEVICES=0,2"


def test_unset() -> None:
    result = run_check("cuda-visible-devices-hides-gpu", environment=Environment(), devices=FOUR)
    assert result.outcome is Outcome.PASSED


@pytest.mark.parametrize(
    ("value", "outcome"),
    [
        pytest.param("MIG-aa", Outcome.PASSED, id="one that exists"),
        pytest.param("MIG-GPU-0a/1/0", Outcome.PASSED, id="the older form"),
        pytest.param("MIG-bb", Outcome.FOUND, id="one that does not"),
        pytest.param("1", Outcome.PASSED, id="a number, of which MIG may have more than GPUs"),
    ],
)
def test_mig(value: str, outcome: Outcome) -> None:
    device = Device(nvml_index=0, uuid="GPU-0a0b", mig_enabled=True, mig_uuids=("MIG-aa11",))
    assert run(value, devices=(device,)).outcome is outcome


def test_devices_that_are_seen_all_the_same() -> None:
    assert run("-1", driver=Driver(cuda_device_count=4)).outcome is Outcome.PASSED


@pytest.mark.parametrize(
    ("sections", "outcome", "reason"),
    [
        pytest.param({"devices": None}, Outcome.SKIPPED, "devices is unknown", id="GPU unknown"),
        pytest.param(
            {"devices": (), "system": System(pci_gpus=())},
            Outcome.SKIPPED,
            "there is no NVIDIA GPU to hide",
            id="no GPU",
        ),
        pytest.param(
            {"devices": None, "torch_runtime": TorchRuntime(availability_error="No CUDA GPUs are available")},
            Outcome.FOUND,
            "",
            id="PyTorch says so",
        ),
        pytest.param({"devices": None, "driver": Driver(cuda_init_code=100)}, Outcome.FOUND, "", id="cuInit says so"),
    ],
)
def test_what_is_known_of_the_gpu(sections: dict[str, Any], outcome: Outcome, reason: str) -> None:
    result = run("", **sections)
    assert (result.outcome, result.reason) == (outcome, reason)


ROCM = Torch(installed=True, version=PackageVersion("2.9.1+rocm6.4"), build="rocm")


@pytest.mark.parametrize(
    ("variables", "outcome"),
    [
        pytest.param({"HIP_VISIBLE_DEVICES": "0"}, Outcome.PASSED, id="one of two"),
        pytest.param({"HIP_VISIBLE_DEVICES": "2"}, Outcome.FOUND, id="beyond the last"),
        pytest.param({"ROCR_VISIBLE_DEVICES": ""}, Outcome.FOUND, id="empty"),
        pytest.param({"ROCR_VISIBLE_DEVICES": "GPU-3f1c"}, Outcome.PASSED, id="a UUID"),
        pytest.param({"CUDA_VISIBLE_DEVICES": "-1"}, Outcome.FOUND, id="HIP heeds CUDA's variable"),
    ],
)
def test_amd(variables: dict[str, str], outcome: Outcome) -> None:
    system = System(
        amd_gfx_targets=("gfx1100", "gfx1100"), pci_gpus=(PciGpu(address="03:00.0", vendor="amd", device_id="744C"),)
    )
    result = run_check(
        "cuda-visible-devices-hides-gpu", environment=Environment(variables=variables), torch=ROCM, system=system
    )
    assert result.outcome is outcome


NO_DEVICE = Symptom(kind="torch-no-gpus", text="No CUDA GPUs are available", code="cuda-100")
INVALID = Symptom(kind="cuda-invalid-device", text="invalid device ordinal", code="cuda-101")


def reported(value: str, *symptoms: Symptom, **sections: Any) -> Any:
    environment = Environment(variables={"CUDA_VISIBLE_DEVICES": value})
    return run_check("cuda-visible-devices-hides-gpu", environment=environment, symptoms=symptoms, **sections)


def test_a_number_that_leaves_no_device() -> None:
    finding = reported("1", NO_DEVICE).findings[0]
    assert finding.summary == 'CUDA_VISIBLE_DEVICES="1" hides every GPU: CUDA finds no device 1'
    commands = [command for remedy in finding.remedies for command in remedy.commands]
    assert "unset CUDA_VISIBLE_DEVICES" in commands
    assert "export CUDA_VISIBLE_DEVICES=0" in commands


def test_the_first_gpu_is_where_any_is() -> None:
    assert reported("0", NO_DEVICE).outcome is Outcome.PASSED


def test_a_missing_driver_leaves_no_device_either() -> None:
    missing = Symptom(kind="torch-no-driver", text="Found no NVIDIA driver on your system")
    assert reported("1", NO_DEVICE, missing).outcome is Outcome.SKIPPED


def test_a_report_may_show_only_some_devices() -> None:
    assert not reported("4,5", devices=FOUR).findings
    assert not reported("4,5", devices=FOUR, torch_runtime=TorchRuntime(available=True, device_count=2)).findings
    assert reported("3,4", devices=FOUR, torch_runtime=TorchRuntime(available=True, device_count=1)).findings
    assert reported("4,5", devices=FOUR, torch_runtime=TorchRuntime(available=False)).findings


def test_a_build_for_the_cpu_looks_for_no_gpu() -> None:
    result = reported("-1", devices=FOUR, torch=Torch(installed=True, build="cpu"))
    assert (result.outcome, result.applicable) == (Outcome.SKIPPED, False)


def test_a_device_number_that_is_not_visible() -> None:
    finding = run_check("cuda-visible-devices-hides-gpu", symptoms=(INVALID,), devices=FOUR[:1]).findings[0]
    assert finding.severity is Severity.ERROR
    assert finding.summary.endswith("; the machine has only GPU 0")
    assert "CUDA_VISIBLE_DEVICES" in finding.remedies[0].summary


def test_numbers_of_mig_devices_are_for_another_check() -> None:
    mig = (Device(nvml_index=0, name="NVIDIA A100", mig_enabled=True),)
    result = run_check("cuda-visible-devices-hides-gpu", symptoms=(INVALID,), devices=mig)
    assert result.outcome is Outcome.SKIPPED


@pytest.mark.parametrize(
    ("sections", "facts"),
    [
        pytest.param({}, ("symptoms[0].text",), id="nothing is chosen"),
        pytest.param(
            {"environment": Environment(variables={"CUDA_VISIBLE_DEVICES": "0"})},
            ("symptoms[0].text", "environment.CUDA_VISIBLE_DEVICES"),
            id="one is chosen",
        ),
    ],
)
def test_a_number_that_no_visible_device_has(sections: dict[str, Any], facts: tuple[str, ...]) -> None:
    symptoms = (Symptom(kind="cuda-invalid-device-ordinal", text="invalid device ordinal", code="cuda-101"),)
    finding = run_check("cuda-visible-devices-hides-gpu", devices=FOUR, symptoms=symptoms, **sections).findings[0]
    assert (finding.subject, finding.facts) == ("device number", facts)
    assert "GPUs 0 to 3" in finding.summary


def test_slurm_is_asked_for_a_gpu() -> None:
    text = "$ echo $CUDA_VISIBLE_DEVICES\nNoDevFiles\n>>> torch.cuda.is_available()\nFalse\n"
    report = run_checks(own_checks(), read_texts([("log", text.encode())]))
    first = next(finding for finding in report.findings if finding.severity)
    assert first.remedies[0].commands == ("srun --gres=gpu:1 nvidia-smi",)


def test_a_variable_that_cannot_be_removed_is_set_for_the_program_alone() -> None:
    refused = (Symptom(kind="tried-unset", text="readonly variable", fact="symptoms[0].text"),)
    assert run("-1", symptoms=refused).findings[0].remedies[0].commands[0].startswith("env CUDA_VISIBLE_DEVICES=0 ")
    assert run("-1").findings[0].remedies[0].commands[0].startswith("unset ")
