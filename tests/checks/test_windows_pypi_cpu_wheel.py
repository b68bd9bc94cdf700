"""PyTorch from the default index on Windows."""

from __future__ import annotations

from typing import Any

import pytest

from gpudoctor.model import (
    Device,
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
WINDOWS = System(os="windows", machine="AMD64")
CPU = Torch(installed=True, version=PackageVersion("2.9.1+cpu"), build="cpu", conda_build="")


def installed(version: str) -> Python:
    return Python(packages=(Package(name="torch", version=PackageVersion(version)),))


def run(**sections: Any) -> Any:
    values = {"system": WINDOWS, "python": installed("2.9.1"), "torch": CPU, "devices": (L4,)}
    return run_check("windows-pypi-cpu-wheel", **{**values, **sections})


def test_the_wheel_of_pypi() -> None:
    (finding,) = run().findings
    assert finding.severity is Severity.ERROR
    assert finding.summary == ("PyTorch 2.9.1+cpu is the CPU build that PyPI has for Windows, and the GPU is NVIDIA L4")
    assert "python.packages[0].version" in finding.facts


@pytest.mark.parametrize(
    ("sections", "outcome"),
    [
        pytest.param({"python": installed("2.9.1+cpu")}, Outcome.PASSED, id="of the index whl/cpu"),
        pytest.param({"system": System(os="linux", wsl=2)}, Outcome.SKIPPED, id="WSL"),
        pytest.param(
            {"symptoms": (Symptom(kind="conda-cuda-asked", text="cudatoolkit 11.3"),)}, Outcome.SKIPPED, id="conda's?"
        ),
        pytest.param({"devices": None}, Outcome.SKIPPED, id="GPU unknown"),
        pytest.param({"devices": (), "system": System(os="windows", pci_gpus=())}, Outcome.PASSED, id="no GPU"),
        pytest.param({"torch": Torch(installed=True, build="cuda")}, Outcome.PASSED, id="a CUDA build"),
        pytest.param(
            {"torch": Torch(installed=True, build="cpu", conda_build="cpu_0")}, Outcome.SKIPPED, id="of conda"
        ),
    ],
)
def test_outcome(sections: dict[str, Any], outcome: Outcome) -> None:
    assert run(**sections).outcome is outcome


@pytest.mark.parametrize(
    ("sections", "reason"),
    [
        pytest.param({"python": Python()}, "python.packages is unknown", id="the metadata"),
        pytest.param({"torch": Torch(installed=True)}, "torch.build is unknown", id="the build"),
        pytest.param({"system": System()}, "system.os is unknown", id="the system"),
    ],
)
def test_unknown(sections: dict[str, Any], reason: str) -> None:
    result = run(**sections)
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, reason)


def test_the_file_that_pip_downloaded() -> None:
    symptoms = (
        Symptom(kind="pip-windows-default-wheel", text="Downloading torch-2.3.1-cp310-cp310-win_amd64.whl"),
        Symptom(kind="torch-not-compiled-with-cuda", text="Torch not compiled with CUDA enabled"),
    )
    torch = Torch(installed=True, version=PackageVersion("2.3.1"), build="cpu")
    windows = System(os="windows")
    (finding,) = run_check("windows-pypi-cpu-wheel", system=windows, torch=torch, symptoms=symptoms).findings
    assert finding.summary == "PyTorch 2.3.1 is the CPU build that PyPI has for Windows, and a program asks for CUDA"
    assert "torch==2.3.1+cu" in finding.remedies[0].commands[0]
    without = run_check("windows-pypi-cpu-wheel", system=windows, torch=torch)
    assert (without.outcome, without.reason) == (Outcome.SKIPPED, "python.packages is unknown")
