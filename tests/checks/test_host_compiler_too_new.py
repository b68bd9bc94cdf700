"""The host compiler against the CUDA toolkit."""

from __future__ import annotations

from typing import Any

import pytest

from gpudoctor.model import (
    CudaVersion,
    Outcome,
    Project,
    Python,
    Requirement,
    Severity,
    Symptom,
    System,
    Toolkit,
)
from gpudoctor.testing import run_check

BUILDS = Project(requirements=(Requirement(name="apex", source="requirements.txt line 1"),))


def toolkit(**fields: Any) -> Toolkit:
    return Toolkit(
        **{
            "nvcc_path": "/usr/local/cuda/bin/nvcc",
            "nvcc_version": CudaVersion(12, 2),
            "host_compiler": "gcc",
            "host_compiler_version": (13, 3, 0),
            "host_compiler_max": 12,
            **fields,
        }
    )


@pytest.mark.parametrize(
    ("there", "project", "severity"),
    [
        pytest.param(toolkit(), None, Severity.INFO, id="nothing is to be compiled"),
        pytest.param(toolkit(), BUILDS, Severity.WARNING, id="a requirement is compiled"),
        pytest.param(toolkit(host_compiler_version=(12, 4, 0)), BUILDS, None, id="the newest accepted"),
    ],
)
def test_severity(there: Toolkit, project: Project | None, severity: Severity | None) -> None:
    result = run_check("host-compiler-too-new", toolkit=there, project=project)
    assert [finding.severity for finding in result.findings] == ([] if severity is None else [severity])


def test_summary_and_command() -> None:
    (finding,) = run_check("host-compiler-too-new", toolkit=toolkit(), system=System(distribution="ubuntu")).findings
    assert finding.summary == "gcc is 13.3.0, but nvcc of CUDA 12.2 supports 12 at most"
    assert finding.remedies[0].commands == (
        "sudo apt-get install --yes gcc-12 g++-12",
        "export CC=gcc-12 CXX=g++-12 NVCC_CCBIN=g++-12 CUDAHOSTCXX=g++-12",
        "gcc-12 --version",
    )


def test_command_of_conda() -> None:
    python = Python(prefix="/opt/conda/envs/ml", environment="conda")
    (finding,) = run_check("host-compiler-too-new", toolkit=toolkit(), python=python).findings
    assert finding.remedies[0].commands[0] == (
        "conda install --yes --prefix /opt/conda/envs/ml --channel conda-forge gxx_linux-64=12"
    )


@pytest.mark.parametrize(
    ("there", "reason"),
    [
        pytest.param(
            toolkit(nvcc_path=""), "no nvcc is found, and none is needed to run PyTorch or CuPy", id="no toolkit"
        ),
        pytest.param(toolkit(host_compiler="clang"), "the host compiler is not gcc", id="clang"),
        pytest.param(toolkit(host_compiler=None), "toolkit.host_compiler is unknown", id="the compiler"),
        pytest.param(toolkit(host_compiler_max=None), "toolkit.host_compiler_max is unknown", id="the limit"),
    ],
)
def test_skipped(there: Toolkit, reason: str) -> None:
    result = run_check("host-compiler-too-new", toolkit=there)
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, reason)


@pytest.mark.parametrize(
    ("kind", "names", "nvcc", "gcc"),
    [
        pytest.param("compiler-gcc-too-new", {"newest": "11"}, (11, 8), 11, id="the message names it"),
        pytest.param("compiler-gcc-too-new-torch", {"limit": "12"}, (11, 8), 11, id="before 12"),
        pytest.param("compiler-gcc-too-new-torch", {"limit": "12", "inclusive": "="}, (12, 1), 12, id="12 at most"),
        pytest.param("compiler-headers-too-new", {}, (12, 4), 13, id="by the toolkit"),
        pytest.param("compiler-headers-too-new", {}, None, 12, id="nothing tells it"),
    ],
)
def test_a_build_that_failed(kind: str, names: dict[str, str], nvcc: tuple[int, int] | None, gcc: int) -> None:
    toolkit = Toolkit(nvcc_version=CudaVersion(*nvcc)) if nvcc else None
    message = Symptom(kind=kind, text="error", library="nvcc", names=names)
    (finding,) = run_check("host-compiler-too-new", symptoms=(message,), toolkit=toolkit).findings
    assert finding.severity is Severity.ERROR
    assert f"CXX=g++-{gcc} " in finding.remedies[0].commands[0]


@pytest.mark.parametrize(
    ("names", "newest"),
    [
        pytest.param({"newest": "9"}, 9, id="the message says it"),
        pytest.param({"limit": "9"}, 8, id="the first that is refused"),
        pytest.param({"limit": "9", "inclusive": "later than"}, 9, id="the last that is taken"),
        pytest.param({"packs": "x", "version": "13"}, 12, id="one below the headers that failed"),
        pytest.param({"packs": "x"}, 10, id="the headers of gcc 11"),
    ],
)
def test_the_newest_gcc_that_a_message_shows(names: dict[str, str], newest: int) -> None:
    message = Symptom(kind="compiler-gcc-too-new", text="x", names=names)
    (finding,) = run_check("host-compiler-too-new", symptoms=(message,), toolkit=toolkit()).findings
    assert finding.fixes[0].arguments["newest"] == newest
