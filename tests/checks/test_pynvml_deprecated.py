"""The Python module pynvml and where it comes from."""

from __future__ import annotations

from typing import Any

import pytest

from gpudoctor.model import Outcome, Package, PackageVersion, Python, Severity, Symptom, TorchRuntime
from gpudoctor.testing import run_check

WARNING = "The pynvml package is deprecated. Please install nvidia-ml-py instead."


def installed(**versions: str) -> Python:
    packages = (
        Package(name=name.replace("_", "-"), version=PackageVersion(version)) for name, version in versions.items()
    )
    return Python(executable="/v/bin/python", packages=tuple(packages), shadowed_modules=())


@pytest.mark.parametrize(
    ("version", "text"),
    [("11.5.3", "whose module hides the one of nvidia-ml-py"), ("13.0.1", "which only forwards to nvidia-ml-py")],
)
def test_the_package_is_installed(version: str, text: str) -> None:
    (finding,) = run_check("pynvml-deprecated", python=installed(pynvml=version, nvidia_ml_py="13.580.82")).findings
    assert finding.severity is Severity.WARNING
    assert finding.summary == f"The deprecated package pynvml {version} is installed, {text}"
    assert finding.remedies[0].commands == (
        "/v/bin/python -m pip uninstall -y pynvml nvidia-ml-py3",
        "/v/bin/python -m pip install --force-reinstall nvidia-ml-py",
        '/v/bin/python -c "import pynvml; print(pynvml.__file__)"',
    )


def test_pytorch_warns_of_it() -> None:
    runtime = TorchRuntime(warnings=(WARNING,))
    (finding,) = run_check("pynvml-deprecated", torch_runtime=runtime).findings
    assert finding.facts == ("torch_runtime.warnings[0]",)


def test_a_file_of_that_name() -> None:
    python = Python(packages=(), shadowed_modules=("/work/pynvml.py",))
    (finding,) = run_check("pynvml-deprecated", python=python).findings
    assert "/work/pynvml.py" in finding.summary
    assert finding.facts == ("python.shadowed_modules[0]",)


@pytest.mark.parametrize(
    ("sections", "outcome", "reason"),
    [
        pytest.param({"python": installed(nvidia_ml_py="13.580.82")}, Outcome.PASSED, "", id="nvidia-ml-py alone"),
        pytest.param({"python": Python()}, Outcome.SKIPPED, "python.packages is unknown", id="packages unknown"),
        pytest.param({}, Outcome.SKIPPED, "python.packages is unknown", id="nothing known"),
    ],
)
def test_outcome(sections: dict[str, Any], outcome: Outcome, reason: str) -> None:
    result = run_check("pynvml-deprecated", **sections)
    assert (result.outcome, result.reason) == (outcome, reason)


def said(kind: str, text: str = "as printed", **names: str) -> Symptom:
    return Symptom(kind=kind, text=text, names=names)


@pytest.mark.parametrize("kind", ["pynvml-deprecated", "pynvml-attribute-missing", "pynvml-not-installed"])
def test_a_message_leads_to_nvidia_ml_py(kind: str) -> None:
    (finding,) = run_check("pynvml-deprecated", symptoms=(said(kind),)).findings
    assert finding.severity is Severity.WARNING
    assert finding.summary.endswith(": as printed")
    assert "python -m pip install --force-reinstall nvidia-ml-py" in finding.remedies[0].commands


def test_a_binding_that_is_newer_than_the_driver() -> None:
    symptoms = (said("pynvml-function-missing", function="nvmlDeviceGetComputeRunningProcesses_v3"),)
    (finding,) = run_check("pynvml-deprecated", symptoms=symptoms).findings
    assert "Update the driver" in finding.remedies[0].summary
