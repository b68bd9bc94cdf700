"""build-tools-missing."""

import pytest

from gpudoctor.model import Outcome, PackageVersion, Python, Severity, Symptom, System
from gpudoctor.testing import run_check

CHECK = "build-tools-missing"
NO_COMPILER = Symptom(kind="build-tool-compiler", text="Failed to find C compiler")
NO_HEADERS = Symptom(kind="build-tool-python-headers", text="fatal error: Python.h", names={"header": "Python.h"})


def test_a_compiler_is_installed_with_the_package_manager_of_the_machine() -> None:
    (finding,) = run_check(CHECK, symptoms=(NO_COMPILER,), system=System(os="linux", distribution="ubuntu")).findings
    assert finding.severity is Severity.ERROR
    assert finding.remedies[0].commands[0] == "sudo apt-get install --yes build-essential"
    assert len(finding.remedies) == 1


def test_in_conda_the_compiler_comes_into_the_environment() -> None:
    python = Python(environment="conda", prefix="/env")
    (finding,) = run_check(CHECK, symptoms=(NO_COMPILER,), python=python, system=System(os="linux")).findings
    assert finding.remedies[0].commands[0] == "conda install --yes --prefix /env --channel conda-forge gcc gxx"


def test_on_windows_the_build_tools_are_named_and_no_apt() -> None:
    message = Symptom(kind="build-tool-msvc", text="Cannot find compiler 'cl.exe'")
    (finding,) = run_check(CHECK, symptoms=(message,), system=System(os="windows")).findings
    assert "Build Tools for Visual Studio" in finding.remedies[0].summary
    assert not any("apt-get" in command for remedy in finding.remedies for command in remedy.commands)


def test_headers_are_those_of_the_python_that_runs() -> None:
    python = Python(version=PackageVersion("3.11.9"))
    (finding,) = run_check(CHECK, symptoms=(NO_COMPILER, NO_HEADERS), python=python, system=System(os="linux")).findings
    assert finding.summary.startswith("The compiler finds no Python.h")
    assert finding.remedies[0].commands[0] == "sudo apt-get install --yes python3.11-dev"


@pytest.mark.parametrize(
    ("kind", "os", "requirement"),
    [
        pytest.param("build-tool-ninja", "linux", "ninja", id="ninja"),
        pytest.param("build-tool-triton", "linux", "--upgrade triton", id="triton"),
        pytest.param("build-tool-triton", "windows", "--upgrade triton-windows", id="triton on Windows"),
    ],
)
def test_what_pip_has_is_installed_by_pip(kind: str, os: str, requirement: str) -> None:
    (finding,) = run_check(CHECK, symptoms=(Symptom(kind=kind, text="not found"),), system=System(os=os)).findings
    assert finding.remedies[0].commands[0].endswith(f"-m pip install {requirement}")


def test_another_message_is_not_its_question() -> None:
    result = run_check(CHECK, symptoms=(Symptom(kind="toolkit-nvcc-missing", text="nvcc was not found"),))
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, "no message reports this problem")
