"""Whether CuPy is there at all."""

from __future__ import annotations

from typing import Any

import pytest

from gpudoctor.model import (
    CudaVersion,
    Cupy,
    CupyRuntime,
    Device,
    Driver,
    DriverVersion,
    Outcome,
    Package,
    PackageVersion,
    Project,
    Requirement,
    Severity,
    Symptom,
    System,
)
from gpudoctor.testing import run_check

ABSENT = Cupy(distributions=())
L4 = Device(nvml_index=0, name="NVIDIA L4")
ASKS = Project(requirements=(Requirement(name="cupy-cuda12x", specifier=">=13", source="requirements.txt line 7"),))


@pytest.mark.parametrize(
    ("sections", "severity"),
    [
        pytest.param({"project": ASKS}, Severity.ERROR, id="a requirement names it"),
        pytest.param({"project": ASKS, "devices": ()}, Severity.ERROR, id="a requirement, and no GPU"),
        pytest.param({"project": Project(requirements=()), "devices": (L4,)}, Severity.INFO, id="nothing names it"),
    ],
)
def test_severity(sections: dict[str, Any], severity: Severity) -> None:
    result = run_check("cupy-missing", cupy=ABSENT, **sections)
    assert [finding.severity for finding in result.findings] == [severity]


def test_summary_and_command() -> None:
    driver = Driver(version=DriverVersion.parse("550.120"), cuda_version=CudaVersion(12, 4))
    (finding,) = run_check("cupy-missing", cupy=ABSENT, project=ASKS, devices=(L4,), driver=driver).findings
    assert finding.summary == "CuPy is not installed, and requirements.txt line 7 asks for cupy-cuda12x>=13"
    assert finding.remedies[0].commands[0] == "python -m pip install 'cupy-cuda12x[ctk]'"


def test_without_a_gpu_there_is_nothing_to_install() -> None:
    (finding,) = run_check("cupy-missing", cupy=ABSENT, devices=(), system=System(pci_gpus=())).findings
    assert finding.severity is Severity.INFO
    assert (finding.severity, finding.remedies) == (Severity.INFO, ())


def test_the_import_alone_shows() -> None:
    runtime = CupyRuntime(import_error="ModuleNotFoundError: No module named 'cupy'")
    (finding,) = run_check("cupy-missing", cupy_runtime=runtime).findings
    assert finding.facts == ("cupy_runtime.import_error",)


@pytest.mark.parametrize(
    ("sections", "outcome", "reason"),
    [
        pytest.param(
            {"cupy": Cupy(distributions=(Package(name="cupy", version=PackageVersion("14.2.0")),))},
            Outcome.PASSED,
            "",
            id="installed",
        ),
        pytest.param({"cupy_runtime": CupyRuntime(import_error="")}, Outcome.PASSED, "", id="imported"),
        pytest.param({"cupy": Cupy()}, Outcome.SKIPPED, "cupy.distributions is unknown", id="not known"),
        pytest.param(
            {"cupy_runtime": CupyRuntime(import_error="ModuleNotFoundError: No module named 'fastrlock'")},
            Outcome.PASSED,
            "",
            id="another module is missing",
        ),
    ],
)
def test_outcome(sections: dict[str, Any], outcome: Outcome, reason: str) -> None:
    result = run_check("cupy-missing", **sections)
    assert (result.outcome, result.reason) == (outcome, reason)


def test_a_program_that_failed_without_it_is_an_error() -> None:
    missing = CupyRuntime(import_error="ModuleNotFoundError: No module named 'cupy'")
    message = Symptom(kind="cupy-not-installed", text="No module named 'cupy'", library="cupy")
    assert run_check("cupy-missing", cupy_runtime=missing).findings[0].severity is Severity.INFO
    (finding,) = run_check("cupy-missing", cupy_runtime=missing, symptoms=(message,)).findings
    assert finding.severity is Severity.ERROR
