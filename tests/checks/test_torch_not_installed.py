"""Whether PyTorch is there at all."""

from __future__ import annotations

from typing import Any

import pytest

from gpudoctor.model import (
    Cupy,
    Device,
    Outcome,
    PackageVersion,
    PciGpu,
    Project,
    Python,
    Requirement,
    Severity,
    Symptom,
    System,
    Torch,
    TorchRuntime,
)
from gpudoctor.testing import run_check

ABSENT = Torch(installed=False)
L4 = Device(nvml_index=0, name="NVIDIA L4")
NO_CUPY = Cupy(distributions=())
ASKS = Project(requirements=(Requirement(name="torch", specifier=">=2.4", source="requirements.txt line 2"),))
OPTIONAL = Project(requirements=(Requirement(name="torch", source="pyproject.toml extra gpu"),))
NO_GPU = System(os="linux", machine="x86_64", pci_gpus=())


@pytest.mark.parametrize(
    ("sections", "severity"),
    [
        pytest.param({"project": ASKS}, Severity.ERROR, id="a requirement names it"),
        pytest.param({"project": OPTIONAL, "devices": (), "system": NO_GPU}, Severity.INFO, id="only an extra does"),
        pytest.param({"devices": (L4,), "cupy": NO_CUPY}, Severity.INFO, id="a GPU that nothing uses"),
        pytest.param({"devices": (), "system": NO_GPU, "cupy": NO_CUPY}, Severity.INFO, id="no GPU"),
    ],
)
def test_severity(sections: dict[str, Any], severity: Severity) -> None:
    result = run_check("torch-not-installed", torch=ABSENT, **sections)
    assert [finding.severity for finding in result.findings] == [severity]


def test_summary_names_environment_and_requirement() -> None:
    result = run_check("torch-not-installed", torch=ABSENT, project=ASKS, python=Python(prefix="/home/me/.venv"))
    assert result.findings[0].summary == (
        "PyTorch is not installed in the environment /home/me/.venv, and requirements.txt line 2 asks for torch>=2.4"
    )


def test_the_import_alone_shows() -> None:
    runtime = TorchRuntime(import_error="ModuleNotFoundError: No module named 'torch'")
    result = run_check("torch-not-installed", torch_runtime=runtime)
    assert result.outcome is Outcome.FOUND
    assert result.findings[0].facts == ("torch_runtime.import_error",)


@pytest.mark.parametrize(
    "sections",
    [
        pytest.param({"torch": Torch(installed=True)}, id="on disk"),
        pytest.param({"torch_runtime": TorchRuntime(version=PackageVersion("2.9.1"))}, id="imported"),
    ],
)
def test_installed(sections: dict[str, Any]) -> None:
    assert run_check("torch-not-installed", **sections).outcome is Outcome.PASSED


@pytest.mark.parametrize(
    "error",
    [
        pytest.param("ModuleNotFoundError: No module named 'torch._C'", id="a part of it"),
        pytest.param("ModuleNotFoundError: No module named 'sympy'", id="what it needs"),
    ],
)
def test_another_failed_import_is_no_absence(error: str) -> None:
    result = run_check("torch-not-installed", torch_runtime=TorchRuntime(import_error=error))
    assert result.outcome is Outcome.PASSED


def test_unknown() -> None:
    result = run_check("torch-not-installed", torch_runtime=TorchRuntime())
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, "torch.installed is unknown")


@pytest.mark.parametrize(
    ("system", "command"),
    [
        pytest.param(
            NO_GPU, "python -m pip install --index-url https://download.pytorch.org/whl/cpu torch", id="linux"
        ),
        pytest.param(System(os="darwin", machine="arm64", pci_gpus=()), "python -m pip install torch", id="macOS"),
    ],
)
def test_command_without_a_gpu(system: System, command: str) -> None:
    result = run_check("torch-not-installed", torch=ABSENT, system=system, devices=())
    assert result.findings[0].remedies[0].commands[0] == command


def test_no_command_for_a_gpu_of_amd() -> None:
    system = System(os="linux", machine="x86_64", pci_gpus=(PciGpu(address="03:00.0", vendor="amd", device_id="744C"),))
    result = run_check("torch-not-installed", torch=ABSENT, system=system, devices=())
    assert result.findings[0].remedies[0].commands == ()


MISSING = Symptom(kind="torch-module-missing", text="No module named 'torch'", names={"missing": "torch"})
IN_BUILD = Symptom(kind="torch-module-missing", text="build: No module named 'torch'", names={"build": "x"})


def test_a_program_that_imports_it_needs_it() -> None:
    torch = Torch(installed=False)
    (finding,) = run_check("torch-not-installed", torch=torch, symptoms=(MISSING,)).findings
    assert finding.severity is Severity.ERROR
    assert finding.summary == "PyTorch is not installed, and a program imports it"
    assert [fix.name for fix in finding.fixes] == ["install-torch-first", "use-environment-with-torch"]
    elsewhere = Symptom(kind="torch-imports-elsewhere", text="in the terminal it works")
    (finding,) = run_check("torch-not-installed", torch=torch, symptoms=(MISSING, elsewhere)).findings
    assert finding.fixes[0].name == "use-environment-with-torch"


def test_a_build_that_imports_it_says_nothing_of_the_environment() -> None:
    (finding,) = run_check("torch-not-installed", torch=Torch(installed=False), symptoms=(IN_BUILD,)).findings
    assert finding.severity is Severity.INFO
