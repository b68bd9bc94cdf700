"""Apple's MPS backend."""

from dataclasses import replace

import pytest

from gpudoctor.model import Container, Environment, Outcome, Severity, Symptom, System, Torch, TorchRuntime
from gpudoctor.testing import run_check

MAC = System(os="darwin", machine="arm64")
TORCH = Torch(installed=True, build="mps")


@pytest.mark.parametrize(
    ("built", "summary"),
    [
        pytest.param(True, "macOS does not offer the device", id="old macOS"),
        pytest.param(False, "built without MPS", id="another build"),
    ],
)
def test_not_available(*, built: bool, summary: str) -> None:
    runtime = TorchRuntime(mps_built=built, mps_available=False)
    finding = run_check("mps-issues", torch_runtime=runtime, system=MAC, torch=TORCH).findings[0]
    assert finding.severity is Severity.ERROR
    assert summary in finding.summary


@pytest.mark.parametrize(
    ("kind", "advice"),
    [
        pytest.param("mps-float64", "torch.float32", id="float64"),
        pytest.param("mps-not-linked", "--upgrade torch", id="build without MPS"),
        pytest.param("mps-macos-too-old", "Update macOS", id="old macOS"),
        pytest.param("mps-placeholder", "model.to('mps')", id="model on the CPU"),
        pytest.param("mps-dtype-unsupported", "PYTORCH_ENABLE_MPS_FALLBACK=1", id="a type it has not"),
    ],
)
def test_a_report_says_what_mps_lacks(kind: str, advice: str) -> None:
    finding = run_check("mps-issues", symptoms=(Symptom(kind=kind, text="what was printed"),)).findings[0]
    assert finding.severity is Severity.ERROR
    assert finding.summary.endswith(": what was printed")
    assert advice in finding.remedies[0].summary


NO_CUDA = Symptom(kind="torch-not-compiled-with-cuda", text="Torch not compiled with CUDA enabled")


def test_cuda_is_asked_for_on_a_mac() -> None:
    finding = run_check("mps-issues", symptoms=(NO_CUDA,), system=MAC).findings[0]
    assert finding.facts == ("symptoms[0].text", "system.os")
    assert "torch.device('mps')" in finding.remedies[0].summary


def test_a_mac_that_the_report_names_counts_if_the_system_is_unknown() -> None:
    named = Symptom(kind="apple-mac-named", text="MacBook")
    assert run_check("mps-issues", symptoms=(NO_CUDA, named)).outcome is Outcome.FOUND
    linux = run_check("mps-issues", symptoms=(NO_CUDA, named), system=System(os="linux"))
    assert (linux.outcome, linux.reason) == (Outcome.SKIPPED, "this is not a Mac")


def test_no_memory_limit_is_advice() -> None:
    environment = Environment(variables={"PYTORCH_MPS_HIGH_WATERMARK_RATIO": "0.0"})
    runtime = TorchRuntime(mps_built=True, mps_available=True)
    result = run_check("mps-issues", torch_runtime=runtime, system=MAC, torch=TORCH, environment=environment)
    assert [finding.severity for finding in result.findings] == [Severity.INFO]


@pytest.mark.parametrize(
    ("runtime", "system"),
    [
        pytest.param(TorchRuntime(mps_built=True, mps_available=True), MAC, id="available"),
        pytest.param(
            TorchRuntime(mps_built=False, mps_available=False), replace(MAC, machine="x86_64"), id="Intel processor"
        ),
    ],
)
def test_passes(runtime: TorchRuntime, system: System) -> None:
    assert run_check("mps-issues", torch_runtime=runtime, system=system, torch=TORCH).outcome is Outcome.PASSED


@pytest.mark.parametrize(
    ("system", "reason"),
    [
        pytest.param(System(os="linux"), "this is not a Mac", id="Linux"),
        pytest.param(System(), "system.os is unknown", id="unknown"),
        pytest.param(MAC, "torch_runtime.mps_available is unknown", id="availability unknown"),
    ],
)
def test_skipped(system: System, reason: str) -> None:
    result = run_check("mps-issues", torch_runtime=TorchRuntime(), system=system, torch=TORCH)
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, reason)


def test_pytorch_in_a_container_on_a_mac_has_no_mps() -> None:
    system, runtime = System(os="darwin", machine="arm64"), TorchRuntime(mps_available=False, mps_built=True)
    container = Container(engine="docker", image="python:3.11-slim")
    (finding,) = run_check(
        "mps-issues", system=system, torch_runtime=runtime, torch=TORCH, container=container, contradictions=()
    ).findings
    assert "virtual machine with Linux" in finding.summary
    assert "outside a container" in finding.remedies[0].summary


def test_a_container_on_a_mac_reaches_no_gpu() -> None:
    told = (Symptom(kind="apple-mac-named", text="MacBook"), Symptom(kind="asks-for-cuda", text="no NVIDIA driver"))
    (finding,) = run_check("mps-issues", symptoms=told, torch=Torch(installed=True, build="cuda")).findings
    assert "mps works outside the container" in finding.remedies[0].summary
