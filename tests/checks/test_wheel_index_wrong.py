"""The version of PyTorch asked for against the index."""

from __future__ import annotations

import pytest

from gpudoctor.model import Outcome, PackageVersion, Python, Severity, Symptom, System
from gpudoctor.readers import messages as reader
from gpudoctor.readers.text import clean_text
from gpudoctor.testing import run_check

NO_VERSION = "ERROR: Could not find a version that satisfies the requirement {} (from versions: {})"
CU118 = "Looking in indexes: https://download.pytorch.org/whl/cu118\n"
PLAIN = "2.0.0, 2.0.1, 2.1.0"
LONG = [
    f"{version}{kind}" for version in ("1.13.1", "2.0.1", "2.1.2", "2.2.1", "2.9.1") for kind in ("", "+cpu", "+xpu")
]


def said(text: str) -> tuple[Symptom, ...]:
    found: tuple[Symptom, ...] = reader.read(clean_text(text, "report"))["symptoms"]
    return found


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        pytest.param(NO_VERSION.format("torch==2.0.1+cu118", PLAIN), Outcome.FOUND, id="variant on the default index"),
        pytest.param(NO_VERSION.format("torch==2.0.1+cu118", "none"), Outcome.PASSED, id="nothing for this Python"),
        pytest.param(NO_VERSION.format("torch==1.13.1", PLAIN), Outcome.PASSED, id="an old release, a new Python"),
        pytest.param(NO_VERSION.format("torch==2.0.7", PLAIN), Outcome.PASSED, id="the release has other patches"),
        pytest.param(
            NO_VERSION.format("torch==2.2.1+cu121", ", ".join(LONG * 9)) + " No matching distribution found for torch",
            Outcome.FOUND,
            id="in the middle of a long list",
        ),
        pytest.param(
            CU118 + NO_VERSION.format("torch==2.9.0", "2.6.0+cu118, 2.7.1+cu118"), Outcome.FOUND, id="not in variant"
        ),
        pytest.param(
            CU118 + NO_VERSION.format("torch==2.0.1", "2.6.0+cu118, 2.7.1+cu118"), Outcome.PASSED, id="too new a Python"
        ),
        pytest.param(CU118 + NO_VERSION.format("torch", "none"), Outcome.PASSED, id="an index that exists"),
        pytest.param(
            "pip install torch --index-url https://download.pytorch.org/whl/cu122\n"
            + NO_VERSION.format("torch", "none"),
            Outcome.FOUND,
            id="an index that does not",
        ),
        pytest.param("ERROR: No matching distribution found for torch==2.2.2+cu121", Outcome.FOUND, id="no list"),
        pytest.param("Because there is no version of torch==2.4.1+cu121 and you require it", Outcome.FOUND, id="uv"),
        pytest.param(
            "PackagesNotFoundError: The following packages are not available: - pytorch-cuda=12.1",
            Outcome.FOUND,
            id="conda",
        ),
    ],
)
def test_outcome(text: str, outcome: Outcome) -> None:
    assert run_check("wheel-index-wrong", symptoms=said(text)).outcome is outcome


def test_the_variant_asked_for_is_taken_from_its_own_index() -> None:
    text = NO_VERSION.format("torch==2.0.1+cu118", PLAIN)
    (finding,) = run_check("wheel-index-wrong", symptoms=said(text)).findings
    assert finding.severity is Severity.ERROR
    assert finding.summary == "torch==2.0.1+cu118 is not on the default index, which has 2.0.0, 2.0.1, 2.1.0"
    assert finding.remedies[0].commands[0] == (
        "python -m pip install --index-url https://download.pytorch.org/whl/cu118 torch==2.0.1+cu118"
    )


def test_a_rocm_release_names_the_index_that_has_it_and_what_this_one_has() -> None:
    text = "pip install torch==2.5.1 --index-url https://download.pytorch.org/whl/rocm5.7\n"
    text += NO_VERSION.format("torch==2.5.1", "2.2.0+rocm5.7, 2.3.0+rocm5.7, 2.3.1+rocm5.7")
    (finding,) = run_check("wheel-index-wrong", symptoms=said(text)).findings
    first, second = finding.remedies
    assert first.commands[0].endswith("--index-url https://download.pytorch.org/whl/rocm6.2 torch==2.5.1+rocm6.2")
    assert "2.3.1+rocm5.7" in second.summary


def test_macos_takes_the_plain_wheel() -> None:
    text = CU118 + NO_VERSION.format("torch==2.1.0", "none")
    mac = System(os="darwin", machine="arm64")
    (finding,) = run_check("wheel-index-wrong", symptoms=said(text), system=mac).findings
    assert finding.remedies[0].commands[0] == "python -m pip install torch==2.1.0"


def test_uv_hears_of_its_index_strategy() -> None:
    text = "`torch` was found on https://download.pytorch.org/whl/cpu, but not at the requested version (torch==2.4.1)."
    (finding,) = run_check("wheel-index-wrong", symptoms=said(text)).findings
    assert "--index-strategy unsafe-best-match" in finding.remedies[-1].summary


def test_a_python_without_wheels_is_another_finding() -> None:
    python = Python(version=PackageVersion("3.14.0"), free_threaded=False)
    text = CU118 + NO_VERSION.format("torch==2.0.1+cu118", "none")
    assert run_check("wheel-index-wrong", symptoms=said(text), python=python).outcome is Outcome.PASSED
    assert run_check("python-version-no-wheel", symptoms=said(text), python=python).outcome is Outcome.FOUND


@pytest.mark.parametrize("symptoms", [None, (), said("Torch not compiled with CUDA enabled")])
def test_not_applicable(symptoms: tuple[Symptom, ...] | None) -> None:
    result = run_check("wheel-index-wrong", symptoms=symptoms)
    assert (result.outcome, result.applicable) == (Outcome.SKIPPED, False)
    assert result.reason == "no installer reports that it found no PyTorch"
