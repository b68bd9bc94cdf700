"""The libraries of PyTorch's build on disk."""

from __future__ import annotations

import pytest

from gpudoctor.model import Outcome, PackageVersion, Severity, Torch, TorchRuntime
from gpudoctor.testing import run_check


def torch_without(*libraries: str) -> Torch:
    return Torch(
        installed=True, version=PackageVersion("2.9.1+cu128"), build="cuda", missing_libraries=libraries, conda_build=""
    )


def test_a_missing_library() -> None:
    (finding,) = run_check("torch-library-missing", torch=torch_without("libcusparseLt.so.0")).findings
    assert finding.severity is Severity.ERROR
    assert finding.summary == "PyTorch 2.9.1+cu128 needs libcusparseLt.so.0, which the loader cannot find"
    assert finding.remedies[0].commands[0] == (
        "python -m pip install --force-reinstall --index-url https://download.pytorch.org/whl/cu128 torch==2.9.1+cu128"
    )


def test_many_are_counted() -> None:
    torch = torch_without("liba.so", "libb.so", "libc.so", "libd.so", "libe.so")
    (finding,) = run_check("torch-library-missing", torch=torch).findings
    assert "liba.so, libb.so, libc.so and 2 more" in finding.summary


@pytest.mark.parametrize(
    ("runtime", "severity"),
    [
        pytest.param(TorchRuntime(import_error=""), Severity.WARNING, id="the import works"),
        pytest.param(TorchRuntime(import_error="OSError: libcupti.so.12"), Severity.ERROR, id="it fails"),
        pytest.param(TorchRuntime(), Severity.ERROR, id="not known"),
    ],
)
def test_severity(runtime: TorchRuntime, severity: Severity) -> None:
    result = run_check("torch-library-missing", torch=torch_without("libcupti.so.12"), torch_runtime=runtime)
    assert result.findings[0].severity is severity


@pytest.mark.parametrize(
    ("torch", "outcome", "reason"),
    [
        pytest.param(torch_without(), Outcome.PASSED, "", id="all there"),
        pytest.param(Torch(installed=False), Outcome.SKIPPED, "PyTorch is not installed", id="no PyTorch"),
        pytest.param(Torch(installed=True), Outcome.SKIPPED, "torch.missing_libraries is unknown", id="not known"),
    ],
)
def test_outcome(torch: Torch, outcome: Outcome, reason: str) -> None:
    result = run_check("torch-library-missing", torch=torch)
    assert (result.outcome, result.reason) == (outcome, reason)
