"""conda's choice of PyTorch's build."""

from __future__ import annotations

from typing import Any

import pytest

from gpudoctor.model import (
    Device,
    Fix,
    Outcome,
    Package,
    PackageVersion,
    Python,
    Severity,
    Symptom,
    System,
    Torch,
)
from gpudoctor.testing import run_check

L4 = Device(nvml_index=0, name="NVIDIA L4")


def conda_torch(**fields: Any) -> Torch:
    return Torch(
        **{"installed": True, "version": PackageVersion("2.5.1"), "build": "cpu", "conda_cpuonly": False, **fields}
    )


@pytest.mark.parametrize(
    ("torch", "summary"),
    [
        pytest.param(
            conda_torch(conda_build="py3.11_cpu_0", conda_cpuonly=True),
            "conda chose the CPU build py3.11_cpu_0 of PyTorch 2.5.1 because its package cpuonly is installed, "
            "and the GPU is NVIDIA L4",
            id="cpuonly",
        ),
        pytest.param(
            conda_torch(conda_build="cpu_generic_py311_h0d6a1c8_1"),
            "conda chose the CPU build cpu_generic_py311_h0d6a1c8_1 of PyTorch 2.5.1, and the GPU is NVIDIA L4",
            id="the solver alone",
        ),
    ],
)
def test_conda_chose_it(torch: Torch, summary: str) -> None:
    (finding,) = run_check("conda-cpuonly-solved", torch=torch, devices=(L4,)).findings
    assert (finding.severity, finding.summary) == (Severity.ERROR, summary)


@pytest.mark.parametrize(
    ("torch", "devices", "outcome"),
    [
        pytest.param(conda_torch(conda_build="cuda126_py311_0", build="cuda"), (L4,), Outcome.PASSED, id="CUDA build"),
        pytest.param(
            conda_torch(conda_build="py3.11_cpu_0", build="cuda"), (L4,), Outcome.PASSED, id="pip put one over it"
        ),
        pytest.param(conda_torch(conda_build=""), (L4,), Outcome.SKIPPED, id="not of conda"),
        pytest.param(conda_torch(conda_build="py3.11_cpu_0"), (), Outcome.PASSED, id="no GPU"),
    ],
)
def test_outcome(torch: Torch, devices: tuple[Device, ...], outcome: Outcome) -> None:
    result = run_check("conda-cpuonly-solved", torch=torch, devices=devices, system=System(pci_gpus=()))
    assert result.outcome is outcome


@pytest.mark.parametrize(
    ("sections", "reason"),
    [
        pytest.param({"torch": conda_torch()}, "torch.conda_build is unknown", id="the build string"),
        pytest.param({"torch": conda_torch(conda_build="py3.11_cpu_0")}, "devices is unknown", id="the GPU"),
    ],
)
def test_unknown(sections: dict[str, Any], reason: str) -> None:
    result = run_check("conda-cpuonly-solved", **sections)
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, reason)


ASKED = Symptom(kind="conda-cuda-asked", text="cudatoolkit=11.3", names={"package": "cudatoolkit"})


@pytest.mark.parametrize(
    ("sections", "outcome"),
    [
        pytest.param({"symptoms": (ASKED,)}, Outcome.FOUND, id="asked of conda"),
        pytest.param(
            {"python": Python(packages=(Package(name="pytorch-cuda", version=PackageVersion("11.8")),))},
            Outcome.FOUND,
            id="installed",
        ),
        pytest.param({}, Outcome.SKIPPED, id="neither"),
    ],
)
def test_a_request_for_cuda_stands_for_the_gpu(sections: dict[str, Any], outcome: Outcome) -> None:
    torch = Torch(installed=True, build="cpu", conda_build="py3.9_cpu_0", conda_cpuonly=True)
    result = run_check("conda-cpuonly-solved", torch=torch, **sections)
    assert result.outcome is outcome
    if outcome is Outcome.FOUND:
        (finding,) = result.findings
        assert finding.summary.endswith("and CUDA was requested")
        assert finding.remedies[0].commands[0] == "conda remove --yes cpuonly"
        assert "pytorch-gpu" in finding.remedies[0].commands[1]


CHOSEN = Symptom(kind="conda-cpu-chosen", text="conda install ... installs the CPU version", names={})


def test_somebody_says_that_conda_chose_it() -> None:
    torch = Torch(installed=True, build="cpu", version=PackageVersion("1.9.0"))
    (finding,) = run_check("conda-cpuonly-solved", torch=torch, symptoms=(ASKED, CHOSEN)).findings
    assert finding.summary == "conda chose the CPU build of PyTorch 1.9.0, and CUDA was requested"
    assert finding.facts == ("symptoms[1].text", "symptoms[0].text")
    assert "builds for CUDA 10.2, 11.1" in finding.remedies[1].summary
    assert finding.remedies[1].commands[0].endswith("torch==1.9.0+cu111 torchvision==0.10.0+cu111")
    assert run_check("conda-cpuonly-solved", torch=torch, symptoms=(CHOSEN,)).outcome is Outcome.SKIPPED


def test_a_release_that_the_channel_never_had_is_not_kept() -> None:
    torch = Torch(installed=True, build="cpu", version=PackageVersion("2.7.0"), conda_build="cpu_mkl_py311_100")
    (finding,) = run_check("conda-cpuonly-solved", torch=torch, symptoms=(ASKED,)).findings
    assert not any("Keep" in remedy.summary for remedy in finding.remedies)
    assert finding.remedies[-1].commands == ('conda install "pytorch=*=*cuda*"',)


def test_a_report_that_shows_a_working_environment_too() -> None:
    torch = Torch(installed=True, build="cuda", version=PackageVersion("1.3.1"), conda_build="py3.7_cpu_0")
    assert run_check("conda-cpuonly-solved", torch=torch, symptoms=(ASKED, CHOSEN)).outcome is Outcome.FOUND
    assert run_check("conda-cpuonly-solved", torch=torch, symptoms=(ASKED,)).outcome is Outcome.PASSED


@pytest.mark.parametrize(
    ("system", "severities"),
    [(None, [Severity.WARNING]), (System(os="linux"), [Severity.WARNING]), (System(os="darwin"), [])],
)
def test_a_report_that_names_no_gpu(system: System | None, severities: list[Severity]) -> None:
    torch = conda_torch(conda_build="cpu_generic_py311_h0d6a1c8_1")
    sections: dict[str, Any] = {} if system is None else {"system": system}
    findings = run_check("conda-cpuonly-solved", torch=torch, contradictions=(), **sections).findings
    assert [finding.severity for finding in findings] == severities


def test_a_machine_of_which_the_gpu_is_not_known() -> None:
    assert run_check("conda-cpuonly-solved", torch=conda_torch(conda_build="py3.11_cpu_0")).outcome is Outcome.SKIPPED


@pytest.mark.parametrize(("asked", "cuda"), [("12.4", "12.4"), ("11.3", "12"), ("", "12")])
def test_for_cluster_nodes_conda_gets_their_cuda_version(asked: str, cuda: str) -> None:
    login = Symptom(kind="login-node-install", text="login node", fact="symptoms[1].text")
    named = Symptom(kind="conda-cuda-asked", text="cuda-version", names={"version": asked} if asked else {})
    torch = conda_torch(conda_build="cpu_generic_py311_h0d6a1c8_1")
    (finding,) = run_check("conda-cpuonly-solved", torch=torch, devices=(L4,), symptoms=(named, login)).findings
    assert finding.fixes[0] == Fix("install-torch-for-gpu-nodes", cuda=cuda)
