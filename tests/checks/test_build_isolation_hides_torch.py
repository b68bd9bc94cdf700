"""Builds in an environment of their own, which has no PyTorch."""

from __future__ import annotations

import pytest

from gpudoctor.model import Outcome, Python, Severity, Symptom, Torch
from gpudoctor.readers import messages as reader
from gpudoctor.readers.text import clean_text
from gpudoctor.testing import run_check

MISSING = "ModuleNotFoundError: No module named 'torch'"
PIP = f"Collecting gsplat\n  Getting requirements to build wheel ... error\n  {MISSING}\n"
UV = f"Failed to build `causal-conv1d==1.4.0`\nThe build backend returned an error\n{MISSING}\n"


def said(text: str) -> tuple[Symptom, ...]:
    found: tuple[Symptom, ...] = reader.read(clean_text(text, "report"))["symptoms"]
    return found


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        pytest.param(PIP, Outcome.FOUND, id="pip"),
        pytest.param(UV, Outcome.FOUND, id="uv"),
        pytest.param(f"{MISSING}\nhint: `xformers@0.0.20` depends on `torch`, but", Outcome.FOUND, id="hint after it"),
        pytest.param(f'File "/tmp/pip-build-env-x/overlay/a.py"\n{MISSING}', Outcome.FOUND, id="cut: a path of pip's"),
        pytest.param(f"File train.py\n{MISSING}", Outcome.SKIPPED, id="a program"),
        pytest.param(
            f"Getting requirements to build wheel ... done\n$ python a.py\n{MISSING}",
            Outcome.SKIPPED,
            id="build went well",
        ),
        pytest.param("No module named 'torch._six' Failed to build x", Outcome.SKIPPED, id="another module"),
    ],
)
def test_outcome(text: str, outcome: Outcome) -> None:
    assert run_check("build-isolation-hides-torch", symptoms=said(text)).outcome is outcome


@pytest.mark.parametrize(("names", "outcome"), [({"requirements": "x"}, Outcome.FOUND), ({}, Outcome.SKIPPED)])
def test_a_build_that_failed_before_it_began_lacks_torch(names: dict[str, str], outcome: Outcome) -> None:
    failed = Symptom(kind="package-build-failed", text="failed", names=names)
    symptoms = (failed, Symptom(kind="torch-module-missing", text=MISSING))
    assert run_check("build-isolation-hides-torch", symptoms=symptoms).outcome is outcome


def test_finding_and_commands() -> None:
    (finding,) = run_check(
        "build-isolation-hides-torch", symptoms=said(PIP), torch=Torch(installed=True), python=Python(installer="uv")
    ).findings
    assert finding.severity is Severity.ERROR
    assert finding.summary == "The isolated build of gsplat finds no torch, although it is installed"
    assert finding.remedies[0].commands[-1] == "uv pip install --no-build-isolation gsplat"
    assert "extra-build-dependencies" in finding.remedies[1].summary
    assert len(finding.remedies) == 2


def test_pytorch_is_installed_first_if_it_is_not_known_to_be_there() -> None:
    (finding,) = run_check("build-isolation-hides-torch", symptoms=said(UV)).findings
    assert finding.subject == "causal-conv1d"
    assert "after PyTorch is installed" in finding.remedies[0].summary
    assert "torch==" in finding.remedies[-1].commands[0]


@pytest.mark.parametrize("symptoms", [None, ()])
def test_not_applicable(symptoms: tuple[Symptom, ...] | None) -> None:
    result = run_check("build-isolation-hides-torch", symptoms=symptoms)
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, "no build reports that it lacks torch")


@pytest.mark.parametrize("first", ["setuptools", "wheel", "packaging", "ninja", "torch", "torchvision", "pip", "-U"])
def test_what_a_command_installs_in_addition_is_not_what_is_built(first: str) -> None:
    command = Symptom(
        kind="pip-install-command", text="x", names={"arguments": f"{first} https://x/y flash-attn. gsplat"}
    )
    said_so = Symptom(kind="build-lacks-torch-said", text="x")
    (finding,) = run_check("build-isolation-hides-torch", symptoms=(said_so, command)).findings
    assert finding.subject == "flash-attn"


@pytest.mark.parametrize(
    ("words", "subject"),
    [
        ("I did pip install it and got", "build"),
        ("The pip one fails. Is pip installing in the wrong order?", "build"),
        ("pip install deepspeed", "deepspeed"),
        ("pip install my-kernels", "my-kernels"),
    ],
)
def test_a_word_of_prose_is_not_taken_for_a_package(words: str, subject: str) -> None:
    symptoms = said(f'{words}\n{MISSING} while "Getting requirements to build wheel"')
    (finding,) = run_check("build-isolation-hides-torch", symptoms=symptoms).findings
    assert finding.subject == subject
