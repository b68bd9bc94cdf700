"""What shows two Python environments."""

from __future__ import annotations

from typing import Any

import pytest

from gpudoctor.conclusions import Facts
from gpudoctor.model import Contradiction, Cupy, Package, PackageVersion, Python, Snapshot, Symptom, TwoEnvironments
from gpudoctor.symptoms.matching import recognise

TORCH = Python(packages=(Package(name="torch", version=PackageVersion("2.9.1")),))
CUPY = Cupy(distributions=(Package(name="cupy-cuda12x", version=PackageVersion("14.2.0"), location="/opt"),))
MISSING = Symptom(kind="torch-module-missing", text="No module named 'torch'", names={"missing": "torch"})
NO_CUPY = Symptom(kind="cupy-not-installed", text="No module named 'cupy'")
IN_BUILD = Symptom(kind="build-lacks-torch-said", text="flash-attn fails because torch is missing")


def concluded(*symptoms: Symptom, **sections: Any) -> TwoEnvironments:
    found: TwoEnvironments = Facts(Snapshot(symptoms=symptoms, contradictions=(), **sections)).get("two_environments")
    return found


def test_a_program_finds_no_torch_although_it_is_installed() -> None:
    found = concluded(MISSING, python=TORCH)
    assert (found.module, found.facts[1]) == ("torch", "python.packages[0].version")
    assert found.summary.startswith("Torch 2.9.1 is installed")


@pytest.mark.parametrize(
    ("symptoms", "sections"),
    [
        pytest.param((MISSING,), {}, id="it is installed nowhere"),
        pytest.param((), {"python": TORCH}, id="no program misses it"),
        pytest.param((MISSING, IN_BUILD), {"python": TORCH}, id="the build of a package has an environment of its own"),
        pytest.param((NO_CUPY,), {"cupy": Cupy(distributions=())}, id="no CuPy"),
    ],
)
def test_one_environment_alone(symptoms: tuple[Symptom, ...], sections: dict[str, Any]) -> None:
    assert concluded(*symptoms, **sections) == TwoEnvironments()


def test_the_same_of_cupy() -> None:
    found = concluded(NO_CUPY, cupy=CUPY)
    assert (found.module, found.facts[1]) == ("cupy-cuda12x", "cupy.distributions")


def test_two_interpreters_that_are_one() -> None:
    said = Symptom(kind="python-interpreters-differ", text="...", names={"one": "/a/python", "two": "/a/python"})
    assert concluded(said) == TwoEnvironments()


def test_a_launcher_of_another_environment() -> None:
    assert concluded(Symptom(kind="python-other-environment-started", text="/usr/bin/torchrun")).launcher


OWN = Symptom(kind="python-of-its-own", text="python_embeded\\python.exe", fact="symptoms[0].text")


@pytest.mark.parametrize(
    ("symptoms", "fact", "where", "facts"),
    [
        pytest.param((OWN,), "torch.version", "pip", ("contradictions[0].other", "symptoms[0].text"), id="pip's"),
        pytest.param((OWN,), "torch.version", "line", (), id="of no package list"),
        pytest.param((OWN,), "driver.version", "pip", (), id="another fact"),
        pytest.param((), "torch.version", "pip", (), id="no Python of its own"),
    ],
)
def test_a_program_with_its_own_python_next_to_another_pytorch(
    symptoms: tuple[Symptom, ...], fact: str, where: str, facts: tuple[str, ...]
) -> None:
    differ = Contradiction(fact=fact, taken="2.9.0+cu128 (line 3)", other=f"2.9.0+cpu ({where} in report.txt)")
    found = Facts(Snapshot(symptoms=symptoms, contradictions=(differ,))).get("two_environments")
    assert found.facts == facts


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("C:\\> where python\nC:\\envs\\a\\python.exe\nC:\\Python311\\python.exe\nC:\\> pip list", False),
        ("C:\\> where python\nC:\\envs\\a\\python.exe\nthe job runs C:\\Python311\\python.exe", True),
    ],
)
def test_a_list_of_interpreters_on_the_path_is_no_second_program(text: str, named: bool) -> None:
    assert any(item.symptom.kind == "python-interpreters-differ" for item in recognise(text)) is named
