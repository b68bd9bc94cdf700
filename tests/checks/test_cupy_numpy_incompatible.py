"""The installed NumPy against the one that CuPy needs."""

from __future__ import annotations

from typing import Any

import pytest

from gpudoctor.model import (
    Cupy,
    CupyRuntime,
    Outcome,
    Package,
    PackageVersion,
    Severity,
    Symptom,
)
from gpudoctor.testing import run_check


def cupy(version: str, numpy: str | None, requirement: str | None = None) -> Cupy:
    return Cupy(
        distributions=(Package(name="cupy-cuda12x", version=PackageVersion(version), installer="pip"),),
        version=PackageVersion(version),
        platform="cuda",
        cuda_major=12,
        numpy_version=PackageVersion(numpy) if numpy else None,
        numpy_requirement=requirement,
    )


@pytest.mark.parametrize(
    ("there", "outcome"),
    [
        pytest.param(cupy("14.2.0", "2.3.1", ">=2.0,<2.6"), Outcome.PASSED, id="in the range"),
        pytest.param(cupy("14.2.0", "1.26.4", ">=2.0,<2.6"), Outcome.FOUND, id="too old"),
        pytest.param(cupy("13.6.0", "2.6.0", ">=1.22,<2.6"), Outcome.FOUND, id="too new"),
        pytest.param(cupy("14.2.0", "2.0", ">=2.0.0,<2.6"), Outcome.PASSED, id="the lowest, with fewer zeros"),
        pytest.param(cupy("12.3.0", "2.0.0rc1", "<2"), Outcome.FOUND, id="a release candidate"),
        pytest.param(cupy("12.3.0", "1.26.4", "~=1.22"), Outcome.PASSED, id="compatible, as pip says it"),
        pytest.param(cupy("12.3.0", "2.0.0"), Outcome.FOUND, id="NumPy 2, by the table"),
        pytest.param(cupy("12.3.0", "1.26.4"), Outcome.PASSED, id="NumPy 1, by the table"),
        pytest.param(cupy("13.6.0", "2.4.0"), Outcome.PASSED, id="newer than tested, by the table"),
    ],
)
def test_outcome(there: Cupy, outcome: Outcome) -> None:
    assert run_check("cupy-numpy-incompatible", cupy=there).outcome is outcome


def test_finding_and_command() -> None:
    (finding,) = run_check("cupy-numpy-incompatible", cupy=cupy("14.2.0", "1.26.4", ">=2.0,<2.6")).findings
    assert finding.severity is Severity.ERROR
    assert finding.summary == "CuPy 14.2.0 needs NumPy >=2.0,<2.6, and 1.26.4 is installed"
    assert finding.remedies[0].commands[0] == "python -m pip install 'numpy>=2.0,<2.6'"


@pytest.mark.parametrize(
    ("runtime", "severity"),
    [
        pytest.param(CupyRuntime(import_error=""), Severity.WARNING, id="imported all the same"),
        pytest.param(
            CupyRuntime(import_error="AttributeError: module 'numpy' has no attribute 'product'"),
            Severity.ERROR,
            id="the import fails",
        ),
    ],
)
def test_severity(runtime: CupyRuntime, severity: Severity) -> None:
    there = cupy("12.3.0", "2.0.0")
    (finding,) = run_check("cupy-numpy-incompatible", cupy=there, cupy_runtime=runtime).findings
    assert finding.severity is severity


def test_the_error_alone() -> None:
    runtime = CupyRuntime(
        version=PackageVersion("12.3.0"), import_error="ImportError: numpy.core.multiarray failed to import"
    )
    (finding,) = run_check("cupy-numpy-incompatible", cupy_runtime=runtime).findings
    assert finding.facts == ("cupy_runtime.import_error",)


def test_another_error_is_none_of_this() -> None:
    runtime = CupyRuntime(import_error="ImportError: libcublas.so.12: cannot open shared object file")
    there = cupy("14.2.0", "2.3.1", ">=2.0,<2.6")
    assert run_check("cupy-numpy-incompatible", cupy=there, cupy_runtime=runtime).outcome is Outcome.PASSED


@pytest.mark.parametrize(
    ("sections", "reason"),
    [
        pytest.param({"cupy": cupy("14.2.0", None, ">=2.0")}, "cupy.numpy_version is unknown", id="NumPy"),
        pytest.param({"cupy": cupy("99.0.0", "2.3.1")}, "cupy.numpy_requirement is unknown", id="what CuPy needs"),
        pytest.param({"cupy": Cupy(distributions=())}, "CuPy is not installed", id="no CuPy"),
    ],
)
def test_skipped(sections: dict[str, Any], reason: str) -> None:
    result = run_check("cupy-numpy-incompatible", **sections)
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, reason)


@pytest.mark.parametrize(
    ("version", "outcome"),
    [
        pytest.param("13.2.0", Outcome.FOUND, id="the last that used it"),
        pytest.param("13.3.0", Outcome.PASSED, id="the user's own program did"),
    ],
)
def test_a_function_that_numpy_removed(version: str, outcome: Outcome) -> None:
    message = Symptom(kind="numpy-function-removed", text="`np.compat` was removed", names={"function": "compat"})
    cupy = Cupy(version=PackageVersion(version), numpy_version=PackageVersion("2.0.1"))
    result = run_check("cupy-numpy-incompatible", cupy=cupy, symptoms=(message,))
    assert result.outcome is outcome
    if result.findings:
        assert "numpy<2" in result.findings[0].remedies[0].commands[0]


def test_a_module_that_python_removed() -> None:
    message = Symptom(kind="cupy-python-too-new", text="x", library="cupy", names={"module": "distutils"})
    (finding,) = run_check("cupy-numpy-incompatible", symptoms=(message,)).findings
    assert "distutils" in finding.summary
