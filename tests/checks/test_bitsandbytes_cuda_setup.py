"""The CUDA libraries in bitsandbytes against PyTorch's CUDA version."""

from __future__ import annotations

import pytest

from gpudoctor.model import CudaVersion, Outcome, Package, PackageVersion, Python, Severity, Symptom, System, Torch
from gpudoctor.testing import run_check


def torch(major: int, minor: int) -> Torch:
    return Torch(installed=True, build="cuda", cuda_version=CudaVersion(major, minor))


def installed(version: str, installer: str = "pip") -> Python:
    return Python(packages=(Package(name="bitsandbytes", version=PackageVersion(version), installer=installer),))


@pytest.mark.parametrize(
    ("version", "cuda", "outcome"),
    [
        pytest.param("0.45.2", (12, 8), Outcome.FOUND, id="before the first with 12.8"),
        pytest.param("0.45.3", (12, 8), Outcome.PASSED, id="the first with 12.8"),
        pytest.param("0.44.1", (13, 0), Outcome.FOUND, id="far too old for 13"),
        pytest.param("0.45.3", (13, 0), Outcome.PASSED, id="not known to be too old"),
        pytest.param("0.44.1", (12, 6), Outcome.FOUND, id="before the first with 12.6"),
        pytest.param("0.42.0", (12, 1), Outcome.PASSED, id="old enough a CUDA"),
    ],
)
def test_outcome(version: str, cuda: tuple[int, int], outcome: Outcome) -> None:
    result = run_check("bitsandbytes-cuda-setup", torch=torch(*cuda), python=installed(version))
    assert result.outcome is outcome


def test_finding() -> None:
    (finding,) = run_check("bitsandbytes-cuda-setup", torch=torch(12, 8), python=installed("0.44.1")).findings
    assert finding.severity is Severity.ERROR
    assert finding.summary == (
        "bitsandbytes 0.44.1 has no library for CUDA 12.8, which PyTorch was built with: "
        "0.45.3 is the first version that has one"
    )
    assert finding.remedies[0].commands[0] == "python -m pip install --upgrade bitsandbytes"


def test_the_package_of_conda_passes() -> None:
    result = run_check("bitsandbytes-cuda-setup", torch=torch(12, 8), python=installed("0.44.1", "conda"))
    assert result.outcome is Outcome.PASSED


@pytest.mark.parametrize(
    ("there", "python", "reason"),
    [
        pytest.param(torch(12, 8), Python(packages=()), "bitsandbytes is not installed", id="none"),
        pytest.param(torch(12, 8), Python(), "python.packages is unknown", id="packages"),
        pytest.param(
            Torch(installed=True, build="cuda"), installed("0.44.1"), "torch.cuda_version is unknown", id="CUDA"
        ),
        pytest.param(
            Torch(installed=True, build="cpu"), installed("0.44.1"), "PyTorch is not built for CUDA", id="CPU build"
        ),
    ],
)
def test_skipped(there: Torch, python: Python, reason: str) -> None:
    result = run_check("bitsandbytes-cuda-setup", torch=there, python=python)
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, reason)


def said(kind: str, text: str = "as printed", **names: str) -> Symptom:
    return Symptom(kind=kind, text=text, names=names)


def test_a_failed_setup_gives_every_way_out() -> None:
    symptoms = (said("bnb-setup-failed"), said("bnb-no-libcudart"), said("bnb-cuda-version", digits="117"))
    (finding,) = run_check("bitsandbytes-cuda-setup", symptoms=symptoms).findings
    assert finding.severity is Severity.ERROR
    assert "CUDA 11.7" in finding.summary
    commands = [command for remedy in finding.remedies for command in remedy.commands]
    assert commands[0] == "python -m pip install --upgrade bitsandbytes"
    assert any("LD_LIBRARY_PATH" in command for command in commands)
    assert "export BNB_CUDA_VERSION=117" in commands


def test_a_cpu_build_of_pytorch_is_the_cause_and_stands_before_it() -> None:
    torch = Torch(installed=True, build="cpu", version=PackageVersion("2.1.0+cpu"))
    (finding,) = run_check("bitsandbytes-cuda-setup", symptoms=(said("bnb-without-gpu"),), torch=torch).findings
    assert finding.severity is Severity.WARNING


def test_on_a_mac_nothing_is_upgraded() -> None:
    mac = System(os="darwin")
    (finding,) = run_check("bitsandbytes-cuda-setup", symptoms=(said("bnb-without-gpu"),), system=mac).findings
    (remedy,) = finding.remedies
    assert "device mps" in remedy.summary


def test_a_report_of_something_else_needs_the_packages() -> None:
    result = run_check("bitsandbytes-cuda-setup", symptoms=(said("bnb-cuda-version", digits="118"),))
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, "python.packages is unknown")
