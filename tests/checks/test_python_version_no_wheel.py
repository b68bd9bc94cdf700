"""The interpreter and platform against the wheels of PyTorch."""

from __future__ import annotations

from typing import Any

import pytest

from gpudoctor.engine.runner import run_checks
from gpudoctor.model import (
    Device,
    Outcome,
    PackageVersion,
    Project,
    Python,
    Requirement,
    Severity,
    Symptom,
    System,
    Torch,
)
from gpudoctor.readers.report import read_texts
from gpudoctor.testing import run_check
from tests.own_checks import own_checks

ABSENT = Torch(installed=False)
X86 = System(os="linux", machine="x86_64", glibc="2.39", pci_gpus=())


def asks(specifier: str = "") -> Project:
    return Project(requirements=(Requirement(name="torch", specifier=specifier, source="requirements.txt line 1"),))


def python(version: str, **fields: Any) -> Python:
    return Python(**{"version": PackageVersion(version), "free_threaded": False, "installer": "pip", **fields})


@pytest.mark.parametrize(
    ("interpreter", "system", "project", "outcome"),
    [
        pytest.param(python("3.12.3"), X86, asks(), Outcome.PASSED, id="has wheels"),
        pytest.param(python("3.19.0"), X86, asks(), Outcome.FOUND, id="too new"),
        pytest.param(python("3.8.20"), X86, asks(), Outcome.PASSED, id="an old release has one"),
        pytest.param(python("3.8.20"), X86, asks(">=2.6"), Outcome.FOUND, id="the release asked for has none"),
        pytest.param(python("3.13.1"), X86, asks("==2.3.1"), Outcome.FOUND, id="an old release asked for"),
        pytest.param(python("3.12.3", free_threaded=True), X86, asks(), Outcome.FOUND, id="free-threaded 3.12"),
        pytest.param(python("3.12.3"), System(os="linux", machine="ppc64le"), asks(), Outcome.FOUND, id="POWER"),
        pytest.param(
            python("3.12.3"), System(os="linux", machine="x86_64", glibc=""), asks(), Outcome.FOUND, id="musl"
        ),
        pytest.param(
            python("3.12.3", platform_tag="win32"),
            System(os="windows", machine="AMD64"),
            asks(),
            Outcome.FOUND,
            id="32-bit",
        ),
        pytest.param(
            python("3.12.3"), System(os="windows", machine="ARM64"), asks(), Outcome.FOUND, id="Windows on Arm"
        ),
        pytest.param(
            python("3.12.3"), System(os="darwin", machine="arm64"), asks(), Outcome.PASSED, id="Apple silicon"
        ),
    ],
)
def test_outcome(interpreter: Python, system: System, project: Project, outcome: Outcome) -> None:
    result = run_check("python-version-no-wheel", python=interpreter, system=system, project=project, torch=ABSENT)
    assert result.outcome is outcome


def test_finding_and_command() -> None:
    (finding,) = run_check(
        "python-version-no-wheel", python=python("3.13.1"), system=X86, project=asks("==2.3.1"), torch=ABSENT
    ).findings
    assert finding.severity is Severity.ERROR
    assert finding.summary == (
        "torch==2.3.1 has no wheel for Python 3.13 on linux (x86_64): it has wheels for 3.8 to 3.12"
    )
    assert finding.remedies[0].commands == (
        "python3.12 -m venv .venv",
        ".venv/bin/python -m pip install torch==2.3.1",
    )


def test_command_of_uv() -> None:
    interpreter = python("3.19.0", installer="uv")
    (finding,) = run_check(
        "python-version-no-wheel",
        python=interpreter,
        system=X86,
        project=asks(),
        torch=ABSENT,
        devices=(Device(nvml_index=0, name="NVIDIA L4"),),
    ).findings
    assert finding.remedies[0].commands[0] == "uv venv --python 3.15 .venv"
    assert finding.remedies[0].commands[1].startswith("uv pip install --python .venv/bin/python --index-url ")


def test_no_command_if_no_python_has_a_wheel() -> None:
    system = System(os="linux", machine="ppc64le")
    (finding,) = run_check("python-version-no-wheel", python=python("3.12.3"), system=system, torch=ABSENT).findings
    assert finding.remedies[0].commands == ()


def test_advice_if_nothing_asks_for_pytorch() -> None:
    result = run_check(
        "python-version-no-wheel", python=python("3.19.0"), system=X86, project=Project(requirements=()), torch=ABSENT
    )
    assert result.findings[0].severity is Severity.INFO


@pytest.mark.parametrize(
    ("sections", "reason"),
    [
        pytest.param({"torch": Torch(installed=True)}, "PyTorch is installed", id="installed"),
        pytest.param({"python": Python()}, "python.version is unknown", id="Python"),
        pytest.param({"system": System(os="linux")}, "system.machine is unknown", id="the machine"),
        pytest.param({"torch": Torch()}, "torch.installed is unknown", id="PyTorch"),
    ],
)
def test_skipped(sections: dict[str, Any], reason: str) -> None:
    values = {"python": python("3.19.0"), "system": X86, "torch": ABSENT}
    result = run_check("python-version-no-wheel", **{**values, **sections})
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, reason)


def refused(text: str, **names: str) -> tuple[Symptom, ...]:
    return (Symptom(kind="pip-no-version", text=text, library="pip", names={"package": "torch", **names}),)


def test_an_installer_that_found_nothing() -> None:
    (finding,) = run_check(
        "python-version-no-wheel", symptoms=refused("x", specifier="==1.11.0+cu113", versions="none")
    ).findings
    assert finding.severity is Severity.ERROR
    assert finding.summary == (
        "torch==1.11.0+cu113 has no wheel for this Python version or platform: its wheels are for Python 3.7 to 3.10"
    )
    assert finding.remedies[0].commands[:2] == (
        "python3.9 -m venv .venv",
        ".venv/bin/python -m pip install --extra-index-url https://download.pytorch.org/whl/cu113 torch==1.11.0+cu113",
    )


def test_an_installer_with_a_known_python_names_the_releases_for_it() -> None:
    (finding,) = run_check(
        "python-version-no-wheel",
        python=python("3.12.3"),
        system=X86,
        symptoms=refused("x", specifier="==1.13.1", versions="2.2.0, 2.2.1"),
    ).findings
    assert finding.summary.startswith("torch==1.13.1 has no wheel for Python 3.12: ")
    assert finding.remedies[0].commands[0] == "python3.11 -m venv .venv"
    assert finding.remedies[1].summary.endswith("PyTorch 2.2 to 2.15")


def test_an_index_without_the_version_is_another_finding() -> None:
    symptoms = refused("x", specifier="==2.1.0+cu118", versions="2.0.0, 2.1.0, 2.2.0")
    assert run_check("python-version-no-wheel", symptoms=symptoms).outcome is Outcome.PASSED


@pytest.mark.parametrize(("version", "named"), [("2.15.0", False), ("2.99.0", True)])
def test_what_is_newer_than_the_table_is_said_to_be(version: str, named: bool) -> None:
    text = (
        f"$ python -m pip install torch=={version}\nPython 3.10.12\n"
        f"ERROR: Could not find a version that satisfies the requirement torch=={version} (from versions: none)\n"
        f"ERROR: No matching distribution found for torch=={version}\n"
    )
    report = run_checks(own_checks(), read_texts([("log", text.encode())]))
    (finding,) = (found for found in report.findings if found.check_id == "python-version-no-wheel")
    assert (f"torch=={version} has wheels" in finding.remedies[0].summary) is not named
    assert (f"torch=={version} is not in gpudoctor's tables" in finding.remedies[0].summary) is named


NOT_FOUND = (
    "ERROR: Could not find a version that satisfies the requirement torch (from versions: none)\n"
    "ERROR: No matching distribution found for torch\nRTX 4070\n"
)


@pytest.mark.parametrize(
    ("typed", "says", "first", "command"),
    [
        pytest.param(
            "C:\\> python --version\nPython 3.14.0\n"
            "C:\\> pip install torch --index-url https://download.pytorch.org/whl/cu121\n",
            "has no wheel on the index cu121 for Python 3.14: its wheels are for Python 3.9 to 3.12",
            "Keep Python 3.14 and use an index that has wheels for it",
            "-m pip install --index-url https://download.pytorch.org/whl/cu1",
            id="an old index",
        ),
        pytest.param(
            "C:\\> pip install torch --index-url https://download.pytorch.org/whl/cu124\n",
            "has no wheel on the index cu124",
            "Create an environment with a 64-bit Python 3.12",
            r".venv\Scripts\python.exe -m pip install --index-url https://download.pytorch.org/whl/cu124 torch",
            id="an old index, Python unknown",
        ),
        pytest.param(
            "C:\\> python --version\nPython 3.7.0\nC:\\> pip install torch\n",
            "has no wheel",
            "Create an environment with a 64-bit Python",
            "-m pip install --index-url https://download.pytorch.org/whl/cu1",
            id="the default index, which has no CUDA build for Windows",
        ),
    ],
)
def test_windows_gets_a_cuda_build(typed: str, says: str, first: str, command: str) -> None:
    report = run_checks(own_checks(), read_texts([("log", (typed + NOT_FOUND).encode())]))
    (finding,) = (found for found in report.findings if found.check_id == "python-version-no-wheel")
    assert says in finding.summary
    assert finding.remedies[0].summary.startswith(first)
    assert any(command in each for each in finding.remedies[0].commands)


def test_a_jetson_gets_its_own_wheels() -> None:
    typed = "Jetson AGX Orin, JetPack 5.1.2\n$ python3 --version\nPython 3.7.0\n$ pip install torch\n"
    report = run_checks(own_checks(), read_texts([("log", (typed + NOT_FOUND).encode())]))
    (finding,) = (found for found in report.findings if found.check_id == "python-version-no-wheel")
    assert "jetson-ai-lab" in " ".join(finding.remedies[0].commands)
