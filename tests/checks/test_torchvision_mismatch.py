"""torchvision and torchaudio against the installed PyTorch."""

from __future__ import annotations

from typing import Any

import pytest

from gpudoctor.model import (
    CudaVersion,
    Outcome,
    Package,
    PackageVersion,
    Python,
    Severity,
    Symptom,
    System,
    Torch,
    TorchRuntime,
)
from gpudoctor.testing import run_check

INDEX = "https://download.pytorch.org/whl"


def installed(**versions: str) -> Python:
    packages = tuple(Package(name=name, version=PackageVersion(version)) for name, version in versions.items())
    return Python(packages=packages)


def cuda_build(version: str, major: int, minor: int) -> Torch:
    return Torch(
        installed=True,
        version=PackageVersion(version),
        build="cuda",
        cuda_version=CudaVersion(major, minor),
        conda_build="",
    )


CPU = Torch(installed=True, version=PackageVersion("2.5.1+cpu"), build="cpu", conda_build="")
CU124 = cuda_build("2.5.1+cu124", 12, 4)


@pytest.mark.parametrize(
    ("torch", "versions", "severity"),
    [
        pytest.param(CU124, {"torchvision": "0.20.1+cu124"}, None, id="belongs"),
        pytest.param(CU124, {"torchvision": "0.20.0"}, None, id="another patch release, no local version"),
        pytest.param(CU124, {"torchvision": "0.19.1+cu124"}, Severity.ERROR, id="older release"),
        pytest.param(CU124, {"torchvision": "0.31.0"}, Severity.ERROR, id="release newer than the table"),
        pytest.param(CU124, {"torchvision": "0.20.1+cu121"}, None, id="another minor version of CUDA"),
        pytest.param(CU124, {"torchvision": "0.20.1+cu118"}, Severity.ERROR, id="another major version of CUDA"),
        pytest.param(CU124, {"torchvision": "0.20.1+cpu"}, Severity.ERROR, id="CPU build beside CUDA"),
        pytest.param(CPU, {"torchvision": "0.20.1+cu124"}, Severity.ERROR, id="CUDA build beside CPU"),
        pytest.param(CPU, {"torchvision": "0.20.1+cpu"}, None, id="both for the CPU"),
        pytest.param(CU124, {"torchaudio": "2.5.1+cpu"}, Severity.WARNING, id="torchaudio for the CPU"),
        pytest.param(CU124, {"torchaudio": "2.5.1+cu121"}, Severity.ERROR, id="torchaudio compares the whole version"),
        pytest.param(CU124, {"torchaudio": "2.4.1"}, Severity.ERROR, id="older torchaudio"),
        pytest.param(CU124, {"torchaudio": "2.11.0"}, None, id="torchaudio without a requirement"),
        pytest.param(cuda_build("2.15.0+cu132", 13, 2), {"torchvision": "0.24.1"}, Severity.ERROR, id="of torch 2.9"),
        pytest.param(cuda_build("2.15.0+cu132", 13, 2), {"torchvision": "0.30.0"}, None, id="not in the table"),
        pytest.param(cuda_build("2.14.1+cu130", 13, 0), {"torchvision": "0.29.2+cu130"}, None, id="patch releases"),
        pytest.param(CU124, {"torchvision": "0.20.0a0+afc54f7"}, None, id="from source"),
    ],
)
def test_severity(torch: Torch, versions: dict[str, str], severity: Severity | None) -> None:
    result = run_check("torchvision-mismatch", torch=torch, python=installed(**versions))
    assert [finding.severity for finding in result.findings] == ([] if severity is None else [severity])
    assert result.outcome is (Outcome.PASSED if severity is None else Outcome.FOUND)


def test_one_finding_with_both() -> None:
    python = installed(torchvision="0.19.1+cu121", torchaudio="2.4.1+cu121")
    (finding,) = run_check("torchvision-mismatch", torch=CU124, python=python).findings
    assert finding.summary == (
        "torchvision 0.19.1+cu121 and torchaudio 2.4.1+cu121 do not belong to PyTorch 2.5.1+cu124, "
        "to which torchvision 0.20.1+cu124 and torchaudio 2.5.1+cu124 belong"
    )
    assert finding.remedies[0].commands[0] == (
        f"python -m pip install --index-url {INDEX}/cu124 torchvision==0.20.1+cu124 torchaudio==2.5.1+cu124"
    )


def test_command_for_a_cpu_build() -> None:
    (finding,) = run_check("torchvision-mismatch", torch=CPU, python=installed(torchvision="0.20.1+cu124")).findings
    assert finding.remedies[0].commands[0] == f"python -m pip install --index-url {INDEX}/cpu torchvision==0.20.1+cpu"


def test_command_for_conda() -> None:
    torch = Torch(
        installed=True,
        version=PackageVersion("2.5.1"),
        build="cuda",
        cuda_version=CudaVersion(12, 4),
        conda_build="py3.11_cuda12.4_cudnn9.1.0_0",
    )
    python = Python(
        prefix="/opt/conda/envs/ml",
        executable="/opt/conda/envs/ml/bin/python",
        environment="conda",
        packages=(Package(name="torchvision", version=PackageVersion("0.19.1"), installer="conda"),),
    )
    (finding,) = run_check("torchvision-mismatch", torch=torch, python=python).findings
    assert finding.remedies[0].commands[0] == (
        "conda install --yes --prefix /opt/conda/envs/ml pytorch=2.5.1 torchvision=0.20.1"
    )


def test_from_the_import_alone() -> None:
    runtime = TorchRuntime(version=PackageVersion("2.5.1+cu124"))
    result = run_check("torchvision-mismatch", torch_runtime=runtime, python=installed(torchvision="0.18.1"))
    assert result.outcome is Outcome.FOUND


@pytest.mark.parametrize(
    ("sections", "reason"),
    [
        pytest.param({"torch": CU124, "python": Python()}, "python.packages is unknown", id="the packages"),
        pytest.param(
            {"torch": Torch(installed=True), "python": installed(torchvision="0.20.1")},
            "torch.version is unknown",
            id="the version of PyTorch",
        ),
        pytest.param(
            {"torch": CU124, "python": installed(numpy="2.3.1")},
            "neither torchvision nor torchaudio is installed",
            id="nothing to compare",
        ),
        pytest.param(
            {
                "torch": cuda_build("2.6.0a0+ecf3bae40a.nv25.01", 12, 8),
                "python": installed(torchvision="0.20.0"),
            },
            "2.6.0a0+ecf3bae40a.nv25.01 is not a PyTorch release",
            id="a build of NVIDIA's containers",
        ),
    ],
)
def test_skipped(sections: dict[str, Any], reason: str) -> None:
    result = run_check("torchvision-mismatch", **sections)
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, reason)


def test_by_the_message_alone() -> None:
    names = {"companion": "torchvision", "torch_cuda": "12.1", "companion_cuda": "11.8"}
    message = Symptom(kind="torchvision-cuda-differs", text="Detected that PyTorch and torchvision", names=names)
    torch = Torch(installed=True, build="cuda", cuda_version=CudaVersion(12, 1))
    (finding,) = run_check("torchvision-mismatch", torch=torch, symptoms=(message,)).findings
    assert finding.severity is Severity.ERROR
    assert finding.summary == "torchvision is built with CUDA 11.8, but PyTorch with 12.1"
    assert finding.remedies[0].commands[:2] == (
        "python -m pip uninstall -y torch torchvision",
        "python -m pip install --index-url https://download.pytorch.org/whl/cu121 torch torchvision",
    )


def test_a_message_and_a_known_version_give_both_pinned() -> None:
    message = Symptom(kind="torchvision-operator-missing", text="operator torchvision::nms does not exist")
    (finding,) = run_check("torchvision-mismatch", torch=cuda_build("2.4.0", 12, 1), symptoms=(message,)).findings
    assert finding.remedies[0].commands[1].endswith("torch==2.4.0+cu121 torchvision==0.19.0+cu121")


def test_the_versions_say_more_than_the_message() -> None:
    message = Symptom(kind="torchvision-operator-missing", text="operator torchvision::nms does not exist")
    (finding,) = run_check(
        "torchvision-mismatch",
        torch=cuda_build("2.4.0", 12, 1),
        python=installed(torchvision="0.20.1"),
        symptoms=(message,),
    ).findings
    assert finding.summary.startswith("torchvision 0.20.1 does not belong to PyTorch 2.4.0")


@pytest.mark.parametrize(
    ("system", "torchvision", "outcome"),
    [
        pytest.param(System(os="linux", machine="x86_64"), "0.20.1", Outcome.FOUND, id="PyPI's has CUDA"),
        pytest.param(System(os="linux", machine="x86_64"), "0.20.1+cpu", Outcome.PASSED, id="of the same index"),
        pytest.param(System(os="windows", machine="x86_64"), "0.20.1", Outcome.PASSED, id="PyPI's has none"),
        pytest.param(None, "0.20.1", Outcome.PASSED, id="system unknown"),
    ],
)
def test_torchvision_of_pypi_next_to_a_cpu_build(system: System | None, torchvision: str, outcome: Outcome) -> None:
    result = run_check("torchvision-mismatch", torch=CPU, python=installed(torchvision=torchvision), system=system)
    assert result.outcome is outcome
    if result.findings:
        assert "torchvision==0.20.1+cpu" in result.findings[0].remedies[0].commands[0]
