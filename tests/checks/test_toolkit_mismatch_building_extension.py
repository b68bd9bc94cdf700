"""The CUDA toolkit that compiles extensions against PyTorch's CUDA version."""

from __future__ import annotations

from typing import Any

import pytest

from gpudoctor.model import (
    ComputeCapability,
    CudaVersion,
    Device,
    Outcome,
    Package,
    PackageVersion,
    Project,
    Python,
    Requirement,
    Severity,
    Symptom,
    Toolkit,
    ToolkitInstall,
    Torch,
)
from gpudoctor.testing import run_check

CU128 = Torch(installed=True, build="cuda", cuda_version=CudaVersion(12, 8))
BUILDS = Project(requirements=(Requirement(name="flash-attn", source="requirements.txt line 4"),))
NVCC_13 = Toolkit(nvcc_path="/usr/local/cuda/bin/nvcc", nvcc_version=CudaVersion(13, 0))


def nvcc(major: int, minor: int) -> Toolkit:
    return Toolkit(nvcc_path="/usr/local/cuda/bin/nvcc", nvcc_version=CudaVersion(major, minor))


@pytest.mark.parametrize(
    ("toolkit", "sections", "severity"),
    [
        pytest.param(NVCC_13, {}, Severity.INFO, id="nothing is to be compiled"),
        pytest.param(NVCC_13, {"project": BUILDS}, Severity.WARNING, id="a requirement is compiled"),
        pytest.param(
            NVCC_13,
            {
                "project": BUILDS,
                "python": Python(packages=(Package(name="flash-attn", version=PackageVersion("2.8.3")),)),
            },
            Severity.INFO,
            id="it is installed",
        ),
        pytest.param(nvcc(12, 4), {"project": BUILDS}, None, id="another minor version"),
    ],
)
def test_severity(toolkit: Toolkit, sections: dict[str, Any], severity: Severity | None) -> None:
    result = run_check("toolkit-mismatch-building-extension", toolkit=toolkit, torch=CU128, **sections)
    assert [finding.severity for finding in result.findings] == ([] if severity is None else [severity])


def test_summary_and_the_other_toolkit() -> None:
    toolkit = Toolkit(
        nvcc_path="/usr/local/cuda/bin/nvcc",
        nvcc_version=CudaVersion(13, 0),
        toolkits=(
            ToolkitInstall(path="/usr/local/cuda-12.4", version=CudaVersion(12, 4), has_nvcc=True),
            ToolkitInstall(path="/usr/local/cuda-12.8", version=CudaVersion(12, 8), has_nvcc=True),
            ToolkitInstall(path="/usr/local/cuda-13.0", version=CudaVersion(13, 0), has_nvcc=True),
        ),
    )
    (finding,) = run_check("toolkit-mismatch-building-extension", toolkit=toolkit, torch=CU128, project=BUILDS).findings
    assert finding.summary == (
        "nvcc is from CUDA 13.0, but PyTorch was built with CUDA 12.8, and requirements.txt line 4 asks for flash-attn"
    )
    assert finding.remedies[0].commands[0] == "export CUDA_HOME=/usr/local/cuda-12.8"


def test_command_of_conda() -> None:
    python = Python(prefix="/opt/conda/envs/ml", environment="conda")
    (finding,) = run_check("toolkit-mismatch-building-extension", toolkit=NVCC_13, torch=CU128, python=python).findings
    assert finding.remedies[0].commands[0] == (
        "conda install --yes --prefix /opt/conda/envs/ml --channel conda-forge cuda-toolkit cuda-version=12.8"
    )


@pytest.mark.parametrize(
    ("toolkit", "torch", "reason"),
    [
        pytest.param(
            Toolkit(nvcc_path=""), CU128, "no nvcc is found, and none is needed to run PyTorch", id="no toolkit"
        ),
        pytest.param(Toolkit(nvcc_path="/n"), CU128, "toolkit.nvcc_version is unknown", id="its version"),
        pytest.param(
            NVCC_13, Torch(installed=True, build="cuda"), "torch.cuda_version is unknown", id="PyTorch's CUDA"
        ),
        pytest.param(NVCC_13, Torch(installed=True, build="cpu"), "PyTorch is not built for CUDA", id="a CPU build"),
    ],
)
def test_skipped(toolkit: Toolkit, torch: Torch, reason: str) -> None:
    result = run_check("toolkit-mismatch-building-extension", toolkit=toolkit, torch=torch)
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, reason)


def test_a_build_that_failed_is_an_error() -> None:
    message = Symptom(
        kind="toolkit-other-than-torch", text="x", library="torch", names={"nvcc": "12.2", "built_with": "11.3"}
    )
    toolkit = Toolkit(
        nvcc_version=CudaVersion(12, 2),
        toolkits=(ToolkitInstall(path="/usr/local/cuda-11.3", version=CudaVersion(11, 3), has_nvcc=True),),
    )
    torch = Torch(installed=True, build="cuda", cuda_version=CudaVersion(11, 3))
    (finding,) = run_check(
        "toolkit-mismatch-building-extension", symptoms=(message,), toolkit=toolkit, torch=torch
    ).findings
    assert finding.severity is Severity.ERROR
    assert finding.details == {"nvcc": "12.2", "built_with": "11.3"}
    assert finding.remedies[0].commands[0] == "export CUDA_HOME=/usr/local/cuda-11.3"


def test_without_toolkit_and_message_nothing_is_known() -> None:
    result = run_check("toolkit-mismatch-building-extension", torch=CU128, symptoms=())
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, "toolkit.nvcc_version is unknown")


def test_a_build_without_a_gpu_gets_the_architecture_of_the_machine() -> None:
    message = Symptom(kind="toolkit-no-device-to-build-for", text="x", library="torch")
    devices = (Device(nvml_index=0, compute_capability=ComputeCapability(8, 9)),)
    (finding,) = run_check("toolkit-mismatch-building-extension", symptoms=(message,), devices=devices).findings
    assert finding.remedies[0].commands == ("export TORCH_CUDA_ARCH_LIST=8.9",)


@pytest.mark.parametrize(
    ("version", "ending"),
    [(CudaVersion(11, 8), "12.8 or newer, but nvcc is from CUDA 11.8"), (None, "12.8 or newer")],
)
def test_the_toolkit_that_is_too_old_is_named_if_it_is_known(version: CudaVersion | None, ending: str) -> None:
    message = Symptom(kind="toolkit-older-than-needed", text="x", names={"package": "flash_attn", "needed": "12.8"})
    (finding,) = run_check(
        "toolkit-mismatch-building-extension", symptoms=(message,), toolkit=Toolkit(nvcc_version=version)
    ).findings
    assert finding.summary.endswith(ending)
    assert finding.fixes[0].arguments["cuda"] == CudaVersion(12, 8)
