"""The machine code in PyTorch's build against the compute capability of each device."""

from __future__ import annotations

from typing import Any

import pytest

from gpudoctor.model import (
    ComputeCapability,
    CudaVersion,
    Device,
    Outcome,
    PackageVersion,
    PrecisionResult,
    Severity,
    Symptom,
    System,
    Torch,
    TorchRuntime,
)
from gpudoctor.testing import run_check

UNTIL_HOPPER = ("sm_50", "sm_60", "sm_70", "sm_75", "sm_80", "sm_86", "sm_90")
FROM_TURING = ("sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120")


def device(capability: str, index: int = 0, **fields: Any) -> Device:
    number = ComputeCapability.parse(capability)
    return Device(**{"nvml_index": index, "name": f"GPU of {number.sm}", "compute_capability": number, **fields})


def build(version: str, cuda: str, architectures: tuple[str, ...] | None) -> Torch:
    return Torch(
        installed=True,
        version=PackageVersion(version),
        build="cuda",
        cuda_version=CudaVersion.parse(cuda),
        architectures=architectures,
        conda_build="",
    )


CU126 = build("2.9.1+cu126", "12.6", UNTIL_HOPPER)
CU130 = build("2.9.1+cu130", "13.0", FROM_TURING)


@pytest.mark.parametrize(
    ("torch", "capability", "outcome"),
    [
        pytest.param(CU126, "12.0", Outcome.FOUND, id="too new"),
        pytest.param(CU126, "8.9", Outcome.PASSED, id="same major, higher minor"),
        pytest.param(CU126, "6.1", Outcome.PASSED, id="Pascal on CUDA 12"),
        pytest.param(CU130, "6.1", Outcome.FOUND, id="too old"),
        pytest.param(CU130, "7.0", Outcome.FOUND, id="lower minor"),
        pytest.param(CU130, "12.1", Outcome.PASSED, id="GB10 on code for 12.0"),
        pytest.param(CU130, "8.7", Outcome.FOUND, id="desktop code on a Jetson"),
        pytest.param(build("2.9.1", "12.6", (*UNTIL_HOPPER, "compute_90")), "12.0", Outcome.PASSED, id="PTX"),
        pytest.param(build("2.9.1", "12.6", (*UNTIL_HOPPER, "sm_90a")), "10.0", Outcome.FOUND, id="sm_90a is for 9.0"),
    ],
)
def test_by_the_build_itself(torch: Torch, capability: str, outcome: Outcome) -> None:
    assert run_check("torch-no-kernel-for-device", torch=torch, devices=(device(capability),)).outcome is outcome


def test_the_finding() -> None:
    (finding,) = run_check("torch-no-kernel-for-device", torch=CU126, devices=(device("12.0"),)).findings
    assert finding.severity is Severity.ERROR
    assert finding.summary == (
        "PyTorch 2.9.1+cu126 has machine code for sm_50 sm_60 sm_70 sm_75 sm_80 sm_86 sm_90, "
        "which does not run on GPU of sm_120 (sm_120)"
    )
    assert finding.facts == ("torch.architectures", "torch.version", "devices[0].compute_capability")
    assert "torch==2.9.1+cu128" in finding.remedies[0].commands[0]


def test_one_finding_for_each_capability() -> None:
    devices = (device("12.0"), device("12.0", 1), device("10.0", 2))
    result = run_check("torch-no-kernel-for-device", torch=CU126, devices=devices)
    assert sorted(finding.details["compute_capability"] for finding in result.findings) == ["10.0", "12.0"]


def test_another_gpu_that_runs_makes_it_a_warning() -> None:
    devices = (device("8.6", uuid="GPU-1111"), device("3.5", 1, uuid="GPU-2222"))
    (finding,) = run_check("torch-no-kernel-for-device", torch=CU126, devices=devices).findings
    assert finding.severity is Severity.WARNING
    assert finding.remedies[0].commands[:2] == ("export CUDA_DEVICE_ORDER=PCI_BUS_ID", "export CUDA_VISIBLE_DEVICES=0")


def test_a_gpu_that_pytorch_does_not_see_is_left_out() -> None:
    runtime = TorchRuntime(device_names=("A",), device_capabilities=(ComputeCapability(8, 6),))
    devices = (device("8.6"), device("3.5", 1))
    result = run_check("torch-no-kernel-for-device", torch=CU126, torch_runtime=runtime, devices=devices)
    assert result.outcome is Outcome.PASSED


def test_a_device_that_computes_passes() -> None:
    runtime = TorchRuntime(
        device_names=("A",),
        device_capabilities=(ComputeCapability(12, 0),),
        precision_results=(PrecisionResult(device="cuda:0", precision="fp32", relative_error=1e-7),),
    )
    assert run_check("torch-no-kernel-for-device", torch=CU126, torch_runtime=runtime).outcome is Outcome.PASSED


@pytest.mark.parametrize(
    ("version", "cuda", "capability", "outcome"),
    [
        pytest.param("2.7.1+cu118", "11.8", "12.0", Outcome.FOUND, id="too new"),
        pytest.param("2.7.1+cu128", "12.8", "12.0", Outcome.PASSED, id="new enough"),
        pytest.param("2.13.0", "13.0", "6.1", Outcome.FOUND, id="too old, without a local version"),
        pytest.param(
            "2.8.0a0+5228986c39.nv25.06", "12.9", "12.0", Outcome.SKIPPED, id="a build of NVIDIA's containers"
        ),
        pytest.param("99.0.0+cu990", "99.0", "12.0", Outcome.SKIPPED, id="newer than the table"),
    ],
)
def test_by_the_table(version: str, cuda: str, capability: str, outcome: Outcome) -> None:
    """As from a pasted report: version and devices are known, what lies on disk is not."""
    runtime = TorchRuntime(version=PackageVersion(version), cuda_version=CudaVersion.parse(cuda))
    result = run_check("torch-no-kernel-for-device", torch_runtime=runtime, devices=(device(capability),))
    assert result.outcome is outcome
    if outcome is Outcome.FOUND:
        assert result.findings[0].details["table"]


@pytest.mark.parametrize(
    ("version", "capability", "outcome"),
    [
        pytest.param("2.6.0", "12.0", Outcome.FOUND, id="no build of the release has it"),
        pytest.param("2.6.0", "8.6", Outcome.PASSED, id="every build has it"),
        pytest.param("2.9.1", "6.1", Outcome.SKIPPED, id="some have it"),
    ],
)
def test_by_the_release_alone(version: str, capability: str, outcome: Outcome) -> None:
    """As from "pip list"."""
    torch = Torch(installed=True, version=PackageVersion(version))
    result = run_check("torch-no-kernel-for-device", torch=torch, devices=(device(capability),))
    assert result.outcome is outcome


def test_a_build_of_conda_is_not_in_the_table() -> None:
    torch = Torch(
        installed=True,
        version=PackageVersion("2.6.0"),
        build="cuda",
        cuda_version=CudaVersion(12, 6),
        conda_build="cuda126_py312_h0",
    )
    result = run_check("torch-no-kernel-for-device", torch=torch, devices=(device("12.0"),))
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, "torch.architectures is unknown")


WARNING = (
    "NVIDIA GeForce RTX 5080 with CUDA capability sm_120 is not compatible with the current PyTorch installation.\n"
    "The current PyTorch install supports CUDA capabilities sm_50 sm_60 sm_70 sm_75 sm_80 sm_86 sm_90."
)


def test_by_the_message_of_pytorch() -> None:
    (finding,) = run_check(
        "torch-no-kernel-for-device", torch_runtime=TorchRuntime(import_error="", warnings=(WARNING,))
    ).findings
    assert finding.summary == (
        "PyTorch has machine code for sm_50 sm_60 sm_70 sm_75 sm_80 sm_86 sm_90, "
        "which does not run on NVIDIA GeForce RTX 5080 (sm_120)"
    )


def test_by_a_message_without_a_list() -> None:
    runtime = TorchRuntime(
        import_error="",
        warnings=("Found GPU0 NVIDIA GeForce GTX 1080 which is of compute capability (CC) 6.1.",),
    )
    (finding,) = run_check("torch-no-kernel-for-device", torch_runtime=runtime).findings
    assert finding.summary == "PyTorch says that its build has no code for NVIDIA GeForce GTX 1080 (sm_61)"


@pytest.mark.parametrize(
    ("sections", "reason"),
    [
        pytest.param({"torch": CU126}, "devices[0].compute_capability is unknown", id="the devices"),
        pytest.param(
            {"torch": CU126, "devices": (Device(nvml_index=0),)},
            "devices[0].compute_capability is unknown",
            id="the capability",
        ),
        pytest.param({"torch": CU126, "devices": ()}, "there is no NVIDIA GPU", id="no GPU"),
        pytest.param(
            {"torch": Torch(installed=True, build="cpu"), "devices": (device("8.6"),)},
            "PyTorch is not built for CUDA",
            id="a CPU build",
        ),
    ],
)
def test_skipped(sections: dict[str, Any], reason: str) -> None:
    result = run_check("torch-no-kernel-for-device", **sections)
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, reason)


def test_no_build_for_driver_and_device_has_no_command() -> None:
    """Kepler ended with PyTorch 2.7: what is older has no wheel for Python 3.14."""
    from gpudoctor.model import Python

    result = run_check(
        "torch-no-kernel-for-device",
        torch=CU130,
        devices=(device("3.7"),),
        python=Python(version=PackageVersion("3.14.0")),
        system=System(os="linux", machine="x86_64"),
    )
    assert result.findings[0].remedies[0].commands == ()


NO_KERNEL = TorchRuntime(warnings=("UserWarning: CUDA error: no kernel image is available",))
PTXAS = TorchRuntime(warnings=("UserWarning: ptxas fatal : Value 'sm_121a' is not defined for option 'gpu-name'",))
REPORTED = (Symptom(kind="torch-no-kernel-image", text="no kernel image is available"),)


def test_a_report_without_a_gpu_says_how_to_find_out() -> None:
    (finding,) = run_check(
        "torch-no-kernel-for-device", torch=Torch(installed=True), torch_runtime=NO_KERNEL, symptoms=REPORTED
    ).findings
    assert finding.severity is Severity.ERROR
    assert "compute_cap" in finding.remedies[0].commands[0]
    assert "cu128" in finding.remedies[0].summary


@pytest.mark.parametrize(
    ("runtime", "symptom", "name"),
    [
        pytest.param(NO_KERNEL, "torch-no-kernel-image", "TORCH_CUDA_ARCH_LIST", id="an extension"),
        pytest.param(PTXAS, "triton-ptxas-arch", "TRITON_PTXAS_PATH", id="Triton"),
    ],
)
def test_code_is_missing_and_not_that_of_pytorch(runtime: TorchRuntime, symptom: str, name: str) -> None:
    sections = {"torch": CU130, "torch_runtime": runtime, "devices": (device("8.6"),)}
    reported = (Symptom(kind=symptom, text="..."),)
    (finding,) = run_check("torch-no-kernel-for-device", **sections, symptoms=reported).findings
    assert finding.facts == ("symptoms[0].text", "devices[0].compute_capability")
    assert any(name in command for command in finding.remedies[0].commands)
    assert run_check("torch-no-kernel-for-device", **sections).outcome is Outcome.PASSED


def test_a_release_of_which_one_build_fails_failed_in_that_build() -> None:
    (finding,) = run_check(
        "torch-no-kernel-for-device",
        torch=Torch(installed=True, version=PackageVersion("1.10.1")),
        torch_runtime=NO_KERNEL,
        devices=(device("8.6"),),
        symptoms=REPORTED,
    ).findings
    assert "torch==1.10.1+cu111" in finding.remedies[0].commands[0]


def test_ptx_is_of_no_use_if_pytorch_complains() -> None:
    torch = build("1.12.1", "11.3", ("sm_37", "sm_86", "compute_37"))
    sections = {"torch": torch, "devices": (device("12.0"),)}
    said = TorchRuntime(warnings=("X with CUDA capability sm_120 is not compatible with the current PyTorch install",))
    assert run_check("torch-no-kernel-for-device", **sections).outcome is Outcome.PASSED
    assert run_check("torch-no-kernel-for-device", **sections, torch_runtime=said).outcome is Outcome.FOUND
