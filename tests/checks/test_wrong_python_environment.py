"""The environment that runs against the one that is activated."""

from __future__ import annotations

from typing import Any

import pytest

from gpudoctor.model import (
    Contradiction,
    Cupy,
    Device,
    Outcome,
    Package,
    PackageVersion,
    Project,
    Python,
    Requirement,
    Severity,
    Symptom,
    System,
    Torch,
)
from gpudoctor.testing import run_check

OTHER = Python(prefix="/usr", active_environment="/home/me/.venv")
ABSENT = Torch(installed=False)
ASKS = Project(requirements=(Requirement(name="torch", source="requirements.txt line 1"),))
ASKS_CUPY = Project(requirements=(Requirement(name="cupy-cuda12x", source="requirements.txt line 1"),))
CUPY = Cupy(distributions=(Package(name="cupy-cuda12x", version=PackageVersion("14.2.0")),))
L4 = Device(nvml_index=0, name="NVIDIA L4")


def run(**sections: Any) -> Any:
    return run_check("wrong-python-environment", **{"python": OTHER, "torch": ABSENT, "project": ASKS, **sections})


def test_the_finding() -> None:
    (finding,) = run().findings
    assert finding.severity is Severity.ERROR
    assert finding.summary == (
        "The environment /home/me/.venv is activated, but the Python that runs is from /usr, which has no PyTorch"
    )
    assert finding.remedies[0].commands[-1] == "gpudoctor check --python /home/me/.venv/bin/python"


@pytest.mark.parametrize(
    ("active", "command"),
    [
        (r"C:\Users\me\.venv", r"gpudoctor check --python C:\Users\me\.venv\Scripts\python.exe"),
        (r"C:\miniconda3\envs\ml", r"gpudoctor check --python C:\miniconda3\envs\ml\python.exe"),
    ],
)
def test_command_on_windows(active: str, command: str) -> None:
    python = Python(prefix=r"C:\Python312", active_environment=active)
    assert run(python=python, system=System(os="windows")).findings[0].remedies[0].commands[-1] == command


@pytest.mark.parametrize(
    ("sections", "outcome"),
    [
        pytest.param({"torch": Torch(installed=True)}, Outcome.PASSED, id="PyTorch is there"),
        pytest.param({"python": Python(prefix="/v", active_environment="/v/")}, Outcome.PASSED, id="the same"),
        pytest.param(
            {
                "python": Python(prefix=r"C:\V", active_environment="c:/v"),
                "system": System(os="windows"),
            },
            Outcome.PASSED,
            id="the same on Windows",
        ),
        pytest.param({"project": Project(requirements=()), "cupy": CUPY}, Outcome.PASSED, id="CuPy is there"),
        pytest.param({"project": ASKS, "cupy": CUPY}, Outcome.FOUND, id="CuPy is, and PyTorch is asked for"),
        pytest.param(
            {"torch": Torch(installed=True), "project": ASKS_CUPY, "cupy": Cupy(distributions=())},
            Outcome.FOUND,
            id="CuPy is asked for and not there",
        ),
        pytest.param({"python": Python(prefix="/v", active_environment="")}, Outcome.SKIPPED, id="none is activated"),
    ],
)
def test_outcome(sections: dict[str, Any], outcome: Outcome) -> None:
    assert run(**sections).outcome is outcome


@pytest.mark.parametrize(
    ("sections", "severity"),
    [
        pytest.param({"devices": (), "system": System(pci_gpus=())}, Severity.INFO, id="nothing asks for PyTorch"),
        pytest.param({"devices": (L4,), "cupy": Cupy(distributions=())}, Severity.ERROR, id="a GPU does"),
    ],
)
def test_severity_without_a_requirement(sections: dict[str, Any], severity: Severity) -> None:
    assert run(project=Project(requirements=()), **sections).findings[0].severity is severity


@pytest.mark.parametrize(
    ("sections", "reason"),
    [
        pytest.param({"python": Python(prefix="/v")}, "python.active_environment is unknown", id="the activated one"),
        pytest.param({"python": Python(active_environment="/v")}, "python.prefix is unknown", id="the one that runs"),
        pytest.param({"torch": Torch()}, "torch.installed is unknown", id="PyTorch"),
    ],
)
def test_unknown(sections: dict[str, Any], reason: str) -> None:
    result = run(**sections)
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, reason)


MISSING = Symptom(kind="torch-module-missing", text="No module named 'torch'", names={"missing": "torch"})
ELSEWHERE = Symptom(
    kind="torch-installed-there", text="Requirement already satisfied: torch", names={"path": "/usr/lib/python3/dist"}
)


def test_a_report_of_two_environments() -> None:
    (finding,) = run_check("wrong-python-environment", symptoms=(MISSING, ELSEWHERE)).findings
    assert finding.severity is Severity.ERROR
    assert (
        finding.summary == "Torch is installed in /usr/lib/python3/dist, and the Python that ran the program has none"
    )
    assert "python -m pip show torch" in finding.remedies[0].commands


def test_a_list_of_packages_with_torch_and_an_import_without() -> None:
    python = Python(packages=(Package(name="torch", version=PackageVersion("2.1.0")),))
    assert run_check("wrong-python-environment", python=python, symptoms=(MISSING,)).outcome is Outcome.FOUND
    in_build = Symptom(kind="torch-module-missing", text="x", names={"build": "y"})
    assert run_check("wrong-python-environment", python=python, symptoms=(in_build,)).outcome is Outcome.SKIPPED


NO_CUPY = Symptom(kind="cupy-not-installed", text="No module named 'cupy'")


def test_cupy_in_another_environment() -> None:
    cupy = Cupy(distributions=(Package(name="cupy-cuda11x", version=PackageVersion("12.2.0"), location="/usr/lib"),))
    (finding,) = run_check("wrong-python-environment", cupy=cupy, symptoms=(NO_CUPY,)).findings
    assert finding.summary == (
        "Cupy-cuda11x 12.2.0 is installed in /usr/lib, and the Python that ran the program has none"
    )
    assert "python -m pip show cupy-cuda11x" in finding.remedies[0].commands
    none = Cupy(distributions=())
    assert run_check("wrong-python-environment", cupy=none, symptoms=(NO_CUPY,)).outcome is Outcome.SKIPPED


def test_one_interpreter_shows_a_version_and_another_finds_none() -> None:
    torch = Torch(installed=True, version=PackageVersion("2.1.0"))
    (finding,) = run_check("wrong-python-environment", torch=torch, symptoms=(MISSING,)).findings
    assert finding.facts == ("symptoms[0].text", "torch.version")


def test_an_installer_that_failed_explains_it() -> None:
    torch = Torch(installed=True, version=PackageVersion("2.1.0"))
    refused = Symptom(kind="pip-no-match", text="x", library="pip", names={"package": "torch"})
    result = run_check("wrong-python-environment", torch=torch, symptoms=(MISSING, refused))
    assert result.outcome is Outcome.SKIPPED


@pytest.mark.parametrize(
    ("symptoms", "outcome"),
    [
        ((Symptom(kind="python-of-its-own", text="python_embeded/python.exe"),), Outcome.FOUND),
        ((), Outcome.SKIPPED),
    ],
    ids=["its own Python", "one Python"],
)
def test_pip_lists_another_version_than_the_program_has(symptoms: tuple[Symptom, ...], outcome: Outcome) -> None:
    both = Contradiction(fact="torch.version", taken="2.3.1+cu121 (log in a.txt)", other="2.3.0+cu121 (pip in b.txt)")
    result = run_check("wrong-python-environment", contradictions=(both,), symptoms=symptoms)
    assert result.outcome is outcome
