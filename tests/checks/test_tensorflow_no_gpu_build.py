import pytest

from gpudoctor.model import Outcome, Package, PackageVersion, Python, Symptom, System
from gpudoctor.testing import run_check

EMPTY = Symptom(kind="asks-tensorflow-list-empty", text="[]", library="tensorflow")
WINDOWS = System(os="windows")
LINUX = System(os="linux")


def tensorflow(version: str, name: str = "tensorflow") -> Python:
    return Python(packages=(Package(name=name, version=PackageVersion(version)),))


@pytest.mark.parametrize(
    ("system", "python", "outcome"),
    [
        pytest.param(WINDOWS, tensorflow("2.11.0"), Outcome.FOUND, id="first release without GPU on Windows"),
        pytest.param(WINDOWS, tensorflow("2.10.1"), Outcome.SKIPPED, id="last release with GPU on Windows"),
        pytest.param(LINUX, tensorflow("2.11.0"), Outcome.SKIPPED, id="Linux"),
        pytest.param(LINUX, tensorflow("2.11.0", "tensorflow-cpu"), Outcome.FOUND, id="distribution for the CPU"),
        pytest.param(WINDOWS, tensorflow("2.10.0", "tensorflow-intel"), Outcome.FOUND, id="Intel's distribution"),
    ],
)
def test_outcome(system: System, python: Python, outcome: Outcome) -> None:
    result = run_check("tensorflow-no-gpu-build", symptoms=(EMPTY,), system=system, python=python)
    assert result.outcome is outcome


@pytest.mark.parametrize(
    ("version", "outcome"), [("3.10.11", Outcome.SKIPPED), ("3.11.0", Outcome.FOUND), ("3.12.1", Outcome.FOUND)]
)
def test_a_python_for_which_the_last_release_has_no_wheel(version: str, outcome: Outcome) -> None:
    python = Python(version=PackageVersion(version), packages=tensorflow("2.10.1").packages)
    assert run_check("tensorflow-no-gpu-build", symptoms=(EMPTY,), system=WINDOWS, python=python).outcome is outcome


@pytest.mark.parametrize(
    ("version", "outcome"), [("1.14.0", Outcome.FOUND), ("1.15.0", Outcome.SKIPPED), ("2.0.0", Outcome.SKIPPED)]
)
def test_releases_of_which_the_gpu_had_another_distribution(version: str, outcome: Outcome) -> None:
    python = tensorflow(version)
    assert run_check("tensorflow-no-gpu-build", symptoms=(EMPTY,), system=LINUX, python=python).outcome is outcome


def test_an_unknown_release_is_a_guess() -> None:
    (finding,) = run_check("tensorflow-no-gpu-build", symptoms=(EMPTY,), system=WINDOWS).findings
    assert (finding.certain, "Probably" in finding.summary) == (False, True)


def test_the_fixes_are_wsl_or_the_last_release() -> None:
    python = tensorflow("2.16.1")
    (finding,) = run_check("tensorflow-no-gpu-build", symptoms=(EMPTY,), system=WINDOWS, python=python).findings
    assert finding.certain
    assert [("wsl" in fix.summary.lower(), "2.10" in fix.summary) for fix in finding.remedies] == [
        (True, True),
        (False, True),
    ]
    assert "torch" not in " ".join(command for fix in finding.remedies for command in fix.commands)


def test_a_distribution_for_the_cpu_is_replaced() -> None:
    python = tensorflow("2.16.1", "tensorflow-cpu")
    (finding,) = run_check("tensorflow-no-gpu-build", symptoms=(EMPTY,), system=LINUX, python=python).findings
    assert "tensorflow[and-cuda]" in " ".join(finding.remedies[0].commands)


@pytest.mark.parametrize("kind", ["wsl-named", "place-docker", "directml-tensorflow"])
def test_linux_inside_windows_is_no_windows(kind: str) -> None:
    symptoms = (EMPTY, Symptom(kind=kind, text="it"))
    result = run_check("tensorflow-no-gpu-build", symptoms=symptoms, system=WINDOWS, python=tensorflow("2.16.1"))
    assert result.outcome is Outcome.SKIPPED


def test_without_a_complaint_it_says_nothing() -> None:
    result = run_check("tensorflow-no-gpu-build", symptoms=(), system=WINDOWS, python=tensorflow("2.16.1"))
    assert result.outcome is Outcome.SKIPPED
