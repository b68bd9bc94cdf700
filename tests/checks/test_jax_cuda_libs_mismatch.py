import pytest

from gpudoctor.model import Outcome, Severity, Symptom
from gpudoctor.testing import run_check


def outdated(name: str, loaded: str, built_with: str) -> tuple[Symptom, ...]:
    names = {"name": name, "loaded": loaded, "built_with": built_with}
    return (Symptom(kind="jax-library-outdated", text=f"{name} is older", library="jax", names=names),)


@pytest.mark.parametrize(
    ("message", "wheel"),
    [
        pytest.param(outdated("CUDA", "12010", "12030"), "jax[cuda12]", id="CUDA 12"),
        pytest.param(outdated("cuBLAS", "130001", "130200"), "jax[cuda13]", id="cuBLAS of CUDA 13"),
        pytest.param(outdated("cuFFT", "11002", "11008"), "jax[cuda12]", id="cuFFT counts one less"),
        pytest.param(outdated("cuSOLVER", "11700", "12000"), "jax[cuda13]", id="cuSOLVER of CUDA 13"),
    ],
)
def test_an_older_library_is_named_with_what_replaces_it(message: tuple[Symptom, ...], wheel: str) -> None:
    (finding,) = run_check("jax-cuda-libs-mismatch", symptoms=message).findings
    names = message[0].names
    assert finding.severity is Severity.ERROR
    assert finding.summary == f"JAX was built with {names['name']} {names['built_with']}, but finds {names['loaded']}"
    assert wheel in " ".join(finding.remedies[0].commands)
    assert "LD_LIBRARY_PATH" in finding.remedies[1].summary


def test_a_report_without_such_a_message_is_not_its_case() -> None:
    result = run_check("jax-cuda-libs-mismatch", symptoms=())
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, "JAX reports no CUDA library that is too old")
